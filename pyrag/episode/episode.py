"""One question being answered: its engines, its filter, and what was asked, found and decided so far.

An episode knows neither the method that answers nor the programs' calls (`program_run`). All requests of a question
share its memo, so that a repaired program pays only for what changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from pyrag.agents.protocol import Agents, Answerer, FindFault, Reading, Rewritten, Written
from pyrag.episode.effects import Effects
from pyrag.episode.ledger import Ledger
from pyrag.episode.recovery import Boost, Ladder
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


class PlanReply(Protocol):
    """An agent's plan with what it says about itself; some have `warnings` too."""

    @property
    def note(self) -> str: ...
    @property
    def doubt(self) -> bool: ...
    @property
    def fallback(self) -> bool: ...


@dataclass(slots=True)
class Episode:
    """State of one question.

    Attributes:
        unknown_policy: What using an unknown answer in a query does: an error that goes back to the planner (`repair`),
            or nothing (`allow`).
        no_passages: What `answer(query, [])` does: it is `unknown` without a call, or it does `aggregate` the facts in
            its query, as without documents.
        extensions: The method's own part of the trace: see `pyrag.trace.extensions`.
        shared: What the method keeps open between questions.
        more: Primitives of the method and of tools beside the usual two, each called with the program's run and a call.
        tools: Names of the tools among them; True for those with effects.
        effects: Calls of those that have happened.
        where: The caller's filter: nothing else is retrieved. A program's own only narrows it.
        said: The user's words, where the question was made of the last message of a conversation.
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
    programs: list[Program] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    passages: dict[str, Passage] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    where: Filter | None = None
    said: str = ""

    def warn(self, message: str) -> None:
        """Says something once: decomposing and planning may both notice it."""
        if message not in self.warnings:
            self.warnings.append(message)
            self.observer(Warned(message))

    def keep_note(self, note: str, *, doubt: bool) -> None:
        """Warn of a note; a doubt waits until the answer shows whether it matters.

        Args:
            note: One sentence.
            doubt: It casts doubt on the answer.
        """
        if doubt:
            self.doubts.append(note)
        else:
            self.warn(note)

    def warn_of_doubts(self) -> None:
        """Warn of the doubts: the answer is weak or unknown."""
        for doubt in self.doubts:
            self.warn(doubt)

    def keep_notes(self, role: str, reply: PlanReply) -> None:
        """Keep what a plan says about itself.

        Args:
            role: The agent's role, listed among the fallbacks if the plan is one.
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
        """The names that programs may call."""
        return ("retrieve", "answer", *self.more)

    async def aclose(self) -> None:
        """Cancels what is still in flight."""
        await self.ledger.aclose()

    async def ask(
        self, role: str, request: dict[str, Any], run: Callable[[], Awaitable[T]], reply_type: type[T]
    ) -> tuple[T, bool]:
        """Return the reply of an agent or retriever, and True if the same was asked before: then the reply is that one.

        Args:
            role: The agent's role, or `retrieve`; the request counts for it.
            request: What is asked, as plain data; equal requests are one.
            run: Makes the request.
            reply_type: Type of the reply, to read it from a recording.

        Raises:
            BudgetExceededError: the request might cost more than is left; it is not made.
        """
        reply, memo = await self.ledger.once(role, request, run, reply_type)
        if note := getattr(reply, "note", ""):  # of how a reply came about
            self.warn(note)
        return reply, memo

    async def fetch(self, query: str, topk: int, where: Filter | None = None) -> tuple[list[Passage], bool]:
        """Return the passages found, best first, and True if the same search was made before.

        Args:
            query: Words to search for.
            topk: Number of passages, at most.
            where: Filter of the program, which narrows that of the caller.

        Raises:
            FilterError: There is a filter, and the retriever takes none; or the program's filter names fields or kinds
                of values that no passage has.
        """
        bound = all_of(self.where, where)
        request = {"query": query, "topk": topk, **({} if bound is None else {"where": str(bound)})}

        async def run() -> list[Passage]:
            if where is not None:
                await self._judge(where)
            return await passages_of(self.retriever, query, topk, where=bound)

        found, memo = await self.ask("retrieve", request, run, list[Passage])
        for note in getattr(found, "notes", ()):  # also of a search that was made ahead of the program, or is replayed
            self.warn(f"the retriever {name_of(self.retriever)}: {note}")
        if bound is not None:  # nothing else passes, whatever replied: a recording or a journal may have been changed
            found = [passage for passage in found if bound.matches(passage.metadata)]
        return self.keep_passages(found, f"the retriever {name_of(self.retriever)}"), memo

    async def _judge(self, where: Filter) -> None:
        verdict = await filter_verdict(self.retriever, where, self.where)
        if verdict.mismatched:
            raise FilterError("; ".join(verdict.sentences))
        for sentence in verdict.sentences:
            self.warn(sentence)

    def keep_passages(self, found: Iterable[Passage], origin: str) -> list[Passage]:
        """Add passages to the question, and return them with ids that are their own.

        Args:
            found: Passages.
            origin: Who gave them, for warnings.
        """
        kept = [self._distinct(passage, origin) for passage in found]
        for passage in kept:
            self.passages.setdefault(passage.id, passage)
        return kept

    def _distinct(self, passage: Passage, origin: str) -> Passage:
        """Under an id of its own, where another retrieval gave another text under its id."""
        known = self.passages.get(passage.id, passage)
        if (known.title, known.text) == (passage.title, passage.text):
            return passage
        self.warn(f"{origin}: other texts under the same id {passage.id!r}")
        return replace(passage, id=f"{passage.id}#{content_id(passage.title, passage.text)}")

    def evidence(self, passages: list[Passage]) -> list[Passage] | None:
        """Return the passages to answer from; None if facts in the query are to be aggregated."""
        return None if not passages and self.no_passages == "aggregate" else passages

    async def read(
        self, query: str, passages: Sequence[Passage] | None, role: str = "answer", agent: Answerer | None = None
    ) -> tuple[Reading, bool]:
        """Return what an agent that answers says, and whether the memo had it.

        Args:
            query: What it is asked.
            passages: The evidence; None has it aggregate the facts in the query.
            role: The role that the request counts for.
            agent: Who is asked; the Answer agent if None.
        """
        if passages is not None and not passages:
            return Reading(UNKNOWN, known=False, rationale="no passages"), False
        asked = agent or self.agents.answerer
        request = {"query": query, "passages": None if passages is None else [passage.id for passage in passages]}
        return await self.ask(role, request, lambda: asked.answer(query, passages), Reading)

    async def rewrite(
        self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str
    ) -> tuple[Rewritten, bool]:
        """Return another query of the Rewrite agent, and True if the same was asked before.

        Args: those of `Rewriter.rewrite`.
        """
        ids = [passage.id for passage in passages]
        request = {"query": query, "tried": list(tried), "passages": ids, "missing": missing}

        async def run() -> Rewritten:
            assert self.agents.rewriter is not None
            return await self.agents.rewriter.rewrite(query, tried, passages, missing)

        return await self.ask("rewrite", request, run, Rewritten)

    @property
    def can_rewrite(self) -> bool:
        """True if the engine has a Rewriter; a replay has what its recording had."""
        return self._has(self.agents.rewriter, "rewrite")

    @property
    def can_write(self) -> bool:
        """True if the engine has a Writer; a replay has what its recording had."""
        return self._has(self.agents.writer, "write")

    def _has(self, agent: object, role: str) -> bool:
        recording = self.ledger.recording
        return agent is not None if recording is None else recording.holds(role)

    async def write(
        self, template: str, values: Mapping[str, str], stop: tuple[str, ...], prefix: str, fault: FindFault | None
    ) -> tuple[Written, bool]:
        """Return the Writer's text, and True if the same was asked before. Args: those of `Writer.write`."""
        request = {"template": template, "values": dict(values), "stop": list(stop), "prefix": prefix}

        async def run() -> Written:
            assert self.agents.writer is not None
            return await self.agents.writer.write(template, values, stop, prefix, fault)

        return await self.ask("write", request, run, Written)
