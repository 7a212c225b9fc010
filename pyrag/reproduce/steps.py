"""Plan of a reproduction: commands of pyrag in order, and the servers that they need."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

REPORT = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line of pyrag, run in the folder of the reproduction.

    Attributes:
        name: Unique name, also used for the log.
        argv: Arguments after `pyrag`.
        outputs: Files and folders that the command creates.
        services: Names of the servers that the command uses.
        gpus: GPUs that the command uses itself; servers on them are stopped first.
        visible: GPUs that the command may see (CUDA_VISIBLE_DEVICES); empty for all.
        about: One sentence that explains the command; empty if it is self-explanatory.
    """

    name: str
    argv: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    visible: tuple[int, ...] = ()
    about: str = ""

    @property
    def line(self) -> str:
        """The command as a shell command line."""
        return _line(self.argv, self.visible)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A server of pyrag on the loopback address.

    Attributes:
        name: Unique name, also used for the log.
        argv: Arguments after `pyrag`.
        port: Port of the server; it answers `GET /health` once it is ready.
        gpus: GPUs that the server uses.
    """

    name: str
    argv: tuple[str, ...]
    port: int
    gpus: tuple[int, ...] = ()

    @property
    def line(self) -> str:
        """The command as a shell command line."""
        return _line(self.argv, self.gpus)

    @property
    def health(self) -> str:
        """Address that replies once the server is ready."""
        return f"http://127.0.0.1:{self.port}/health"

    def is_in_the_way(self, other: Service | Command) -> bool:
        """Return whether the two servers cannot run at the same time."""
        return bool(set(self.gpus) & set(other.gpus)) or (isinstance(other, Service) and self.port == other.port)


def servers_in_the_way(running: Iterable[str], command: Command, services: Mapping[str, Service]) -> list[str]:
    """Return the names of running servers whose GPU or port is needed by a command or its servers.

    Args:
        running: Names of the running servers.
        command: The next command.
        services: All servers by name.
    """
    return [
        name
        for name in sorted(running)
        if services[name].is_in_the_way(command)
        or any(services[name].is_in_the_way(services[needed]) for needed in command.services if needed != name)
    ]


def _line(argv: tuple[str, ...], gpus: tuple[int, ...]) -> str:
    shown = f"CUDA_VISIBLE_DEVICES={','.join(map(str, gpus))} " if gpus else ""
    return f"{shown}pyrag {shlex.join(argv)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """A row of a table, and the run of `pyrag bench` that measures it.

    Attributes:
        row: Name of the row.
        method: Name of the method in pyrag's registry.
        folder: Folder of the run.
        paper: Source of the paper's figures; empty if it reports none.
        figures: The paper's exact match by set.
    """

    row: str
    method: str
    folder: str
    paper: str
    figures: dict[str, float]


@dataclass(frozen=True, slots=True)
class ReproductionPlan:
    """Everything that a reproduction does.

    Attributes:
        commands: Commands in order; the last one writes the report.
        services: Servers by name.
        measured: Rows that the report compares.
        skipped: Reasons for omitted rows or steps, by name.
        notes: Sentences for the user, which also appear in the report.
    """

    commands: tuple[Command, ...]
    services: dict[str, Service]
    measured: tuple[MeasuredRow, ...]
    skipped: dict[str, str]
    notes: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class PlanDraft:
    """Plan in the making. Adding something under an existing name has no effect."""

    commands: dict[str, Command]
    services: dict[str, Service]
    measured: list[MeasuredRow]
    skipped: dict[str, str]
    notes: list[str]

    @classmethod
    def empty(cls) -> PlanDraft:
        """Return an empty draft."""
        return cls(commands={}, services={}, measured=[], skipped={}, notes=[])

    def add(self, command: Command) -> None:
        """Add a command."""
        self.commands.setdefault(command.name, command)

    def serve(self, service: Service) -> str:
        """Add a server, and return its name."""
        return self.services.setdefault(service.name, service).name

    def note(self, sentence: str) -> None:
        """Add a sentence for the user, unless it was added before."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def plan(self) -> ReproductionPlan:
        """Return the plan."""
        commands = tuple(self.commands.values())
        return ReproductionPlan(commands, self.services, tuple(self.measured), self.skipped, tuple(self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """A table, with the options of its reproduction.

    Attributes:
        table: Name of the table.
        models: Short names of the backbones.
        scale: Either "full" or "tiny".
        limit: Maximum number of questions per set; None for the table's own number.
        port: First port of the servers; the retriever uses the eighth port after it.
        llm: Engine for methods that write text at tiny scale; empty for none.
        author: Engine that writes OPERA's candidate plans.
    """

    table: str
    models: tuple[str, ...]
    scale: str = "full"
    limit: int | None = None
    port: int = 8000
    llm: str = ""
    author: str = ""

    @property
    def retriever(self) -> str:
        """Address of the retriever."""
        return f"http://127.0.0.1:{self.port + 8}"

    @property
    def label(self) -> str:
        """Name of the table in file paths."""
        return self.table.replace("/", "-")

    @property
    def reports(self) -> str:
        """Folder of the report."""
        return f"report/{self.label}"

    def report(self) -> Command:
        """Return the command that writes the report."""
        argv = ["reproduce", self.table, "--models", ",".join(self.models), "--out", ".", "--report"]
        argv += ["--scale", self.scale] if self.scale != "full" else []
        argv += ["--limit", str(self.limit)] if self.limit else []
        argv += ["--llm", self.llm] if self.llm else []
        argv += ["--port", str(self.port)] if self.port != 8000 else []
        return Command(name=REPORT, argv=tuple(argv), outputs=(f"{self.reports}/report.md",))
