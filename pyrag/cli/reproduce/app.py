"""Options of `pyrag reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

reproduce_app = typer.Typer(rich_markup_mode=None)


@reproduce_app.command()
def reproduce(
    what: Annotated[str, typer.Argument(metavar="TABLE", help="list, or a table such as pyrag/table2.")],
    models: Annotated[
        str | None,
        typer.Option(help="Backbones of the table, separated by commas.", show_default="the table's first"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; an existing one is continued.")] = None,
    scale: Annotated[
        str, typer.Option(help="full, or tiny: the same steps over bundled questions, in minutes without a GPU.")
    ] = "full",
    limit: Annotated[
        int | None, typer.Option(help="Questions per set.", min=1, show_default="the paper's; 3 at tiny scale")
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            help="Model of the tiny scale, for methods that need one, such as transformers:FOLDER.",
            show_default="the model of make model-env, if it is there",
        ),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option(help="Engine that writes OPERA's candidate plans.", show_default="DeepSeek"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="First port of the servers; the retriever's port is eight higher.",
            min=1,
            max=65527,
            show_default="8000; at tiny scale a free one",
        ),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Write the report only.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands without running them.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the list or the commands as JSON.")] = False,
) -> None:
    """Reproduce a table of the papers.

    Data, servers, training, runs and report, in this order. The same command resumes a stopped run.
    """
    from pyrag.cli.reproduce.reproduction import reproduce, show_tables
    from pyrag.reproduce.steps import TableRequest

    if what == "list":
        show_tables(out or Path("reproduction"), as_json=json)
        return
    names = tuple(dict.fromkeys(name.strip() for name in (models or "").split(",") if name.strip()))
    request = TableRequest(
        table=what, models=names, scale=scale, limit=limit, port=port or 0, llm=llm or "", author=author or ""
    )
    reproduce(request, out, dry_run=dry_run, report=report, as_json=json)
