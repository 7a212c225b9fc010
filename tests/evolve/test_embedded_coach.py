"""What the embedded engine can learn: the style of topology that did best, in words that its orchestrator follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.embedded.rules import EmbeddedRules
from pyrag.methods.hera.coach.protocol import Seen
from pyrag.methods.hera.embedded.coach import EmbeddedCoach
from pyrag.methods.hera.embedded.orchestrator import STYLES, EmbeddedOrchestrator, style_of
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import Characterisation, Topology
from tests.cli.conftest import Run, pyrag
from tests.evolve.town import write

__all__ = ["pyrag"]

QUESTION = "Who was born first, the director of Alpha or the director of Beta?"
SINGLE = "Who directed Alpha?"
PROFILE = Characterisation("comparison")


async def group(question: str, best: int) -> list[Seen]:
    """All styles of topology, one of them right."""
    orchestrator = EmbeddedOrchestrator(EmbeddedRules())
    samples = [(await orchestrator.orchestrate(question, (), sample)).topology for sample in range(len(STYLES))]
    seen = [Seen(topology, float(place == best), "") for place, topology in enumerate(samples)]
    return sorted(seen, key=lambda one: -one.f1)


async def followed(question: str, insights: tuple[str, ...]) -> Topology:
    lessons = [Experience(number, PROFILE, insight) for number, insight in enumerate(insights, start=1)]
    return (await EmbeddedOrchestrator(EmbeddedRules()).orchestrate(question, lessons)).topology


async def test_every_style_that_did_best_is_followed_from_then_on() -> None:
    for best, style in enumerate(STYLES):
        insights = await EmbeddedCoach().reflect(PROFILE, await group(QUESTION, best))
        assert len(insights) == (best > 0)  # the plain style needs no advice
        assert style_of(await followed(QUESTION, insights)) == style


async def test_that_a_question_has_no_parts_tells_nothing_about_splitting() -> None:
    insights = await EmbeddedCoach().reflect(PROFILE, await group(SINGLE, 0))
    assert insights == ()


async def test_the_same_advice_is_kept_once_and_nobody_is_taught() -> None:
    coach = EmbeddedCoach()
    (advice,) = await coach.reflect(PROFILE, await group(QUESTION, 1))
    assert (await coach.settle(advice, [Experience(1, PROFILE, advice)])).operation == "KEEP"
    assert (await coach.settle("Another.", [Experience(1, PROFILE, advice)])).operation == "ADD"
    assert await coach.blame("failed", ["answer_generator"]) == ()


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    asked = [
        {"id": str(number), "question": f"Who is the mayor of Town {number}?", "answers": [f"Holm {number}"]}
        for number in range(4)
    ]
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(4):
        (notes / f"town{number}.txt").write_text(f"The mayor of Town {number} is Holm {number}.")
    return write(tmp_path / "train.jsonl", *asked)


def test_learning_needs_a_language_model(pyrag: Run, questions: Path, tmp_path: Path) -> None:
    run = pyrag("evolve", "--train", str(questions), "--out", "run", "--index", "index")
    assert run.returncode == 2
    assert "pyrag evolve needs a language model: pass --llm openai:MODEL@" in run.stderr
    assert "pass --topologies for that" in run.stderr
    assert not (tmp_path / "run").exists()


def test_topologies_alone_are_learned_without_a_language_model(pyrag: Run, questions: Path) -> None:
    assert pyrag("index", "notes", "--out", "index").returncode == 0
    run = pyrag("evolve", "--train", str(questions), "--out", "run", "--index", "index", "--topologies")
    assert run.returncode == 0, run.stderr
    assert "3 of 3 questions learned from, no model was asked" in run.stdout
    assert "learned which topologies suit which questions; the prompts stay as they are" in run.stdout
