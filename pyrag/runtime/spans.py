"""Events of a question as OpenTelemetry spans.

    invoke_workflow METHOD          the question
      chat MODEL                    an agent's request outside of steps: decompose, plan, repair, …
      execute_tool PRIMITIVE        a step; links point to the steps that it depends on
        retrieval INDEX             a search, including recovery searches
        chat MODEL                  an agent's request for the step

Names and attributes follow the conventions for generative AI (`gen_ai.*`); our own begin with `pyrag.`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyrag._io.specs import parse_spec
from pyrag.trace.events import (
    AgentFinished,
    AgentStarted,
    Answered,
    Event,
    Planned,
    ProgramFinished,
    QuestionFinished,
    QuestionStarted,
    Recovering,
    Rejected,
    Searched,
    StepFinished,
    StepStarted,
    Warned,
)
from pyrag.trace.model import Usage

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

_PLANNERS = frozenset({"plan", "repair", "goals", "revise", "orchestrate", "reorchestrate", "characterise"})


class QuestionSpans:
    """Observer that makes spans from the events of one question. A fault in the exporter never ends a question.

    Args:
        tracer: Tracer that makes the spans. The first span is a child of the current span, if there is one.
        content: Whether questions, queries and answers become attributes.
    """

    def __init__(self, tracer: Tracer, *, content: bool = False) -> None:
        self._tracer, self._content = tracer, content
        self._question: Span | None = None
        self._steps: dict[int, Span] = {}
        self._calls: dict[int, Span] = {}
        self._started_ns = 0
        self._engine = self._retriever = ""
        self._usage = Usage()
        self._last = 0.0

    def __call__(self, event: Event) -> None:
        self._last = event.at
        try:
            self._observe(event)
        except Exception:
            logging.getLogger("pyrag.telemetry").warning("no span of %s", type(event).__name__, exc_info=True)

    def end_all(self, error: str = "") -> None:
        """End the open spans of a question that was cancelled or crashed.

        Args:
            error: Kind of the failure; empty without a failure.
        """
        for span in (*self._calls.values(), *self._steps.values(), *filter(None, [self._question])):
            if span.is_recording():
                _fail(span, error)
                span.end(self._ns(self._last))

    def _observe(self, event: Event) -> None:
        match event:
            case QuestionStarted():
                self._start_question(event)
            case AgentStarted() | AgentFinished():
                self._observe_call(event)
            case Searched():
                self._add_search(event)
            case StepStarted() | Recovering() | StepFinished():
                self._observe_step(event)
            case ProgramFinished(order=order, first=first) if order is not None:
                final = {step: first + place for place, step in enumerate(order)}
                self._steps = {
                    final.get(step, step): span for step, span in self._steps.items() if step in final or step < first
                }
            case Planned() | Rejected() | Warned():
                self._add_event(event)
            case Answered(answer):
                self._set(self._question, {"pyrag.known": answer.known, "pyrag.citations": len(answer.citations)})
                self._set_content(self._question, {"gen_ai.output.messages": _message("assistant", answer.text)})
            case QuestionFinished(error):
                self._end_question("" if error is None else error.kind)

    def _start_question(self, event: QuestionStarted) -> None:
        self._started_ns = time.time_ns() - round(event.at * 1e9)
        self._engine, self._retriever = event.engine, event.retriever
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.agent.name": event.method,
            "gen_ai.workflow.name": event.method,  # the name before version 0.1.0 of the conventions
            "pyrag.engine": event.engine,
            "gen_ai.data_source.id": event.retriever,
        }
        name = f"invoke_workflow {event.method}"
        self._question = self._tracer.start_span(name, attributes=attributes, start_time=self._ns(event.at))
        self._set_content(self._question, {"gen_ai.input.messages": _message("user", event.question)})

    def _end_question(self, error: str) -> None:
        if self._question is not None:
            self._set(self._question, _tokens(self._usage))
            _fail(self._question, error)
        self.end_all()

    def _observe_call(self, event: AgentStarted | AgentFinished) -> None:
        if isinstance(event, AgentStarted):
            attributes = {**_model_of(self._engine, event.role), "gen_ai.agent.name": event.role}
            name = f"chat {attributes['gen_ai.request.model']}"
            self._calls[event.call] = self._child(name, event.at, event.step, attributes, remote=True)
            return
        self._usage += event.usage
        span = self._calls.get(event.call)
        if span is not None:
            calls = {"pyrag.model_calls": event.usage.model_calls, "pyrag.cached": event.cached}
            self._set(span, {**calls, **_tokens(event.usage)})
            _fail(span, "agent" if event.error else "")
            span.end(self._ns(event.at))

    def _add_search(self, event: Searched) -> None:
        attributes = {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.data_source.id": self._retriever,
            "gen_ai.retrieval.top_k": event.topk,
            "pyrag.passages": event.found,
        }
        name, start = f"retrieval {self._retriever}", event.at - event.seconds
        span = self._child(name, start, event.step, attributes, remote=True)
        self._set_content(span, {"gen_ai.retrieval.query.text": event.query})
        _fail(span, "retrieval" if event.error else "")
        span.end(self._ns(event.at))

    def _observe_step(self, event: StepStarted | Recovering | StepFinished) -> None:
        match event:
            case StepStarted(step, primitive):
                attributes = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": primitive,
                    "gen_ai.tool.type": "function",
                    "gen_ai.tool.call.id": str(step),
                    "pyrag.line": event.line,
                    "pyrag.round": event.round,
                }
                span = self._child(f"execute_tool {primitive}", event.at, None, attributes, needs=event.depends_on)
                self._steps[step] = span
                self._set_content(span, {"gen_ai.tool.call.arguments": json.dumps({"query": event.query})})
            case Recovering(step, policy, topk):
                if (open_step := self._steps.get(step)) is not None:
                    attributes_of_event: dict[str, Any] = {"policy": policy, "topk": topk}
                    open_step.add_event("pyrag.recovering", attributes_of_event, self._ns(event.at))
            case StepFinished(done) if (open_step := self._steps.get(done.id)) is not None:
                known = {} if done.answer is None else {"pyrag.known": done.answer.known}
                self._set(open_step, {"pyrag.memo": done.memo, "pyrag.passages": len(done.passages), **known})
                if done.answer is not None:
                    self._set_content(open_step, {"gen_ai.tool.call.result": done.answer.text})
                _fail(open_step, "step" if done.error else "")
                open_step.end(self._ns(event.at))

    def _add_event(self, event: Planned | Rejected | Warned) -> None:
        attributes: dict[str, Any] = {}
        match event:
            case Planned(program):
                name, attributes = "pyrag.planned", {"origin": program.origin}
                attributes |= {"source": program.source} if self._content else {}
            case Rejected(error):
                name, attributes = "pyrag.rejected", {"error": error} if self._content else {}
            case Warned(message):
                name, attributes = "pyrag.warned", {"message": message} if self._content else {}
        if self._question is not None:
            self._question.add_event(name, attributes, self._ns(event.at))

    def _child(
        self,
        name: str,
        at: float,
        step: int | None,
        attributes: Mapping[str, Any],
        *,
        needs: tuple[int, ...] = (),
        remote: bool = False,
    ) -> Span:
        """Return a span below a step's span, or below the question's span."""
        from opentelemetry.trace import Link, SpanKind

        parent = self._question if step is None else self._steps.get(step, self._question)
        kind = SpanKind.CLIENT if remote else SpanKind.INTERNAL
        links = [Link(self._steps[step].get_span_context()) for step in needs if step in self._steps]
        context = _context_of(parent)
        return self._tracer.start_span(name, context, kind, dict(attributes), links, self._ns(at))

    def _ns(self, at: float) -> int:
        return self._started_ns + round(at * 1e9)

    def _set(self, span: Span | None, attributes: Mapping[str, Any]) -> None:
        if span is not None:
            span.set_attributes(dict(attributes))

    def _set_content(self, span: Span | None, attributes: Mapping[str, str]) -> None:
        if self._content:
            self._set(span, attributes)


def _context_of(parent: Span | None) -> Context | None:
    from opentelemetry.trace import set_span_in_context

    return None if parent is None else set_span_in_context(parent)


def _fail(span: Span, error: str) -> None:
    """Mark a span as failed, unless the error is empty."""
    if error:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR))


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }


def _message(role: str, text: str) -> str:
    """Return a text as a list of messages, as the conventions require."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


@cache
def _model_of(engine: str, role: str) -> dict[str, Any]:
    """Return the attributes of the model behind a role.

    Args:
        engine: Name of the agents, such as `openai:MODEL@URL (plan: openai:OTHER@URL)`.
        role: Role of the request.
    """
    base, _, others = engine.partition(" (")
    named = dict(part.split(": ", 1) for part in others.removesuffix(")").split(", ") if ": " in part)
    spec = named.get("plan" if role in _PLANNERS else role, base)
    provider, _ = parts = parse_spec(spec)
    model, address = parts.at_url
    place = urlsplit(address)
    server = {"server.address": place.hostname, "server.port": place.port} if place.hostname else {}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider if model else "pyrag",
        "gen_ai.request.model": model or spec,
        **{name: value for name, value in server.items() if value is not None},
    }
