"""One question being answered: the primitives bound to it, their memo and recording.

An episode runs programs; it does not write them (a method does) and does not know which method that is. Programs of
one episode share the memo, so that a repaired program pays only for what changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, Literal, Protocol, TypeVar

import pyrag_sandbox
from pyrag.agents.protocol import Agents, Answerer, FindFault, Reading, Rewritten, Written
from pyrag.agents.reply_room import written_answer
from pyrag.episode.ledger import Ledger, asking_step
from pyrag.episode.program_values import (
    UNKNOWN_ERROR,
    answer_text,
    bind,
    check_query,
    check_topk,
    check_where,
    kind_of,
    plain,
    record,
)
from pyrag.episode.recovery import Boost, Ladder, RecoveryRunner, Search, attempt, ids_of, merge
from pyrag.episode.speculation import PrefetchStats
from pyrag.errors import PyRAGError
from pyrag.retrieval.checked import content_id
from pyrag.retrieval.filters.tree import Filter, all_of
from pyrag.retrieval.protocol import Retriever, passages_of
from pyrag.trace.events import (
    Observer,
    ProgramFinished,
    ProgramStarted,
    StepFinished,
    StepStarted,
    Warned,
    ignore,
)
from pyrag.trace.model import UNKNOWN, Answer, Attempt, Passage, Program, Step
from pyrag_sandbox import Call, Limits, Outcome, PrimitiveError, Record, Sandbox, Text

T = TypeVar("T")
UnknownPolicy = Literal["repair", "allow"]
ReadAnswer = Callable[[str], Answer | None]
_UNKNOWN_WORD = re.compile(rf"\b{UNKNOWN}\b", re.IGNORECASE)


class PlanReply(Protocol):
    """An agent's plan with what it says about itself; some have `warnings` too."""

    @property
    def note(self) -> str: ...
    @property
    def fallback(self) -> bool: ...


@dataclass(slots=True)
class Episode:
    """State of one question.

    Attributes:
        unknown_policy: What using an unknown answer in a query does: an error that goes back to the planner (`repair`),
            or nothing (`allow`).
        extensions: The method's own part of the trace: see `pyrag.trace.extensions`.
        shared: What the method keeps open between questions.
        more: Primitives of the method and of tools, beside the usual two.
        tools: Names of the tools among them; True for those with effects.
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
    parallel: bool = True
    prefetch_stats: PrefetchStats | None = None
    observer: Observer = ignore
    sub_queries: tuple[str, ...] = ()
    extensions: dict[str, Any] = field(default_factory=dict)
    shared: Any = None
    more: Mapping[str, Primitive] = field(default_factory=dict)
    tools: Mapping[str, bool] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    passages: dict[str, Passage] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    where: Filter | None = None
    said: str = ""

    def warn(self, message: str) -> None:
        """Says something once: decomposing and planning may both notice it."""
        if message not in self.warnings:
            self.warnings.append(message)
            self.observer(Warned(message))

    def keep_notes(self, role: str, reply: PlanReply) -> None:
        """Keep what a plan says about itself.

        Args:
            role: The agent's role, listed among the fallbacks if the plan is one.
            reply: The plan; its note and warnings become warnings of the episode.
        """
        for message in filter(None, (reply.note, *getattr(reply, "warnings", ()))):
            self.warn(message)
        if reply.fallback:
            self.fallbacks.append(role)

    @property
    def primitives(self) -> tuple[str, ...]:
        """The names that programs may call."""
        return ("retrieve", "answer", *self.more)

    async def run(self, program: Program) -> tuple[Outcome, ProgramRun]:
        """Executes a program in the sandbox and adds its steps to the episode, in program order.

        Raises what a primitive raised because of a failing service or a spent budget; the steps made so far are kept.
        """
        self.programs.append(program)
        program_run = ProgramRun(self, len(self.programs) - 1, first=len(self.steps))
        self.observer(ProgramStarted(program_run.index))
        primitives: dict[str, Callable[[Call], Awaitable[Any]]] = {
            "retrieve": program_run.retrieve,
            "answer": program_run.answer,
            **{name: partial(work, program_run) for name, work in self.more.items()},
        }
        # The calls limit is the sandbox's own, against floods; the ledger's budget is what users set.
        budget = self.ledger.budget
        limits = Limits(calls=max(100, budget.calls + budget.retrievals + budget.tool_calls))
        side_by_side = self.parallel and not self._has_effects(program.source)
        try:
            outcome = await self.sandbox.run(program.source, primitives, limits=limits, concurrent=side_by_side)
        except BaseException:
            self.steps += program_run.finished(None)
            self.observer(ProgramFinished(program_run.index, "stopped"))
            raise
        order = program_run.begun(call.id for call in outcome.calls)
        self.steps += program_run.finished([call.id for call in outcome.calls])
        self.observer(ProgramFinished(program_run.index, outcome.status, program_run.first, order))
        self.variables = {name: plain(value) for name, value in outcome.variables.items()}
        if outcome.output:
            self.programs[-1] = replace(program, output=outcome.output)
        return outcome, program_run

    def _has_effects(self, source: str) -> bool:
        """True for a program that may call a tool with effects: its calls keep their order, and none is made early."""
        if not any(self.tools.values()):
            return False
        plain = unicodedata.normalize("NFKC", source)  # as Python reads names
        return any(effects and name in plain for name, effects in self.tools.items())

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
            FilterError: There is a filter, and the retriever takes none.
        """
        bound = all_of(self.where, where)
        request = {"query": query, "topk": topk, **({} if bound is None else {"where": str(bound)})}
        found, memo = await self.ask(
            "retrieve", request, lambda: passages_of(self.retriever, query, topk, self.warn, bound), list[Passage]
        )
        if bound is not None:  # nothing else passes, whatever replied: a recording or a journal may have been changed
            found = [passage for passage in found if bound.matches(passage.metadata)]
        return self.keep_passages(found, f"the retriever {self.retriever.name}"), memo

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

        Args:
            query: The sub-query that has no answer yet.
            tried: The queries searched for so far.
            passages: Those that were found.
            missing: The information that they lack.
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
        """Return the Writer's text, and True if the same was asked before.

        Args:
            template: Name of the prompt template.
            values: Texts for its placeholders.
            stop: Strings that end the text and are left out.
            prefix: Beginning of the text, which the model continues.
            fault: Returns the fault of a text, or an empty text; not part of what makes requests equal.
        """
        request = {"template": template, "values": dict(values), "stop": list(stop), "prefix": prefix}

        async def run() -> Written:
            assert self.agents.writer is not None
            return await self.agents.writer.write(template, values, stop, prefix, fault)

        return await self.ask("write", request, run, Written)


# What a program's call comes to, in the round of that program.
Primitive = Callable[["ProgramRun", Call], Awaitable[Any]]


@dataclass(slots=True)
class OpenStep:
    """A step that has begun, as far as its `Step` is known by then; `id` is None once the program has dropped it."""

    id: int | None
    call: int  # the sandbox's id
    started: float  # seconds since the question was asked
    fields: dict[str, Any]

    def step(self, **more: Any) -> Step:
        assert self.id is not None, "the step was dropped"
        return Step(id=self.id, started=self.started, **self.fields | more)


@dataclass(slots=True)
class ProgramRun:
    """The primitives of one program run. Steps are keyed by the sandbox's call ids until the run ends.

    A `bare` round belongs to a method that knows neither recovery nor the refusal of unknown answers in queries.
    """

    episode: Episode
    index: int
    first: int  # number of steps before this round
    without_recovery: bool = False
    _open: dict[int, OpenStep] = field(default_factory=dict)
    _steps: dict[int, Step] = field(default_factory=dict)
    retrieved: dict[int, tuple[Search, int, list[Passage]]] = field(default_factory=dict)
    _answers: dict[int, Answer] = field(default_factory=dict)
    _ids: dict[int, int] = field(default_factory=dict)

    async def retrieve(self, call: Call) -> list[Record]:
        """`retrieve(query, topk=k, where=None)`: a list of passages, best first."""
        given = pyrag_sandbox.bind(call, ("query", "topk", "where"), {"topk": self.episode.topk, "where": None})
        query, topk, where = check_query(given["query"], "retrieve"), check_topk(given["topk"]), given["where"]
        narrowed = None if where is None else check_where(where, self.episode.retriever)
        self.refuse_unknown(call, query)
        step = self.start(call, query, topk=topk, where="" if narrowed is None else str(narrowed))
        found, memo = await self.watched(step, self.episode.fetch(query, topk, narrowed))
        self.retrieved[call.id] = (Search(query, narrowed), topk, found)
        self.finish(step, passages=ids_of(found), memo=memo)
        return [record(passage) for passage in found]

    async def answer(self, call: Call) -> Text:
        """`answer(query, docs)` from passages; `answer(query)` aggregates the facts in the query."""
        return await self.answered(call, "answer", recover=not self.without_recovery)

    async def answered(self, call: Call, role: str, *, agent: Answerer | None = None, recover: bool = False) -> Text:
        """Return what an agent that answers says, as a step: from passages, or from the facts in its query.

        Args:
            call: The program's call.
            role: The primitive that was called.
            agent: Who is asked; the Answer agent if None.
            recover: Whether an unknown answer climbs the ladder.
        """
        query, docs = bind(call, role, ("query", "docs"), {"docs": None})
        query = check_query(query, role)
        passages = None if docs is None else self.passages_of(docs)
        if passages is not None:
            self.refuse_unknown(call, query)
        mode = "aggregation" if docs is None else "evidence"
        step = self.start(call, query, passages=ids_of(passages or ()), mode=mode)
        reading, memo = await self.watched(step, self.episode.read(query, passages, role, agent))
        attempts = [attempt("first", query, passages or (), reading)]
        if passages is not None and not reading.known and recover:
            attempts += await self.watched(step, self._recover(call, step, query, passages, reading))
        last = attempts[-1]
        assert last.answer is not None
        self._answers[call.id] = last.answer
        self.finish(
            step,
            answer=last.answer,
            passages=last.passages,
            attempts=tuple(attempts) if len(attempts) > 1 else (),
            memo=memo,
            usage=reduce(add, (one.usage for one in attempts)),
            rationale=last.rationale,
        )
        return answer_text(last.answer, query, self.source)

    async def write(
        self, call: Call, query: str, work: Awaitable[tuple[Written, bool]], read: ReadAnswer, **fields: Any
    ) -> Written:
        """Record a model's free text as a step, for methods; programs cannot call it.

        Args:
            call: The call that the step stands for.
            query: What is asked, as the step shows it.
            work: The request; its second value is True if the memo had the reply.
            read: Reads the answer of the text; None if it holds none.
            fields: Further fields of the step.
        """
        step = self.start(call, query, **fields)
        written: Written
        written, memo = await self.watched(step, work)
        answer = written_answer(written, read)
        if answer is not None:
            self._answers[call.id] = answer
        self.finish(step, output=written.text, answer=answer, memo=memo, usage=written.usage)
        if written.cut_off and answer is not None and not answer.known:
            self.episode.warn("a reply was cut off, so its answer is unknown (see the request option max_tokens)")
        return written

    async def _recover(
        self, call: Call, step: OpenStep, query: str, passages: list[Passage], reading: Reading
    ) -> list[Attempt]:
        """Climbs the ladder until the answer is known, from the searches that this step's passages came from."""
        searches = {self.retrieved[one][0]: self.retrieved[one][1] for one in self.sources(call, passages)}
        if not searches:
            return []
        assert step.id is not None, "the step was dropped"
        return await RecoveryRunner(self.episode, step.id, query, searches, passages, reading).up(self.episode.ladder)

    def sources(self, call: Call, passages: Sequence[Passage]) -> list[int]:
        """Return the sandbox's ids of the retrievals of this round that the passages came from.

        Args:
            call: The program's call; only retrievals that it depends on count.
            passages: The evidence; if empty, the retrieval that found nothing is meant.

        Returns:
            The one that found exactly these passages, otherwise all that found some of them.
        """
        given = {passage.id for passage in passages}
        found = {
            one: {passage.id for passage in self.retrieved[one][2]} for one in call.depends_on if one in self.retrieved
        }
        exact = [one for one, ids in found.items() if ids == given]
        return exact[:1] or [one for one, ids in found.items() if ids & given]

    def passages_of(self, docs: Any) -> list[Passage]:
        """Flattens what a program passed as documents. Only passages from `retrieve` are evidence."""
        if isinstance(docs, Record):
            docs = [docs]
        if not isinstance(docs, list):
            raise PrimitiveError(f"docs must be a list of passages from retrieve(), not {kind_of(docs)}", "TypeError")
        flat: list[Passage] = []
        for doc in docs:
            if isinstance(doc, list):
                flat += self.passages_of(doc)
            elif isinstance(doc, Record) and doc.fields.get("id") in self.episode.passages:
                flat.append(self.episode.passages[str(doc.fields["id"])])
            else:
                raise PrimitiveError(
                    f"docs must hold passages from retrieve(), not {kind_of(doc)}: "
                    "pass what retrieve() returned, or call answer(query) without docs to aggregate facts",
                    "TypeError",
                )
        return merge(flat)

    def refuse_unknown(self, call: Call, query: str) -> None:
        """Keep an unknown answer from leaking into a later query as if it were a name (paper, failure F2).

        Args:
            call: The program's call; only answers that it depends on count.
            query: The query, refused where it holds the word "unknown".

        Raises:
            PrimitiveError: an answer in the query is unknown.
        """
        if self.without_recovery or self.episode.unknown_policy == "allow" or not _UNKNOWN_WORD.search(query):
            return
        for source in call.depends_on:
            if (known := self._answers.get(source)) is not None and not known.known:
                asked = self._steps[source].query
                raise PrimitiveError(
                    f"the answer to {asked!r} is unknown, so it cannot be used in the query {query!r}: "
                    "find it another way, ask for it differently, or test is_known(…) first",
                    UNKNOWN_ERROR,
                )

    def start(self, call: Call, query: str, **fields: Any) -> OpenStep:
        """Begin a step. `finish` completes it for the trace, which otherwise has it as it began.

        Args:
            call: The program's call.
            query: What is asked.
            fields: Further fields of the `Step`, as far as they are known.
        """
        known = {
            "primitive": call.name,
            "query": query,
            "line": call.line,
            "round": self.index,
            "depends_on": call.depends_on,
        }
        number = self.first + len(self._open)
        step = OpenStep(number, call.id, self.episode.ledger.elapsed(), known | fields)
        self._open[call.id] = step
        self._ids[number] = call.id
        needs, topk = self.begun(sorted(call.depends_on)), fields.get("topk")
        self.episode.observer(StepStarted(number, call.name, query, call.line, self.index, needs, topk))
        return step

    def begun(self, calls: Iterable[int]) -> tuple[int, ...]:
        """Return the ids of the steps that have begun for these calls, while the program runs."""
        return tuple(number for one in calls if one in self._open and (number := self._open[one].id) is not None)

    async def watched(self, step: OpenStep, work: Awaitable[Any]) -> Any:
        """Await work, and leave a service's failure on the step that it happened at.

        Args:
            step: The step that the work is for.
            work: Its result is returned.

        Raises:
            PyRAGError: that of the work, once the step is finished with its text.
        """
        token = asking_step.set(step)
        try:
            return await work
        except PyRAGError as error:
            self.finish(step, error=str(error))
            raise
        finally:
            asking_step.reset(token)

    def finish(self, step: OpenStep, **fields: Any) -> None:
        """End a step now and report it.

        Args:
            step: One that `start` returned.
            fields: Fields of the `Step`, in place of those that it began with.
        """
        done = step.step(seconds=self.episode.ledger.elapsed() - step.started, **fields)
        self._steps[step.call] = done
        self.episode.observer(StepFinished(replace(done, depends_on=self.begun(sorted(done.depends_on)))))

    def finished(self, order: list[int] | None) -> list[Step]:
        """The steps in program order (`order` holds call ids), renumbered; without an order, as they began."""
        kept = list(self._open) if order is None else [one for one in order if one in self._open]
        numbers = {call_id: self.first + position for position, call_id in enumerate(kept)}
        self._ids = {number: call_id for call_id, number in numbers.items()}
        steps = [self._steps.get(call_id) or self._open[call_id].step() for call_id in kept]
        for call_id, step in self._open.items():
            step.id = numbers.get(call_id)
        return [_renumbered(one, number, numbers) for one, number in zip(steps, numbers.values(), strict=True)]

    def answer_of(self, call_id: int) -> Answer:
        """The answer that an `answer` call of this round came to."""
        return self._answers[call_id]

    @property
    def source(self) -> str:
        """The program of this round; empty for a method that writes none."""
        programs = self.episode.programs
        return programs[self.index].source if self.index < len(programs) else ""

    def is_unknown(self, calls: Iterable[int] | None = None) -> bool:
        """True where one of these calls (of all, where none are given) came to an unknown answer."""
        unknown = {one for one, answer in self._answers.items() if not answer.known}
        return bool(unknown) if calls is None else not unknown.isdisjoint(calls)

    def step_ids(self, calls: Sequence[int]) -> list[int]:
        """Step ids of the sandbox's call ids, after the run has ended."""
        numbers = {call_id: number for number, call_id in self._ids.items()}
        return sorted(numbers[one] for one in calls if one in numbers)


def _renumbered(step: Step, number: int, numbers: Mapping[int, int]) -> Step:
    needs = tuple(sorted(numbers[one] for one in step.depends_on if one in numbers))
    return step if (step.id, step.depends_on) == (number, needs) else replace(step, id=number, depends_on=needs)
