"""Learning run in a folder.

    config.json          questions and settings (compared when the run continues), and the sessions
    experience.db        the experience library, whose records are the steps
    prompts              the current prompts, a link into prompts-versions/
    prompts-versions/    all versions of the prompts
    replies.sqlite       paid replies, which answer repeated requests
    summary.json, report.html

A run that was killed or stopped by its budget continues with the unfinished step, whose replies were already paid for
and are in `replies.sqlite`. With a deterministic engine, it ends with the same result as an uninterrupted run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyrag._io.files import write_atomic, write_json
from pyrag.agents.engine import can_write
from pyrag.errors import BudgetExceededError, ConfigError, ServiceError, UsageError
from pyrag.evaluation.runs import provenance
from pyrag.evaluation.runs.folder import SUMMARY, locked, open_folder
from pyrag.evolve.config import EvolveConfig
from pyrag.evolve.learner import Learner
from pyrag.evolve.prompt_versions import PromptVersions
from pyrag.evolve.questions import Split
from pyrag.evolve.step_records import StepRecord, read, written
from pyrag.evolve.trajectories import Players
from pyrag.evolve.validation import UpdateValidator
from pyrag.llm.cache import ReplyStore
from pyrag.llm.wrappers import Meter
from pyrag.methods.hera.experience.library import Library
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings, public

LIBRARY, REPLIES, REPORT = "experience.db", "replies.sqlite", "report.html"
_INCIDENTAL = (
    "cache", "cache_mb", "concurrency", "otel", "max_in_flight", "call_timeout", "retrieve_timeout", "llm_body_mb",
    "retriever_body_mb", "proxy", "ca_bundle", "max_calls",
)  # fmt: skip
StepObserver = Callable[[StepRecord], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningLimits:
    """Limits of a run, including earlier sessions; None for no limit."""

    calls: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class LearningSummary:
    """State of a run. `before` and `after` are the mean F1 on the validation questions, or None if not measured.
    `stopped` is the reason for an early end.
    """

    steps: int
    of: int
    before: float | None
    after: float | None
    accepted: int
    refused: int
    entries: int
    version: int
    calls: int
    tokens: int
    stopped: str = ""


def evolve(
    folder: Path, questions: Split, settings: Settings, config: EvolveConfig, limits: LearningLimits, seen: StepObserver
) -> LearningSummary:
    """Learn in a folder, or continue the run in it.

    Args:
        folder: Folder of the run.
        questions: Training and validation questions.
        settings: Engines, and limits of each question.
        config: Settings of the algorithm.
        limits: Maximum calls and tokens of the whole run.
        seen: Function that is called with the record of each step.

    Raises:
        UsageError: The folder contains something else, or is in use.
        ConfigError: The engine has no language model, so that no prompts can be learned.
        ServiceError: A model, retriever or sandbox cannot be used.
    """
    _check_model(settings, config)
    settings = replace(settings, method="hera", cache=str(folder / REPLIES))
    identity = {**questions.identity, **_identity(settings, config)}
    with open_folder(folder, identity, provenance.session(), LIBRARY):
        versions = PromptVersions(folder)
        if not (folder / LIBRARY).exists():
            versions.begin(settings.prompts)
        with Library.open(folder / LIBRARY, write=True) as library:
            records = read(library.records())
            _restore(versions, records)
            meter = _meter(folder, limits, records)
            session = _Session(folder, questions, settings, config, versions, library, meter, records)
            summary = asyncio.run(session.run(seen))
            write_json(folder / SUMMARY, summary)
            _write_report(folder, versions, library)
    return summary


def _check_model(settings: Settings, config: EvolveConfig) -> None:
    """Raise `ConfigError` if the engine has no language model and the settings ask to learn more than topologies."""
    if not can_write(settings.llm) and not config.topologies:
        raise ConfigError(
            "pyrag evolve needs a language model: pass --llm openai:MODEL@http://host:port/v1; the embedded engine can "
            "only learn which topology suits which kind of question: pass --topologies for that"
        )


@dataclass(frozen=True, slots=True)
class _Session:
    """Process that works on a run."""

    folder: Path
    questions: Split
    settings: Settings
    config: EvolveConfig
    versions: PromptVersions
    library: Library
    meter: Meter
    records: Sequence[StepRecord]

    async def run(self, seen: StepObserver) -> LearningSummary:
        engines = open_engines(self.settings, meter=self.meter)
        try:
            players = Players(engines, self.settings, self.meter, self.versions.prompts(0))
            validator = UpdateValidator(self.questions.validation)
            learner = Learner(players, self.library, self.versions, validator, self.config, self.records)
            stopped, after = await self._learn(learner, seen)
        except ServiceError as error:
            raise ServiceError(f"{error}; run the same command to continue", service=error.service) from error
        finally:
            await engines.aclose()
        return self._summary(learner.records, after, stopped)

    async def _learn(self, learner: Learner, seen: StepObserver) -> tuple[str, float | None]:
        """Perform the remaining steps. Return the reason for an early end, and the validation score."""
        try:
            if not learner.records:
                seen(await learner.begin())
            for question in (self.questions.train * self.config.epochs)[learner.records[-1].step :]:
                seen(await learner.step(question))
            return "", await learner.score()
        except BudgetExceededError as error:
            return str(error), learner.records[-1].score if learner.records else None

    def _summary(self, records: Sequence[StepRecord], after: float | None, stopped: str) -> LearningSummary:
        updates = [update for record in records for update in record.updates]
        return LearningSummary(
            steps=records[-1].step if records else 0,
            of=len(self.questions.train) * self.config.epochs,
            before=records[0].score if records else None,
            after=after,
            accepted=sum(update.accepted for update in updates),
            refused=sum(not update.accepted for update in updates),
            entries=len(self.library.entries()),
            version=records[-1].version if records else 0,
            calls=self.meter.calls,
            tokens=self.meter.tokens,
            stopped=stopped,
        )


def _restore(versions: PromptVersions, records: Sequence[StepRecord]) -> None:
    """Undo the effects of an uncommitted step, and select the prompts of the last committed step."""
    versions.forget_after(max((record.last_version for record in records), default=0))
    versions.select(records[-1].version if records else 0)


def _meter(folder: Path, limits: LearningLimits, records: Sequence[StepRecord]) -> Meter:
    """Return a meter that starts with the calls and tokens paid for so far, according to the cache or the records."""
    meter = Meter(limits.calls, limits.tokens)
    store = ReplyStore(folder / REPLIES)
    last = records[-1] if records else None
    meter.calls = max(store.info().replies, last.calls if last else 0)
    meter.tokens = max(store.tokens(), last.tokens if last else 0)
    store.close()
    return meter


def _identity(settings: Settings, config: EvolveConfig) -> dict[str, Any]:
    chosen = {key: value for key, value in public(settings).items() if key not in _INCIDENTAL}
    usual = asdict(EvolveConfig())
    choices = ("topologies", "library", "prompt_evolution", "mutation")  # left out if default, as in older runs
    values = {key: value for key, value in asdict(config).items() if key not in choices or value != usual[key]}
    return {"settings": chosen, "config": values}


def _state(record: StepRecord) -> StepRecord:
    """Return a record with a step's state but without its actions."""
    return StepRecord(record.step, record.score, record.version, calls=record.calls, tokens=record.tokens)


def _write_report(folder: Path, versions: PromptVersions, library: Library) -> None:
    from pyrag.evolve.report import page

    difference = versions.difference(0, versions.current())
    text = page(read(library.records()), library.entries(), difference)
    write_atomic(folder / REPORT, text.encode())


def revert(folder: Path, version: int) -> None:
    """Make an earlier version of the prompts current, for answering and for further learning.

    Args:
        folder: Folder of the run.
        version: Number of the version; 0 for the prompts before learning.

    Raises:
        UsageError: The folder has no run, is in use, or lacks the version.
        DataError: The library is damaged.
    """
    if not (folder / LIBRARY).is_file():
        raise UsageError(f"{folder} is not a run of pyrag evolve: name the folder given with --out")
    versions = PromptVersions(folder)
    with locked(folder), Library.open(folder / LIBRARY, write=True) as library:
        versions.prompts(version)
        records = read(library.records())
        if not records:
            raise UsageError(f"{folder} has not learned anything yet: run the same pyrag evolve command to continue it")
        last = records[-1]
        note = f"reverted from version {last.version} of the prompts"
        with library.update() as draft:
            draft.record(written(replace(_state(last), version=version, notes=(note,))))
        versions.select(version)
