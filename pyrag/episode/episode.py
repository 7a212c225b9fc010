"""State of one question: its engines and filter, and everything that was requested, retrieved and decided so far.

An episode is independent of the method that answers and of the calls of programs (`program_run`). All requests of a
question share its memo, so a repaired program pays only for its changes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from pyrag.agents.protocol import Agents, Answerer, FindFault, PlanReply, Reading, Rewritten, Written
from pyrag.agents.typed.contract import Contract
from pyrag.episode.effects import Effects
from pyrag.episode.flow.policy import Flow
from pyrag.episode.ledger import Ledger
from pyrag.episode.memo import Memo, Requests
from pyrag.episode.recovery import Boost, Ladder
from pyrag.episode.requests import AskingStep
from pyrag.episode.speculation import PrefetchStats
from pyrag.errors import FilterError
from pyrag.retrieval.checked import content_id
from pyrag.retrieval.filters.tree import Filter, all_of
from pyrag.retrieval.protocol import Retriever, filter_verdict, name_of, passages_of
from pyrag.trace.events import Observer, Warned, ignore
from pyrag.trace.model import UNKNOWN, Passage, Program, Step
from pyrag_sandbox import Call, Sandbox

T = TypeVar("T")
UnknownPolicy = Literal["repair", "allow"]


class ProgramGate(Protocol):
    """Check that every program must pass before it runs."""

    async def pass_through(self, episode: Episode, program: Program) -> None:
        """Raise `PyRAGError` if a program must not run.

        Args:
            episode: Episode of the question.
            program: The program.
        """


@dataclass(slots=True)
class Episode:
    """State of a question.

    Attributes:
        unknown_policy: Effect of using an unknown answer in a query: `repair` raises an error for the planner,
            `allow` accepts it.
        no_passages: Effect of `answer(query, [])`: `unknown` returns an unknown answer without a model call,
            `aggregate` answers from the facts in the query, as if no documents were passed.
        extensions: The method's own part of the trace; see `pyrag.trace.extensions`.
        shared: State that the method keeps open between questions.
        more: Primitives added by the method and by tools; each is called with the program's run and the call.
        tools: Names of the tools among `more`, mapped to True if the tool has effects.
        effects: Record of the calls of tools with effects.
        flow: Policy for calls with effects that depend on passages.
        hideable: Names of primitives that a program hides by binding them.
        in_order: Names of primitives. If a program names one of them, its calls run one after another.
        value_bytes: Maximum size of a value that crosses between a program and its primitives.
        partial: Rows of the last incomplete `each`, as JSON, which become the value if the question fails.
        inputs: Input values of programs, by variable name.
        contract: Type of the final value; None for a text.
        gate: Gate that the first program must pass before it runs; None lets every program run.
        where: The caller's filter, which applies to every search. A program's own filter only narrows it.
        user_message: The user's last message, if the question was derived from a conversation.
        memo: All requests of the question.
        requests: Maker of the episode's requests: the memo, or a speculative view of it.
    """

    question: str
    agents: Agents
    retriever: Retriever
    sandbox: Sandbox
    ledger: Ledger
    topk: int = 5
    ladder: Ladder = (Boost(10),)
    unknown_policy: UnknownPolicy = "repair"
    no_passages: Literal["unknown", "aggregate"] = "unknown"
    parallel: bool = True
    prefetch_stats: PrefetchStats | None = None
    observer: Observer = ignore
    sub_queries: tuple[str, ...] = ()
    extensions: dict[str, Any] = field(default_factory=dict)
    shared: Any = None
    more: Mapping[str, Callable[[Any, Call], Awaitable[Any]]] = field(default_factory=dict)
    tools: Mapping[str, bool] = field(default_factory=dict)
    effects: Effects = field(default_factory=Effects)
    flow: Flow = field(default_factory=Flow)
    hideable: frozenset[str] = frozenset()
    in_order: tuple[str, ...] = ()
    value_bytes: int = 1 << 20
    partial: Any = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    contract: Contract | None = None
    gate: ProgramGate | None = None
    programs: list[Program] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    passages: dict[str, Passage] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    where: Filter | None = None
    user_message: str = ""
    memo: Memo = field(init=False)
    requests: Requests = field(init=False)

    def __post_init__(self) -> None:
        self.memo = self.requests = Memo(self.ledger)
        if self.flow.guards_searches:  # a recovery's searches depend on the passages that held no answer
            self.ladder = ()

    def ahead(self) -> Episode:
        """Return an episode like this one that leaves no traces, for a program that runs ahead.

        It lacks the primitives over the whole corpus, which may make many calls.
        """
        aside = replace(
            self,
            observer=ignore,
            effects=Effects(),
            flow=self.flow.ahead(),
            more={name: work for name, work in self.more.items() if name not in self.hideable},
            hideable=frozenset(),
            in_order=(),
            programs=[],
            steps=[],
            passages={},
            warnings=[],
            variables={},
        )
        aside.memo, aside.requests = self.memo, self.memo.speculative
        return aside

    def warn(self, message: str) -> None:
        """Add a warning unless the episode already has it."""
        if message not in self.warnings:
            self.warnings.append(message)
            self.observer(Warned(message))

    def keep_note(self, note: str, *, doubt: bool) -> None:
        """Add a note as a warning, or hold it back as a doubt until the answer shows whether it matters.

        Args:
            note: One sentence.
            doubt: Whether the note casts doubt on the answer.
        """
        if doubt:
            self.doubts.append(note)
        else:
            self.warn(note)

    def warn_of_doubts(self) -> None:
        """Turn all doubts into warnings, because the answer is weak or unknown."""
        for doubt in self.doubts:
            self.warn(doubt)

    def keep_notes(self, role: str, reply: PlanReply) -> None:
        """Record the notes, warnings and fallbacks of a plan.

        Args:
            role: The agent's role, added to the fallbacks if the plan is a fallback.
            reply: The plan; its note and warnings become warnings of the episode.
        """
        if reply.note:
            self.keep_note(reply.note, doubt=reply.doubt)
        for message in filter(None, getattr(reply, "warnings", ())):
            self.warn(message)
        if reply.fallback:
            self.fallbacks.append(role)

    @property
    def primitives(self) -> tuple[str, ...]:
        """Names of all functions that programs may call."""
        return tuple(dict.fromkeys(("retrieve", "answer", *self.more)))

    async def aclose(self) -> None:
        """Cancel all requests in flight."""
        await self.memo.aclose()

    async def ask(
        self,
        role: str,
        request: dict[str, Any],
        run: Callable[[], Awaitable[T]],
        reply_type: type[T],
        step: AskingStep | None = None,
    ) -> tuple[T, bool]:
        """Return the reply to a request, and True if an equal request had been made before.

        Args:
            role: The agent's role, or `retrieve`; the request is counted under it.
            request: The request as plain data; equal data means the same request.
            run: Function that makes the request.
            reply_type: Type of the reply, for reading it from a recording.
            step: Step that makes the request.

        Raises:
            BudgetExceededError: The request might cost more than the remaining budget; it is not made.
        """
        reply, memo = await self.requests.ask(role, request, run, reply_type, step)
        if note := getattr(reply, "note", ""):  # how the reply came about
            self.warn(note)
        return reply, memo

    async def fetch(
        self,
        query: str,
        topk: int,
        where: Filter | None = None,
        step: AskingStep | None = None,
        *,
        cleared: bool = False,
    ) -> tuple[list[Passage], bool]:
        """Return the passages that match best, added to the question, and True if the same search had been made before.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: The program's filter, which narrows the caller's.
            step: Step that searches.
            cleared: Whether the flow policy has already allowed the search.
        """
        passages, memo = await self.search(query, topk, where, step, cleared=cleared)
        return self.keep_passages(passages, f"the retriever {name_of(self.retriever)}"), memo

    async def search(
        self,
        query: str,
        topk: int,
        where: Filter | None = None,
        step: AskingStep | None = None,
        *,
        keep: bool = True,
        cleared: bool = False,
    ) -> tuple[list[Passage], bool]:
        """Return the passages that match best, best first, and True if the same search had been made before.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: The program's filter, which narrows the caller's.
            step: Step that searches.
            keep: Whether the passages stay in the memo.
            cleared: Whether the flow policy has already allowed the search.

        Raises:
            FlowError: Searches have effects, and this one may depend on passages.
            FilterError: The retriever does not support filters, or the program's filter names fields or value types
                that no passage has.
        """
        if not cleared and self.flow.guards_searches and self.ledger.recording is None:
            await self.flow.clear_search(query, tuple(self.passages.values()))
        bound = all_of(self.where, where)
        request = {"query": query, "topk": topk, **({} if bound is None else {"where": str(bound)})}

        async def run() -> list[Passage]:
            if where is not None:
                await self.judge(where)
            return await passages_of(self.retriever, query, topk, where=bound)

        passages, memo = await self.ask("retrieve", request, run, list[Passage], step)
        self.flow.delivered.add("retrieve")
        if not keep:
            self.memo.forget("retrieve", request)
        for note in getattr(passages, "notes", ()):  # also when the search was made ahead of time, or is replayed
            self.warn(f"the retriever {name_of(self.retriever)}: {note}")
        if bound is not None:  # checked here as well, since a recording or journal may have been edited
            passages = [passage for passage in passages if bound.matches(passage.metadata)]
        return passages, memo

    async def judge(self, where: Filter) -> None:
        """Warn if a program's filter matches nothing. Raises `FilterError` if it can never match anything."""
        verdict = await filter_verdict(self.retriever, where, self.where)
        if verdict.mismatched:
            raise FilterError("; ".join(verdict.sentences))
        for sentence in verdict.sentences:
            self.warn(sentence)

    def keep_passages(self, passages: Iterable[Passage], origin: str) -> list[Passage]:
        """Add passages to the question, and return them with unambiguous ids.

        Args:
            passages: Passages to add.
            origin: Name of the retriever or tool that returned them, for warnings.
        """
        distinct = [self._distinct(passage, origin) for passage in passages]
        for passage in distinct:
            self.passages.setdefault(passage.id, passage)
        return distinct

    def _distinct(self, passage: Passage, origin: str) -> Passage:
        """Return the passage, with a new id if a different text already has its id."""
        known = self.passages.get(passage.id, passage)
        if (known.title, known.text) == (passage.title, passage.text):
            return passage
        self.warn(f"{origin}: other texts under the same id {passage.id!r}")
        return replace(passage, id=f"{passage.id}#{content_id(passage.title, passage.text)}")

    def evidence(self, passages: list[Passage]) -> list[Passage] | None:
        """Return the passages to answer from, or None to aggregate the facts in the query."""
        return None if not passages and self.no_passages == "aggregate" else passages

    async def read(
        self,
        query: str,
        passages: Sequence[Passage] | None,
        role: str = "answer",
        agent: Answerer | None = None,
        step: AskingStep | None = None,
        returns: str = "",
    ) -> tuple[Reading, bool]:
        """Return an agent's answer to a query, and True if the answer came from the memo.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
            role: Role under which the request is counted.
            agent: Agent to ask; None for the Answer agent.
            step: Step that asks.
            returns: Type of the answer (`Returns.key`), if `agent` gives typed answers.
        """
        if passages is not None and not passages:
            return Reading(UNKNOWN, known=False, rationale="no passages"), False
        answerer = agent or self.agents.answerer
        ids = None if passages is None else [passage.id for passage in passages]
        request = {"query": query, "passages": ids, **({"returns": returns} if returns else {})}
        return await self.ask(role, request, lambda: answerer.answer(query, passages), Reading, step)

    async def rewrite(
        self,
        query: str,
        tried: Sequence[str],
        passages: Sequence[Passage],
        missing: str,
        step: AskingStep | None = None,
    ) -> tuple[Rewritten, bool]:
        """Return a rewritten query, and True if the same request had been made before.

        Args:
            query: Sub-query that has no answer yet.
            tried: Queries searched for so far.
            passages: Passages that these searches returned.
            missing: Information that the passages lack.
            step: Step that needs the query.
        """
        ids = [passage.id for passage in passages]
        request = {"query": query, "tried": list(tried), "passages": ids, "missing": missing}

        async def run() -> Rewritten:
            assert self.agents.rewriter is not None
            return await self.agents.rewriter.rewrite(query, tried, passages, missing)

        return await self.ask("rewrite", request, run, Rewritten, step)

    @property
    def can_rewrite(self) -> bool:
        """True if the engine has a Rewriter; in a replay, True if the recording has rewrites."""
        return self._has(self.agents.rewriter, "rewrite")

    @property
    def can_write(self) -> bool:
        """True if the engine has a Writer; in a replay, True if the recording has written text."""
        return self._has(self.agents.writer, "write")

    def _has(self, agent: object, role: str) -> bool:
        recording = self.ledger.recording
        return agent is not None if recording is None else recording.holds(role)

    async def write(
        self,
        template: str,
        values: Mapping[str, str],
        stop: tuple[str, ...],
        prefix: str,
        fault: FindFault | None,
        step: AskingStep | None = None,
    ) -> tuple[Written, bool]:
        """Return the Writer's text, and True if the same request had been made before.

        Args:
            template: Name of the prompt template.
            values: Values for the template's fields.
            stop: Strings that end the text.
            prefix: Beginning of the text, which the model continues.
            fault: Returns the fault of a text, so that the model is asked again, or an empty text. None accepts any
                text.
            step: Step that the text belongs to.
        """
        request = {"template": template, "values": dict(values), "stop": list(stop), "prefix": prefix}

        async def run() -> Written:
            assert self.agents.writer is not None
            return await self.agents.writer.write(template, values, stop, prefix, fault)

        return await self.ask("write", request, run, Written, step)
