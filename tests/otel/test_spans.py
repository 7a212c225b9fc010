"""Spans of questions, by the real OpenTelemetry SDK. `make test-otel` runs these tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from pyrag.errors import ServiceError
from pyrag.runtime import telemetry
from pyrag.runtime.telemetry import CAPTURE
from pyrag.trace.model import Trace
from tests.runtime.conftest import World, world
from tests.runtime.test_pipeline import CHAIN, CHAIN_FACTS

sdk = pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.trace import StatusCode  # noqa: E402

__all__ = ["world"]


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(telemetry, "own_provider", lambda: provider)
    yield kept
    provider.shutdown()


def scripted(world: World) -> World:
    world.facts, world.sub_queries, world.programs = dict(CHAIN_FACTS), ("Who directed Alpha?",), [CHAIN]
    return world


def by_name(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    found: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def value(span: ReadableSpan, name: str) -> object:
    return (span.attributes or {}).get(name)


def own(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def above(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


async def test_a_question_becomes_a_tree_of_spans(world: World, exporter: InMemorySpanExporter) -> None:
    trace = await scripted(world).ask(otel=True)
    spans = by_name(exporter)
    (question,) = spans["invoke_workflow pyrag"]
    assert (value(question, "gen_ai.operation.name"), question.parent) == ("invoke_workflow", None)
    steps = [span for span in exporter.get_finished_spans() if span.name.startswith("execute_tool ")]
    assert sorted(str(value(one, "gen_ai.tool.call.id")) for one in steps) == [str(step.id) for step in trace.steps]
    assert {above(one) for one in steps} == {own(question)}
    made_by = {own(one): trace.steps[int(str(value(one, "gen_ai.tool.call.id")))] for one in steps}
    calls, searches = spans["chat world"], spans["retrieval world"]
    outside = [value(one, "gen_ai.agent.name") for one in calls if above(one) == own(question)]
    assert sorted(map(str, outside)) == ["decompose", "plan"]
    inside = [one for one in calls if above(one) != own(question)]
    assert [made_by[above(one)].primitive for one in inside] == ["answer"] * 3
    assert [made_by[above(one)].primitive for one in searches] == ["retrieve"] * trace.usage.retrievals
    for one in steps:
        linked = sorted(made_by[link.context.span_id].id for link in one.links)
        assert linked == list(made_by[own(one)].depends_on)


async def test_spans_have_the_times_of_the_trace(world: World, exporter: InMemorySpanExporter) -> None:
    trace = await scripted(world).ask(otel=True)
    (question,) = by_name(exporter)["invoke_workflow pyrag"]
    assert question.start_time is not None
    for span in exporter.get_finished_spans():
        assert span.start_time is not None
        assert span.end_time is not None
        assert question.start_time <= span.start_time <= span.end_time <= (question.end_time or 0)
        if span.name.startswith("execute_tool "):
            step = trace.steps[int(str(value(span, "gen_ai.tool.call.id")))]
            assert (span.end_time - span.start_time) / 1e9 == pytest.approx(step.seconds, abs=0.005)


async def test_usage_is_on_the_calls_and_the_question(world: World, exporter: InMemorySpanExporter) -> None:
    trace = await scripted(world).ask(otel=True)
    spans = by_name(exporter)
    (question,) = spans["invoke_workflow pyrag"]
    assert value(question, "gen_ai.usage.input_tokens") == trace.usage.prompt_tokens > 0
    assert (
        sum(int(str(value(one, "gen_ai.usage.input_tokens"))) for one in spans["chat world"])
        == trace.usage.prompt_tokens
    )


@pytest.mark.parametrize(("mode", "shown"), [(None, False), ("EVENT_ONLY", False), ("span_only", True)])
async def test_content_is_exported_on_request_only(
    world: World, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, mode: str | None, shown: bool
) -> None:
    monkeypatch.setenv(CAPTURE, mode) if mode else monkeypatch.delenv(CAPTURE, raising=False)
    trace = await scripted(world).ask(otel=True)
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert [text in told for text in ("Who directed Alpha?", trace.answer.text, "What?")] == [shown] * 3
    if shown:
        (question,) = by_name(exporter)["invoke_workflow pyrag"]
        (message,) = json.loads(str(value(question, "gen_ai.input.messages")))
        assert message == {"role": "user", "parts": [{"type": "text", "content": "What?"}]}


async def test_failures_are_marked(world: World, exporter: InMemorySpanExporter) -> None:
    scripted(world).fail["Who directed Alpha?"] = ServiceError("down", service="world")
    await world.ask(otel=True)
    spans = by_name(exporter)
    (question,) = spans["invoke_workflow pyrag"]
    assert (question.status.status_code, value(question, "error.type")) == (StatusCode.ERROR, ServiceError.kind)
    assert {one.status.status_code for one in spans["retrieval world"]} == {StatusCode.ERROR}


async def test_recoveries_and_rejected_programs_are_events(world: World, exporter: InMemorySpanExporter) -> None:
    scripted(world).facts["Who directed Alpha?"] = ("Ada Berg", 8)
    world.programs.insert(0, "final_answer = nowhere")
    await world.ask(otel=True)
    told = [event.name for span in exporter.get_finished_spans() for event in span.events]
    assert told.count("pyrag.planned") == 2
    assert {"pyrag.rejected", "pyrag.recovering"} <= set(told)


async def test_a_cancelled_question_leaves_no_span_open(world: World, exporter: InMemorySpanExporter) -> None:
    scripted(world).hang.add("Who directed Alpha?")
    task = asyncio.create_task(world.ask(otel=True))
    await world.hanging.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    (question,) = by_name(exporter)["invoke_workflow pyrag"]
    assert value(question, "error.type") == "CancelledError"
    assert [span.name for span in exporter.get_finished_spans() if span.end_time is None] == []


async def test_questions_side_by_side_have_trees_of_their_own(world: World, exporter: InMemorySpanExporter) -> None:
    scripted(world)
    traces: list[Trace] = await asyncio.gather(*(world.ask(otel=True) for _ in range(4)))
    trees: dict[int, int] = {}
    for span in exporter.get_finished_spans():
        assert span.context is not None
        trees[span.context.trace_id] = trees.get(span.context.trace_id, 0) + 1
    assert len(trees) == len(traces)
    assert len(set(trees.values())) == 1


async def test_the_span_of_the_application_is_the_parent(world: World, exporter: InMemorySpanExporter) -> None:
    tracer = telemetry.own_provider().get_tracer("app")
    with tracer.start_as_current_span("request") as request:
        await scripted(world).ask(otel=True)
    (question,) = by_name(exporter)["invoke_workflow pyrag"]
    assert question.parent is not None
    assert question.parent.span_id == request.get_span_context().span_id
