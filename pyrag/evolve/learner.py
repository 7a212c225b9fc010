"""Learning from training questions, one after another: HERA's top level (algorithm 1).

A step samples a group of topologies, mutates them if all fail, teaches the agents at fault, and validates what was
learned. Its changes are committed at the end, together with the step's record, in one transaction of the library. If
the process is killed before, the state of the previous step remains.

The paper executes a topology and then a group of others; here, that topology is the first of the group.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyrag.errors import BadOutputError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evolve import insights, mutation, rope
from pyrag.evolve.config import EvolveConfig
from pyrag.evolve.prompt_versions import PromptVersions, learners
from pyrag.evolve.step_records import AgentFailure, Kind, StepRecord, TriedTopology, ValidatedUpdate, written
from pyrag.evolve.trajectories import Players, Trajectory, together
from pyrag.evolve.transcript import transcript
from pyrag.evolve.validation import UpdateValidator
from pyrag.methods.hera.coach.protocol import Coach, Guidance
from pyrag.methods.hera.experience.library import EntryDraft, Library
from pyrag.methods.hera.topology import Agent, Characterisation


@dataclass(slots=True)
class _Step:
    """Step in progress: its state, and the content of its record."""

    question: Question
    profile: Characterisation
    players: Players
    group: list[Trajectory] = field(default_factory=list)
    tried: list[TriedTopology] = field(default_factory=list)
    blamed: tuple[Agent, ...] = ()
    failures: tuple[AgentFailure, ...] = ()
    updates: list[ValidatedUpdate] = field(default_factory=list)
    insights: tuple[str, ...] = ()
    reflected: bool = False
    notes: list[str] = field(default_factory=list)

    def saw(self, kind: Kind, trajectory: Trajectory, label: str = "") -> None:
        self.tried.append(
            TriedTopology(
                kind, trajectory.topology, trajectory.f1, trajectory.tokens, trajectory.trace.answer.text, label
            )
        )


class Learner:
    """Run in progress. `records` holds the records of the committed steps, starting with step 0.

    Methods raise the errors of `Players`. After an error, the state is the one after the last committed step.
    """

    def __init__(
        self,
        players: Players,
        library: Library,
        versions: PromptVersions,
        validator: UpdateValidator,
        config: EvolveConfig,
        records: Sequence[StepRecord],
    ) -> None:
        self._library, self._versions, self._validator, self._config = library, versions, validator, config
        self._buffers: dict[Agent, deque[str]] = defaultdict(lambda: deque(maxlen=config.buffer))
        self._times: Counter[str] = Counter()  # number of times that a question was learned from
        for record in records:
            self._remember(record)
        version = records[-1].version if records else 0
        self._players = players.with_prompts(versions.prompts(version), version)
        self.records = list(records)

    async def begin(self) -> StepRecord:
        """Record step 0: the validation score before learning."""
        score = await self.score()
        meter = self._players.meter
        record = StepRecord(0, score, calls=meter.calls, tokens=meter.tokens)
        with self._library.update() as draft:
            draft.record(written(record))
        self.records.append(record)
        return record

    async def score(self) -> float:
        """Return the mean F1 on the validation questions."""
        return await self._validator.score(self._players, self._library)

    async def step(self, question: Question) -> StepRecord:
        """Learn from a question, and return the committed record."""
        step = _Step(question, await self._players.characterise(question), self._players)
        await self._sample(step)
        coach = self._players.coach
        may_improve = self._config.teaches or self._config.mutates
        if coach and may_improve and step.group[0].f1 < self._config.success:
            await self._improve(step, coach)
        if coach and self._config.library and insights.is_mixed(step.group, self._config.success):
            await self._reflect(step, coach)
        return await self._commit(step, coach)

    async def _sample(self, step: _Step) -> None:
        """Sample the group (algorithm 2, lines 3 to 9). A repeated question gets new samples instead of cached ones."""
        lessons = self._library.retrieve(step.profile) if self._config.library else []
        drawn = self._times[step.question.id] * (self._config.group - 1)
        samples = (0, *range(drawn + 1, drawn + self._config.group))
        sampled = (step.players.orchestrate(step.question, lessons, sample) for sample in samples)
        topologies = await together(sampled, step.players.settings.concurrency)
        step.group = await step.players.run_all(step.question, topologies)
        for trajectory in step.group:
            step.saw("sample", trajectory)

    async def _improve(self, step: _Step, coach: Coach) -> None:
        """Teach the agents at fault (algorithm 1, lines 10 to 13). If all trajectories failed, mutate (algorithm 6)."""
        failed, taught = step.group[0], step.players
        await self._blame(step, coach, failed)
        if self._config.mutates and all(trajectory.f1 == 0 for trajectory in step.group):
            await self._mutate(step)
        for agent in (
            [candidate for candidate in step.blamed if candidate in learners()] if self._config.teaches else ()
        ):
            if step.players is not taught:  # a repair by the previous agent must not be credited to this one
                taught, failed = step.players, await step.players.run(step.question, failed.topology)
            if failed.f1 < self._config.success:
                await self._teach(step, coach, failed, agent)

    async def _blame(self, step: _Step, coach: Coach, failed: Trajectory) -> None:
        there = list(dict.fromkeys(node.agent for node in failed.topology.nodes))
        try:
            step.blamed = await coach.blame(transcript(failed), there)
        except BadOutputError as error:
            step.notes.append(f"nobody was found at fault: {error}")
        step.failures = tuple(AgentFailure(agent, transcript(failed)) for agent in step.blamed)

    async def _mutate(self, step: _Step) -> None:
        mutations = await mutation.mutations(step.players, step.group, step.blamed)
        tried = await step.players.run_all(step.question, [candidate.topology for candidate in mutations])
        for candidate, trajectory in zip(mutations, tried, strict=True):
            step.saw("mutation", trajectory, candidate.label)
        step.group += tried

    async def _teach(self, step: _Step, coach: Coach, failed: Trajectory, agent: Agent) -> None:
        """Apply RoPE to an agent and validate the result."""
        known = self._versions.guidance(_version(step.players), agent)
        subject = rope.Subject(agent, known, step.players.prompts)
        failures = [*self._buffers[agent], *(failure.trajectory for failure in step.failures if failure.agent == agent)]
        taught = await rope.teach(step.players, coach, subject, failed, failures[-self._config.buffer :], self._config)
        for variant in taught.variants:
            step.saw("variant", variant.trajectory, f"{agent}: {variant.axis}")
        step.notes += [taught.note] if taught.note else []
        if taught.guidance and taught.guidance != known:
            await self._test(step, agent, known, taught.guidance)

    async def _test(self, step: _Step, agent: Agent, known: Guidance, guidance: Guidance) -> None:
        """Make a version of the prompts with new guidance, and keep it if validation accepts it."""
        version = self._versions.add(_version(step.players), agent, guidance)
        changed = step.players.with_prompts(self._versions.prompts(version), version)
        before = await self._validator.score(step.players, self._library)
        after = await self._validator.score(changed, self._library)
        new = [line for line in guidance.lines if line not in known.lines]
        step.updates.append(ValidatedUpdate(before, after, tuple(new), agent, version))
        if step.updates[-1].accepted:
            step.players = changed

    async def _reflect(self, step: _Step, coach: Coach) -> None:
        step.reflected = True
        try:
            step.insights = await insights.reflect(coach, step.profile, step.group)
        except BadOutputError as error:
            step.notes.append(f"no insight was gained: {error}")

    async def _commit(self, step: _Step, coach: Coach | None) -> StepRecord:
        """Write utilities, insights and the record in one transaction, and switch to the new prompts."""
        with self._library.update() as draft:
            for trajectory in step.group:
                draft.used(trajectory.topology.experience, succeeded=trajectory.f1 >= self._config.success)
            if coach and step.insights:
                await self._consolidate(step, coach, draft)
            record = self._record(step)
            draft.record(written(record))
        self._players = step.players
        self._versions.select(record.version)
        self._remember(record)
        self.records.append(record)
        return record

    async def _consolidate(self, step: _Step, coach: Coach, draft: EntryDraft) -> None:
        before, entries = await self._validator.score(step.players, draft), draft.entries()
        draft.mark()
        operations = await insights.consolidate(coach, draft, step.profile, step.insights)
        if draft.entries() == entries:
            step.notes += operations
            return
        after = await self._validator.score(step.players, draft)
        step.updates.append(ValidatedUpdate(before, after, tuple(operations)))
        if not step.updates[-1].accepted:
            draft.undo()

    def _record(self, step: _Step) -> StepRecord:
        meter = step.players.meter
        return StepRecord(
            step=self.records[-1].step + 1,
            score=step.updates[-1].score if step.updates else self.records[-1].score,
            version=_version(step.players),
            question=step.question.id,
            profile=step.profile,
            tried=tuple(step.tried),
            reflected=step.reflected,
            insights=step.insights,
            blamed=step.blamed,
            failures=step.failures,
            updates=tuple(step.updates),
            calls=meter.calls,
            tokens=meter.tokens,
            notes=tuple(step.notes),
        )

    def _remember(self, record: StepRecord) -> None:
        self._times[record.question] += 1
        for failure in record.failures:
            self._buffers[failure.agent].append(failure.trajectory)


def _version(players: Players) -> int:
    assert players.version is not None  # only variants have no version, and they are never kept
    return players.version
