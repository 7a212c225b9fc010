"""What a step of learning leaves behind: one record in the library, written in the transaction of the step's updates.

All that a run is resumed and reported from is read back from these records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pyrag.errors import DataError
from pyrag.methods.hera.topology import Agent, Characterisation, Topology

Kind = Literal["sample", "mutation", "variant"]


@dataclass(frozen=True, slots=True)
class Tried:
    """One trajectory: its topology, how it scored, and tokens of all its agents. `label` names a variant's axis or what
    was mutated."""

    kind: Kind
    topology: Topology
    f1: float
    tokens: int
    answer: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class ValidatedUpdate:
    """A change that was put to the validation questions: their mean F1 without and with it. `agent` is whose prompt was
    changed; none for insights. `lines` are the operations or the lines added."""

    before: float
    after: float
    lines: tuple[str, ...]
    agent: Agent | None = None
    version: int = 0  # of the prompts that hold the change

    @property
    def accepted(self) -> bool:
        """An update that lowers the validation score is refused."""
        return self.after >= self.before

    @property
    def score(self) -> float:
        """What the validation questions score from then on."""
        return max(self.before, self.after)


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """An entry of an agent's buffer B_i."""

    agent: Agent
    trajectory: str


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Step 0 is the state before learning; one without `question` changed no state by learning (a revert).

    `score` is the mean F1 on the validation questions as last measured, `version` that of the prompts after the step,
    `calls` and `tokens` what the whole run has paid for until then.
    """

    step: int
    score: float
    version: int = 0
    question: str = ""
    profile: Characterisation | None = None
    tried: tuple[Tried, ...] = ()
    reflected: bool = False
    insights: tuple[str, ...] = ()
    blamed: tuple[Agent, ...] = ()
    failures: tuple[AgentFailure, ...] = ()
    updates: tuple[ValidatedUpdate, ...] = ()
    calls: int = 0
    tokens: int = 0
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[Tried, ...]:
        """What the orchestrator sampled, the first one being its best guess."""
        return tuple(one for one in self.tried if one.kind == "sample")

    @property
    def last_version(self) -> int:
        """The highest number of a version of the prompts that the step made, accepted or not."""
        return max([self.version, *(one.version for one in self.updates)])


def written(record: StepRecord) -> str:
    import msgspec

    return msgspec.json.encode(record).decode()


def read(records: Iterable[str]) -> list[StepRecord]:
    """Raises `DataError` where a record is no step's."""
    import msgspec

    try:
        return [msgspec.json.decode(one, type=StepRecord) for one in records]
    except msgspec.DecodeError as error:
        raise DataError(f"a record of the experience library is no step of pyrag evolve ({error})") from error
