"""`pyrag data`: imports, downloads and checks data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyrag.cli.output import print_json
from pyrag.trace.words import counted

if TYPE_CHECKING:
    from pyrag.evaluation.datasets.importers.check import Checked
    from pyrag.evaluation.datasets.importers.convert import Imported

data_app = typer.Typer(help="Import, download and check question sets.", no_args_is_help=True, rich_markup_mode=None)

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write.", show_default="data/NAME")]
_Split = Annotated[
    str, typer.Option(help="train: the file holds questions to learn from.", show_default="the test questions")
]
_SHOWN = 20  # problems that a check prints of one file


@data_app.command("import")
def import_(
    name: Annotated[str, typer.Argument(help="Data set, such as hotpotqa or musique.")],
    file: Annotated[
        Path, typer.Argument(help="File of the set (.json, .jsonl, .tsv, .csv or .parquet, also with .gz).")
    ],
    out: _Out = None,
    split: _Split = "",
    json: _Json = False,
) -> None:
    """Convert a released file into questions.jsonl and corpus.jsonl.

    The name of the set selects the format of official releases: HotpotQA, 2WikiMultiHopQA, MuSiQue, PopQA, Bamboogle,
    HoVer, NQ-open, AmbigQA and MultiHop-RAG. FlashRAG's and Search-R1's layouts are recognised by their fields. The
    name search-r1 writes one set for each source of Search-R1's merged file, into folders below --out.
    """
    from pyrag.evaluation.datasets.importers.convert import SEARCH_R1, import_mixture, import_set
    from pyrag.evaluation.datasets.importers.formats import canonical_name

    _check_split(split)
    if name.lower() == SEARCH_R1:
        _tell_all(import_mixture(file, out or Path("data"), split), out or Path("data"), json)
        return
    folder = out or Path("data") / canonical_name(name)
    _tell(import_set(name, file, folder, split), folder, json)


@data_app.command()
def download(
    name: Annotated[str, typer.Argument(help="Data set, such as hotpotqa or musique.")],
    source: Annotated[
        str, typer.Option("--from", help="URL of a hub, or a folder that mirrors one.")
    ] = "https://huggingface.co",
    out: _Out = None,
    split: _Split = "",
    json: _Json = False,
) -> None:
    """Download a released data set and import it. search-r1 with --split train is the papers' training mixture."""
    from pyrag.evaluation.datasets.importers.convert import SEARCH_R1, download_mixture, download_set
    from pyrag.evaluation.datasets.importers.formats import canonical_name

    _check_split(split)
    if name.lower() == SEARCH_R1 and split:
        _tell_all(download_mixture(out or Path("data"), source), out or Path("data"), json)
        return
    folder = out or Path("data") / canonical_name(name)
    _tell(download_set(name, folder, source, split), folder, json)


def _check_split(split: str) -> None:
    from pyrag.errors import UsageError

    if split not in ("", "train"):
        raise UsageError(f"there is no split {split!r}: write --split train, or leave it out for the test questions")


@data_app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with questions.jsonl, or a folder of such folders.")],
    json: _Json = False,
) -> None:
    """Check question sets. Gold answers must score 1.0, gold passages must exist, and ids must be unique."""
    from pyrag.evaluation.datasets.importers.check import check_folder

    reports = check_folder(folder)
    if json:
        print_json([_plain(report) for report in reports])
    else:
        for report in reports:
            passages = "no corpus" if report.passages is None else counted(report.passages, "passage")
            verdict = counted(len(report.problems), "problem") if report.problems else "all gold answers score 1.0"
            typer.echo(f"{report.path}: {counted(report.questions, 'question')}, {passages}, {verdict}")
            for problem in report.problems[:_SHOWN]:
                typer.echo(f"  {problem}")
            if len(report.problems) > _SHOWN:
                typer.echo(f"  … and {len(report.problems) - _SHOWN} more")
    if any(report.problems for report in reports):
        sys.exit(1)


def _plain(report: Checked) -> dict[str, Any]:
    return {
        "path": str(report.path),
        "questions": report.questions,
        "passages": report.passages,
        "problems": report.problems,
    }


def _tell_all(sets: dict[str, Imported], folder: Path, as_json: bool) -> None:
    if as_json:
        print_json([_as_object(item, folder / name) for name, item in sets.items()])
        return
    for name, item in sets.items():
        _tell(item, folder / name, as_json=False)


def _tell(imported: Imported, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json(_as_object(imported, folder))
        return
    corpus = f" and {counted(imported.passages, 'passage')}" if imported.passages else ", no corpus"
    typer.echo(f"{counted(imported.questions, 'question')}{corpus} in {folder}. Check with: pyrag data check {folder}")
    for name, count in imported.others.items():
        typer.echo(f"left out: {counted(count, 'record')} of {name}", err=True)
    if imported.remark:
        typer.echo(imported.remark, err=True)


def _as_object(imported: Imported, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "questions": imported.questions,
        "passages": imported.passages,
        "left_out": imported.others,
        "remark": imported.remark,
    }
