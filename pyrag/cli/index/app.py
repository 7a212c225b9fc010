"""Options of `pyrag index`. `pyrag index PATH... --out DIR` is short for `pyrag index build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pyrag._io.hub import HUB

Folder = Annotated[Path, typer.Argument(help="Index folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Type = Annotated[
    str | None,
    typer.Option("--type", help="Vector index type: auto (by size), or a FAISS factory string such as HNSW32."),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Compare every vector, as papers do; same as --type Flat. Large and slow.")
]
VectorsOnly = Annotated[
    bool, typer.Option("--vectors-only", help="Search by vectors only: store passages without an index of their words.")
]
Recall = Annotated[
    float | None, typer.Option(help="Recall@10 to tune vector search for.", min=0.1, max=1.0, show_default="0.95")
]
Shards = Annotated[
    int | None,
    typer.Option(help="Parts to split the vectors into, built one by one.", min=1, max=4096, show_default="1"),
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
            help="Files, folders and quoted globs: text, Markdown, tables, JSON, HTML, PDF, Word, e-mail and more.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the index; an existing index is updated.")],
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Embedder of passages, for hybrid search: bundled, onnx:DIR, st:NAME or openai:MODEL@URL; none "
            "removes vectors.",
            show_default="the index's own",
        ),
    ] = None,
    dense: Annotated[
        bool, typer.Option("--dense", help="Same as --embedder bundled, the small model that ships with pyrag.")
    ] = False,
    vector_type: Type = None,
    exact: Exact = False,
    vectors_only: VectorsOnly = False,
    recall: Recall = None,
    shards: Shards = None,
    ray: Annotated[
        str | None, typer.Option(help="Embed and build shards on a Ray cluster: its address, or local.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Ray workers.", min=1)] = 2,
    add: Annotated[
        bool, typer.Option("--add", help="Keep the files that are already in the index, and update them too.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove files that are in the index and not named here.")
    ] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rebuild the index from scratch.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file again, even if its size and time are unchanged.")
    ] = False,
    id_column: Annotated[str, typer.Option(help="Column of ids in CSV and TSV files.")] = "id",
    title_column: Annotated[str, typer.Option(help="Column of titles in CSV and TSV files.")] = "title",
    text_column: Annotated[
        str, typer.Option(help="Column of texts in CSV and TSV files; * takes whole rows.")
    ] = "text",
    encoding: Annotated[
        str,
        typer.Option(
            help="Encoding of text files that are not UTF-8, such as windows-1252; auto detects it.", metavar="NAME"
        ),
    ] = "",
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of the documents, such as german, for word endings and common words. auto detects it.",
            metavar="NAME",
            show_default="the index's own, or auto",
        ),
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow symbolic links that lead out of the given folders.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running, and update the index when a document changes, until Ctrl-C.")
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between two checks of --watch.", min=0.1)] = 2.0,
    json: Json = False,
) -> None:
    """Build or update an index of documents. Unchanged files are skipped."""
    from pyrag.cli.index.work import Vectors, build
    from pyrag.errors import UsageError
    from pyrag.retrieval.documents.encodings import checked_encoding
    from pyrag.retrieval.documents.model import Columns
    from pyrag.retrieval.embedders.embedding import BUNDLED
    from pyrag.retrieval.words.languages import checked_language

    if dense and embedder not in (None, BUNDLED):
        raise UsageError(f"--dense means --embedder {BUNDLED}, not {embedder}: keep one of the two")
    if add and replace:
        raise UsageError("--add keeps what is in the index and --replace drops it: use only one of them")
    embedder = BUNDLED if dense else embedder
    columns = Columns(id_column, title_column, text_column, checked_encoding(encoding) if encoding else "")
    vectors = Vectors(
        embedder=embedder, type=exact_type(vector_type, exact=exact), only=vectors_only, target=recall, shards=shards,
        ray=ray, workers=workers,
    )  # fmt: skip
    build(
        paths,
        out,
        columns=columns,
        vectors=vectors,
        add=add,
        replace=replace,
        rebuild=rebuild,
        check_contents=verify,
        follow_links=follow_links,
        language=checked_language(language) if language else language,
        as_json=json,
        watch_every=every if watch else None,
    )


@index_app.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            help="Released corpus: wiki-18 (Search-R1's Wikipedia, 21 million passages with E5 vectors) or wiki-fixed "
            "(wiki-18 with the pages that multi-hop sets need; report its figures apart)."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the index.")],
    files: Annotated[
        Path | None, typer.Option(help="Folder to download to; may be deleted afterwards.", show_default="NAME")
    ] = None,
    source: Annotated[str, typer.Option("--from", help="URL of a hub, or a folder that mirrors one.")] = HUB,
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Include the released vectors, for hybrid search.")
    ] = True,
    vector_type: Type = None,
    exact: Exact = False,
    vectors_only: VectorsOnly = False,
    recall: Recall = None,
    shards: Shards = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print sizes, memory, disk and time without downloading anything.")
    ] = False,
    json: Json = False,
) -> None:
    """Download a released corpus and index it. An interrupted download is continued."""
    from pyrag.cli.index.fetch import fetch
    from pyrag.cli.index.work import Vectors
    from pyrag.errors import UsageError

    if not vectors and (exact or vectors_only):
        raise UsageError("--exact and --vectors-only are about vectors: leave --no-vectors out")
    layout = Vectors(type=exact_type(vector_type, exact=exact), only=vectors_only, target=recall, shards=shards)
    fetch(name, out, files or Path(name), source=source, vectors=layout if vectors else None, dry_run=dry_run,
          as_json=json)  # fmt: skip


def exact_type(vector_type: str | None, *, exact: bool) -> str | None:
    """Return the type of vector index that --type and --exact mean together.

    Args:
        vector_type: Value of --type.
        exact: True for --exact.

    Raises:
        UsageError: The two options contradict each other.
    """
    from pyrag.errors import UsageError

    if exact and vector_type not in (None, "Flat"):
        raise UsageError(f"--exact means --type Flat, not {vector_type}: keep one of the two")
    return "Flat" if exact else vector_type


@index_app.command()
def info(folder: Folder, json: Json = False) -> None:
    """Print the contents of an index and the files that were left out."""
    from pyrag.cli.index.work import info

    info(folder, as_json=json)


@index_app.command("list")
def list_command(folder: Folder, json: Json = False) -> None:
    """Print the files of an index with the number of their passages."""
    from pyrag.cli.index.content import list_files

    list_files(folder, as_json=json)


@index_app.command()
def remove(
    folder: Folder,
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Files and folders, which may be gone; pyrag index list prints their names.", show_default=False
        ),
    ],
    json: Json = False,
) -> None:
    """Remove files and folders from an index. Updates skip them until they are named again."""
    from pyrag.cli.index.work import remove

    remove(folder, paths, as_json=json)


@index_app.command()
def search(
    folder: Folder,
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    topk: Annotated[int, typer.Option(help="Passages to print.", min=1, max=1000)] = 5,
    where: Annotated[
        str | None, typer.Option(help="Search only passages whose metadata match this filter.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Print the passages that an index finds for a query."""
    from pyrag.cli.index.work import search

    search(folder, query, topk, where, as_json=json)


@index_app.command("verify")
def verify_command(folder: Folder, json: Json = False) -> None:
    """Check that an index is complete. Compare checksums, and compare parts with records."""
    from pyrag.cli.index.work import verify

    verify(folder, as_json=json)
