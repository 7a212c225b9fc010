"""The primitives called from Python, for methods that write no program.

A `StepRecorder` makes the calls that a program would make, through the same round: each is a step with memo, budget,
recording and its dependencies. What a call returns knows the calls it comes from; `uses` says what flowed into a query.
Without programs there is nothing to repair, and no recovery: what the papers' baselines do not do, they do not do here.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
class Found:
    """Passages, and the call that found them."""

    passages: tuple[Passage, ...]
    call: int


@dataclass(frozen=True, slots=True)
class Said:
    """An agent's reply: its whole text, the answer in it (if it is to hold one), and the call."""

    text: str
    call: int
    answer: Answer | None = None

    @property
    def known(self) -> bool:
        return self.answer is not None and self.answer.known


Value = Found | Said


def no_answer(text: str) -> None:
    """Reads a text that holds no answer."""


class StepRecorder:
    """Use it as a context manager: leaving it adds its steps to the episode, whatever happened."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self._round = ProgramRun(
            episode, max(len(episode.programs) - 1, 0), first=len(episode.steps), without_recovery=True
        )
        self._numbers = itertools.count()
        self._sources: dict[int, frozenset[int]] = {}  # every call that a call depends on, itself included

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.episode.steps += self._round.finished(None)

    async def retrieve(self, query: str, topk: int, uses: Iterable[Value] = (), where: str = "") -> Found:
        """Search, as a step. Args: those of `Retriever.retrieve`."""
        call = self._call("retrieve", (_clipped(query), topk, where or None), uses)
        records = await _asked(self._round.retrieve(call))
        return Found(tuple(self.episode.passages[str(one.fields["id"])] for one in records), call.id)

    async def answer(self, query: str, passages: Sequence[Passage] | None, uses: Iterable[Value]) -> Said:
        """Ask the Answer agent, as a step. The text of the reply has the rationale too.

        Args:
            query: What is asked.
            passages: The evidence; None has it aggregate the facts in the query.
            uses: What flowed into query and passages.
        """
        args = (query,) if passages is None else (query, [record(passage) for passage in passages])
        call = self._call("answer", args, uses)
        await _asked(self._round.answer(call))
        reading, _ = await self.episode.read(query, passages)  # from the memo
        answer = self._round.answer_of(call.id)
        return Said(f"{strip_citations(reading.rationale)} {answer.text}".strip(), call.id, answer)

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
    ) -> Said:
        """Free text of the Writer.

        Args:
            template, values, stop, prefix, fault: As in `pyrag.agents.protocol.Writer`.
            query: What the step shows.
            uses: What flowed into the values.
            passages: Those among the values.
            read: Finds the answer in the text, if there is to be one.
        """
        call = self._call("write", (), uses)
        work = self.episode.write(template, values, stop, prefix, fault)
        written = await self._round.write(call, query, work, read, mode=template, passages=ids_of(passages))
        return Said(written.text, call.id, written_answer(written, read))

    async def together(self, work: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
        """Independent calls side by side, or one after the other where the episode says so. The results in order."""
        if not self.episode.parallel:
            return [await one() for one in work]
        tasks = [asyncio.ensure_future(one()) for one in work]
        try:
            return await asyncio.gather(*tasks)
        finally:  # what is still running when one fails would write to steps that are closed
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def result(self, said: Said) -> Result:
        """Return the answer of a reply as the final one."""
        final = said.answer or Answer(UNKNOWN, known=False)
        return Result(final, tuple(self._round.step_ids(sorted(self._sources[said.call]))))

    def _call(self, name: str, args: tuple[Any, ...], uses: Iterable[Value]) -> Call:
        number = next(self._numbers)
        needed = sorted({value.call for value in uses})
        self._sources[number] = frozenset({number}).union(*(self._sources[one] for one in needed))
        return Call(number, name, args, {}, 0, tuple(needed))


async def _asked(work: Awaitable[T]) -> T:
    try:
        return await work
    except PrimitiveError as error:  # of what a program may ask, a method only passes on the question
        raise UsageError(f"this question cannot be asked ({error}): shorten it") from error


def _clipped(query: str) -> str:
    """A query that a model wrote, cut to what retrievers take."""
    return " ".join(query.split()).encode()[:MAX_QUERY_BYTES].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the answer to a query from a text, with citations of the passages; unknown where the text has none."""

    passages: Sequence[Passage] = ()
    query: str = ""

    def __call__(self, text: str) -> Answer:
        parsed = read_answer(text, len(self.passages), self.query)
        return Answer(parsed.text, parsed.known, tuple(self.passages[one].id for one in parsed.citations))

    def fault(self, text: str) -> str:
        """The reason to ask for the text once more; empty where its answer has the form asked for."""
        try:
            parsed = parse_answer(text, len(self.passages), self.query)
        except BadOutputError as error:
            return str(error)
        shown = " ".join((self.query, *(f"{one.title} {one.text}" for one in self.passages)))
        return COPIED if copies_example(parsed.text, shown) else ""
