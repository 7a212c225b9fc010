"""Python interface: one class, asynchronous inside, with synchronous methods for any thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from pyrag._io.loop_thread import Report
from pyrag.agents.typed.contract import contract_of
from pyrag.errors import UsageError
from pyrag.retrieval.protocol import Retriever
from pyrag.runtime.batch import each, in_order
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
    from pyrag.runtime.engines import Engines
    from pyrag.runtime.explain.explanation import Explanation
    from pyrag.runtime.own_program import Budget

T = TypeVar("T")
P = ParamSpec("P")
Where = str | Mapping[str, Any]


def blocking(
    method: Callable[Concatenate[PyRAG, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[PyRAG, P], T]:
    """Return the synchronous form of a method, which any thread may call, even one in which an event loop runs.

    The observer is called in the calling thread. Ctrl-C cancels the work: its program and its calls end before
    `KeyboardInterrupt` reaches the caller.
    """

    @wraps(method)
    def call(rag: PyRAG, /, *args: P.args, **kwargs: P.kwargs) -> T:
        observer: Any = kwargs.get("observer", ignore)
        check_observer(observer)

        def start(report: Report) -> Coroutine[Any, Any, T]:
            watching: Any = kwargs if observer is ignore else {**kwargs, "observer": report}
            return method(rag, *args, **watching)

        return rag._owner.run(start, observer)

    call.__name__ = method.__name__.removeprefix("a")
    call.__qualname__ = f"PyRAG.{call.__name__}"
    summary, _, details = (method.__doc__ or "").partition("\n\n")
    where = f"For synchronous code of any thread; `{method.__name__}` is awaited in the running event loop."
    call.__doc__ = f"{summary}\n\n        {where}\n\n{details}"
    return call


class PyRAG:
    """Question answering by programs over `retrieve` and `answer`.

    One object serves any number of threads and event loops. `ask` works in every thread, in notebooks and in
    synchronous web endpoints: questions of all threads run in parallel in one event loop that the object keeps in
    its own thread. `aask` runs in the caller's loop. Each loop has its own connections and sandbox workers, so one
    object may serve several loops, at the same time or one after another.

    After a fork (`os.fork`, multiprocessing, a preforking web server) the child opens its own engines, loop and
    sandbox with its first question; your own retriever object is used as it was copied. Under `spawn` the object is
    pickled by its settings, if its retriever can be pickled.

    In a synchronous call, the observer is called in the calling thread, and Ctrl-C cancels the question: its program
    and its calls end before `KeyboardInterrupt` reaches the caller.

    Use it as a (synchronous or asynchronous) context manager, or close it, to end its worker processes early.

    Args:
        llm: Engine, such as `openai:MODEL@http://host:port/v1`, or an object with the `ChatModel` protocol
            (`pyrag.llm.protocol`); `embedded` needs no model.
        plan_llm: Another engine for the Plan agent (a coder model).
        retriever: URL of a `/retrieve` server, `qdrant:COLLECTION@PLACE`, `pgvector:TABLE@URL`, `mcp+stdio:COMMAND`,
            an index folder, a list of such specs to search as one, or an object with the `Retriever` protocol; None
            for the bundled corpus. The methods of an object are awaited in the loop that answers: for `ask`, in the
            loop of the object's own thread.
        answerer: Object with `async answer(query, passages)` that returns a `Reading` (`pyrag.agents.protocol`),
            instead of the engine's Answer agent.
        tools: Typed functions that programs may call besides `retrieve` and `answer` (see `pyrag.tools`). The list may
            also contain specs, as for `--tools`.
        where: Filter of passages, such as `year >= 2020 and team = "ops"` or `{"team": "ops"}`. No question or
            program can retrieve other passages.
        confirm: Function that takes a `DependentCall` (`pyrag.extend`); it may be asynchronous. It returns True to
            allow a call of a tool with effects that depends on retrieved text; otherwise the call ends the question. A
            synchronous function runs in its own thread. It is not called with `flow="allow"`.
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
        self._owner = EngineOwner(*parts_of(llm, own, {"plan_llm": plan_llm, **settings}))

    @classmethod
    def from_settings(cls, settings: Settings, *, confirm: Confirm | None = None) -> Self:
        """Return an object with loaded settings, for callers such as the command line.

        Args:
            settings: The settings.
            confirm: Function that may allow a call with effects that depends on retrieved text.
        """
        return cls._over(EngineOwner(settings, OwnParts(confirm=checked_confirm(confirm))))

    @classmethod
    def _over(cls, owner: EngineOwner) -> Self:
        self = cls.__new__(cls)
        self._owner = owner
        return self

    @property
    def settings(self) -> Settings:
        """Settings of all questions."""
        return self._owner.settings

    @property
    def engines(self) -> Engines:
        """Engines that answer: agents, retriever and sandbox."""
        return self._owner.engines

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
        """Answer one question. A failure is in `Trace.error`.

        Args:
            question: The question; the embedded engine reads English only.
            where: Filter of passages, applied in addition to the object's filter; the program may narrow it further.
            observer: Called with each event (`pyrag.trace.events`) as it happens.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.
            earlier: Messages of the question's conversation, oldest first; `chat` keeps them for you.
            resume: File with the requests and replies so far, from which the same call continues after its process was
                killed or reached a limit; deleted on completion.
            returns: Type of `Trace.value`: a dataclass, pydantic model, TypedDict, `int`, `float`, `bool`, `str`,
                `date`, `list[str]`, a JSON schema as a dict, or a name such as "number". None leaves the answer a text.

        Raises:
            UsageError: The question is empty, too long or not a text, or `returns` is not a type.
            FilterError: The filter cannot be parsed.
        """
        from pyrag.runtime.question_request import request_of

        check_observer(observer)
        request = request_of(question, self.settings, where=where, earlier=earlier, returns=contract_of(returns))
        watching = of_question(observer, request.text)
        return await self._owner.answer(request, observer=watching, keep=keep, resume=resume)

    ask = blocking(aask)

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
        """Run a program of your own: same sandbox, recovery, filters and trace as for a question, and no planner.

        Args:
            source: Python over `retrieve` and `answer`, which sets `final_answer` (see `program_reference`).
            inputs: Input values of the program, by variable name: texts, numbers, lists, dicts.
            where: Filter of passages, applied in addition to the object's filter; the program may narrow it further.
            budget: Limits on what the program may spend.
            tools: Typed functions that the program may call in addition to the object's tools.
            observer: Called with each event (`pyrag.trace.events`) as it happens.
            keep: Whether to keep requests and replies in the trace, so that it can be replayed.
            resume: File with the requests and replies so far, from which the same call continues after its process was
                killed or reached a limit; deleted on completion.
            returns: Type that the value of `final_answer` must have, as for `ask`. None accepts any value.

        Returns:
            The trace. `value` is the value of `final_answer` as JSON, `item_citations` the citations of each of its
            items. If the program is wrong, `error` has the line's number, its text, and what to write instead.

        Raises:
            UsageError: The program is empty or too long, an input is not a JSON value, the budget has an unknown
                limit, or `returns` is not a type.
            FilterError: The filter cannot be parsed.
        """
        from pyrag.methods.own_program import OwnProgram
        from pyrag.runtime.own_program import limits_of, with_tools
        from pyrag.runtime.question_request import request_of

        check_observer(observer)
        program, contract = OwnProgram(source, inputs or {}), contract_of(returns)
        request = request_of(program, self.settings, where=where, limits=limits_of(budget), returns=contract)
        engines = with_tools(self.engines, tools)
        return await self._owner.answer(request, engines=engines, observer=observer, keep=keep, resume=resume)

    run = blocking(arun)

    async def aexplain(
        self,
        text: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        where: Where | None = None,
        analyze: bool = False,
        traces: Sequence[Trace] = (),
    ) -> Explanation:
        """Return an estimate of what a question or program will cost.

        Args:
            text: The question, or the source of a program, which sets `final_answer`.
            inputs: Input values of the program, by variable name.
            where: Filter of passages, applied in addition to the object's filter.
            analyze: Whether to run the program too, and add what happened.
            traces: Earlier traces, whose recoveries and repairs are used for the estimate, in addition to the object's
                own traces.

        Returns:
            The program, with low, expected and high amounts for each line. Only planning calls a model.

        Raises:
            UsageError: The question or program is empty or too long, or an input is not a JSON value.
            ConfigError: The method writes no program before its calls.
            FilterError: The filter cannot be parsed.
        """
        from pyrag.runtime.explain.explaining import explain, subject_of
        from pyrag.runtime.question_request import request_of

        request = request_of(subject_of(text, inputs), self.settings, where=where)
        return await explain(request, self.engines, analyze=analyze, traces=traces)

    explain = blocking(aexplain)

    def chat(self, *, where: Where | None = None) -> Chat:
        """Return a conversation, whose questions may refer to earlier ones.

        Args:
            where: Filter of passages for all questions, applied in addition to the object's filter.
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
            where: Filter of passages for all questions, applied in addition to the object's filter.
            observer: Called with each event; its `question` and `number` identify the question.
            keep: Whether to keep requests and replies in the traces, so that they can be replayed.
            returns: Type of each `Trace.value`, as for `ask`. None for answers as text.

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
                    watching = of_question(observer, question, number)
                    return await self.aask(question, where=where, observer=watching, keep=keep, returns=contract)
                except Exception as error:  # neither a bad line nor a bug of ours must end a batch
                    return failed_trace(question, error)

        # A slow question must not leave slots idle: later questions start, up to a bounded distance.
        async with aclosing(in_order(each(questions), answered, limit=4 * limit)) as traces:
            async for trace in traces:
                yield trace

    async def aclose(self) -> None:
        """Close the object inside an event loop. Connections that other loops opened are closed there."""
        await self._owner.aclose()

    def close(self) -> None:
        """End worker processes and connections. The object can be used again afterwards."""
        self._owner.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _over, (type(self), self._owner)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _over(kind: type[PyRAG], owner: EngineOwner) -> PyRAG:
    return kind._over(owner)
