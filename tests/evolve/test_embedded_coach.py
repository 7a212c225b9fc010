"""What the embedded engine can learn: the style of topology that did best, in words that its orchestrator follows."""

from __future__ import annotations

from pyrag.agents.coaching import Seen
from pyrag.embedded.coach import EmbeddedCoach
from pyrag.embedded.orchestrator import STYLES, EmbeddedOrchestrator, style_of
from pyrag.experience.entry import Experience
from pyrag.topology import Characterisation, Topology

QUESTION = "Who was born first, the director of Alpha or the director of Beta?"
SINGLE = "Who directed Alpha?"
PROFILE = Characterisation("comparison")


async def group(question: str, best: int) -> list[Seen]:
    """All styles of topology, one of them right."""
    orchestrator = EmbeddedOrchestrator()
    samples = [(await orchestrator.orchestrate(question, (), sample)).topology for sample in range(len(STYLES))]
    seen = [Seen(topology, float(place == best), "") for place, topology in enumerate(samples)]
    return sorted(seen, key=lambda one: -one.f1)


async def followed(question: str, insights: tuple[str, ...]) -> Topology:
    lessons = [Experience(number, PROFILE, insight) for number, insight in enumerate(insights, start=1)]
    return (await EmbeddedOrchestrator().orchestrate(question, lessons)).topology


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
