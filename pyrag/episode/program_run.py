"""Run of a program: its calls are served by the episode's agents and retriever, and each becomes a step.

A step with an unknown answer is recovered before anything uses the answer.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any

from pyrag.agents.protocol import Answerer, Reading, Written
from pyrag.agents.reply_room import written_answer
from pyrag.episode.corpus.names import bound_names
from pyrag.episode.effects import has_effects
from pyrag.episode.episode import Episode
from pyrag.episode.flow.guard import SEARCH, guarded_search
from pyrag.episode.program_values import (
    UNKNOWN_ERROR,
    CallResults,
    answer_text,
    check_query,
    check_topk,
    check_where,
    kind_of,
    plain,
    record,
)
from pyrag.episode.recovery import ProgramSearch, RecoveryContext, RecoveryRunner, attempt, ids_of, merge
from pyrag.episode.requests import OpenStep
from pyrag.episode.synthesis import facts_in
from pyrag.errors import FilterError, PyRAGError
from pyrag.trace.events import ProgramFinished, ProgramStarted, StepFinished, StepStarted
from pyrag.trace.model import UNKNOWN, Answer, Attempt, Passage, Program, Step
from pyrag_helpers import MODULE
from pyrag_sandbox import Call, Limits, Outcome, PrimitiveError, Record, Text, WorkerLostError, bind

ReadAnswer = Callable[[str], Answer | None]
Desk = RecoveryContext | None
_RUNS_AGAIN = 3  # repetitions of a program whose process was killed from outside
_UNKNOWN_WORD = re.compile(rf"\b{UNKNOWN}\b", re.IGNORECASE)


@dataclass(slots=True)
class ProgramRun:
    """Primitives of one program run. Until the run ends, steps are identified by the sandbox's call ids.

    With `without_recovery`, unknown answers are not recovered, and queries may contain them.
    """

    episode: Episode
    index: int
    first: int  # number of steps before this run
    without_recovery: bool = False
    _open: dict[int, OpenStep] = field(default_factory=dict)
    _steps: dict[int, Step] = field(default_factory=dict)
    retrieved: dict[int, tuple[ProgramSearch, int, list[Passage]]] = field(default_factory=dict)
    _answers: dict[int, Answer] = field(default_factory=dict)
    _ids: dict[int, int] = field(default_factory=dict)
    results: CallResults = field(default_factory=CallResults)

    async def retrieve(self, call: Call) -> list[Record]:
        """Serve `retrieve(query, topk=k, where=None)`: return passages, best first."""
        arguments = bind(call, ("query", "topk", "where"), {"topk": self.episode.topk, "where": None})
        query, topk = check_query(arguments["query"], "retrieve"), check_topk(arguments["topk"])
        where = arguments["where"]
        narrowed = None if where is None else check_where(where, self.episode.retriever)
        self.refuse_unknown(call, query)
        step = self.start(call, query, topk=topk, where="" if narrowed is None else str(narrowed))
        try:
            fetch = partial(self.episode.fetch, query, topk, narrowed, step, cleared=True)
            passages, memo = await self.watched(step, guarded_search(self, call, query, fetch))
        except FilterError as error:  # the program's own filter, which its planner can correct
            if narrowed is None:
                raise
            raise PrimitiveError(str(error), "ValueError") from None
        self.retrieved[call.id] = (ProgramSearch(query, narrowed), topk, passages)
        self.finish(step, passages=ids_of(passages), memo=memo)
        return self.results.keep(call.id, [record(passage) for passage in passages])

    async def answer(self, call: Call) -> Text:
        """Serve `answer(query, docs)`, which answers from passages, and `answer(query)`, which aggregates facts."""
        return await self.answered(call, "answer", recover=not self.without_recovery)

    async def answered(
        self, call: Call, role: str, *, agent: Answerer | None = None, recover: bool = False, desk: Desk = None
    ) -> Text:
        """Return an agent's answer as a step: from passages, or from the facts in the query.

        Args:
            call: The program's call.
            role: Name of the primitive that was called.
            agent: Agent to ask; None for the Answer agent.
            recover: Whether an unknown answer goes through the recovery ladder.
            desk: Object that answers and recovers instead of the episode.
        """
        values = bind(call, ("query", "docs"), {"docs": None})
        query, docs = check_query(values["query"], role), values["docs"]
        passages = None if docs is None else self.episode.evidence(self.passages_of(docs))
        if passages is not None:
            self.refuse_unknown(call, query)
        mode = "aggregation" if passages is None else "evidence"
        step = self.start(call, query, passages=ids_of(passages or ()), mode=mode)
        if passages is None and self._rests_on_unknown(call, query):
            reading, memo = Reading(UNKNOWN, known=False), False
        else:
            asked = {"role": role, "agent": agent} if desk is None else {}
            work = (desk or self.episode).read(query, passages, step=step, **asked)
            reading, memo = await self.watched(step, work)
        attempts = [attempt("first", query, passages or (), reading)]
        if docs is not None and not reading.known and recover:
            attempts += await self.watched(step, self._recover(call, step, query, passages or [], reading, desk))
        last = attempts[-1]
        assert last.answer is not None
        self._answers[call.id] = last.answer
        self.finish(
            step,
            answer=last.answer,
            passages=last.passages,
            attempts=tuple(attempts) if len(attempts) > 1 else (),
            memo=memo,
            usage=reduce(add, (item.usage for item in attempts)),
            rationale=last.rationale,
        )
        return self.results.keep(call.id, [answer_text(last.answer, query, self.source)])[0]

    async def write(
        self,
        call: Call,
        query: str,
        work: Callable[[OpenStep], Awaitable[tuple[Written, bool]]],
        read: ReadAnswer,
        **fields: Any,
    ) -> Written:
        """Record a model's free text as a step. This is for methods; programs cannot call it.

        Args:
            call: Call that the step belongs to.
            query: Request as the step shows it.
            work: Makes the step's request; the second value that it returns is True for a reply from the memo.
            read: Parses the answer from the text; returns None if the text has none.
            fields: Further fields of the step.
        """
        step = self.start(call, query, **fields)
        written: Written
        written, memo = await self.watched(step, work(step))
        answer = written_answer(written, read)
        if answer is not None:
            self._answers[call.id] = answer
        self.finish(step, output=written.text, answer=answer, memo=memo, usage=written.usage)
        if written.cut_off and answer is not None and not answer.known:
            self.episode.warn("a reply was cut off, so its answer is unknown (see the request option max_tokens)")
        return written

    async def _recover(
        self, call: Call, step: OpenStep, query: str, passages: list[Passage], reading: Reading, desk: Desk
    ) -> list[Attempt]:
        """Go through the recovery ladder until the answer is known, starting from this step's searches."""
        searches = dict(self.retrieved[key][:2] for key in self.sources(call, passages))
        if not searches:
            return []
        runner = RecoveryRunner(desk or self.episode, step, query, searches, passages, reading)
        return await runner.up(self.episode.ladder)

    def sources(self, call: Call, passages: Sequence[Passage]) -> list[int]:
        """Return the call ids of the retrievals of this run that the passages came from.

        Args:
            call: The program's call; only retrievals that it depends on count.
            passages: Passages to trace back; if empty, the retrieval that returned nothing is traced.

        Returns:
            The retrieval that returned exactly these passages, otherwise all that returned some of them.
        """
        wanted, known = {passage.id for passage in passages}, self.retrieved
        returned = {key: {passage.id for passage in known[key][2]} for key in call.depends_on if key in known}
        exact = [key for key, ids in returned.items() if ids == wanted]
        return exact[:1] or [key for key, ids in returned.items() if ids & wanted]

    def passages_of(self, docs: Any) -> list[Passage]:
        """Return a program's `docs` argument as a flat list of passages. Only passages from `retrieve` are accepted."""
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
        """Refuse a query that contains an unknown answer as if it were a name (paper, failure F2).

        Args:
            call: The program's call; only answers that it depends on count.
            query: The query; checked if it holds the word "unknown".

        Raises:
            PrimitiveError: An answer in the query is unknown.
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

    def _rests_on_unknown(self, call: Call, query: str) -> bool:
        """Return True if all facts of a synthesis are unknown; warn if only some are."""
        if self.without_recovery or self.episode.unknown_policy == "allow" or not _UNKNOWN_WORD.search(query):
            return False
        answers = {self._steps[key].query: self._answers[key] for key in call.depends_on if key in self._answers}
        retrieved = [self.retrieved[key][2] for key in call.depends_on if key in self.retrieved]
        passages = (passage.text for passages in retrieved for passage in passages)
        facts = facts_in(query.replace(self.episode.question, ""), answers, passages)
        if facts.unknown and facts.has_known:
            self.episode.warn(facts.warning)
        return bool(facts.unknown) and not facts.has_known

    def start(self, call: Call, query: str, **fields: Any) -> OpenStep:
        """Begin a step. If `finish` never completes it, the trace shows it as it began.

        Args:
            call: The program's call.
            query: Query of the step.
            fields: Further fields of the `Step`.
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
        """Return the ids of the steps that these calls have started, while the program runs."""
        return tuple(number for call in calls if call in self._open and (number := self._open[call].id) is not None)

    async def watched(self, step: OpenStep, work: Awaitable[Any]) -> Any:
        """Await work, and record a service's failure on the step in which it happened.

        Args:
            step: Step that the work belongs to.
            work: Work to await; its result is returned.

        Raises:
            PyRAGError: The work failed; the step is finished with the error's text.
        """
        try:
            return await work
        except PyRAGError as error:
            self.finish(step, error=str(error))
            raise

    def finish(self, step: OpenStep, **fields: Any) -> None:
        """End a step now and report it.

        Args:
            step: Step that `start` returned.
            fields: Fields of the `Step`, which replace its initial values.
        """
        done = step.step(seconds=self.episode.ledger.elapsed() - step.started, **fields)
        self._steps[step.call] = done
        needs = self.begun(sorted(done.depends_on))
        self.episode.observer(StepFinished(done if needs == done.depends_on else replace(done, depends_on=needs)))

    def finished(self, order: list[int] | None) -> list[Step]:
        """Return the steps, renumbered in the given order of call ids; None keeps the order in which they began."""
        call_ids = list(self._open) if order is None else [call_id for call_id in order if call_id in self._open]
        numbers = {call_id: self.first + position for position, call_id in enumerate(call_ids)}
        self._ids = {number: call_id for call_id, number in numbers.items()}
        steps = [self._steps.get(call_id) or self._open[call_id].step() for call_id in call_ids]
        for call_id, step in self._open.items():
            step.id = numbers.get(call_id)
        return [_renumbered(step, number, numbers) for step, number in zip(steps, numbers.values(), strict=True)]

    def mark_unknown(self, call: Call) -> None:
        """Register an unknown value of this call, so that queries that contain it are refused."""
        self._answers[call.id] = Answer(UNKNOWN, known=False)

    def answer_of(self, call_id: int) -> Answer:
        """Return the answer of an `answer` call of this run."""
        return self._answers[call_id]

    @property
    def source(self) -> str:
        """Source code of this run's program; empty for a method that writes no program."""
        programs = self.episode.programs
        return programs[self.index].source if self.index < len(programs) else ""

    def is_unknown(self, calls: Iterable[int] | None = None) -> bool:
        """Return True if the answer of one of these calls, or of any call if None, is unknown."""
        unknown = {call_id for call_id, answer in self._answers.items() if not answer.known}
        return bool(unknown) if calls is None else not unknown.isdisjoint(calls)

    def step_ids(self, calls: Sequence[int]) -> list[int]:
        """Return the step ids of calls, after the run has ended."""
        numbers = {call_id: number for number, call_id in self._ids.items()}
        return sorted(numbers[call] for call in calls if call in numbers)


async def run_program(episode: Episode, program: Program) -> tuple[Outcome, ProgramRun]:
    """Execute a program in the sandbox and add its steps to the episode, in program order.

    If its process is killed from outside, the program runs again. The memo then answers the requests that were already
    made, and the record of effects answers the calls with effects.

    Args:
        episode: Episode of the question. Programs can also call its `more` primitives.
        program: Program to run; it is added to the episode's programs.

    Raises:
        PyRAGError: A primitive failed because of a service or the budget. The steps so far are kept.
        SandboxError: The sandbox cannot work, or its processes were killed repeatedly.
    """
    for _ in range(_RUNS_AGAIN):
        try:
            outcome, program_run = await _run_once(episode, program)
        except WorkerLostError as error:
            lost = str(error)
        else:
            if outcome.reason != "lost":
                return outcome, program_run
            lost = outcome.error.message if outcome.error else ""
        episode.programs[-1] = replace(episode.programs[-1], error=lost)
        episode.warn(f"a program was run again: {lost}")
    outcome, program_run = await _run_once(episode, program)
    if outcome.reason == "lost":
        raise WorkerLostError(f"the process of a program was killed {_RUNS_AGAIN + 1} times: look for what kills it")
    return outcome, program_run


async def _run_once(episode: Episode, program: Program) -> tuple[Outcome, ProgramRun]:
    episode.effects.begin_program()
    episode.flow.begin_program(program.source)
    episode.programs.append(program)
    program_run = ProgramRun(episode, len(episode.programs) - 1, first=len(episode.steps))
    episode.observer(ProgramStarted(program_run.index))
    hidden = episode.hideable & bound_names(program.source) if episode.hideable else frozenset()
    primitives: dict[str, Callable[[Call], Awaitable[Any]]] = {
        "retrieve": program_run.retrieve,
        "answer": program_run.answer,
        **{name: partial(work, program_run) for name, work in episode.more.items() if name not in hidden},
    }
    primitives |= episode.flow.delivering(primitives, episode.tools)
    # The sandbox's limit on calls guards against floods; the ledger enforces the budget that users set.
    budget = episode.ledger.budget
    limits = Limits(
        calls=max(100, budget.calls + budget.retrievals + budget.tool_calls), value_bytes=episode.value_bytes
    )
    searches = {SEARCH} if episode.flow.guards_searches else set()
    in_order = {**episode.tools, **dict.fromkeys((set(episode.in_order) | searches) - hidden, True)}
    parallel = episode.parallel and not has_effects(program.source, in_order)
    try:
        outcome = await episode.sandbox.run(
            program.source, primitives, limits=limits, concurrent=parallel, helpers=MODULE, inputs=episode.inputs
        )
    except BaseException:
        episode.steps += program_run.finished(None)
        episode.observer(ProgramFinished(program_run.index, "stopped"))
        raise
    order = program_run.begun(call.id for call in outcome.calls)
    episode.steps += program_run.finished([call.id for call in outcome.calls])
    episode.observer(ProgramFinished(program_run.index, outcome.status, program_run.first, order))
    episode.variables = {name: plain(value) for name, value in outcome.variables.items()}
    if outcome.output:
        episode.programs[-1] = replace(program, output=outcome.output)
    return outcome, program_run


def _renumbered(step: Step, number: int, numbers: Mapping[int, int]) -> Step:
    needs = tuple(sorted(numbers[source] for source in step.depends_on if source in numbers))
    return step if (step.id, step.depends_on) == (number, needs) else replace(step, id=number, depends_on=needs)


Primitive = Callable[[ProgramRun, Call], Awaitable[Any]]  # serves a call within its program's run
