"""Tools over a `QuestionService`. They accept validated arguments and return structs, for any transport."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from pyrag.methods.own_program import OwnProgram
from pyrag.retrieval.protocol import fetch_passages, passages_of
from pyrag.server.bodies import contract_in
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
from pyrag.server.service import AcceptedQuestion, FinishedQuestion, QuestionService, ServedIndex, Where, cancel
from pyrag.server.wire import output_of, progress_of
from pyrag.trace.model import Passage

MAX_SEEN = 2_000  # passages per index that are kept for open_passage
Report = Callable[[int, str], Awaitable[None]]


class Tools:
    """Implementation of the tools and resources.

    Args:
        service: Service that answers the questions. Its queue, limits and traces apply to each call.
    """

    def __init__(self, service: QuestionService) -> None:
        self.service = service
        self._seen: defaultdict[str, OrderedDict[str, Passage]] = defaultdict(OrderedDict)  # by scope
        self._readers: set[str] = set()  # owners of keys whose assistants have been sent passages or answers

    async def ask(self, arguments: AskArguments, access: Access, report: Report) -> AskResult:
        """Answer a question. If the caller is cancelled, cancel the question.

        Args:
            arguments: The question, the index and the deadline.
            access: Rights of the caller.
            report: Called with the number of an event and a line about it.

        Raises:
            ApiError: The question was refused, or could not be answered.
            PyRAGError: A part of pyrag failed.
        """
        index = self._index(arguments.index, access)
        returns = contract_in(arguments.returns, "returns")
        accepted = self.service.accept(arguments.question, index, {"deadline": arguments.deadline}, returns=returns)
        done = await _finished(accepted, report)
        self._remember(index, done.trace.passages.values())
        return _result(done)

    async def run_program(self, arguments: ProgramArguments, access: Access, report: Report) -> ProgramResult:
        """Run a program. If the caller is cancelled, cancel the program.

        Args:
            arguments: The program with its inputs.
            access: Rights of the caller.
            report: Called with the number of an event and a line about it.

        Raises:
            ApiError: The program was refused or failed; the message names its line and how to correct it.
            PyRAGError: A part of pyrag failed.
        """
        index = self._index(arguments.index, access, arguments.where)
        program = OwnProgram(arguments.source, arguments.inputs)
        limits = {"deadline": arguments.deadline, "max_calls": arguments.max_calls}
        returns = contract_in(arguments.returns, "returns")
        accepted = self.service.accept(program, index, limits, returns=returns)
        done = await _finished(accepted, report)
        self._remember(index, done.trace.passages.values())
        return _value(done)

    async def search(self, arguments: SearchArguments, access: Access) -> SearchResult:
        """Return the passages that best match a query.

        Args:
            arguments: The query, the number of passages and the index.
            access: Rights of the caller.

        Raises:
            ApiError: The index does not exist, or the caller may not use it.
            ServiceError: The retriever failed.
        """
        index = self._index(arguments.index, access)
        async with self.service.search_slots:
            matches = await passages_of(index.retriever, arguments.query, arguments.topk)
        self._remember(index, matches)
        passages = [PassageResult(**_fields_of(match, index.name), score=match.score) for match in matches]
        return SearchResult(passages=passages, index=index.name)

    async def open_passage(self, arguments: OpenArguments, access: Access) -> PassageResult:
        """Return a passage by its id.

        Args:
            arguments: The id and the index.
            access: Rights of the caller.

        Raises:
            ApiError: The passage or the index does not exist, or the caller may not use it.
            ServiceError: The index cannot be read.
        """
        index = self._index(arguments.index, access)
        fetched = await fetch_passages(index.retriever, [arguments.id])
        passage = self._seen[index.scope].get(arguments.id) if fetched is None else next(iter(fetched), None)
        if passage is None:
            of_searches = "" if fetched is not None else ", and this retriever knows those of recent searches only"
            message = (
                f"there is no passage {arguments.id!r} in the index {index.name!r}: take an id that search or ask "
                f"gave{of_searches}"
            )
            raise ApiError(404, "unknown_passage", message)
        return PassageResult(**_fields_of(passage, index.name))

    def about(self, name: str, access: Access) -> dict[str, Any]:
        """Return the description of an index, without paths of the server.

        Args:
            name: Name of the index.
            access: Rights of the caller.

        Raises:
            ApiError: The index does not exist, or the caller may not use it.
            DataError: The index cannot be read.
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

    def _index(self, name: str | None, access: Access, where: Where | None = None) -> ServedIndex:
        """Return an index for a call whose reply the assistant reads; its next requests may therefore hold passages."""
        index = self.service.index(name, access, where)
        if access.owner in self._readers:
            return replace(index, engines=replace(index.engines, caller_reads=True))
        self._readers.add(access.owner)
        return index

    def _remember(self, index: ServedIndex, passages: Iterable[Passage]) -> None:
        seen = self._seen[index.scope]
        for passage in passages:
            seen[passage.id] = passage
            seen.move_to_end(passage.id)
        while len(seen) > MAX_SEEN:
            seen.popitem(last=False)


async def _finished(accepted: AcceptedQuestion, report: Report) -> FinishedQuestion:
    """Report the events of a question or program until it ends, and return its result or raise its error."""
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
    """Return the fields of a passage that the tools show."""
    shown = {name: getattr(passage, name) for name in ("id", "title", "text", "source", "start", "end", "metadata")}
    return shown | {"uri": passage_uri(index, passage.id)}


def answer_text(result: AskResult) -> str:
    """Return an answer as text, for clients that only show text: the answer, followed by its numbered sources."""
    marks = "".join(f" [{citation.number}]" for citation in result.citations)
    parts = [f"{result.answer}{marks}" if result.known else "The documents do not hold the answer."]
    parts += [f"Note: {result.remark}"] if result.remark else []
    parts += [f"[{citation.number}] {_headed(citation)}" for citation in result.citations]
    parts += [f"Note: {warning}" for warning in result.warnings]
    return "\n\n".join(parts)


def value_text(result: ProgramResult) -> str:
    """Return a program's value for clients that only show text: output, value as JSON, and numbered sources."""
    parts = [f"Output:\n{result.output.rstrip()}"] if result.output else []
    parts.append(msgspec.json.format(msgspec.json.encode(result.value), indent=2).decode())
    parts += [f"Coverage: {sentence}" for sentence in result.coverage]
    parts += [f"Note: {result.remark}"] if result.remark else []
    parts += [f"[{citation.number}] {_headed(citation)}" for citation in result.citations]
    parts += [f"Note: {warning}" for warning in result.warnings]
    return "\n\n".join(parts)


def passages_text(passages: Iterable[PassageResult]) -> str:
    """Return passages as text, for clients that only show text."""
    return "\n\n".join(map(_headed, passages)) or "No passage matches: try other words."


def _headed(passage: PassageResult) -> str:
    head = ", ".join(filter(None, (f"id {passage.id}", passage.source)))
    return f"{passage.title or passage.id} ({head})\n{passage.text}"


def _citations(done: FinishedQuestion) -> list[CitationResult]:
    trace = done.trace
    return [
        CitationResult(number=citation.number, **_fields_of(trace.passages[citation.passage], done.index))
        for citation in trace.citations
    ]


def _value(done: FinishedQuestion) -> ProgramResult:
    trace = done.trace
    return ProgramResult(
        value=trace.value,
        known=trace.answer.known,
        weak=trace.weak,
        remark=trace.remark,
        citations=_citations(done),
        item_citations={key: list(numbers) for key, numbers in trace.item_citations.items()},
        coverage=list(map(str, trace.coverage)),
        complete=trace.complete,
        output=output_of(trace),
        warnings=list(trace.warnings),
        index=done.index,
        trace_id=done.id,
        model_calls=trace.usage.model_calls,
        seconds=round(trace.usage.seconds, 3),
    )


def _result(done: FinishedQuestion) -> AskResult:
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
        value=trace.value,
    )
