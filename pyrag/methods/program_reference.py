"""Reference of the functions that programs may call, generated from their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from pyrag.methods.own_program import MAX_CALLS, MAX_SOURCE_BYTES

_HEAD = f"""# Programs

A program is Python over the functions below. It runs top to bottom in a sandbox and assigns its result to
`final_answer`: a text, number, list or dict, answers or passages. Independent calls run in parallel by themselves, also
in loops and comprehensions; equal calls are made once. No `await`, no files, no network; imports: math, re, datetime,
json, statistics, itertools, collections. At most {MAX_SOURCE_BYTES // 1024} KiB of source and {MAX_CALLS} model calls,
unless the budget says otherwise. `print` returns text to the caller.

    docs = retrieve(f"founder of {{company}}", topk=5)
    founder = answer(f"Who founded {{company}}?", docs)
    born = answer(f"When was {{founder}} born?", retrieve(f"{{founder}} born"))
    final_answer = {{"founder": founder, "year": parse_year(born)}}

An answer is a str that may be unknown: test `is_known(x)` before you use it in a query or compute with it. Ask one
simple question per `answer`, with the passages that were retrieved for it. Inputs are names that the program finds.

A question about all documents ("how many", "list every", "for each") needs the corpus, not a search, which finds only
the best matches:

    contracts = documents('kind = "contract"')
    rows = each(contracts, "What is the penalty cap?", returns="number")
    final_answer = [r for r in rows if r.known and r.value > 1_000_000]
"""


def retrieve(query: str, topk: int = 5, where: str | dict[str, Any] | None = None) -> list[Any]:  # type: ignore[empty-body]
    """Return the passages that match a query best.

    A passage has `.id`, `.title`, `.text` and `.score`, and `str(passage)` is its text.

    Args:
        query: Search text: names and keywords, or one simple question; at most 8 KB.
        topk: Maximum number of passages, 1 to 100.
        where: Filter of passages by their metadata, such as 'year >= 2020 and team = "ops"'.
    """


def answer(query: str, docs: list[Any] | None = None, returns: str | dict[str, Any] | None = None) -> str:  # type: ignore[empty-body]
    """Return a short answer from passages, or "unknown" if they do not hold it.

    The answer has `.known`, `.citations` (ids of passages) and `.confidence` (0 to 1, or None). An unknown answer is
    tried again with more passages by itself.

    Args:
        query: One question; write facts found before into it with an f-string.
        docs: Passages that `retrieve` or `open_document` returned, also several lists joined; None to combine facts in
            the query.
        returns: Type of the value: "number", "date" (a text YYYY-MM-DD, shorter if less is known), "bool", "list[str]",
            or a JSON schema as a dict; None for a text. A number, truth, list or dict is a plain value without the
            attributes above. An unknown answer stays a text that is unknown.
    """


def documents(where: str | dict[str, Any] | None = None) -> list[Any]:  # type: ignore[empty-body]
    """Return all documents, without their text, in a stable order.

    A document has `.id`, `.title`, `.source`, `.metadata` (a dict) and `.passages` (their number). A file of running
    text is one document; each record of a JSON, CSV or TSV file is one.

    Args:
        where: Filter as in `retrieve`. At most 5,000 documents are listed; more are an error: narrow, and use `count`.
    """


def count(where: str | dict[str, Any] | None = None) -> int:  # type: ignore[empty-body]
    """Return the exact number of documents.

    Args:
        where: Filter as in `retrieve`.
    """


def open_document(doc: Any, section: int | str | None = None) -> list[Any]:  # type: ignore[empty-body]
    """Return the passages of a document in reading order, as many as `answer` reads at once.

    Args:
        doc: A document that `documents` returned, or its id.
        section: Number of the part of a long document, from 1 (a number past the end returns an empty list), or the
            text of a heading; None for the first part.
    """


def each(items: list[Any], question: str, returns: str | dict[str, Any] | None = None) -> list[Any]:  # type: ignore[empty-body]
    """Return one row per item: ask the same question of every document or name, in parallel.

    A row has `.item` (title or name), `.document` (id, for documents), `.value`, `.known`, `.citations` (ids of
    passages), `.reached` and `.note`, and a row of numbers has `.unit`; unlike units raise `ValueError`. A document is
    read until it answers, whatever its length; for a name or dict, the question is searched for and answered as by
    `answer`. If the budget ends early, the remaining rows are neither known
    nor `.reached`, and the result is marked incomplete. Put rows themselves into `final_answer` for citations by row.

    Args:
        items: Documents, passages, texts or dicts, at most 5,000.
        question: One question. `{item}` stands for the title or the text; `{field}` for a field of a dict, `{title}`,
            `{id}`, `{source}` or a metadata field of a document; a field that an item lacks is an error. It is not an
            f-string. Without a field it is asked of each document's own passages as it is, and refused for names.
        returns: Type of the values, as in `answer`.
    """


def read_tables(docs: list[Any], partial: bool = False) -> list[dict[str, Any]]:  # type: ignore[empty-body]
    """Return the whole tables that passages or documents belong to, best first; empty if they belong to none.

    A table is a dict with `title`, `source` and `rows`: a dict per row, by column, with numbers as numbers, dates as
    texts YYYY-MM-DD and None for an empty cell. It may come from a CSV or TSV file, a spreadsheet, or a table inside a
    document. Compute over the rows in Python, or by `table_value`; never count or add up what a search returns.

    Args:
        docs: Passages of `retrieve` or `open_document`, documents, their ids, or names of files, such as "orders.csv".
        partial: Return tables that are too large with the rows of `docs` only and the reason as `problem`, with which
            `table_value` refuses to compute. Otherwise they raise `ValueError`.
    """


def budget() -> dict[str, Any]:  # type: ignore[empty-body]
    """Return what may still be spent: `calls`, `retrievals`, `tool_calls`, `tokens`, `seconds` and `cost`.

    What has no limit is None. In a program that uses it, calls run one after the other, and only `each` is parallel.
    """


CORPUS = (documents, count, open_document, each, read_tables, budget)


def program_reference(tools: str = "") -> str:
    """Return the reference as Markdown.

    Args:
        tools: Signatures and descriptions of the caller's tools, as returned by `pyrag.tools.tool.describe`.
    """
    from pyrag_helpers import HELPERS

    parts = [_HEAD, "## Search and answer\n", *_entries((retrieve, answer))]
    parts += ["## The whole corpus\n\nThese see every document that the caller may see, not only the best matches.\n"]
    parts += _entries(CORPUS)
    parts += ["## Helpers\n\nPure functions over texts; they never guess, and raise `ValueError` instead.\n"]
    parts += _entries(HELPERS.values())
    if tools:
        parts.append(f"## Tools\n\n{tools.strip()}\n")
    return "\n".join(parts)


def _entries(functions: Iterable[Callable[..., object]]) -> list[str]:
    return [
        f"### `{function.__name__}{_signature(function)}`\n\n{inspect.getdoc(function)}\n" for function in functions
    ]


def _signature(function: Callable[..., object]) -> str:
    """Return a signature as written in the source."""
    signature = inspect.signature(function)
    return str(signature).replace("'", "").replace("list[Any]", "list[Passage]").replace(", Any]", ", …]")
