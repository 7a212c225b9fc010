"""Primitives called from Python, for methods that write no program.

A `StepRecorder` makes the calls that a program would make, in the same way: each call is a step with memo, budget,
recording and dependencies. The result of a call holds the call's id, and `uses` lists the results that a query was made
from. There is no recovery, since the papers' baselines have none.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from pyrag.agents.conversation import COPIED
from pyrag.agents.parsing.answers import parse_answer, read_answer, strip_citations
from pyrag.agents.prompts import copies_example
from pyrag.agents.protocol import FindFault
from pyrag.agents.reply_room import written_answer
from pyrag.episode.episode import Episode
from pyrag.episode.program_run import ProgramRun, ReadAnswer
from pyrag.episode.program_values import MAX_QUERY_BYTES, record
from pyrag.episode.recovery import ids_of
from pyrag.errors import BadOutputError, UsageError
from pyrag.methods.program_result import Result
from pyrag.trace.model import UNKNOWN, Answer, Passage
from pyrag_sandbox import Call, PrimitiveError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """Retrieved passages, and the id of the call that retrieved them."""

    passages: tuple[Passage, ...]
    call: int


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """Reply of an agent: its text, the id of the call, and the answer in the text, if one is expected."""

    text: str
    call: int
    answer: Answer | None = None

    @property
    def known(self) -> bool:
        """True if the reply contains a known answer."""
        return self.answer is not None and self.answer.known


Value = RecordedSearch | RecordedReply


def no_answer(text: str) -> None:
    """Return None, since the text contains no answer."""


class StepRecorder:
    """Context manager that adds its calls to the episode's steps at the end of the block."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self._round = ProgramRun(
            episode, max(len(episode.programs) - 1, 0), first=len(episode.steps), without_recovery=True
        )
        self._numbers = itertools.count()
        self._sources: dict[int, frozenset[int]] = {}  # all calls that a call depends on, including itself

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.episode.steps += self._round.finished(None)

    async def retrieve(self, query: str, topk: int, uses: Iterable[Value] = (), where: str = "") -> RecordedSearch:
        """Search, as a step.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            uses: Results that the query was made from.
            where: Filter of the search; empty for none.
        """
        call = self._call("retrieve", (_clipped(query), topk, where or None), uses)
        records = await _asked(self._round.retrieve(call))
        return RecordedSearch(tuple(self.episode.passages[str(result.fields["id"])] for result in records), call.id)

    async def answer(self, query: str, passages: Sequence[Passage] | None, uses: Iterable[Value]) -> RecordedReply:
        """Ask the Answer agent, as a step. The text of the reply includes the rationale.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
            uses: Results that query and passages were made from.
        """
        args = (query,) if passages is None else (query, [record(passage) for passage in passages])
        call = self._call("answer", args, uses)
        await _asked(self._round.answer(call))
        reading, _ = await self.episode.read(query, passages)  # from the memo
        answer = self._round.answer_of(call.id)
        return RecordedReply(f"{strip_citations(reading.rationale)} {answer.text}".strip(), call.id, answer)

    async def write(
        self,
        template: str,
        values: Mapping[str, str],
        *,
        query: str,
        uses: Iterable[Value] = (),
        passages: Sequence[Passage] = (),
        stop: tuple[str, ...] = (),
        prefix: str = "",
        read: ReadAnswer = no_answer,
        fault: FindFault | None = None,
    ) -> RecordedReply:
        """Return free text of the Writer, as a step.

        Args:
            template: Name of the prompt template.
            values: Texts for its placeholders.
            query: Query that the step shows.
            uses: Results that the values were made from.
            passages: Passages that the values contain.
            stop: Strings that end the text and are left out.
            prefix: Beginning of the text, which the model continues.
            read: Parses the answer from the text; returns None if it holds none.
            fault: Returns the fault of a text, or an empty text. After a fault the model is asked once more.
        """
        call = self._call("write", (), uses)
        work = partial(self.episode.write, template, values, stop, prefix, fault)
        written = await self._round.write(call, query, work, read, mode=template, passages=ids_of(passages))
        return RecordedReply(written.text, call.id, written_answer(written, read))

    async def together(self, work: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
        """Return the results of independent calls, made in parallel or, if the episode requires it, in sequence."""
        if not self.episode.parallel:
            return [await start() for start in work]
        tasks = [asyncio.ensure_future(start()) for start in work]
        try:
            return await asyncio.gather(*tasks)
        finally:  # calls that still run after a failure would write to closed steps
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def result(self, reply: RecordedReply) -> Result:
        """Return the answer of a reply as the final result."""
        final = reply.answer or Answer(UNKNOWN, known=False)
        return Result(final, tuple(self._round.step_ids(sorted(self._sources[reply.call]))))

    def _call(self, name: str, args: tuple[Any, ...], uses: Iterable[Value]) -> Call:
        number = next(self._numbers)
        needed = sorted({value.call for value in uses})
        self._sources[number] = frozenset({number}).union(*(self._sources[source] for source in needed))
        return Call(number, name, args, {}, 0, tuple(needed))


async def _asked(work: Awaitable[T]) -> T:
    try:
        return await work
    except PrimitiveError as error:  # a method's queries derive from the question, so the question is at fault
        raise UsageError(f"this question cannot be asked ({error}): shorten it") from error


def _clipped(query: str) -> str:
    """Return a model's query, cut to the maximum length for retrievers."""
    return " ".join(query.split()).encode()[:MAX_QUERY_BYTES].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Parser of an answer in a text, with citations of the passages; without an answer, it returns unknown."""

    passages: Sequence[Passage] = ()
    query: str = ""

    def __call__(self, text: str) -> Answer:
        parsed = read_answer(text, len(self.passages), self.query)
        return Answer(parsed.text, parsed.known, tuple(self.passages[citation].id for citation in parsed.citations))

    def fault(self, text: str) -> str:
        """Return the reason to ask for the text again; empty if its answer has the right form."""
        try:
            parsed = parse_answer(text, len(self.passages), self.query)
        except BadOutputError as error:
            return str(error)
        shown = " ".join((self.query, *(f"{passage.title} {passage.text}" for passage in self.passages)))
        return COPIED if copies_example(parsed.text, shown) else ""
