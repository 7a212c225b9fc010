"""From a question to its trace: set up an episode, run a method in it, and return everything as a `Trace`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyrag_runtime
from pyrag.agents.engine import engine_of
from pyrag.agents.protocol import Agents, Standalone
from pyrag.agents.typed.contract import Contract
from pyrag.episode.episode import Episode
from pyrag.episode.flow.policy import READER, Flow
from pyrag.episode.ledger import Journal, Ledger, QuestionBudget, Recording
from pyrag.episode.program_values import MAX_QUERY_BYTES
from pyrag.episode.recordings import ReplayedDeadlineError
from pyrag.episode.recovery import Ladder, calls_for, ladder_of
from pyrag.errors import BudgetExceededError, PyRAGError, UsageError
from pyrag.llm.limiter import question_scope
from pyrag.llm.protocol import Message
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.registry import check_writer, get_method
from pyrag.retrieval.filters.language import filter_of, parsed
from pyrag.retrieval.filters.tree import Filter, all_of
from pyrag.retrieval.protocol import filter_verdict, searched_index
from pyrag.runtime.citations import citations_of
from pyrag.runtime.contracts import offer_contract, with_contract
from pyrag.runtime.engines import Engines
from pyrag.runtime.explain.gate import CostGate
from pyrag.runtime.failures import as_trace_error, foreign_timeout, late
from pyrag.runtime.telemetry import with_spans
from pyrag.settings import Settings, public
from pyrag.trace.event_codec import recorded
from pyrag.trace.events import Answered, EventRecorder, FollowUp, Observer, QuestionFinished, QuestionStarted, ignore
from pyrag.trace.model import UNKNOWN, Answer, Exchange, Passage, Trace, TraceError
from pyrag.trace.verdict import judged, with_confidence
from pyrag_sandbox import SandboxError

MAX_QUESTION_BYTES = MAX_QUERY_BYTES * 3 // 4  # queries of programs hold the question and facts before it
CALLS_NO_TOOLS = "calls no tools"
"""Part of each warning about tools that cannot be called."""


async def answer_question(
    question: str,
    engines: Engines,
    settings: Settings,
    *,
    observer: Observer = ignore,
    recording: Recording | None = None,
    keep: bool = False,
    journal: Journal | None = None,
    method: Method | None = None,
    extensions: Mapping[str, Any] | None = None,
    earlier: Sequence[Message] = (),
    returns: Contract | None = None,
    gate: CostGate | None = None,
) -> Trace:
    """Answer one question. Every failure except an invalid request becomes a trace with an error.

    Args:
        question: The user's question.
        engines: Agents, retriever and sandbox.
        settings: The settings.
        observer: Called with each event.
        recording: Exchanges that answer the question's requests in place of the engines.
        keep: Whether to keep requests and replies in the trace, so that it can be replayed.
        journal: Exchanges that an earlier process had for this question, to which new ones are added.
        method: Method that replaces the settings' method.
        extensions: Initial value of the method's part of the trace. HERA runs a topology passed here instead of
            asking its orchestrator.
        earlier: Messages of the question's conversation, oldest first. An agent uses them to turn the question into
            one that stands on its own, within the question's limits.
        returns: Type of the final value; None for a text.
        gate: Explains the first program before it runs, and may refuse it; None lets it run.

    Raises:
        UsageError: The question is empty, too long or not a text, or the method is unknown.
    """
    question = _checked(question)
    method = method or get_method(settings.method)
    await engines.start()
    with with_spans(settings.otel, observer) as watching:
        ledger = Ledger(budget_of(settings, method), recording=recording, keep=keep, journal=journal)
        started_at = _wall_clock(ledger.elapsed())
        recorder = ledger.observer = EventRecorder(ledger.elapsed, watching)
        episode = _episode(question, engines, settings, ledger, ladder_for(settings, method))
        episode.extensions = dict(extensions or {})
        if gate is not None:
            episode.gate = gate
            gate.begin(episode)
        recorder(
            QuestionStarted(settings.method, engines.agents.name, engines.retriever.name, started_at, question=question)
        )
        try:
            result, error = await _result(episode, method, engines, settings, earlier, returns)
        finally:
            if gate is not None:
                await gate.end()
        trace = _doubted(_trace(episode, result, error, engines, settings, started_at), episode)
        recorder(Answered(trace.answer))
        recorder(QuestionFinished(trace.error))
        if recording is None:
            engines.history.add(trace)
        return judged(replace(trace, events=recorded(recorder.events, trace)))


def ladder_for(settings: Settings, method: Method | None = None) -> Ladder:
    """Return the recovery ladder that the settings name, or the method's own.

    Args:
        settings: The settings.
        method: Method that replaces the settings' method.
    """
    recovery = settings.recovery
    if recovery == "auto":
        recovery = (method or get_method(settings.method)).recovery
    return ladder_of(recovery, settings.boost_topk)


def calls_allowed(settings: Settings, method: Method | None = None) -> int:
    """Return the maximum number of model calls of a question.

    Args:
        settings: The settings.
        method: Method that replaces the settings' method.
    """
    return settings.max_calls or calls_for(ladder_for(settings, method))


def budget_of(settings: Settings, method: Method | None = None) -> QuestionBudget:
    """Return the limits of a question.

    Args:
        settings: The settings.
        method: Method that replaces the settings' method.
    """
    calls = calls_allowed(settings, method)
    return QuestionBudget(
        calls=calls,
        retrievals=max(QuestionBudget().retrievals, calls),
        tokens=settings.max_tokens,
        seconds=settings.deadline,
        cost=settings.max_cost,
        price_in=settings.price_in,
        price_out=settings.price_out,
        patient=bool(settings.cache),
        tool_calls=settings.max_tool_calls,
    )


def _episode(question: str, engines: Engines, settings: Settings, ledger: Ledger, ladder: Ladder) -> Episode:
    return Episode(
        question=question,
        agents=_sized(engines.agents, settings.topk),
        retriever=engines.retriever,
        sandbox=engines.sandbox,
        ledger=ledger,
        topk=settings.topk,
        ladder=ladder,
        unknown_policy=settings.unknown,
        no_passages=settings.no_passages,
        parallel=settings.parallel,
        prefetch_stats=engines.prefetch_stats,
        observer=ledger.observer,
        shared=engines.shared(settings),
        where=None if settings.where is None else parsed(settings.where),
        flow=Flow(settings.flow, engines.confirm, settings.search_effects, READER if engines.caller_reads else ""),
    )


async def _result(
    episode: Episode,
    method: Method,
    engines: Engines,
    settings: Settings,
    earlier: Sequence[Message],
    returns: Contract | None,
) -> tuple[Result, TraceError | None]:
    """Run the method within the deadline, and return its result and the reason of a failure."""
    ledger = episode.ledger
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
                if earlier:
                    await _make_standalone(episode, earlier)
                await _judge_filter(episode)
                check_writer(method, can_write=episode.can_write)
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
    """Return the trace with its answer's confidence, and with the planner's doubts as warnings if that is low."""
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
    standalone = await episode.ledger.call(
        "standalone", request, lambda: agent.standalone(earlier, user_message), Standalone
    )
    if standalone.note:
        episode.warn(standalone.note)
    if len(standalone.question.encode("utf-8", "replace")) > MAX_QUESTION_BYTES:
        episode.warn("the follow-up was asked as it is: as a question of its own it became too long")
    elif standalone.question != user_message:
        episode.flow.derive(message.role for message in earlier)
        episode.user_message, episode.question = user_message, standalone.question
        episode.observer(FollowUp(standalone.question))


def _wall_clock(elapsed: float) -> str:
    """Return the time `elapsed` seconds ago, from which the times of events count."""
    started = datetime.now(UTC) - timedelta(seconds=elapsed)
    return started.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _version() -> str:
    return pyrag_runtime.version()


def with_filter(settings: Settings, where: str | Mapping[str, Any] | Filter | None) -> Settings:
    """Return settings whose filter is narrowed by another one.

    Args:
        settings: The settings.
        where: The other filter; None for no filter.

    Raises:
        FilterError: The filter cannot be parsed.
    """
    joined = all_of(None if settings.where is None else parsed(settings.where), filter_of(where))
    return settings if joined is None else replace(settings, where=str(joined))


def _checked(question: str) -> str:
    if not isinstance(question, str):  # a library's callers are not type-checked
        raise UsageError(f"the question must be a text, not {type(question).__name__}")
    question = question.strip()
    if not question:
        raise UsageError('the question is empty: ask something, as in pyrag ask "Who wrote Dracula?"')
    try:
        size = len(question.encode())
    except UnicodeEncodeError as error:  # bytes on the command line that its encoding cannot decode
        raise UsageError("the question holds bytes that are no text in UTF-8: convert it to UTF-8") from error
    if size > MAX_QUESTION_BYTES:
        raise UsageError(
            f"the question is too long: it has {size:,} bytes, and at most {MAX_QUESTION_BYTES:,} are possible; "
            "ask in fewer words, and index long texts instead"
        )
    return question


def _warn_of_language(episode: Episode, settings: Settings) -> None:
    """Warn of a question in a language that an engine does not read."""
    for spec in (settings.llm, settings.answer_llm or settings.llm):
        engine = engine_of(spec)
        if engine is not None and (warning := engine.language_warning(episode.question)):
            episode.warn(warning)


def _sized(agents: Agents, topk: int) -> Agents:
    """Return the agents with a planner that writes this number of passages into its programs, if it writes any."""
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
    """Return the last answered step as the result when the budget ends a question, marked as not known."""
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
    )


def _used_passages(episode: Episode) -> dict[str, Passage]:
    """Return the passages that steps of the trace show, without the passages of discarded look-ups."""
    used = {passage for step in episode.steps for passage in step.passages}
    used |= {passage for step in episode.steps for attempt in step.attempts for passage in attempt.passages}
    return {key: passage for key, passage in episode.passages.items() if key in used}


def exchanges_of(trace: Trace) -> tuple[Exchange, ...]:
    """Return the exchanges that a replay of the trace needs. Raises `UsageError` if they were not kept."""
    if not trace.exchanges:
        raise UsageError("this trace holds no recording: save it with pyrag ask --trace FILE")
    return trace.exchanges
