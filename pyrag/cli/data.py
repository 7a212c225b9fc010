"""`pyrag data`: import, download and check data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrag.cli.output import print_json
from pyrag.cli.views.words import counted

if TYPE_CHECKING:
    from pyrag.evaluation.datasets.importers.check import Checked
    from pyrag.evaluation.datasets.importers.convert import Imported

data_app = typer.Typer(help="Import, download and check question sets.", no_args_is_help=True, rich_markup_mode=None)

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write.", show_default="data/NAME")]
_SHOWN = 20  # problems that a check prints of one file


@data_app.command("import")
def import_(
    name: Annotated[str, typer.Argument(help="Data set, such as hotpotqa or musique.")],
    file: Annotated[
        Path, typer.Argument(help="File of the set (.json, .jsonl, .tsv, .csv or .parquet, also with .gz).")
    ],
    out: _Out = None,
    json: _Json = False,
) -> None:
    """Convert a released file into questions.jsonl and corpus.jsonl.

    The name of the set selects the format of official releases: HotpotQA, 2WikiMultiHopQA, MuSiQue, PopQA, Bamboogle,
    HoVer, NQ-open, AmbigQA and MultiHop-RAG. FlashRAG's and Search-R1's layouts are recognised by their fields.
    """
    from pyrag.evaluation.datasets.importers.convert import import_set
    from pyrag.evaluation.datasets.importers.formats import canonical_name

    folder = out or Path("data") / canonical_name(name)
    _tell(import_set(name, file, folder), folder, json)


@data_app.command()
def download(
    name: Annotated[str, typer.Argument(help="Data set, such as hotpotqa or musique.")],
    source: Annotated[
        str, typer.Option("--from", help="URL of a hub, or a folder that mirrors one.")
    ] = "https://huggingface.co",
    out: _Out = None,
    json: _Json = False,
) -> None:
    """Download a released data set and import it."""
    from pyrag.evaluation.datasets.importers.convert import download_set
    from pyrag.evaluation.datasets.importers.formats import canonical_name

    folder = out or Path("data") / canonical_name(name)
    _tell(download_set(name, folder, source), folder, json)


@data_app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with questions.jsonl, or a folder of such folders.")],
    json: _Json = False,
) -> None:
    """Check question sets. Gold answers must score 1.0, gold passages exist and ids be unique."""
    from pyrag.evaluation.datasets.importers.check import check_folder

    checked = check_folder(folder)
    if json:
        print_json([_plain(one) for one in checked])
    else:
        for one in checked:
            passages = "no corpus" if one.passages is None else counted(one.passages, "passage")
            verdict = counted(len(one.problems), "problem") if one.problems else "all gold answers score 1.0"
            typer.echo(f"{one.path}: {counted(one.questions, 'question')}, {passages}, {verdict}")
            for problem in one.problems[:_SHOWN]:
                typer.echo(f"  {problem}")
            if len(one.problems) > _SHOWN:
                typer.echo(f"  … and {len(one.problems) - _SHOWN} more")
    if any(one.problems for one in checked):
        sys.exit(1)


def _plain(checked: Checked) -> dict[str, Any]:
    return {
        "path": str(checked.path),
        "questions": checked.questions,
        "passages": checked.passages,
        "problems": checked.problems,
    }


def _tell(imported: Imported, folder: Path, as_json: bool) -> None:
    if as_json:
        fields = {"folder": str(folder), "questions": imported.questions, "passages": imported.passages}
        print_json(fields)
        return
    corpus = f" and {counted(imported.passages, 'passage')}" if imported.passages else ", no corpus"
    typer.echo(f"{counted(imported.questions, 'question')}{corpus} in {folder}. Check with: pyrag data check {folder}")
