"""Every method over the scripted world: the calls it makes, the steps in its trace, its answer and citations.

`WRITE_GOLDEN=1 pytest tests/methods` writes the golden files anew; the diff then shows in review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyrag.cli.traces import differences, replay_trace
from pyrag.episode.ledger import Recording
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Step, Trace
from tests.methods.conftest import ALL, EMBEDDED, SCRIPTS, Chat, World

GOLDEN = Path(__file__).parent / "golden"


def brief(step: Step) -> str:
    what = f"{step.id} {step.primitive}"
    what += f" [{step.mode}]" if step.mode else ""
    after = f" after {', '.join(map(str, step.depends_on))}" if step.depends_on else ""
    seen = f" ({' '.join(step.passages)})" if step.passages else ""
    lines = [f"{what} {step.query!r}{seen}{after}"]
    if step.output:
        lines.append(f"  wrote {step.output!r}")
    if step.answer:
        lines.append(
            f"  answer {step.answer.text!r} {step.answer.known} citing {' '.join(step.answer.citations) or '-'}"
        )
    return "\n".join(lines)


def shown(trace: Trace) -> str:
    lines = [
        f"answer: {trace.answer.text!r} known={trace.answer.known}",
        f"citations: {' '.join(f'[{one.number}] {one.passage} of {one.step}' for one in trace.citations) or '-'}",
        f"usage: {trace.usage.model_calls} calls, {trace.usage.retrievals} retrievals, "
        f"{trace.usage.prompt_tokens}+{trace.usage.completion_tokens} tokens",
        f"programs: {len(trace.programs)}, sub-queries: {list(trace.sub_queries)}",
        f"warnings: {list(trace.warnings)}, error: {trace.error}",
    ]
    return "\n".join([*lines, *map(brief, trace.steps)]) + "\n"


def test_every_method_has_its_script() -> None:
    assert set(ALL) == set(SCRIPTS)


@pytest.mark.parametrize("method", ALL)
async def test_golden_trace(world: World, method: str) -> None:
    model = Chat(SCRIPTS[method])
    trace = await world.ask(method, model)
    path, text = GOLDEN / f"trace_{method.replace(':', '_')}.txt", shown(trace)
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
    assert (trace.answer.text, trace.answer.known, trace.error) == ("1 May 1950", True, None)
    assert trace.usage.model_calls == len(model.calls) == len(SCRIPTS[method])
    assert trace.usage.retrievals == len(world.log)


@pytest.mark.parametrize("method", ALL)
async def test_a_recorded_question_replays_equal(world: World, method: str) -> None:
    trace = await world.ask(method, keep=True)
    assert await replay_trace(from_json(to_json(trace))) == []


@pytest.mark.parametrize("method", EMBEDDED)
async def test_the_embedded_engine_answers(world: World, method: str) -> None:
    trace = await world.ask_embedded(method, keep=True)
    assert trace.error is None
    assert trace.steps
    assert all(step.primitive != "write" for step in trace.steps)
    assert (
        trace.answer.text == "1 May 1950"
        or "no-plan" in method
        or method in ("vanilla", "decompose-only", "iter-retgen")
    )
    again = await world.ask_embedded(method, recording=Recording(trace.exchanges))
    assert differences(trace, again) == []


@pytest.mark.parametrize("method", sorted(set(ALL) - set(EMBEDDED)))
async def test_methods_that_write_say_what_they_need(world: World, method: str) -> None:
    trace = await world.ask_embedded(method)
    assert trace.error is not None
    name = method.partition(":")[0]
    assert trace.error.message.startswith(f"method {name} needs a language model: pass --llm openai:")
    assert (trace.error.kind, trace.error.exit_code, trace.usage.model_calls, world.log) == ("config", 2, 0, [])


@pytest.mark.parametrize("method", ALL)
async def test_one_step_at_a_time_gives_the_same_trace(world: World, method: str) -> None:
    one, other = await world.ask(method), await world.ask(method, parallel=False)
    assert shown(one) == shown(other)


@pytest.mark.parametrize("method", ALL)
async def test_dependencies_point_backwards_and_citations_come_from_steps(world: World, method: str) -> None:
    trace = await world.ask(method)
    assert [step.id for step in trace.steps] == list(range(len(trace.steps)))
    assert all(source < step.id for step in trace.steps for source in step.depends_on)
    assert all(citation.passage in trace.passages for citation in trace.citations)
    assert {one for step in trace.steps for one in step.passages} == set(trace.passages)
