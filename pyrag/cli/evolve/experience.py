"""`pyrag experience`: the entries of a library, listed, printed, exported and imported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyrag.cli.output import print_json
from pyrag.cli.views.terminal import json_line, one_line
from pyrag.trace.words import counted

if TYPE_CHECKING:
    from pyrag.methods.hera.experience.entry import Experience

experience_app = typer.Typer(
    help="List, export and import learned experiences.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Library_ = Annotated[Path, typer.Argument(help="Experience library, such as RUN/experience.db.", metavar="LIBRARY")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per entry.")]


@experience_app.command("list")
def list_(
    library: Library_,
    type_: Annotated[str | None, typer.Option("--type", help="Restrict to questions of this type.")] = None,
    json: Json = False,
) -> None:
    """List the insights, the most useful first."""
    from pyrag.errors import UsageError, nearest
    from pyrag.methods.hera.experience.library import Library
    from pyrag.methods.hera.topology import QUESTION_TYPES

    if type_ is not None and type_ not in QUESTION_TYPES:
        raise UsageError(f"there is no question type {type_!r}{nearest(type_, QUESTION_TYPES)}")
    with Library.open(library) as opened_library:
        entries = [entry for entry in opened_library.entries() if type_ in (None, entry.profile.type)]
    for entry in sorted(entries, key=lambda item: (-item.utility, item.id)):
        _print_json(entry) if json else print(_line(entry))


@experience_app.command()
def show(
    library: Library_,
    id_: Annotated[int, typer.Argument(metavar="ID", help="Id of the entry, as printed by list.")],
    json: Json = False,
) -> None:
    """Print one entry."""
    from pyrag.errors import UsageError
    from pyrag.methods.hera.experience.library import Library

    with Library.open(library) as opened_library:
        entry = opened_library.get(id_)
    if entry is None:
        raise UsageError(f"{library} has no entry {id_}: see pyrag experience list {library}")
    _print_json(entry) if json else _print_all(entry)


@experience_app.command("export")
def export(
    library: Library_, out: Annotated[Path | None, typer.Option(help="File to write to.", show_default="stdout")] = None
) -> None:
    """Write all entries as JSON Lines."""
    from pyrag.methods.hera.experience.exchange import exported
    from pyrag.methods.hera.experience.library import Library

    with Library.open(library) as opened_library:
        content = b"".join(exported(opened_library.entries()))
    if out is None:
        print(json_line(content.decode()), end="")
    else:
        out.write_bytes(content)


@experience_app.command("import")
def import_(
    library: Library_,
    file: Annotated[Path, typer.Argument(help="File of pyrag experience export, or - for stdin.")],
    json: Json = False,
) -> None:
    """Add entries from JSON Lines, all or none. Existing entries are skipped."""
    from pyrag.errors import DataError
    from pyrag.methods.hera.experience.exchange import import_lines
    from pyrag.methods.hera.experience.library import Library

    # Read the input first: a wrong path must not leave an empty library.
    try:
        lines = (sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()).splitlines()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}; name what pyrag experience export wrote") from error
    with Library.open(library, write=True) as opened_library:
        count = import_lines(opened_library, lines, str(file))
        total = len(opened_library.entries())
    print(f'{{"added":{count},"entries":{total}}}' if json else f"{count} added, {counted(total, 'entry')}: {library}")


def _line(entry: Experience) -> str:
    return f"{entry.id:>4}  {entry.utility}/{entry.uses}  {entry.profile.type:<12}  {one_line(entry.insight)}"


def _print_all(entry: Experience) -> None:
    profile = entry.profile
    asks = f", asking for: {profile.asks}" if profile.asks else ""
    print(f"Profile  {profile.type}, {profile.difficulty}{asks}\nInsight  {entry.insight}")
    print(f"Utility  {entry.utility} of the {counted(entry.uses, 'trajectory')} that had been shown it succeeded")


def _print_json(entry: Experience) -> None:
    from pyrag.methods.hera.experience.exchange import as_object

    print_json(as_object(entry))
