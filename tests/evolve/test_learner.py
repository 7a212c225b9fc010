"""Steps of learning over a world at the seam to the runtime: what is compared, taught, tested, refused and committed.

In this world, a comparison is answered by topologies with a reflect agent, which the third sample of a group has, and
a bridge question once the answer generator is told to read the title. Library, prompts, coach and validation are real.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pyrag.agents.prompts import Prompts, load_prompts
from pyrag.errors import BudgetExceededError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evolve.config import EvolveConfig
from pyrag.evolve.learner import Learner
from pyrag.evolve.prompt_versions import PromptVersions, learners
from pyrag.evolve.step_records import StepRecord, ValidatedUpdate, read
from pyrag.evolve.trajectories import Players, Trajectory
from pyrag.evolve.validation import UpdateValidator
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message
from pyrag.llm.wrappers import Meter
from pyrag.methods.hera.coach.agent import LLMCoach
from pyrag.methods.hera.coach.protocol import AXES
from pyrag.methods.hera.experience.library import Library
from pyrag.methods.hera.protocol import Lesson
from pyrag.methods.hera.topology import Agent, Characterisation, Node, Topology
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN, Answer, Trace

INSIGHT = "Let a reflect agent review the answer of a comparison."
RULE = "Read the title before the text."
HARMFUL = "Guess at once, whatever the documents say."


def chain(*agents: Agent) -> tuple[Node, ...]:
    return tuple(Node(f"n{i}", agent, depends_on=(f"n{i - 1}",) if i else ()) for i, agent in enumerate(agents))


PLAIN, REFLECTING = chain("retriever", "answer_generator"), chain("retriever", "answer_generator", "reflect")
SELECTING = chain("retriever", "evidence_selector", "answer_generator")


@dataclass
class World:
    """`calls` counts what the coach was asked; `insight` and `rule` are what it says."""

    insight: str = INSIGHT
    rule: str = RULE
    blamed: tuple[Agent, ...] = ("answer_generator",)
    speechless: str = ""  # the axis, or "distil", for which the coach finds no words
    calls: Counter[str] = field(default_factory=Counter)
    heard: dict[str, str] = field(default_factory=dict)
    runs: Counter[str] = field(default_factory=Counter)
    samples: list[int] = field(default_factory=list)

    def said(self, messages: Sequence[Message]) -> str:
        asked = messages[1].content
        replies: dict[str, dict[str, Any]] = {
            "Several topologies were tried": {"insights": [self.insight]},
            "Which agent was the main cause": {"agents": self.blamed},
            "Compare what helped": {"rules": [self.rule], "principles": ["Doubt."]},
            "Write additional rules": {"rules": [self.rule if "recognise and correct" in asked else "Be quick."]},
            "A new insight is to join": {"operation": "KEEP"},
        }
        task = next(task for task in replies if task in asked)
        self.heard[task] = asked
        self.calls[task] += 1
        mute = {"": "\0", "efficiency": "quicker to the point", "distil": "Compare what helped"}[self.speechless]
        return "I do not know." if mute in asked else json.dumps(replies[task])

    def f1(self, question: Question, topology: Topology, prompts: Prompts) -> float:
        told = prompts.notice("hera.answer_generator.system")
        agents = {node.agent for node in topology.nodes}
        right = {
            "comparison": "reflect" in agents and HARMFUL not in told,
            "bridge": RULE in told and HARMFUL not in told,
            "hidden": "evidence_selector" in agents,
            "odd": HARMFUL in told,
            "team": RULE in told,
            "easy": True,
            "hasty": "Be quick." in told and RULE in told,
            "half": 0.5,
            "near": 0.49,
            "hopeless": False,
        }
        return float(right[question.type])


@dataclass(frozen=True, slots=True)
class WorldPlayers(Players):
    world: World = field(default_factory=World)

    @property
    def coach(self) -> LLMCoach:
        return LLMCoach(ScriptedChat(self.world.said), self.prompts)

    def with_prompts(self, prompts: Prompts, version: int | None = None) -> Players:
        return replace(self, prompts=prompts, version=version)

    async def characterise(self, question: Question) -> Characterisation:
        return Characterisation("comparison" if question.type == "comparison" else "bridge")

    async def orchestrate(self, question: Question, lessons: Sequence[Lesson], sample: int = 0) -> Topology:
        wise = any("reflect agent" in one.insight for one in lessons)
        foolish = any("never reflect" in one.insight for one in lessons)
        nodes = REFLECTING if sample == 2 or (wise and not foolish and sample != 1) else PLAIN
        if question.type == "team":
            nodes = SELECTING
        self.world.samples.append(sample)
        return Topology(nodes, experience=tuple(one.id for one in lessons))

    async def revise(self, question: Question, topology: Topology, wish: str) -> Topology:
        other = REFLECTING if question.type == "hopeless" else chain("conclude")
        return replace(topology, nodes=SELECTING if "Keep it" in wish else other)

    async def run(self, question: Question, topology: Topology) -> Trajectory:
        self.meter.begin()
        self.world.runs[question.id] += 1
        f1 = self.world.f1(question, topology, self.prompts)
        trace = Trace(question.question, Answer("right") if f1 else Answer(UNKNOWN, known=False))
        return Trajectory(question, topology, trace, f1, 10 * len(topology.nodes))


def asked(kind: str, number: int) -> Question:
    return Question(f"{kind}{number}", f"What of {kind} {number}?", ("right",), type=kind)


VALIDATION = [asked("comparison", 90), asked("comparison", 91), asked("bridge", 92), asked("bridge", 93)]


class Run:
    """A run's folder; `learner` opens it like a new process would."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.library = Library.open(folder / "experience.db", write=True)
        self.versions = PromptVersions(folder)
        self.versions.begin(None)

    def learner(self, world: World, meter: Meter | None = None, **config: bool) -> Learner:
        players = WorldPlayers(None, Settings(), meter or Meter(), load_prompts(), world=world)  # type: ignore[arg-type]
        records = read(self.library.records())
        self.versions.forget_after(max((one.last_version for one in records), default=0))
        return Learner(
            players, self.library, self.versions, UpdateValidator(VALIDATION), EvolveConfig(group=3, **config), records
        )

    def version(self) -> int:
        return read(self.library.records())[-1].version


def system_of(prompts: Prompts, agent: Agent) -> str:
    return prompts.notice(f"hera.{agent}.system")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.library.close()


async def begun(run: Run, world: World) -> Learner:
    learner = run.learner(world)
    assert (await learner.begin()).score == 0.0
    return learner


async def test_a_mixed_group_gives_a_useful_insight(run: Run) -> None:
    learner = await begun(run, World())
    record = await learner.step(asked("comparison", 1))
    assert (record.reflected, record.score) == (True, 0.5)
    assert [one.insight for one in run.library.entries()] == [INSIGHT]
    assert [one.f1 for one in record.samples] == [0.0, 0.0, 1.0]
    await learner.step(asked("comparison", 2))
    (entry,) = run.library.entries()
    assert (entry.utility, entry.uses) == (2, 3)


async def test_uniform_groups_are_not_reflected_on(run: Run) -> None:
    world = World()
    learner = await begun(run, world)
    for number, (kind, times) in enumerate((("easy", 0), ("comparison", 1), ("hopeless", 1), ("easy", 1))):
        assert (await learner.step(asked(kind, number))).reflected is (kind == "comparison")
        assert world.calls["Several topologies were tried"] == times
    assert world.calls["Which agent was the main cause"] == 2  # only where the first guess failed


async def test_the_agent_at_fault_is_taught_and_no_other(run: Run) -> None:
    world = World()
    learner = await begun(run, world)
    record = await learner.step(asked("bridge", 1))
    assert record.blamed == ("answer_generator",)
    assert [one.label for one in record.tried if one.kind == "variant"] == [
        f"answer_generator: {axis}" for axis in AXES
    ]
    compared = re.findall(r"Additional rules \((.+)\)", world.heard["Compare what helped"])
    assert compared[0] == "error correction"  # what helped comes first
    assert record.score == 0.5
    before, after = run.versions.prompts(0), run.versions.prompts(run.version())
    changed = [agent for agent in learners() if system_of(before, agent) != system_of(after, agent)]
    assert changed == ["answer_generator"]
    assert RULE in system_of(after, "answer_generator")
    assert run.versions.current() == run.version() == 1


async def test_unusable_coach_replies_are_left_out(run: Run) -> None:
    world = World(speechless="efficiency")
    learner = await begun(run, world)
    record = await learner.step(asked("bridge", 1))
    variants = [one.label for one in record.tried if one.kind == "variant"]
    assert variants == [f"answer_generator: {axis}" for axis in AXES if axis != "efficiency"]
    assert record.version == 1
    world.speechless, world.rule = "distil", HARMFUL
    record = await learner.step(asked("odd", 2))
    assert (record.version, record.updates) == (1, ())
    assert "answer_generator was not taught" in record.notes[0]


async def test_what_an_agent_knows_already_is_no_update(run: Run) -> None:
    learner = await begun(run, World())
    await learner.step(asked("bridge", 1))
    record = await learner.step(asked("hasty", 2))
    assert max(one.f1 for one in record.tried if one.kind == "variant") == 1.0
    assert (record.updates, run.versions.numbers()) == ((), [0, 1])


async def test_an_agent_is_taught_from_its_recent_failures(run: Run) -> None:
    world = World()
    learner = await begun(run, world)
    for number in range(7):
        await learner.step(asked("hopeless", number))
    shown = re.findall(r"What of (\w+ \d)", world.heard["Write additional rules"])
    assert shown == [f"hopeless {number}" for number in range(2, 7)]  # the buffer's five, this one among them
    await run.learner(world).step(asked("bridge", 8))  # another process knows them too
    shown = re.findall(r"What of (\w+ \d)", world.heard["Write additional rules"])
    assert shown == [*(f"hopeless {number}" for number in range(3, 7)), "bridge 8"]


async def test_an_insight_that_is_known_is_no_update(run: Run) -> None:
    learner = await begun(run, World())
    await learner.step(asked("comparison", 1))
    record = await learner.step(asked("comparison", 2))
    assert (record.insights, record.updates, record.notes[-1]) == ((INSIGHT,), (), f"KEEP: {INSIGHT}")


async def test_a_trajectory_succeeds_from_an_f1_of_a_half_on(run: Run) -> None:
    learner = await begun(run, World())
    with run.library.update() as draft:
        draft.add(Characterisation("bridge"), "Ask one thing at a time.")
    succeeded, failed = await learner.step(asked("half", 1)), await learner.step(asked("near", 2))
    assert (succeeded.blamed, failed.blamed) == ((), ("answer_generator",))
    assert {one.kind for one in failed.tried} == {"sample", "variant"}  # mutated is what is wrong altogether
    (entry,) = run.library.entries()
    assert (entry.utility, entry.uses) == (3, 6)


async def test_a_question_that_all_topologies_fail_gets_others(run: Run) -> None:
    world = World()
    learner = await begun(run, world)
    record = await learner.step(asked("hidden", 1))
    assert [(one.label, one.f1) for one in record.tried if one.kind == "mutation"] == [
        ("replace answer_generator", 0.0),
        ("augment answer_generator", 1.0),
    ]
    assert record.reflected  # the candidates joined the group
    assert (await learner.step(asked("comparison", 2))).tried[-1].kind != "mutation"


async def test_mutations_are_new_and_credit_no_experience(run: Run) -> None:
    learner = await begun(run, World())
    with run.library.update() as draft:
        draft.add(Characterisation("bridge"), "Ask one thing at a time.")
    record = await learner.step(asked("hopeless", 1))
    assert [one.label for one in record.tried if one.kind == "mutation"] == ["augment answer_generator"]
    await learner.step(asked("hidden", 2))
    (entry, *_) = run.library.entries()
    assert (entry.utility, entry.uses) == (0, 2 * 3)


async def test_an_agent_is_not_taught_for_what_another_one_mended(run: Run) -> None:
    world = World(blamed=("answer_generator", "evidence_selector"))
    learner = await begun(run, world)
    record = await learner.step(asked("team", 1))
    assert record.blamed == world.blamed
    assert [update.agent for update in record.updates if update.agent] == ["answer_generator"]
    assert {one.label.partition(":")[0] for one in record.tried if one.kind == "variant"} == {"answer_generator"}


async def test_each_epoch_draws_samples_of_its_own(run: Run) -> None:
    await begun(run, World())
    worlds = [World() for _ in range(3)]
    for world in worlds:  # each in a process of its own
        await run.learner(world).step(asked("easy", 1))
    assert [sorted(world.samples) for world in worlds] == [[0, 1, 2], [0, 3, 4], [0, 5, 6]]


async def test_a_prompt_that_lowers_validation_is_refused(run: Run) -> None:
    world = World()
    learner = await begun(run, world)
    await learner.step(asked("bridge", 1))
    world.rule = HARMFUL
    record = await learner.step(asked("odd", 2))
    (update,) = record.updates
    assert (update.before, update.after, update.accepted) == (0.5, 0.0, False)
    assert update.lines == (HARMFUL,)
    assert (record.version, record.score) == (1, 0.5)
    assert run.versions.current() == 1
    assert run.versions.numbers() == [0, 1, 2]  # the refused one is kept to look at
    assert (await learner.step(asked("easy", 3))).version == 1
    run.learner(world)  # another process
    assert run.versions.numbers() == [0, 1, 2]


def test_an_update_that_changes_no_score_is_accepted() -> None:
    assert [ValidatedUpdate(0.5, after, ()).accepted for after in (0.49, 0.5, 0.51)] == [False, True, True]


async def test_an_insight_that_lowers_validation_is_refused(run: Run) -> None:
    world = World()
    learner = await begun(run, world)
    await learner.step(asked("comparison", 1))
    world.insight = "Keep what comes first, never reflect."
    record = await learner.step(asked("comparison", 2))
    assert record.insights == (world.insight,)
    (update,) = record.updates
    assert (update.before, update.after, update.accepted) == (0.5, 0.0, False)
    (entry,) = run.library.entries()
    assert (entry.insight, entry.uses) == (INSIGHT, 3)  # that it was used is no update


async def test_a_budget_ends_a_step_and_changes_nothing(run: Run) -> None:
    world, meter = World(), Meter(max_calls=4 + 3 + 2 + 2)  # validation, a group, mutations, two variants
    learner = run.learner(world, meter)
    await learner.begin()
    with pytest.raises(BudgetExceededError):
        await learner.step(asked("bridge", 1))
    assert [record.step for record in read(run.library.records())] == [0]
    assert run.library.entries() == []


async def test_steps_continue_where_an_earlier_process_ended(run: Run, tmp_path: Path) -> None:
    questions = [asked("bridge", 1), asked("comparison", 2), asked("comparison", 3)]
    learner = await begun(run, World())
    await learner.step(questions[0])
    run.versions.add(1, "conclude", run.versions.guidance(1, "answer_generator"))  # what a killed step left
    for question in questions[1:]:  # each in a process of its own
        await run.learner(World()).step(question)
    other = Run(tmp_path / "whole")
    try:
        uninterrupted = await begun(other, World())
        for question in questions:
            await uninterrupted.step(question)
        assert _essence(read(run.library.records())) == _essence(read(other.library.records()))
        assert run.library.entries() == other.library.entries()
        assert run.versions.difference(0, run.version()) == other.versions.difference(0, other.version())
    finally:
        other.library.close()


def _essence(records: Sequence[StepRecord]) -> list[StepRecord]:
    """Without what was paid, which a world without a cache pays again."""
    return [replace(one, calls=0, tokens=0) for one in records]


@pytest.mark.parametrize("ablation", ["library", "prompt_evolution", "mutation"])
async def test_each_ablation_switches_off_its_own_part(run: Run, ablation: str) -> None:
    """Figures 2 and 8 of the paper leave out one part at a time."""
    world = World()
    learner = run.learner(world, **{ablation: False})
    await learner.begin()
    mixed = await learner.step(asked("comparison", 1))
    failed = await learner.step(asked("bridge", 2))
    done = {
        "library": bool(run.library.entries()) and mixed.reflected,
        "prompt_evolution": any(one.kind == "variant" for one in failed.tried) and failed.version > 0,
        "mutation": any(one.kind == "mutation" for one in failed.tried),
    }
    assert done == {part: part != ablation for part in done}
