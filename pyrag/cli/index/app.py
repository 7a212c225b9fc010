"""`pyrag index`: the commands and their options. `pyrag index PATH... --out DIR` is short for `pyrag index build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pyrag._io.hub import HUB

Folder = Annotated[Path, typer.Argument(help="An index folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Type = Annotated[
    str | None,
    typer.Option("--type", help="How vectors are kept: auto (by size), or a FAISS factory string such as HNSW32."),
]
Recall = Annotated[
    float | None, typer.Option(help="Recall@10 that vector search is tuned for (0.95).", min=0.1, max=1.0)
]
Shards = Annotated[
    int | None, typer.Option(help="Keep the vectors in so many parts, built one by one (1).", min=1, max=4096)
]


class _BuildByDefault(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in ("-h", "--help") and args[0] not in self.commands:
            args = ["build", *args]
        return super().parse_args(ctx, args)


index_app = typer.Typer(
    cls=_BuildByDefault,
    help="Build, update, search and check an index. pyrag index PATH... --out DIR is short for pyrag index build.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@index_app.command()
def build(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Files, folders and quoted globs of .jsonl, .json, .csv, .tsv, .txt, .md, .html, .pdf and .docx, "
            "also .gz, .bz2, .xz and in .zip.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the index; one that is there is updated.")],
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Add vectors, for hybrid search: bundled, onnx:DIR, st:NAME or openai:MODEL@URL; none to drop them "
            "(the index's own).",
            show_default=False,
        ),
    ] = None,
    dense: Annotated[
        bool, typer.Option("--dense", help="Short for --embedder bundled: the small model that comes with pyrag.")
    ] = False,
    vector_type: Type = None,
    recall: Recall = None,
    shards: Shards = None,
    ray: Annotated[
        str | None, typer.Option(help="Embed, and build shards, on a Ray cluster: its address, or local.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Ray workers.", min=1)] = 2,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Start over: read every file again.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the contents of files whose size and time did not change.")
    ] = False,
    id_column: Annotated[str, typer.Option(help="Of CSV and TSV files.")] = "id",
    title_column: Annotated[str, typer.Option(help="Of CSV and TSV files.")] = "title",
    text_column: Annotated[str, typer.Option(help="Of CSV and TSV files; * takes rows whole.")] = "text",
    encoding: Annotated[
        str,
        typer.Option(help="Of text files that are not UTF-8, such as windows-1252; auto detects it.", metavar="NAME"),
    ] = "",
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow symbolic links that lead out of the folders.")
    ] = False,
    json: Json = False,
) -> None:
    """Build an index over documents, or bring it up to date. Files that did not change are not read again."""
    from pyrag.cli.index.run import Vectors, build
    from pyrag.errors import UsageError
    from pyrag.retrieval.documents.encodings import checked_encoding
    from pyrag.retrieval.documents.model import Columns
    from pyrag.retrieval.embedders.embedding import BUNDLED

    if dense and embedder not in (None, BUNDLED):
        raise UsageError(f"--dense means --embedder {BUNDLED}, not {embedder}: keep one of the two")
    embedder = BUNDLED if dense else embedder
    columns = Columns(id_column, title_column, text_column, checked_encoding(encoding) if encoding else "")
    vectors = Vectors(embedder=embedder, type=vector_type, target=recall, shards=shards, ray=ray, workers=workers)
    build(
        paths,
        out,
        columns=columns,
        vectors=vectors,
        rebuild=rebuild,
        check_contents=verify,
        follow_links=follow_links,
        as_json=json,
    )


@index_app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="wiki-18: Search-R1's Wikipedia, 21 million passages with E5 vectors.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the index.")],
    files: Annotated[
        Path | None, typer.Option(help="The folder to download to; NAME if not given. May be deleted afterwards.")
    ] = None,
    source: Annotated[str, typer.Option("--from", help="The address of a hub, or a folder that mirrors one.")] = HUB,
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Take over the released vectors, for hybrid search.")
    ] = True,
    vector_type: Type = None,
    recall: Recall = None,
    shards: Shards = None,
    json: Json = False,
) -> None:
    """Download a released corpus with its vectors, and index it. Broken off, it goes on where it was."""
    from pyrag.cli.index.fetch import fetch
    from pyrag.cli.index.run import Vectors

    kept = Vectors(type=vector_type, target=recall, shards=shards) if vectors else None
    fetch(name, out, files or Path(name), source=source, vectors=kept, as_json=json)


@index_app.command()
def info(folder: Folder, json: Json = False) -> None:
    """Say what is in an index, and which files were left out."""
    from pyrag.cli.index.run import info

    info(folder, as_json=json)


@index_app.command()
def search(
    folder: Folder,
    query: Annotated[str, typer.Argument(help="Words, or a question.")],
    topk: Annotated[int, typer.Option(help="Passages to show.", min=1, max=1000)] = 5,
    json: Json = False,
) -> None:
    """Show the passages that an index finds for a query."""
    from pyrag.cli.index.run import search

    search(folder, query, topk, as_json=json)


@index_app.command("verify")
def verify_command(folder: Folder, json: Json = False) -> None:
    """Check that an index is whole. Its files by checksum, its parts against its records."""
    from pyrag.cli.index.run import verify

    verify(folder, as_json=json)
