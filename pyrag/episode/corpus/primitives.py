"""Primitives over the whole corpus. Each call is a step, with memo, recording and replay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from pyrag.agents.typed.typed_answer import as_value
from pyrag.episode.corpus.catalogue import MAX_DOCUMENTS, Listed, counted, listed, opened
from pyrag.episode.corpus.each import each
from pyrag.episode.corpus.items import is_document
from pyrag.episode.corpus.tables import NAME, read_tables
from pyrag.episode.corpus.typed import desk_of, returns_of
from pyrag.episode.episode import Episode
from pyrag.episode.program_run import Primitive, ProgramRun
from pyrag.episode.program_values import check_where, kind_of, plain, record
from pyrag.episode.recovery import ids_of
from pyrag.episode.requests import FREE, OpenStep
from pyrag.errors import FilterError
from pyrag.retrieval.catalogue.protocol import CatalogueDocument
from pyrag.retrieval.filters.tree import Filter
from pyrag_sandbox import Call, PrimitiveError, Record, Text, bind

VALUE_BYTES = 3 << 20
"""Maximum size of a value that crosses, which holds the rows and documents of one call."""

_AHEAD = 2  # items of each() under way for each model call, so that the next request waits when a call ends
_NARROW = "narrow with where, as in documents(where='kind = \"contract\"'), or go year by year"
Left = dict[str, int | float | None]
_Request = Callable[[Episode, Filter | None], Awaitable[tuple[Listed, bool]]]


def offer_corpus(episode: Episode, in_flight: int) -> None:
    """Let an episode's programs access its whole corpus. Tools, inputs and a program's own names take precedence.

    Args:
        episode: Episode of the question.
        in_flight: Maximum number of simultaneous model calls, which the limiter enforces.
    """
    width = _AHEAD * in_flight
    slots = asyncio.Semaphore(width)
    primitives: dict[str, Primitive] = {
        "documents": _documents,
        "count": _count,
        "open_document": _open_document,
        "each": partial(each, slots, width),
        NAME: read_tables,
        "budget": _BudgetPrimitive().left,
    }
    offered = {name: work for name, work in primitives.items() if name not in episode.inputs}
    episode.more = {**offered, **episode.more, "answer": _answer}
    episode.hideable = frozenset(offered.keys() - episode.tools.keys())
    episode.in_order = tuple(episode.hideable & {"budget"})
    episode.value_bytes = VALUE_BYTES


def offer_typed_answer(episode: Episode) -> None:
    """Let programs of an episode call `answer(query, docs, returns=…)`."""
    episode.more = {"answer": _answer, **episode.more}


async def _documents(program_run: ProgramRun, call: Call) -> list[Record]:
    """Serve `documents(where=None)`: return all documents, without text."""
    step, reply, memo = await _replied(program_run, call, listed)
    if reply.total > MAX_DOCUMENTS:
        problem = f"documents() lists at most {MAX_DOCUMENTS:,} documents, and there are {reply.total:,}: {_NARROW}"
        program_run.finish(step, error=problem, memo=memo)
        raise PrimitiveError(problem)
    if (size := len(msgspec.json.encode(reply.documents))) > VALUE_BYTES * 2 // 3:
        problem = f"the titles and metadata of {reply.total:,} documents take {size >> 20} MiB: {_NARROW}"
        program_run.finish(step, error=problem, memo=memo)
        raise PrimitiveError(problem)
    program_run.finish(step, output=f"{reply.total:,} documents", memo=memo)
    return program_run.results.keep(call.id, [_record(document) for document in reply.documents])


async def _count(program_run: ProgramRun, call: Call) -> int:
    """Serve `count(where=None)`: return the exact number of documents."""
    step, reply, memo = await _replied(program_run, call, counted)
    program_run.finish(step, output=str(reply.total), memo=memo)
    return int(reply.total)


async def _replied(program_run: ProgramRun, call: Call, request: _Request) -> tuple[OpenStep, Listed, bool]:
    """Return the open step of a call, the catalogue's reply, and True if the same request had been made before."""
    where = _where(program_run, call)
    step = program_run.start(call, str(where or "all documents"), where=str(where or ""))
    try:
        reply, memo = await program_run.watched(step, request(program_run.episode, where))
    except FilterError as error:
        raise _refused(error, where) from None
    if reply.problem:
        program_run.finish(step, error=reply.problem, memo=memo)
        raise PrimitiveError(reply.problem, "NotImplementedError")
    return step, reply, memo


async def _open_document(program_run: ProgramRun, call: Call) -> list[Record]:
    """Serve `open_document(doc, section=None)`: return passages in reading order."""
    values = bind(call, ("doc", "section"), {"section": None})
    document, section = _id_of(values["doc"]), _section(values["section"])
    step = program_run.start(call, document if section in (None, 1) else f"{document}, section {section}")
    episode = program_run.episode
    reply, memo = await program_run.watched(step, opened(episode, document, section or 1))
    if reply.problem:
        program_run.finish(step, error=reply.problem, memo=memo)
        raise PrimitiveError(reply.problem)
    if section is None and reply.sections > 1:
        episode.warn(
            f"{document!r} is longer than the Answer agent reads at once: section 1 of {reply.sections} was opened, "
            "the others are open_document(doc, section=2) and so on"
        )
    passages = episode.keep_passages(reply.passages, f"the document {document}")
    program_run.finish(step, passages=ids_of(passages), memo=memo)
    return program_run.results.keep(call.id, [record(passage) for passage in passages])


async def _answer(program_run: ProgramRun, call: Call) -> Any:
    """Serve `answer(query, docs, returns=None)`: return a text, or a value of a type."""
    values = bind(call, ("query", "docs", "returns"), {"docs": None, "returns": None})
    docs = values["docs"]
    if is_document(docs) or (isinstance(docs, list) and any(map(is_document, docs))):
        raise PrimitiveError(
            "docs holds a document, which has no text: pass open_document(doc), or ask each(documents, question)",
            "TypeError",
        )
    returns = returns_of(values["returns"])
    plain_call = replace(call, args=(values["query"], docs), kwargs={})
    recover = not program_run.without_recovery
    if returns is None:
        return await program_run.answered(plain_call, "answer", recover=recover)
    desk = desk_of(program_run.episode, returns)
    text = await program_run.answered(plain_call, "answer", recover=recover, desk=desk)
    return text if text.absent is not None or returns.name == "date" else as_value(returns, text.text)


@dataclass(slots=True)
class _BudgetPrimitive:
    """Answers `budget()`, whose replies are numbered, since equal calls have different ones."""

    calls: int = 0

    async def left(self, program_run: ProgramRun, call: Call) -> Left:
        """Serve `budget()`: return what the program may still spend."""
        bind(call, (), {})
        requests = program_run.episode.requests
        step = program_run.start(call, "what is left")
        self.calls += 1
        request = {"number": self.calls}
        left = await program_run.watched(
            step, requests.fresh(f"{FREE}budget", request, partial(_left, program_run), Left)
        )
        program_run.finish(step, output=msgspec.json.encode(left).decode())
        return dict(left)


async def _left(program_run: ProgramRun) -> Left:
    ledger = program_run.episode.ledger
    limits, used = ledger.budget, ledger.usage
    tokens, spent = used.prompt_tokens + used.completion_tokens, limits.price(used)
    return {
        "calls": max(limits.calls - used.model_calls, 0),
        "retrievals": max(limits.retrievals - used.retrievals, 0),
        "tool_calls": max(limits.tool_calls - used.tool_calls, 0),
        "tokens": None if limits.tokens is None else max(limits.tokens - tokens, 0),
        "seconds": None if limits.seconds is None else max(limits.seconds - ledger.elapsed(), 0.0),
        "cost": None if limits.cost is None or spent is None else max(limits.cost - spent, 0.0),
    }


def _where(program_run: ProgramRun, call: Call) -> Filter | None:
    where = bind(call, ("where",), {"where": None})["where"]
    return None if where is None else check_where(where, program_run.episode.retriever)


def _refused(error: FilterError, where: Filter | None) -> Exception:
    """Return an error about a program's own filter, worded for the program's author; return other errors unchanged."""
    return error if where is None else PrimitiveError(str(error), "ValueError")


def _record(document: CatalogueDocument) -> Record:
    fields = {"id": document.id, "title": document.title, "source": document.source}
    return Record({**fields, "metadata": document.metadata, "passages": document.passages}, "title")


def _id_of(value: Any) -> str:
    if is_document(value):
        return str(value.fields["id"])
    if isinstance(value, Record) and "document" in value.fields:  # a row of each()
        return str(value.fields["document"])
    text = value.text if isinstance(value, Text) else value
    if isinstance(text, str) and text.strip():
        return text
    raise PrimitiveError(
        f"open_document() needs a document that documents() returned, or its id, not {kind_of(value)}", "TypeError"
    )


def _section(value: Any) -> int | str | None:
    section = plain(value)
    if section is None or (isinstance(section, str) and section.strip()):
        return section
    if isinstance(section, int) and not isinstance(section, bool) and section >= 1:
        return section
    raise PrimitiveError(f"section must be a number from 1 or the text of a heading, not {section!r}", "ValueError")
