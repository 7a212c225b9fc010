"""From a checked question to its trace: set up an episode, run a method in it, and return everything as a `Trace`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import pyrag_runtime
from pyrag.agents.engine import engine_of
from pyrag.agents.protocol import Agents, Standalone
from pyrag.agents.typed.contract import Contract
from pyrag.episode.episode import Episode
from pyrag.episode.flow.policy import READER, Flow
from pyrag.episode.ledger import Journal, Ledger, Recording
from pyrag.episode.recordings import ReplayedDeadlineError
from pyrag.errors import BudgetExceededError, PyRAGError, UsageError
from pyrag.llm.limiter import question_scope
from pyrag.llm.protocol import Message
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.registry import check_writer
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.protocol import filter_verdict, searched_index
from pyrag.runtime.citations import citations_of
from pyrag.runtime.contracts import offer_contract, with_contract
from pyrag.runtime.engines import Engines
from pyrag.runtime.failures import as_trace_error, foreign_timeout, late
from pyrag.runtime.question_request import MAX_QUESTION_BYTES, QuestionRequest, request_of
from pyrag.runtime.telemetry import with_spans
from pyrag.settings import Settings, public
from pyrag.trace.event_codec import recorded
from pyrag.trace.events import Answered, EventRecorder, FollowUp, Observer, QuestionFinished, QuestionStarted, ignore
from pyrag.trace.model import UNKNOWN, Answer, Exchange, Passage, Trace, TraceError
from pyrag.trace.verdict import judged, with_confidence
from pyrag_sandbox import SandboxError

if TYPE_CHECKING:
    from pyrag.runtime.explain.gate import CostGate

CALLS_NO_TOOLS = "calls no tools"
"""Part of each warning about tools that cannot be called."""


class RunOptions(TypedDict, total=False):
    """Options of one run of a question.

    Attributes:
        observer: Called with each event.
        recording: Exchanges that answer the question's requests in place of the engines.
        keep: Whether to keep requests and replies in the trace, so that it can be replayed.
        journal: Exchanges that an earlier process had for this question, to which new ones are added.
        extensions: Initial value of the method's part of the trace. HERA runs a topology passed here instead of
            asking its orchestrator.
        gate: Explains the first program before it runs, and may refuse it; None lets it run.
    """

    observer: Observer
    recording: Recording | None
    keep: bool
    journal: Journal | None
    extensions: Mapping[str, Any] | None
    gate: CostGate | None


async def answer_question(
    question: str,
    engines: Engines,
    settings: Settings,
    *,
    method: Method | None = None,
    returns: Contract | None = None,
    earlier: Sequence[Message] = (),
    **options: Unpack[RunOptions],
) -> Trace:
    """Check a question and answer it. Every failure except an invalid request becomes a trace with an error.

    Args:
        question: The user's question.
        engines: Agents, retriever and sandbox.
        settings: The settings.
        method: Method that replaces the settings' method.
        returns: Type of the final value; None for a text.
        earlier: Messages of the question's conversation, oldest first.
        options: See `RunOptions`.

    Raises:
        UsageError: The question is empty, too long or not a text, or the method is unknown.
    """
    request = request_of(question, settings, method=method, returns=returns, earlier=earlier)
    return await answer(request, engines, **options)


async def answer(request: QuestionRequest, engines: Engines, **options: Unpack[RunOptions]) -> Trace:
    """Answer a checked question. Every failure becomes a trace with an error.

    Args:
        request: The question with its limits.
        engines: Agents, retriever and sandbox.
        options: See `RunOptions`.
    """
    settings, recording, gate = request.settings, options.get("recording"), options.get("gate")
    await engines.start()
    with with_spans(settings.otel, options.get("observer", ignore)) as watching:
        ledger = Ledger(
            request.budget, recording=recording, keep=options.get("keep", False), journal=options.get("journal")
        )
        started_at = _wall_clock(ledger.elapsed())
        recorder = ledger.observer = EventRecorder(ledger.elapsed, watching)
        episode = _episode(request, engines, ledger)
        episode.extensions = dict(options.get("extensions") or {})
        if gate is not None:
            episode.gate = gate
            gate.begin(episode)
        names = settings.method, engines.agents.name, engines.retriever.name
        recorder(QuestionStarted(*names, started_at, question=request.text))
        try:
            result, error = await _result(episode, request, engines)
        finally:
            if gate is not None:
                await gate.end()
        trace = _doubted(_trace(episode, result, error, engines, settings, started_at), episode)
        recorder(Answered(trace.answer))
        recorder(QuestionFinished(trace.error))
        if recording is None:
            engines.history.add(trace)
        return judged(replace(trace, events=recorded(recorder.events, trace)))


def _episode(request: QuestionRequest, engines: Engines, ledger: Ledger) -> Episode:
    settings = request.settings
    return Episode(
        question=request.text,
        agents=_sized(engines.agents, settings.topk),
        retriever=engines.retriever,
        sandbox=engines.sandbox,
        ledger=ledger,
        topk=settings.topk,
        ladder=request.ladder,
        unknown_policy=settings.unknown,
        no_passages=settings.no_passages,
        parallel=settings.parallel,
        prefetch_stats=engines.prefetch_stats,
        observer=ledger.observer,
        shared=engines.shared(settings),
        where=None if settings.where is None else parsed(settings.where),
        flow=Flow(settings.flow, engines.confirm, settings.search_effects, READER if engines.caller_reads else ""),
    )


async def _result(episode: Episode, request: QuestionRequest, engines: Engines) -> tuple[Result, TraceError | None]:
    """Run the method within the deadline, and return its result and the reason for a failure."""
    ledger, settings, method, returns = episode.ledger, request.settings, request.method, request.returns
    _warn_of_language(episode, settings)
    _offer_tools(episode, engines, method)
    if settings.corpus and not method.calls_tools:
        episode.warn(f"the method {method.name} only searches, and does not read all documents: use pyrag")
    result, error = Result(Answer(UNKNOWN, known=False)), None
    try:
        # The seconds of a journal are already spent.
        # At busy endpoints a question waits once, however many calls it makes.
        with question_scope():
            async with asyncio.timeout(settings.deadline and max(0.0, settings.deadline - ledger.elapsed())) as limit:
                if request.earlier:
                    await _make_standalone(episode, request.earlier)
                await _judge_filter(episode)
                check_writer(method, can_write=episode.can_write)
                if returns is None:
                    result = await method.answer(episode, settings)
                else:
                    offer_contract(episode, returns, method)
                    result = with_contract(await method.answer(episode, settings), returns)
    except TimeoutError as failure:
        passed = limit.expired() or isinstance(failure, ReplayedDeadlineError)
        error = late(episode, settings, engines) if passed else foreign_timeout(failure)
    except (PyRAGError, SandboxError) as failure:
        error = as_trace_error(failure)
    finally:
        await episode.aclose()
    if error and (error.kind in (BudgetExceededError.kind, "deadline") or episode.partial is not None):
        result = _partial(episode)
    return result, error


def _doubted(trace: Trace, episode: Episode) -> Trace:
    """Return the trace with its answer's confidence and, if this is low, with the planner's doubts as warnings."""
    trace = with_confidence(trace)
    if not trace.answer.known or trace.answer.weak:
        episode.warn_of_doubts()
    warnings = tuple(episode.warnings)
    return trace if warnings == trace.warnings else replace(trace, warnings=warnings)


async def _judge_filter(episode: Episode) -> None:
    """Warn of a filter that matches nothing. A replay uses the passages of its recording."""
    if episode.where is not None and episode.ledger.recording is None:
        for sentence in (await filter_verdict(episode.retriever, episode.where)).sentences:
            episode.warn(sentence)


async def _make_standalone(episode: Episode, earlier: Sequence[Message]) -> None:
    """Replace a follow-up with a question that stands on its own."""
    user_message, agent = episode.question, episode.agents.follow_up
    if agent is None:
        episode.warn("the messages before the question were not read: this engine has no agent for follow-ups")
        return
    messages = [[message.role, message.content] for message in earlier]
    request = {"earlier": messages, "question": user_message}
    standalone = await episode.requests.fresh(
        "standalone", request, lambda: agent.standalone(earlier, user_message), Standalone
    )
    if standalone.note:
        episode.warn(standalone.note)
    if len(standalone.question.encode("utf-8", "replace")) > MAX_QUESTION_BYTES:
        episode.warn(
            "the follow-up was asked unchanged, because it is too long when it is rephrased to stand on its own"
        )
    elif standalone.question != user_message:
        episode.flow.derive(message.role for message in earlier)
        episode.user_message, episode.question = user_message, standalone.question
        episode.observer(FollowUp(standalone.question))


def _wall_clock(elapsed: float) -> str:
    """Return the time `elapsed` seconds ago as ISO text. Times of events count from it."""
    started = datetime.now(UTC) - timedelta(seconds=elapsed)
    return started.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _version() -> str:
    return pyrag_runtime.version()


def _warn_of_language(episode: Episode, settings: Settings) -> None:
    """Warn if a question is in a language that an engine does not read."""
    for spec in (settings.llm, settings.answer_llm or settings.llm):
        engine = engine_of(spec)
        if engine is not None and (warning := engine.language_warning(episode.question)):
            episode.warn(warning)


def _sized(agents: Agents, topk: int) -> Agents:
    """Return the agents with a planner that writes this number of passages into its programs, if it can."""
    with_topk = getattr(agents.planner, "with_topk", None)
    return agents if with_topk is None else replace(agents, planner=with_topk(topk))


def _offer_tools(episode: Episode, engines: Engines, method: Method) -> None:
    """Let programs call the tools; in a replay, the tools of the recording."""
    recording = episode.ledger.recording
    if not (engines.tools if recording is None else recording.tools):
        return
    from pyrag.episode.tool_primitives import offer, offered_tools, recorded_tools

    if not method.calls_tools:
        episode.warn(f"the method {method.name} {CALLS_NO_TOOLS}: use pyrag")
    elif recording is not None:
        offer(episode, recorded_tools(recording.tools))
    elif method.plans and not engines.agents.calls_tools:
        episode.warn(f"the planner of {engines.agents.name} {CALLS_NO_TOOLS}: name a language model with --llm")
    else:
        offer(episode, offered_tools(engines.tools))


def _partial(episode: Episode) -> Result:
    """Return the partial result of a question that ran out of budget. Its answer is marked as not known.

    It is the rows that `each` has so far, or else the answer of the last answered step.
    """
    if episode.partial is not None:
        episode.warn("partial value: the rows of each() so far")
        value = episode.partial if episode.contract is None else None
        return Result(Answer(UNKNOWN, known=False), value=value)
    for step in reversed(episode.steps):
        if step.answer and step.answer.known:
            episode.warn(f"partial answer: the answer of step {step.id + 1}, {step.query!r}")
            return Result(replace(step.answer, known=False), (step.id,))
    return Result(Answer(UNKNOWN, known=False))


def _trace(
    episode: Episode, result: Result, error: TraceError | None, engines: Engines, settings: Settings, started_at: str
) -> Trace:
    citations, numbers = citations_of(episode.steps, result)
    ledger = episode.ledger
    usage = replace(ledger.usage, seconds=ledger.elapsed(), cost=ledger.budget.price(ledger.usage))
    if not engines.agents.calls_model:  # its agents count against the budget, but call no model
        usage = replace(usage, model_calls=0, unused_calls=0)
    return Trace(
        question=episode.question,
        answer=replace(result.answer, citations=tuple(citation.passage for citation in citations)),
        method=settings.method,
        engine=engines.agents.name,
        retriever=engines.retriever.name,
        sub_queries=episode.sub_queries,
        programs=tuple(episode.programs),
        steps=tuple(episode.steps),
        citations=citations,
        passages=_used_passages(episode),
        variables=episode.variables,
        usage=usage,
        warnings=tuple(episode.warnings),
        error=error,
        exchanges=tuple(episode.ledger.exchanges),
        config=public(settings),
        extensions=dict(episode.extensions),
        roles=dict(ledger.roles),
        fallbacks=tuple(episode.fallbacks),
        started_at=started_at,
        pyrag_version=_version(),
        index=searched_index(engines.retriever),
        said=episode.user_message,
        value=result.value,
        item_citations=numbers,
        returns=None if episode.contract is None else episode.contract.wanted,
        depends_on=result.steps,
    )


def _used_passages(episode: Episode) -> dict[str, Passage]:
    """Return the passages that the trace's steps show, without passages of discarded look-ups."""
    used = {passage for step in episode.steps for passage in step.passages}
    used |= {passage for step in episode.steps for attempt in step.attempts for passage in attempt.passages}
    return {key: passage for key, passage in episode.passages.items() if key in used}


def exchanges_of(trace: Trace) -> tuple[Exchange, ...]:
    """Return the exchanges that a replay of the trace needs. Raises `UsageError` if they were not kept."""
    if not trace.exchanges:
        raise UsageError("this trace holds no recording: save it with pyrag ask --trace FILE")
    return trace.exchanges
