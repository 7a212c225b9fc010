"""The tools over a `QuestionService`: they take checked arguments and return structs, for any way to a client."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from pyrag.methods.own_program import OwnProgram
from pyrag.retrieval.protocol import fetch_passages, passages_of
from pyrag.server.config import Access
from pyrag.server.errors import ApiError, public_text
from pyrag.server.mcp.addresses import passage_uri
from pyrag.server.mcp.schemas import (
    AskArguments,
    AskResult,
    CitationResult,
    OpenArguments,
    PassageResult,
    ProgramArguments,
    ProgramResult,
    SearchArguments,
    SearchResult,
)
from pyrag.server.service import Accepted, Answered, QuestionService, ServedIndex, cancel
from pyrag.server.wire import output_of, progress_of
from pyrag.trace.model import Passage

MAX_SEEN = 2_000  # passages of an index that are kept for open_passage
Report = Callable[[int, str], Awaitable[None]]


class Tools:
    """The work of the tools and resources.

    Args:
        service: answers the questions; its queue, limits and traces count for every call.
    """

    def __init__(self, service: QuestionService) -> None:
        self.service = service
        self._seen: defaultdict[str, OrderedDict[str, Passage]] = defaultdict(OrderedDict)  # by scope

    async def ask(self, given: AskArguments, access: Access, report: Report) -> AskResult:
        """Answer a question. A caller that is cancelled cancels its question.

        Args:
            given: the question.
            access: what the caller may use.
            report: called with the number of an event and a line on it.

        Raises:
            ApiError: the question is refused, or could not be answered.
            PyRAGError: a part of pyrag failed.
        """
        index = self.service.index(given.index, access)
        accepted = self.service.accept(given.question, index, {"deadline": given.deadline})
        done = await _finished(accepted, report)
        self._remember(index, done.trace.passages.values())
        return _result(done)

    async def run_program(self, given: ProgramArguments, access: Access, report: Report) -> ProgramResult:
        """Run a program. A caller that is cancelled cancels its program.

        Args:
            given: The program with its inputs.
            access: What the caller may use.
            report: Called with the number of an event and a line on it.

        Raises:
            ApiError: The program is refused or failed; the message names its line and what to write instead.
            PyRAGError: A part of pyrag failed.
        """
        index = self.service.index(given.index, access, given.where)
        program = OwnProgram(given.source, given.inputs)
        limits = {"deadline": given.deadline, "max_calls": given.max_calls}
        accepted = self.service.accept(program.title, index, limits, program=program)
        done = await _finished(accepted, report)
        self._remember(index, done.trace.passages.values())
        return _value(done)

    async def search(self, given: SearchArguments, access: Access) -> SearchResult:
        """Return the passages that match best.

        Args:
            given: the query.
            access: what the caller may use.

        Raises:
            ApiError: the index is unknown, or not the caller's.
            ServiceError: the retriever failed.
        """
        index = self.service.index(given.index, access)
        async with self.service.search_slots:
            found = await passages_of(index.retriever, given.query, given.topk)
        self._remember(index, found)
        passages = [PassageResult(**_fields_of(one, index.name), score=one.score) for one in found]
        return SearchResult(passages=passages, index=index.name)

    async def open_passage(self, given: OpenArguments, access: Access) -> PassageResult:
        """Return a passage by its id.

        Args:
            given: the id.
            access: what the caller may use.

        Raises:
            ApiError: there is no such passage, or the index is unknown or not the caller's.
            ServiceError: the index cannot be read.
        """
        index = self.service.index(given.index, access)
        found = await fetch_passages(index.retriever, [given.id])
        passage = self._seen[index.scope].get(given.id) if found is None else next(iter(found), None)
        if passage is None:
            of_searches = "" if found is not None else ", and this retriever knows those of recent searches only"
            message = (
                f"there is no passage {given.id!r} in the index {index.name!r}: take an id that search or ask "
                f"gave{of_searches}"
            )
            raise ApiError(404, "unknown_passage", message)
        return PassageResult(**_fields_of(passage, index.name))

    def about(self, name: str, access: Access) -> dict[str, Any]:
        """Return the description of an index, without paths of the server.

        Args:
            name: of the index.
            access: what the caller may use.

        Raises:
            ApiError: the index is unknown, or not the caller's.
            DataError: the index cannot be read.
        """
        index = self.service.index(name, access)
        described = {"index": index.name, "method": index.settings.method, "engine": public_text(index.settings.llm)}
        if index.settings.index is not None:
            from pyrag.retrieval.index import read_info

            info = read_info(index.settings.index)
            shown = ("kind", "passages", "files", "created", "generation", "embedder")
            return described | {key: getattr(info, key) for key in shown}
        if index.is_bundled:
            from pyrag.retrieval.bundled import bundled_passages

            return described | {"kind": "bm25", "passages": len(bundled_passages()), "about": "pyrag's bundled corpus"}
        return described | {"kind": "remote"}

    def _remember(self, index: ServedIndex, passages: Iterable[Passage]) -> None:
        seen = self._seen[index.scope]
        for passage in passages:
            seen[passage.id] = passage
            seen.move_to_end(passage.id)
        while len(seen) > MAX_SEEN:
            seen.popitem(last=False)


async def _finished(accepted: Accepted, report: Report) -> Answered:
    """Report the events of a question or program until it has ended, and return its result. Raises its error."""
    try:
        number = 0
        while (event := await accepted.events.get()) is not None:
            if line := progress_of(event):
                number += 1
                await report(number, line.strip())
        done = accepted.task.result()
    finally:
        await cancel([accepted.task])
    if (error := done.trace.error) is not None:
        raise ApiError(502, error.kind, error.message)
    return done


def _fields_of(passage: Passage, index: str) -> dict[str, Any]:
    """Return the fields of a passage that tools show."""
    shown = {name: getattr(passage, name) for name in ("id", "title", "text", "source", "start", "end", "metadata")}
    return shown | {"uri": passage_uri(index, passage.id)}


def answer_text(result: AskResult) -> str:
    """Return an answer for clients that show text alone: the answer, then its numbered sources."""
    marks = "".join(f" [{one.number}]" for one in result.citations)
    parts = [f"{result.answer}{marks}" if result.known else "The documents do not hold the answer."]
    parts += [f"Note: {result.remark}"] if result.remark else []
    parts += [f"[{one.number}] {_headed(one)}" for one in result.citations]
    parts += [f"Note: {one}" for one in result.warnings]
    return "\n\n".join(parts)


def value_text(result: ProgramResult) -> str:
    """Return a program's value for clients that show only text: output, value as JSON, then its numbered sources."""
    parts = [f"Output:\n{result.output.rstrip()}"] if result.output else []
    parts.append(msgspec.json.format(msgspec.json.encode(result.value), indent=2).decode())
    parts += [f"Note: {result.remark}"] if result.remark else []
    parts += [f"[{citation.number}] {_headed(citation)}" for citation in result.citations]
    parts += [f"Note: {warning}" for warning in result.warnings]
    return "\n\n".join(parts)


def passages_text(passages: Iterable[PassageResult]) -> str:
    """Return passages for clients that show text alone."""
    return "\n\n".join(map(_headed, passages)) or "No passage matches: try other words."


def _headed(passage: PassageResult) -> str:
    head = ", ".join(filter(None, (f"id {passage.id}", passage.source)))
    return f"{passage.title or passage.id} ({head})\n{passage.text}"


def _citations(done: Answered) -> list[CitationResult]:
    trace = done.trace
    return [
        CitationResult(number=citation.number, **_fields_of(trace.passages[citation.passage], done.index))
        for citation in trace.citations
    ]


def _value(done: Answered) -> ProgramResult:
    trace = done.trace
    return ProgramResult(
        value=trace.value,
        known=trace.answer.known,
        weak=trace.weak,
        remark=trace.remark,
        citations=_citations(done),
        item_citations={key: list(numbers) for key, numbers in trace.item_citations.items()},
        output=output_of(trace),
        warnings=list(trace.warnings),
        index=done.index,
        trace_id=done.id,
        model_calls=trace.usage.model_calls,
        seconds=round(trace.usage.seconds, 3),
    )


def _result(done: Answered) -> AskResult:
    trace = done.trace
    return AskResult(
        answer=trace.answer.text,
        known=trace.answer.known,
        confidence=trace.answer.confidence,
        weak=trace.weak,
        remark=trace.remark,
        citations=_citations(done),
        sub_queries=list(trace.sub_queries),
        warnings=list(trace.warnings),
        index=done.index,
        trace_id=done.id,
        model_calls=trace.usage.model_calls,
        seconds=round(trace.usage.seconds, 3),
    )
