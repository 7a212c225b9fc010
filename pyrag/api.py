"""Python interface: one class, asynchronous inside, with synchronous methods for any thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pyrag._io.loop_thread import Report
from pyrag.agents.typed.contract import Contract, contract_of
from pyrag.errors import UsageError
from pyrag.retrieval.protocol import Retriever
from pyrag.runtime.batch import each, in_order
from pyrag.runtime.contracts import with_object
from pyrag.runtime.engine_owner import EngineOwner
from pyrag.runtime.failures import failed_trace
from pyrag.runtime.own_parts import OwnParts, checked_confirm, parts_of
from pyrag.settings import Settings
from pyrag.trace.events import Observer, check_observer, ignore, of_question
from pyrag.trace.model import Trace

if TYPE_CHECKING:
    from pyrag.agents.protocol import Answerer
    from pyrag.episode.flow.policy import Confirm
    from pyrag.llm.protocol import ChatModel, Message
    from pyrag.runtime.chat import Chat
    from pyrag.runtime.explain.explanation import Explanation
    from pyrag.runtime.own_program import Budget

T = TypeVar("T")
Where = str | Mapping[str, Any]


class PyRAG(EngineOwner):
    """Question answering by programs over `retrieve` and `answer`.

    One object serves any number of threads and event loops. `ask` works in every thread, in notebooks and in
    synchronous web endpoints: questions of all threads run in parallel in one event loop that the object keeps in
    its own thread. `aask` runs in the caller's loop. Each loop has its own connections and sandbox workers, so one
    object may serve several loops, at the same time or one after another.

    After a fork (`os.fork`, multiprocessing, a preforking web server) the child opens its own engines, loop and
    sandbox with its first question; your own retriever object is used as it was copied. Under `spawn` the object is
    pickled by its settings, if its retriever can be pickled.

    Use it as a (synchronous or asynchronous) context manager, or close it, to end its worker processes early.

    Args:
        llm: Engine, such as `openai:MODEL@http://host:port/v1`, or an object with the `ChatModel` protocol
            (`pyrag.llm.protocol`); `embedded` needs no model.
        plan_llm: Another engine for the Plan agent (a coder model).
        retriever: URL of a `/retrieve` server, `qdrant:COLLECTION@PLACE`, `pgvector:TABLE@URL`, `mcp+stdio:COMMAND`,
            an index folder, a list of such specs to search as one, or an object with the `Retriever` protocol; None
            for the bundled corpus. The methods of an object are awaited in the loop that answers: for `ask`, in the
            loop of the object's own thread.
        answerer: Object with `async answer(query, passages)` that returns a `Reading` (`pyrag.agents.protocol`), in
            place of the engine's Answer agent.
        tools: Typed functions that programs may call besides `retrieve` and `answer` (see `pyrag.tools`). Specs, as
            for `--tools`, may be among them.
        where: Filter of passages, such as `year >= 2020 and team = "ops"` or `{"team": "ops"}`. No question or
            program can retrieve other passages.
        confirm: Function of a `DependentCall` (`pyrag.extend`), also an asynchronous one. It returns True to allow a
            call of a tool with effects that depends on retrieved text; otherwise the call ends the question. A
            synchronous function runs in a thread of its own. With `flow="allow"` it is not asked.
        settings: Any field of `pyrag.Settings`.

    Raises:
        ConfigError: A setting is unknown or invalid, or `confirm` cannot be called.
        DataError: The index cannot be opened.
    """

    def __init__(
        self,
        llm: str | ChatModel = "embedded",
        *,
        plan_llm: str | None = None,
        retriever: str | Path | Sequence[str | Path] | Retriever | None = None,
        answerer: Answerer | None = None,
        tools: Sequence[Callable[..., Any] | str] = (),
        where: Where | None = None,
        confirm: Confirm | None = None,
        **settings: Any,
    ) -> None:
        own = {"retriever": retriever, "answerer": answerer, "tools": tools, "where": where, "confirm": confirm}
        self._start(*parts_of(llm, own, {"plan_llm": plan_llm, **settings}))

    @classmethod
    def from_settings(cls, settings: Settings, *, confirm: Confirm | None = None) -> Self:
        """Return an object with loaded settings, for callers such as the command line.

        Args:
            settings: The settings.
            confirm: Function that may allow a call with effects that depends on retrieved text.
        """
        self = cls.__new__(cls)
        self._start(settings, OwnParts(confirm=checked_confirm(confirm)))
        return self

    async def aask(
        self,
        question: str,
        *,
        where: Where | None = None,
        observer: Observer = ignore,
        keep: bool = False,
        earlier: Sequence[Message] = (),
        resume: str | Path | None = None,
        returns: Any = None,
    ) -> Trace:
        """Answer one question in the running event loop. A failure is in `Trace.error`.

        Args:
            question: The question; the embedded engine reads English only.
            where: Filter of passages, which narrows the object's own; the program may narrow it further.
            observer: Called with each event (`pyrag.trace.events`) as it happens.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.
            earlier: Messages of the question's conversation, oldest first; `chat` keeps them for you.
            resume: File by which the same call goes on after a kill or a limit; see the synchronous call.
            returns: Type of `Trace.value`; see the synchronous call. None leaves the answer a text.

        Raises:
            UsageError: The question is empty, too long or not a text, or `returns` is not a type.
            FilterError: The filter cannot be parsed.
        """
        return await self._answer(
            question, where, observer, keep, earlier=earlier, resume=resume, returns=contract_of(returns)
        )

    async def _answer(
        self,
        question: str,
        where: Where | None,
        observer: Observer,
        keep: bool,
        number: int = 0,
        earlier: Sequence[Message] = (),
        resume: str | Path | None = None,
        returns: Contract | None = None,
    ) -> Trace:
        from pyrag.runtime.explain.gate import gate_of
        from pyrag.runtime.journal import finish, resumable
        from pyrag.runtime.run import answer_question, with_filter

        check_observer(observer)
        settings = with_filter(self.settings, where)
        engines, recording = self._engines_here()
        observer = of_question(observer, question, number)
        request = {"question": question, "earlier": [[message.role, message.content] for message in earlier]}
        request |= {} if returns is None else {"returns": returns.wanted}
        with resumable(resume, request, settings, engines.retriever) as journal:
            trace = await answer_question(
                question, engines, settings, observer=observer, recording=recording, keep=keep, journal=journal,
                earlier=earlier, returns=returns, gate=None if recording or resume else gate_of(engines, settings),
            )  # fmt: skip
            finish(journal, trace)
        return with_object(trace, returns)

    def ask(
        self,
        question: str,
        *,
        where: Where | None = None,
        observer: Observer = ignore,
        keep: bool = False,
        earlier: Sequence[Message] = (),
        resume: str | Path | None = None,
        returns: Any = None,
    ) -> Trace:
        """Answer one question in synchronous code of any thread, even if an event loop runs in it.

        Ctrl-C cancels the question: its program and its calls end before `KeyboardInterrupt` reaches the caller.

        Args:
            question: The question; the embedded engine reads English only.
            where: Filter of passages, which narrows the object's own; the program may narrow it further.
            observer: Called with each event, in the calling thread.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.
            earlier: Messages of the question's conversation, oldest first; `chat` keeps them for you.
            resume: File with the requests and replies so far, by which the same call goes on after its process was
                killed or met a limit; deleted when it is complete.
            returns: Type of `Trace.value`: a dataclass, pydantic model, TypedDict, `int`, `float`, `bool`, `str`,
                `date`, `list[str]`, a JSON schema as a dict, or a name such as "number". None leaves the answer a text.

        Raises:
            UsageError: The question is empty, too long or not a text, or `returns` is not a type.
            FilterError: The filter cannot be parsed.
        """

        check_observer(observer)

        def start(report: Report) -> Coroutine[Any, Any, Trace]:
            watching = ignore if observer is ignore else report
            return self.aask(
                question, where=where, observer=watching, keep=keep, earlier=earlier, resume=resume, returns=returns
            )

        return self._loop_thread().run(start, observer)

    async def arun(
        self,
        source: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        where: Where | None = None,
        budget: Budget | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        observer: Observer = ignore,
        keep: bool = False,
        resume: str | Path | None = None,
        returns: Any = None,
    ) -> Trace:
        """Run a program of your own in the running event loop.

        Args:
            source: Python over `retrieve` and `answer`, which sets `final_answer` (see `program_reference`).
            inputs: Values that the program finds under these names: texts, numbers, lists, dicts.
            where: Filter of passages, which narrows the object's own; the program may narrow it further.
            budget: Limits on what the program may spend.
            tools: Typed functions that the program may call besides the object's own tools.
            observer: Called with each event (`pyrag.trace.events`) as it happens.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.
            resume: File by which the same call goes on after a kill or a limit; see the synchronous call.
            returns: Type that the value of `final_answer` must have, as for `ask`. None accepts any value.

        Raises:
            UsageError: The program is empty or too long, an input is not a JSON value, the budget has an unknown
                limit, or `returns` is not a type.
            FilterError: The filter cannot be parsed.
        """
        from pyrag.runtime.own_program import run_source

        engines, recording = self._engines_here()
        return await run_source(
            source, inputs, engines, self.settings, where=where, budget=budget, tools=tools, observer=observer,
            recording=recording, keep=keep, resume=resume, returns=returns,
        )  # fmt: skip

    def run(
        self,
        source: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        where: Where | None = None,
        budget: Budget | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        observer: Observer = ignore,
        keep: bool = False,
        resume: str | Path | None = None,
        returns: Any = None,
    ) -> Trace:
        """Run a program of your own: same sandbox, recovery, filters and trace as for a question, and no planner.

        Args:
            source: Python over `retrieve` and `answer`, which sets `final_answer` (see `program_reference`).
            inputs: Values that the program finds under these names: texts, numbers, lists, dicts.
            where: Filter of passages, which narrows the object's own; the program may narrow it further.
            budget: Limits on what the program may spend.
            tools: Typed functions that the program may call besides the object's own tools.
            observer: Called with each event, in the calling thread.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.
            resume: File with the requests and replies so far, by which the same call goes on after its process was
                killed or met a limit; deleted when it is complete.
            returns: Type that the value of `final_answer` must have, as for `ask`. None accepts any value.

        Returns:
            The trace. `value` is the value of `final_answer` as JSON, `item_citations` the citations of each of its
            items. A wrong program is in `error`: the line, its text, and what to write instead.

        Raises:
            UsageError: The program is empty or too long, an input is not a JSON value, the budget has an unknown
                limit, or `returns` is not a type.
            FilterError: The filter cannot be parsed.
        """

        def start(report: Report) -> Coroutine[Any, Any, Trace]:
            watching = ignore if observer is ignore else report
            return self.arun(
                source, inputs, where=where, budget=budget, tools=tools, observer=watching, keep=keep,
                resume=resume, returns=returns,
            )  # fmt: skip

        return self._loop_thread().run(start, observer)

    async def aexplain(
        self,
        text: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        where: Where | None = None,
        analyze: bool = False,
        traces: Sequence[Trace] = (),
    ) -> Explanation:
        """Return an estimate of what a question or program will cost, in the running event loop.

        Args:
            text: The question, or the source of a program, which sets `final_answer`.
            inputs: Values that the program finds under these names.
            where: Filter of passages, which narrows the object's own.
            analyze: Whether to run the program too, and add what happened.
            traces: Earlier traces, whose recoveries and repairs count; the object's own traces count already.

        Raises:
            UsageError: The question or program is empty or too long, or an input is not a JSON value.
            ConfigError: The method writes no program before its calls.
            FilterError: The filter cannot be parsed.
        """
        from pyrag.runtime.explain.run import explain

        engines, _ = self._engines_here()
        return await explain(text, inputs, engines, self.settings, where=where, analyze=analyze, traces=traces)

    def explain(
        self,
        text: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        where: Where | None = None,
        analyze: bool = False,
        traces: Sequence[Trace] = (),
    ) -> Explanation:
        """Return an estimate of what a question or program will cost, in synchronous code of any thread.

        Args:
            text: The question, or the source of a program, which sets `final_answer`.
            inputs: Values that the program finds under these names.
            where: Filter of passages, which narrows the object's own.
            analyze: Whether to run the program too, and add what happened.
            traces: Earlier traces, whose recoveries and repairs count; the object's own traces count already.

        Returns:
            The program with low, expected and high amounts of each line. Only planning calls a model.

        Raises:
            UsageError: The question or program is empty or too long, or an input is not a JSON value.
            ConfigError: The method writes no program before its calls.
            FilterError: The filter cannot be parsed.
        """

        def start(_: Report) -> Coroutine[Any, Any, Explanation]:
            return self.aexplain(text, inputs, where=where, analyze=analyze, traces=traces)

        return self._loop_thread().run(start, ignore)

    def chat(self, *, where: Where | None = None) -> Chat:
        """Return a conversation, whose questions may refer to earlier ones.

        Args:
            where: Filter of passages for all questions, which narrows the object's own.
        """
        from pyrag.runtime.chat import Chat

        return Chat(self.ask, self.aask, where)

    async def aask_many(
        self,
        questions: Iterable[str] | AsyncIterable[str],
        *,
        concurrency: int | None = None,
        where: Where | None = None,
        observer: Observer = ignore,
        keep: bool = False,
        returns: Any = None,
    ) -> AsyncGenerator[Trace, None]:
        """Answer many questions in parallel, and yield their traces in the order of the questions.

        Args:
            questions: Questions, read as needed. A question for which `aask` would raise yields a trace with the
                error.
            concurrency: Maximum number of questions at once; None for the setting's value.
            where: Filter of passages for all questions, which narrows the object's own.
            observer: Called with each event; its `question` and `number` identify the question.
            keep: Whether to keep requests and replies in the traces, so that they can be replayed.
            returns: Type of each `Trace.value`, as for `ask`. None leaves the answers texts.

        Raises:
            UsageError: `questions` is one text, `concurrency` is below 1, `observer` is not a function, or `returns`
                is not a type.
        """
        limit = self.settings.concurrency if concurrency is None else concurrency
        if not isinstance(limit, int) or limit < 1:
            raise UsageError(f"concurrency must be a whole number above 0, not {concurrency!r}")
        check_observer(observer)
        contract = contract_of(returns)
        slots = asyncio.Semaphore(limit)

        async def answered(question: str, number: int) -> Trace:
            async with slots:
                try:
                    return await self._answer(question, where, observer, keep, number, returns=contract)
                except Exception as error:  # neither a bad line nor a bug of ours must end a batch
                    return failed_trace(question, error)

        # A slow question must not leave slots idle: later questions start, up to a bounded distance.
        async with aclosing(in_order(each(questions), answered, limit=4 * limit)) as traces:
            async for trace in traces:
                yield trace
