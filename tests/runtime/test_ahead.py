"""Running a program while it is being written changes nothing but the time it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pyrag.episode.ledger import Recording
from pyrag.errors import RetryableServiceError
from pyrag.methods.pyrag.speculative_execution import self_contained
from pyrag.runtime.answering import answer_question
from pyrag.settings import Settings
from pyrag.trace.events import Drafting, Event, Planned
from pyrag.trace.model import Trace
from pyrag.trace.reducer import state_of
from pyrag_sandbox import Sandbox
from tests.runtime.conftest import World
from tests.runtime.streaming import Writer, agrees, ask, engines_of, fenced, timeless
from tests.runtime.test_pipeline import CHAIN, CHAIN_FACTS

ASKED = ("Who directed Alpha?", "Who directed Beta?", "Where?", "When was Ada born?", "unheard of")
FACTS = {**CHAIN_FACTS, "Who directed Beta?": ("Bob", 8), "Where?": ("Rome", 1)}
BAD = ("import os", "x = nowhere", "y = 1 / 0", "raise ValueError('no')", "final_answer = (", "del a0", "print('hm')")


def world_of(sandbox: Sandbox, delay: float = 0.0, sub_queries: tuple[str, ...] = ("Who directed Alpha?",)) -> World:
    return World(facts=dict(FACTS), sandbox=sandbox, delay=delay, sub_queries=sub_queries)


async def both(sandbox: Sandbox, writer: Writer, world: World, **more: object) -> tuple[Trace, Trace]:
    """The traces of the same question, waited for and streamed."""
    waited = await ask(world_of(sandbox), Writer(writer.replies), stream=False, **more)
    return waited, await ask(world, writer, **more)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def sandbox(runner: asyncio.Runner) -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    runner.run(sandbox.aclose())


@st.composite
def programs(draw: Any) -> str:
    """Look-ups over earlier answers, alone, in loops, branches and functions; sometimes a mistake."""
    lines: list[str] = []
    answers: list[str] = []

    def query() -> str:
        if answers and draw(st.integers(0, 1)):
            return f'f"When was {{{draw(st.sampled_from(answers))}}} born?"'
        return repr(draw(st.sampled_from(ASKED)))

    for number in range(draw(st.integers(1, 5))):
        name, asked = f"a{number}", query()
        match draw(st.integers(0, 7)):
            case 0:
                lines += [f"d = retrieve({asked}, topk=3)", f"{name} = answer(", f"    {asked},", "    d,", ")"]
            case 1:
                lines += [f"{name} = ', '.join(answer(q, retrieve(q)) for q in [{asked}, {query()}])"]
            case 2:
                lines += [f"{name} = 'nobody'", f"if {name}:", f"    {name} = answer({asked}, retrieve({asked}))"]
                lines += ["else:", "    pass"]
            case 3:
                lines += [f"def hop{number}(q):", "    docs = retrieve(q)", "", "    return answer(q, docs)"]
                lines += [f"{name} = hop{number}({asked})"]
            case 4:
                lines += [f"try:\n    {name} = answer({asked}, retrieve({asked}))\nexcept Exception:\n    {name} = 'x'"]
            case _:
                lines += [f"d{number} = retrieve({asked})", "# a comment", f"{name} = answer({asked}, d{number})"]
        answers.append(name)
    if draw(st.integers(0, 3)) == 0:
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(BAD)))
    return "\n".join([*lines, f'final_answer = answer(f"Given: {{{answers[-1]}}}. Answer the question: What?")'])


@settings(max_examples=25, phases=[Phase.reuse, Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(programs(), min_size=1, max_size=3),
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.002]),
    st.sampled_from([0.0, 0.004]),
    st.sampled_from([20, 20, 7]),
)
def test_streamed_equals_waited(
    runner: asyncio.Runner,
    sandbox: Sandbox,
    written: list[str],
    lengths: list[int],
    pause: float,
    delay: float,
    max_calls: int,
) -> None:
    async def check() -> None:
        writer, world = Writer([*map(fenced, written)], lengths, pause), world_of(sandbox, delay)
        waited, streamed = await both(sandbox, writer, world, keep=True, max_calls=max_calls)
        agrees(waited)
        agrees(streamed)
        failed = any(program.error for trace in (waited, streamed) for program in trace.programs)
        if any(trace.error and trace.error.kind == "budget" for trace in (waited, streamed)):
            # Which of calls side by side it refuses is chance, and so is what is paid for beside a program's error.
            assert failed or streamed.error == waited.error
            return
        assert streamed.error == waited.error
        calm = not waited.error and not any(program.error for program in waited.programs)
        # What was under way beside an error is paid for or not, as it happens.
        assert timeless(streamed, paid=calm) == timeless(waited, paid=calm)
        assert streamed.usage.retrievals <= world.count("retrieve")
        if calm:
            assert streamed.usage.retrievals == world.count("retrieve")
            assert sum(step.memo for step in streamed.steps) == sum(step.memo for step in waited.steps)
            assert streamed.usage.model_calls == world.count("answer") + world.count("decompose") + len(writer.calls)

    runner.run(check())


async def test_work_begins_while_the_program_is_written(world: World) -> None:
    world.facts, world.sub_queries = FACTS, ASKED[:1]
    writer = Writer([fenced(CHAIN)], (8,), until=lambda: world.count("answer") == 3)  # all of it, the final one too
    async with asyncio.timeout(120):
        trace = await ask(world, writer)
    assert trace.answer.text == "1 May 1950"
    assert (trace.usage.model_calls, trace.usage.retrievals) == (5, 2)
    assert (trace.usage.unused_calls, trace.usage.unused_retrievals) == (0, 0)
    assert [step.memo for step in trace.steps] == [False] * 5  # nothing was asked for twice by the program


@pytest.mark.parametrize("mend", [CHAIN, CHAIN.replace("born = ", "birth = born = ")])
async def test_a_later_syntax_error_costs_nothing_that_was_answered(world: World, mend: str) -> None:
    world.facts, world.sub_queries = FACTS, ASKED[:1]
    broken = CHAIN.replace("final_answer = answer(", "final_answer = answer((")
    writer = Writer([fenced(broken), fenced(mend)], (8,), until=lambda: world.count("answer") >= 2)
    async with asyncio.timeout(120):
        trace = await ask(world, writer)
    assert trace.answer.text == "1 May 1950"
    assert len(world.log) == len(set(world.log))  # nothing was asked twice
    assert (trace.usage.unused_calls, trace.usage.unused_retrievals) == (0, 0)


def replanned(world: World) -> Writer:
    """First a program that the sandbox refuses for its fifth line, but for that to be run ahead; then another one."""
    world.facts, world.sub_queries = FACTS, ASKED[:1]
    draft = CHAIN.replace("final_answer = ", "import os\nfinal_answer = ")
    other = 'docs = retrieve("Where?")\nfinal_answer = answer("Where?", docs)'
    return Writer([fenced(draft), fenced(other)], (8,), until=lambda: world.count("answer") >= 2, before="import os")


async def test_what_was_begun_in_vain_is_counted(world: World) -> None:
    async with asyncio.timeout(120):
        trace = await ask(world, replanned(world))
    assert trace.answer.text == "Rome"
    assert (trace.usage.unused_calls, trace.usage.unused_retrievals) == (2, 2)
    assert (trace.usage.model_calls, trace.usage.retrievals) == (1 + 2 + 2 + 1, 2 + 1)
    assert trace.usage.prompt_tokens == 2 * 50 + 3 * 10  # those of unused calls too


async def test_speculative_calls_stay_within_the_budget_and_leave_it_whole(world: World) -> None:
    writer = replanned(world)
    writer.until = lambda: world.count("answer") >= 1
    async with asyncio.timeout(120):
        trace = await ask(world, writer, max_calls=4)
    assert trace.error is None  # decompose, plan, repair, answer
    assert trace.answer.text == "Rome"
    assert world.count("answer") - 1 <= 4 - 1  # when they began, only the decomposition was paid for


async def test_a_recording_of_a_streamed_question_replays(world: World) -> None:
    world.facts, world.sub_queries = FACTS, ASKED[:1]
    streamed = await ask(world, Writer([fenced(CHAIN)], (8,), until=lambda: world.count("answer") >= 1), keep=True)
    asked = len(world.log)
    again = await ask(world, Writer([]), keep=True, recording=Recording(streamed.exchanges))
    assert timeless(again) == timeless(streamed)
    assert len(world.log) == asked


async def test_a_fault_ahead_that_passes_is_no_fault(world: World) -> None:
    world.facts, world.sub_queries = FACTS, ASKED[:1]
    world.fail = {"Who directed Alpha?": RetryableServiceError("down", service="retriever")}

    def failed_twice() -> bool:
        if world.count("retrieve") >= 2:  # the search for the sub-query, and the first draft's
            world.fail = {}
        return not world.fail

    async with asyncio.timeout(120):
        trace = await ask(world, Writer([fenced(CHAIN)], (8,), until=failed_twice))
    assert (trace.answer.text, trace.error) == ("1 May 1950", None)


async def test_cancelling_ends_what_runs_ahead(world: World) -> None:
    world.facts, world.hang = FACTS, {"When was Ada born?"}
    asking = asyncio.create_task(ask(world, Writer([fenced(CHAIN)], (8,), until=lambda: False)))
    await asyncio.wait_for(world.hanging.wait(), 120)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert world.in_flight == 0


@pytest.mark.parametrize(
    ("sub_queries", "found"),
    [
        (("Who directed Alpha?", "When was the director of Alpha born?"), [0]),
        (("Who directed Alpha?", "Who directed Beta?", "When was the director of Alpha born?"), [0, 1]),
        (("When was Ada Lovelace born?", "When was Bob Ross born?", "Who is older, Ada Lovelace or Bob Ross?"), [0, 1]),
        (("who wrote dracula", "when was it written"), [0]),
        (("Who wrote Dracula?", "Where was [author from step 1] born?", "Where was #1 buried?"), [0]),
        (("谁导演了《星河-3》？", "《星河-3》的导演何时出生？"), [0]),
        (("Which film won in 1990?", "Who directed that film of 1991?"), [0]),
        ((), []),
    ],
)
def test_sub_queries_that_await_no_answer(sub_queries: tuple[str, ...], found: list[int]) -> None:
    assert self_contained(sub_queries) == [sub_queries[one] for one in found]


async def test_searches_end_where_programs_have_words_of_their_own(world: World) -> None:
    world.facts, world.sub_queries = FACTS, ("Who made Alpha?", "Who made Beta?")
    planner = Writer([fenced(CHAIN)])
    engines = engines_of(world, planner)
    traces = [await answer_question("What?", engines, Settings()) for _ in range(4)]
    assert [trace.usage.unused_retrievals for trace in traces] == [2, 2, 0, 0]
    assert all(trace.answer.text == "1 May 1950" for trace in traces)
    assert (engines.prefetch_stats.hits, engines.prefetch_stats.misses) == (0, 4)


async def test_drafts_show_the_program_line_by_line(world: World) -> None:
    world.facts, world.sub_queries = FACTS, ASKED[:1]
    seen: list[Event] = []
    trace = await ask(world, Writer([fenced(CHAIN)], (8,)), observer=seen.append)
    drafts = [event.source for event in seen if isinstance(event, Drafting)]
    lines = trace.program.splitlines(keepends=True)
    assert drafts[0] == lines[0]
    assert all(later.startswith(draft) for draft, later in pairwise(drafts))
    assert len(drafts) == len(lines)
    kept = [event for event in trace.events if event["event"] == "drafting"]
    assert [(event["count"], "source" in event) for event in kept] == [(len(drafts), False)]
    states = [state_of(seen[:end]) for end, event in enumerate(seen, start=1) if isinstance(event, Drafting | Planned)]
    assert [state.draft for state in states] == [*drafts, ""]
