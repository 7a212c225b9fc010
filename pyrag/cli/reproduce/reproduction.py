"""`pyrag reproduce`: lists the papers' tables, prints their commands, and runs them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrag._io.specs import expanded
from pyrag.cli.output import print_json

if TYPE_CHECKING:
    from pyrag.reproduce.steps import ReproductionPlan, TableRequest
    from pyrag.reproduce.tables import PaperTable

SMALL_MODEL = Path("runs/models/smollm2-135m-instruct")  # where `make model-env` writes it


def show_tables(folder: Path, *, as_json: bool) -> None:
    """Print all tables, what each needs, and what is missing on this machine.

    Args:
        folder: Folder of a reproduction, whose data and free disk space are checked.
        as_json: Print JSON instead.
    """
    from pyrag.reproduce.catalogue import TABLES
    from pyrag.reproduce.needs import missing_here, needs_of

    rows = []
    for table in TABLES.values():
        needs = needs_of(table, table.models[:1])
        rows.append((table, needs, missing_here(table, needs, folder)))
    if as_json:
        print_json(
            [
                {"table": table.key, "title": table.title, "models": table.models, "sets": table.sets,
                 "needs": asdict(needs), "hours": "estimate", "missing": missing, "remarks": table.remarks}
                for table, needs, missing in rows
            ]
        )  # fmt: skip
        return
    for table, needs, missing in rows:
        print(f"{table.key}: {table.title}")
        first = " (needs below are for the first)" if len(table.models) > 1 else ""
        print(f"  models   {', '.join(table.models)}{first}")
        print(f"  data     {', '.join(table.sets) or 'training questions only'}; passages: {', '.join(table.corpora)}")
        work = [f"{_time(needs.measuring)} of measuring"] if needs.measuring else []
        work += [f"{_time(needs.training)} of training ({', '.join(needs.trains)})"] if needs.trains else []
        print(
            f"  needs    {needs.gpus} GPUs of 80 GB, {needs.disk:.0f} GB of disk, {needs.memory:.0f} GB of memory; "
            f"estimated: {', '.join(work)}"
        )
        print(f"  missing  {'; '.join(missing) or 'nothing that can be seen without the network'}")
    print(f"\n{len(rows)} tables. Hours are estimates, computed as docs/reproduce.md says; nothing was measured.")


def _time(hours: float) -> str:
    """Return an estimated time in hours, or in minutes below an hour."""
    return f"{hours:.0f} h" if hours >= 10 else f"{hours:.1f} h" if hours >= 1 else f"{max(1, round(60 * hours))} min"


def reproduce(request: TableRequest, out: Path | None, *, dry_run: bool, report: bool, as_json: bool) -> None:
    """Run a table, or print its commands.

    Args:
        request: Table, models, scale, limit, ports.
        out: Folder of the reproduction. None for dry runs.
        dry_run: Whether only to print the commands.
        report: Whether only to write the report of existing runs.
        as_json: Print the plan of a dry run as JSON.

    Raises:
        UsageError: An option is missing or wrong.
        PyRAGError: A step failed.
    """
    from pyrag.errors import UsageError
    from pyrag.reproduce.catalogue import table_of
    from pyrag.reproduce.full import ELSEWHERE
    from pyrag.reproduce.running import free_port, run_plan, saved_port

    table = table_of(request.table)
    if request.scale not in ("full", "tiny"):
        raise UsageError(f"there is no scale {request.scale!r}: choose full or tiny")
    if out is None and not dry_run:
        raise UsageError("the folder of the reproduction is missing: name one with --out")
    folder = expanded(out or "reproduction")
    kind = f"{table.paper} at {request.scale} scale"
    port = (
        request.port or saved_port(folder, kind) or (free_port() if request.scale == "tiny" and not dry_run else 8000)
    )
    _check_port(table, request, port)
    request = replace(request, port=port, models=request.models or table.models[:1])
    if request.scale == "tiny":
        request = replace(request, llm=_with_absolute_path(request.llm) or _small_model())
    present = frozenset(name for name, (file, _) in ELSEWHERE.items() if (folder / file).is_file())
    plan = _plan(table, request, present)
    if dry_run:
        _show_plan(plan, folder, as_json=as_json)
        return
    if report:
        from pyrag.reproduce.report import write_table_report

        print(write_table_report(table, request, plan, folder))
        return
    if request.scale == "full":
        _warn(table, request, folder)
    run_plan(plan, folder, kind, port, lambda line: print(line, flush=True))
    _conclude(plan, folder / request.reports)


def _check_port(table: PaperTable, request: TableRequest, port: int) -> None:
    from pyrag.errors import UsageError

    trains = any(row.training and table.paper != "hera" for row in table.rows)
    if request.scale == "full" and trains and port != 8000:
        raise UsageError(f"{table.key} trains by the packaged curricula, which serve on 8000: leave out --port {port}")


def _plan(table: PaperTable, request: TableRequest, present: frozenset[str]) -> ReproductionPlan:
    from pyrag.reproduce.full import full_plan
    from pyrag.reproduce.tiny import tiny_plan

    return tiny_plan(table, request) if request.scale == "tiny" else full_plan(table, request, present)


def _with_absolute_path(engine: str) -> str:
    """Return an engine's spec with an absolute path of its file or folder, since commands run in another folder."""
    scheme, _, rest = engine.partition(":")
    path, comma, options = rest.partition(",")
    return f"{scheme}:{Path(path).resolve()}{comma}{options}" if path and Path(path).exists() else engine


def _small_model() -> str:
    """Return the spec of the small model if it is on this machine and can be used; otherwise an empty text."""
    usable = (SMALL_MODEL / "complete").is_file() and find_spec("transformers") is not None and find_spec("torch")
    return f"transformers:{SMALL_MODEL.resolve()}" if usable else ""


def _show_plan(plan: ReproductionPlan, folder: Path, *, as_json: bool) -> None:
    from pyrag.reproduce.steps import servers_in_the_way

    if as_json:
        print_json({"folder": str(folder), "plan": asdict(plan), "lines": [command.line for command in plan.commands]})
        return
    print(f"mkdir -p {shlex.quote(str(folder))} && cd {shlex.quote(str(folder))}")
    running: set[str] = set()
    for number, command in enumerate(plan.commands):
        for name in servers_in_the_way(running, command, plan.services):
            running.remove(name)
            print(f"# stop the server {name}")
        for name in (name for name in command.services if name not in running):
            running.add(name)
            service = plan.services[name]
            print(f"# the server {name}, in a terminal of its own; ready as soon as {service.health} answers")
            print(service.line)
        print(f"# {number + 1}. {command.name}{': ' if command.about else ''}{command.about}")
        print(command.line)
    _print_remarks(plan, sys.stdout)


def _print_remarks(plan: ReproductionPlan, stream: Any) -> None:
    for name, reason in plan.skipped.items():
        print(f"# left out: {name}: {reason}", file=stream)
    for sentence in plan.notes:
        print(f"# {sentence}", file=stream)


def _warn(table: PaperTable, request: TableRequest, folder: Path) -> None:
    from pyrag.reproduce.needs import missing_here, needs_of

    missing = missing_here(table, needs_of(table, request.models), folder)
    lacks: Sequence[str] = [need for need in missing if not need.startswith("data in")]
    if lacks:
        print(f"missing on this machine: {'; '.join(lacks)}", file=sys.stderr)


def _conclude(plan: ReproductionPlan, reports: Path) -> None:
    print(f"{len(plan.commands)} steps done, {len(plan.skipped)} left out: {reports / 'report.md'}")
    for name, reason in plan.skipped.items():
        print(f"left out: {name}: {reason}")
