"""Primitive `read_tables`: returns the whole tables that passages or documents belong to, as data for programs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from pyrag.episode.corpus.items import is_document
from pyrag.episode.corpus.table_data import MAX_ROWS, TableData, has_table, is_record, of_passages, of_records
from pyrag.episode.episode import Episode
from pyrag.episode.program_run import ProgramRun
from pyrag.episode.program_values import is_passage, kind_of, plain
from pyrag.episode.recovery import ids_of
from pyrag.episode.requests import CATALOGUE
from pyrag.errors import nearest
from pyrag.retrieval.catalogue.grouping import file_of, shown_source
from pyrag.retrieval.catalogue.protocol import (
    PAGE,
    CatalogueDocument,
    NoCatalogueError,
    document_passages,
    list_documents,
)
from pyrag.trace.model import Passage, shorten
from pyrag_sandbox import Call, PrimitiveError, Record, bind

NAME = "read_tables"
_MAX_SCANNED = MAX_ROWS  # documents that are listed to find the records of a table


@dataclass(frozen=True, slots=True)
class TableReply:
    """Reply of the catalogue. `problem` is the reason why it cannot return tables; empty if it can."""

    tables: list[TableData] = field(default_factory=list)
    problem: str = ""


def offer_tables(episode: Episode) -> None:
    """Let the programs of an episode read tables. Tools and inputs of the same name take precedence."""
    if NAME not in episode.inputs:
        episode.more = {NAME: read_tables, **episode.more}


async def read_tables(program_run: ProgramRun, call: Call) -> list[dict[str, Any]]:
    """Serve `read_tables(docs)`: return the tables that passages or documents are part of, best first.

    With `partial=True`, tables that are too large come with the rows of the given passages and the reason as
    `problem`, which `table_value` raises as a `TableError` if the table is about its words.

    Args:
        program_run: The program's run.
        call: The program's call.

    Raises:
        PrimitiveError: The retriever cannot list its documents, a name is unknown, or the tables are too large.
    """
    arguments = bind(call, ("docs", "partial"), {"partial": False})
    docs = arguments["docs"]
    near, documents = _arguments(program_run, docs if isinstance(docs, list) else [docs])
    step = program_run.start(call, ", ".join(dict.fromkeys((*_sources(near), *documents))) or "no table", mode="table")
    if not near and not documents:
        program_run.finish(step, output="no table")
        return []
    episode = program_run.episode
    reply, memo = await program_run.watched(step, _requested(episode, near, documents))
    problem = reply.problem or _too_large(reply.tables, episode.value_bytes)
    if problem and near and plain(arguments["partial"]) is True:
        program_run.finish(step, output=problem, memo=memo)
        return _parts_of_tables(program_run, call, near, problem)
    if problem:
        program_run.finish(step, error=problem, memo=memo)
        raise PrimitiveError(problem, "ValueError")
    passages = episode.keep_passages(
        [passage for table in reply.tables for passage in table.passages], f"the tables of {call.name}()"
    )
    names = ", ".join(f"{len(table.rows):,} rows of {table.source or table.title}" for table in reply.tables)
    program_run.finish(step, output=names or "no table", passages=ids_of(passages), memo=memo)
    return program_run.results.keep(
        call.id,
        [{"title": table.title, "source": shown_source(table.source), "rows": table.rows} for table in reply.tables],
    )


def _parts_of_tables(program_run: ProgramRun, call: Call, near: list[Passage], problem: str) -> list[dict[str, Any]]:
    """Return the rows of passages, with the reason why their whole tables are not returned."""
    sources = list(dict.fromkeys(passage.source for passage in near))
    groups = [[passage for passage in near if passage.source == source] for source in sources]
    tables: list[TableData] = []
    for group in groups:
        rows = [dict(passage.metadata) for passage in group]
        name = posixpath.basename(group[0].source).partition(".")[0]
        tables += [TableData(name, group[0].source, rows)] if is_record(group[0].source) else of_passages(group)
    parts = [(table.title, shown_source(table.source), table.rows) for table in tables]
    return program_run.results.keep(
        call.id, [{"title": title, "source": source, "rows": rows, "problem": problem} for title, source, rows in parts]
    )


def _too_large(tables: list[TableData], value_bytes: int) -> str:
    """Return a reason if tables are too large to be passed to a program, else ""."""
    rows = sum(len(table.rows) for table in tables)
    if rows > MAX_ROWS:
        return f"the tables have {rows:,} rows, over {MAX_ROWS:,}: use a tool, as in --tools table:FOLDER"
    size = len(msgspec.json.encode([table.rows for table in tables]))
    if size > value_bytes * 2 // 3:
        return (
            f"the tables take {size >> 10:,} KiB, more than a program can take: use a tool, as in --tools table:FOLDER"
        )
    return ""


def _arguments(program_run: ProgramRun, docs: list[Any]) -> tuple[list[Passage], list[str]]:
    """Return the passages that belong to a table, and the ids of documents."""
    near: list[Passage] = []
    documents: list[str] = []
    for doc in docs:
        if isinstance(doc, Record) and is_passage(doc):
            near += filter(has_table, program_run.passages_of([doc]))
        elif is_document(doc):
            documents.append(str(doc.fields["id"]))
        elif isinstance(plain(doc), str) and plain(doc).strip():
            documents.append(str(plain(doc)))
        elif isinstance(doc, list):
            more = _arguments(program_run, doc)
            near += more[0]
            documents += more[1]
        else:
            raise PrimitiveError(f"{NAME}() needs passages, documents or their ids, not {kind_of(doc)}", "TypeError")
    return near, documents


def _sources(passages: list[Passage]) -> list[str]:
    return [shown_source(passage.source) or passage.title for passage in passages]


async def _requested(episode: Episode, near: list[Passage], documents: list[str]) -> tuple[TableReply, bool]:
    request: dict[str, Any] = {"passages": [passage.id for passage in near], "documents": documents}
    if episode.where is not None:
        request["where"] = str(episode.where)
    run = partial(_tables, episode, near, documents)
    return await episode.ask(f"{CATALOGUE}tables", request, run, TableReply)


async def _tables(episode: Episode, near: list[Passage], documents: list[str]) -> TableReply:
    tables: list[TableData] = []
    done: set[str] = set()
    try:
        for document in documents:
            tables += await _of_document(episode, document)
        for passage in near:
            if not passage.source:
                tables += of_passages([passage])
            elif passage.source not in done:
                more = await _of_source(episode, passage, near)
                done.update((passage.source, *(table.source for table in more)))
                tables += more
    except (NoCatalogueError, LookupError) as error:
        return TableReply(problem=str(error))
    return TableReply(tables)


async def _of_document(episode: Episode, document: str) -> list[TableData]:
    """Return the tables of a document. For a record, this is the table that contains it as a row."""
    passages = await document_passages(episode.retriever, document, episode.where)
    if passages and is_record(passages[0].source):
        return await _of_source(episode, passages[0])
    return of_passages(passages) or await _of_name(episode, document)


async def _of_source(episode: Episode, passage: Passage, near: Sequence[Passage] = ()) -> list[TableData]:
    """Return the tables of the file that a passage comes from; the passage's own tables first.

    Args:
        episode: Episode of the question.
        passage: The passage.
        near: Passages of a search. If given, other files of records with the same columns follow, since a search may
            miss them.
    """
    if is_record(passage.source):
        return await _of_name(episode, passage.source, near)
    passages = await document_passages(episode.retriever, file_of(passage.source), episode.where)
    tables = of_passages(passages or [passage])
    return sorted(tables, key=lambda table: passage.id not in {part.id for part in table.passages})


async def _of_name(episode: Episode, source: str, near: Sequence[Passage] = ()) -> list[TableData]:
    """Return the tables of the files that a path or the end of a path names; empty if these files have none.

    Args:
        episode: Episode of the question.
        source: Path of a file, or the end of a path, such as its name.
        near: Passages of a search. If given, other files of records with the same columns follow.

    Raises:
        LookupError: No file has this name.
    """
    files: dict[str, list[CatalogueDocument]] = {}
    for offset in range(0, _MAX_SCANNED, PAGE):
        page = await list_documents(episode.retriever, episode.where, offset, PAGE)
        for document in page:
            files.setdefault(document.source, []).append(document)
        if len(page) < PAGE:
            break
    else:
        return [TableData(source, source, [{}] * (MAX_ROWS + 1))]  # more rows than can be read
    tables: list[TableData] = []
    names = _matches(source, files)
    if not names:
        raise LookupError(_no_file(source, map(shown_source, files)))
    for name in names:
        if is_record(name):
            tables += _of_records(source if name == shown_source(source) else name, name, files, near)
        elif file_of(name):
            tables += of_passages(await document_passages(episode.retriever, files[name][0].id, episode.where))
    return tables


def _matches(source: str, names: Iterable[str]) -> list[str]:
    """Return the names that are a path, else the names that end with it, by whole parts of the path."""
    ending = f"/{posixpath.normpath(source)}"
    exact = [name for name in names if name in (source, shown_source(source))]
    return exact or [name for name in names if f"/{name}".endswith(ending)]


def _no_file(name: str, known: Iterable[str]) -> str:
    """Return the sentence about an unknown file, with the most similar name if there is one."""
    names = {path if "/" in name else posixpath.basename(path) for path in known if path}
    advice = nearest(shorten(name), names)
    advice = advice if advice.startswith(": did") else ": take one that documents() returned, or its source"
    return f"there is no document or file {shorten(name)!r}{advice}"


def _of_records(
    source: str, name: str, files: dict[str, list[CatalogueDocument]], near: Sequence[Passage]
) -> list[TableData]:
    """Return the table of a file's records, and if `near` is given, also the tables of files with the same columns.

    Args:
        source: Source of the file in passages.
        name: Source of the file in `files`.
        files: All documents, by their source.
        near: Passages of a search.
    """
    columns = _columns(files[name])
    alike = {
        other: rows
        for other, rows in files.items()
        if near and other != name and is_record(other) and _columns(rows) == columns
    }
    return [
        of_records(
            posixpath.basename(file).partition(".")[0], file, rows, [each for each in near if each.source == file][:1]
        )
        for file, rows in {source: files[name], **alike}.items()
    ]


def _columns(records: list[CatalogueDocument]) -> set[str]:
    return {name for record in records for name in record.metadata}
