"""Records of steps in the library, each written in the transaction of its step's updates.

Runs are continued and reported from these records only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pyrag.errors import DataError
from pyrag.methods.hera.topology import Agent, Characterisation, Topology

Kind = Literal["sample", "mutation", "variant"]


@dataclass(frozen=True, slots=True)
class TriedTopology:
    """Trajectory, with its topology, score and tokens of all agents. `label` names a variant's axis or a mutation."""

    kind: Kind
    topology: Topology
    f1: float
    tokens: int
    answer: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class ValidatedUpdate:
    """Change, with the mean F1 on the validation questions without and with it.

    `agent` is the agent whose prompt changed, or None for insights. `lines` are the added lines or the operations.
    """

    before: float
    after: float
    lines: tuple[str, ...]
    agent: Agent | None = None
    version: int = 0  # version of the prompts that has the change

    @property
    def accepted(self) -> bool:
        """False for an update that lowers the validation score."""
        return self.after >= self.before

    @property
    def score(self) -> float:
        """The validation score after accepting or rejecting the update."""
        return max(self.before, self.after)


@dataclass(frozen=True, slots=True)
class AgentFailure:
    """Entry of an agent's buffer B_i."""

    agent: Agent
    trajectory: str


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Record of a step. Step 0 is the state before learning. A record without `question` stands for a revert.

    `score` is the last measured mean F1 on the validation questions, `version` is the version of the prompts after the
    step, and `calls` and `tokens` are the cost of the run so far.
    """

    step: int
    score: float
    version: int = 0
    question: str = ""
    profile: Characterisation | None = None
    tried: tuple[TriedTopology, ...] = ()
    reflected: bool = False
    insights: tuple[str, ...] = ()
    blamed: tuple[Agent, ...] = ()
    failures: tuple[AgentFailure, ...] = ()
    updates: tuple[ValidatedUpdate, ...] = ()
    calls: int = 0
    tokens: int = 0
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> tuple[TriedTopology, ...]:
        """Sampled trajectories. The first one is the orchestrator's best topology."""
        return tuple(trajectory for trajectory in self.tried if trajectory.kind == "sample")

    @property
    def last_version(self) -> int:
        """Highest version of the prompts that the step made, whether accepted or not."""
        return max([self.version, *(update.version for update in self.updates)])


def written(record: StepRecord) -> str:
    import msgspec

    return msgspec.json.encode(record).decode()


def read(records: Iterable[str]) -> list[StepRecord]:
    """Parse records. Raises `DataError` if one is not the record of a step."""
    import msgspec

    try:
        return [msgspec.json.decode(text, type=StepRecord) for text in records]
    except msgspec.DecodeError as error:
        raise DataError(f"a record of the experience library is not a step of pyrag evolve ({error})") from error
