"""Primitive `each`: asks one question of every item, in parallel, within the budget, and reports its coverage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import msgspec

from pyrag.agents.typed.returns import unit_in
from pyrag.agents.typed.typed_answer import as_value
from pyrag.episode.corpus.catalogue import opened
from pyrag.episode.corpus.items import CorpusItem, Template, items_of
from pyrag.episode.corpus.typed import TypedDesk, desk_of, returns_of
from pyrag.episode.episode import Episode
from pyrag.episode.program_run import ProgramRun
from pyrag.episode.program_values import absent_answer, plain
from pyrag.episode.recovery import ProgramSearch, RecoveryRunner, attempt
from pyrag.episode.requests import OpenStep
from pyrag.errors import BadOutputError, BudgetExceededError, ContextLengthError
from pyrag.trace.coverage import Coverage
from pyrag.trace.model import UNKNOWN, Answer, Attempt, Passage, Usage, shorten
from pyrag_sandbox import Call, PrimitiveError, Record, Text, bind

NOT_REACHED = "not reached"
_MAX_NAMED = 50  # items that a coverage names
_MAX_UNITS = 4  # units that an error names
_MAX_OUTPUT = 2_000  # characters of rows that a step shows
_MARGIN = 0.05  # share of the deadline that stays for the rest of the program ...
_MIN_MARGIN, _MAX_MARGIN = 0.5, 2.0  # ... within these seconds


@dataclass(frozen=True, slots=True)
class Row:
    """Answer for one item. `note` explains an unknown answer; `reached` is False if a limit stopped the call first."""

    text: str
    known: bool
    citations: tuple[str, ...] = ()
    confidence: float | None = None
    note: str = ""
    reached: bool = True
    usage: Usage = Usage()

    @property
    def weak(self) -> bool:
        """True for a known answer with a confidence below `MIN_CONFIDENCE`."""
        return Answer(self.text, self.known, confidence=self.confidence).weak


async def each(slots: asyncio.Semaphore, width: int, program_run: ProgramRun, call: Call) -> list[Record]:
    """Serve `each(items, question, returns=None)`: return one row per item.

    Args:
        slots: Semaphore that limits the items answered at the same time, over all calls of the question.
        width: Number of slots in the semaphore.
        program_run: The program's run.
        call: The program's call.
    """
    values = bind(call, ("items", "question", "returns"), {"returns": None})
    returns, template = returns_of(values["returns"]), Template.of(values["question"])
    items = items_of(program_run, values["items"])
    questions = template.filled(items)
    episode = program_run.episode
    desk = desk_of(episode, returns, keeps=False)
    step = program_run.start(call, shorten(str(plain(values["question"])), 500), mode="each")
    fan_out = FanOut(desk, step, items, questions, slots, width)
    rows = await program_run.watched(step, fan_out.run())
    if returns is not None and returns.name == "number" and (problem := unlike_units(items, rows)):
        program_run.finish(step, error=problem)
        raise PrimitiveError(problem, "ValueError")
    records = fan_out.records(rows, program_run.source)
    if not all(row.known for row in rows):
        program_run.mark_unknown(call)
    cited = dict.fromkeys(passage for row in rows for passage in row.citations)
    program_run.finish(
        step,
        output=shorten(msgspec.json.encode(plain(records[:_MAX_NAMED])).decode(), _MAX_OUTPUT),
        passages=tuple(cited),
        usage=reduce(add, (row.usage for row in rows), Usage()),
    )
    program_run.results.keep(call.id, [record.fields["value"] for record in records])
    return program_run.results.keep(call.id, records)


def unlike_units(items: Sequence[CorpusItem], rows: Sequence[Row]) -> str:
    """Return why the numbers of rows cannot be compared: they have different units; empty if they can be.

    Args:
        items: Items of the call.
        rows: Their rows.
    """
    units: dict[str, str] = {}
    for item, row in zip(items, rows, strict=True):
        if row.known:
            units.setdefault(unit_in(row.text), f"{row.text} ({item.name})")
    if len(units) < 2:
        return ""
    shown = ", ".join(list(units.values())[:_MAX_UNITS])
    return (
        f"the numbers have different units: {shown}; leave returns out and compare parse_quantity(row.value), or ask "
        "for one unit"
    )


def coverage_of(items: Sequence[CorpusItem], rows: Sequence[Row], reason: str) -> Coverage:
    """Return how many items were answered, and which ones were not.

    Args:
        items: All items.
        rows: Row of each item.
        reason: Reason why some were not reached; empty if all were.
    """
    unknown = [item.name for item, row in zip(items, rows, strict=True) if row.reached and not row.known]
    missing = [item.name for item, row in zip(items, rows, strict=True) if not row.reached]
    weak = [item.name for item, row in zip(items, rows, strict=True) if row.weak]
    documents = all(item.document for item in items)
    return Coverage(
        total=len(items),
        answered=len(items) - len(unknown) - len(missing),
        unknown=len(unknown),
        missing=len(missing),
        what="documents" if documents else "items",
        reason=reason if missing else "",
        unknown_items=tuple(unknown[:_MAX_NAMED]),
        missing_items=tuple(missing[:_MAX_NAMED]),
        weak=len(weak),
        weak_items=tuple(weak[:_MAX_NAMED]),
        confidence=min((row.confidence for row in rows if row.known and row.confidence is not None), default=None),
    )


@dataclass(slots=True)
class FanOut:
    """Running questions of a single call. Equal questions about the same text are asked once.

    Attributes:
        reason: Reason why some items were not reached; empty if all were.
    """

    desk: TypedDesk
    step: OpenStep
    items: Sequence[CorpusItem]
    questions: Sequence[str]
    slots: asyncio.Semaphore
    width: int
    reason: str = ""
    _rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)

    async def run(self) -> list[Row]:
        """Return the rows of all items; rows of items that a limit skipped are marked."""
        first: dict[tuple[Any, ...], int] = {}
        for number in range(len(self.items)):
            first.setdefault(self._key(number), number)
        queue = iter(first.values())
        workers = [asyncio.ensure_future(self._work(queue)) for _ in range(min(self.width, len(first)))]
        try:
            if workers:
                done, late = await asyncio.wait(workers, timeout=self._seconds(), return_when=asyncio.FIRST_EXCEPTION)
                for worker in done:
                    worker.result()
                if late:
                    self.reason = self.reason or f"the deadline of {self.episode.ledger.budget.seconds:g} s was near"
        except BaseException:
            self.reason = self.reason or "the question ended"
            self._ended()
            raise
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return self._ended()

    def _ended(self) -> list[Row]:
        """Return all rows, and record how many items they answer. They are kept if the question ends without value."""
        rows = self._all()
        coverage = self.step.fields["coverage"] = coverage_of(self.items, rows, self.reason)
        if coverage.missing:
            self.episode.partial = plain(self.records(rows, ""))
            self.episode.warn(f"incomplete: {coverage}")
        return rows

    @property
    def episode(self) -> Episode:
        return self.desk.episode

    def records(self, rows: Sequence[Row], source: str) -> list[Record]:
        """Return rows as a program sees them.

        Args:
            rows: Rows of all items, in order.
            source: Source code of the program.
        """
        return [
            self._record(item, row, question, source)
            for item, row, question in zip(self.items, rows, self.questions, strict=True)
        ]

    def _record(self, item: CorpusItem, row: Row, question: str, source: str) -> Record:
        value: Any = Text(
            row.text, {"known": row.known, "citations": list(row.citations), "confidence": row.confidence}
        )
        if not row.known:
            value = Text(UNKNOWN, value.fields, absent_answer(source, question))
        elif self.desk.returns is not None and self.desk.returns.name != "date":
            value = as_value(self.desk.returns, row.text)
        fields = {"item": item.name, **({"document": item.document} if item.document else {}), "value": value}
        if self.desk.returns is not None and self.desk.returns.name == "number":
            fields["unit"] = unit_in(row.text) if row.known else ""
        fields |= {"known": row.known, "citations": list(row.citations), "reached": row.reached, "note": row.note}
        return Record(fields, "value")

    def _all(self) -> list[Row]:
        missing = Row(UNKNOWN, False, note=f"{NOT_REACHED}: {self.reason}", reached=False)
        return [self._rows.get(self._key(number), missing) for number in range(len(self.items))]

    def _key(self, number: int) -> tuple[Any, ...]:
        item = self.items[number]
        return item.document, tuple(passage.id for passage in item.passages or ()), self.questions[number]

    def _seconds(self) -> float | None:
        """Return the seconds until `each` must return the rows it has; None without a deadline."""
        limit = self.episode.ledger.budget.seconds
        if limit is None or self.episode.ledger.recording is not None:
            return None
        margin = min(max(_MARGIN * limit, _MIN_MARGIN), _MAX_MARGIN, limit / 2)
        return max(limit - self.episode.ledger.elapsed() - margin, 0.0)

    async def _work(self, queue: Any) -> None:
        """Answer one item after another, until no item remains or a limit is reached."""
        for number in queue:
            async with self.slots:
                if self.reason:
                    return
                try:
                    row = await self._row(self.items[number], self.questions[number])
                except BudgetExceededError as error:
                    self.reason = self.reason or str(error)
                    return
            self._rows[self._key(number)] = row

    async def _row(self, item: CorpusItem, question: str) -> Row:
        try:
            if item.passages is not None:
                return await self._read(question, list(item.passages))
            return await (self._of_document(item, question) if item.document else self._of_search(question))
        except (BadOutputError, ContextLengthError) as error:
            return Row(UNKNOWN, False, note=str(error))

    async def _of_document(self, item: CorpusItem, question: str) -> Row:
        """Answer from a document's passages, one section after another, until the answer is known.

        A "no" of one section may be a "yes" of another, so it is final only after the last section.
        """
        section, row = 1, Row(UNKNOWN, False)
        while True:
            part, _ = await opened(self.episode, item.document, section, keep=False)
            if part.problem:  # the index changed meanwhile
                return Row(UNKNOWN, False, note=part.problem)
            last = await self._read(question, part.passages)
            usage = row.usage + last.usage
            row = replace(row if row.known and not last.known else last, usage=usage)
            if (row.known and not self._denies(row)) or section >= part.sections:
                return row
            section += 1

    def _denies(self, row: Row) -> bool:
        return self.desk.returns is not None and self.desk.returns.name == "bool" and row.text == "false"

    async def _of_search(self, question: str) -> Row:
        """Answer from a search, and recover an unknown answer in the same way as `answer`."""
        passages, _ = await self.desk.fetch(question, self.episode.topk, step=self.step)
        reading, _ = await self.desk.read(question, passages, step=self.step)
        attempts = [attempt("first", question, passages, reading)]
        if not reading.known and self.episode.ladder:
            searches = {ProgramSearch(question): self.episode.topk}
            runner = RecoveryRunner(self.desk, self.step, question, searches, passages, reading)
            attempts += await runner.up(self.episode.ladder)
            passages = runner.passages
        usage = reduce(add, (item.usage for item in attempts))
        return self._row_of(attempts[-1], passages, usage)

    async def _read(self, question: str, passages: list[Passage]) -> Row:
        reading, _ = await self.desk.read(question, passages, step=self.step)
        return self._row_of(attempt("first", question, passages, reading), passages, reading.usage)

    def _row_of(self, last: Attempt, passages: Sequence[Passage], usage: Usage) -> Row:
        """Return the row of an attempt; of the passages, only the cited ones stay in the question."""
        assert last.answer is not None
        answer = last.answer
        cited = [passage for passage in passages if passage.id in set(answer.citations)]
        ids = [passage.id for passage in self.episode.keep_passages(cited, "each")]
        note = "" if answer.known else shorten(last.rationale, 200)
        return Row(answer.text, answer.known, tuple(ids), answer.confidence, note, usage=usage)
