"""Execution of a plan, command by command, with the servers that each needs; it resumes where it was stopped.

reproduce.json     paper, scale and first port; a folder holds tables of one paper at one scale
done/NAME.json     arguments of a command that succeeded
logs/NAME.log      output of a command or server
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyrag._io.files import write_json
from pyrag._io.loopback import is_free, is_ready
from pyrag._io.processes import die_with_parent, end
from pyrag.errors import DataError, PyRAGError, ServiceError, UsageError
from pyrag.evaluation.runs.folder import locked, make_folder
from pyrag.reproduce.steps import REPORT, Command, ReproductionPlan, Service, servers_in_the_way

STATE = "reproduce.json"
_READY = 3600.0  # seconds within which a server must be ready, including the download of its model
_POLL = 0.2
_FREE = 20.0  # seconds within which a port must become free


class StepError(PyRAGError):
    """Failure of a step of a reproduction."""

    kind = "reproduction"


def saved_port(folder: Path, kind: str) -> int | None:
    """Return the first port of a folder's servers; None for a new folder.

    Args:
        folder: Folder of the reproduction.
        kind: Requested paper and scale, such as "opera at tiny scale".

    Raises:
        UsageError: The folder holds tables of another paper or scale.
        DataError: The state of the folder cannot be read.
    """
    try:
        state: dict[str, Any] = json.loads((folder / STATE).read_text(encoding="utf-8"))
        before, port = str(state["kind"]), int(state["port"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"cannot read {folder / STATE}: remove the file, or choose another folder with --out"
        ) from error
    if before != kind:
        raise UsageError(f"{folder} holds tables of {before}: choose another folder with --out for {kind}")
    return port


def free_port() -> int:
    """Return a free port of the loopback address whose eighth successor is free, too."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            if port + 8 < 65536 and is_free(port + 8):
                return port


def run_plan(plan: ReproductionPlan, folder: Path, kind: str, port: int, say: Callable[[str], None]) -> None:
    """Run the commands of a plan that are not yet done.

    Args:
        plan: The plan.
        folder: Folder of the reproduction; an existing one is continued.
        kind: Paper and scale of the plan, recorded in the folder.
        port: First port, recorded in the folder.
        say: Called with one line at a time.

    Raises:
        StepError: A command failed.
        ServiceError: A server did not start.
        UsageError: Another process is using the folder.
    """
    for name in ("done", "logs"):
        make_folder(folder / name)
    with locked(folder), ExitStack() as stack:
        write_json(folder / STATE, {"kind": kind, "port": port})
        servers = _Servers(plan.services, folder, say)
        stack.callback(servers.stop_all)
        for number, command in enumerate(plan.commands):
            place = f"[{number + 1}/{len(plan.commands)}] {command.name}"
            if _is_done(command, folder):
                say(f"{place}: done before")
                continue
            servers.prepare(command)
            say(f"{place}: {command.line}")
            started = time.monotonic()
            _run(command, folder)
            say(f"{place}: {time.monotonic() - started:.0f} s")
            servers.stop_unneeded(plan.commands[number + 1 :])


def _is_done(command: Command, folder: Path) -> bool:
    try:
        words = json.loads(_marker(command, folder).read_text(encoding="utf-8"))["argv"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return (
        command.name != REPORT
        and words == [*command.argv]
        and all((folder / output).exists() for output in command.outputs)
    )


def _marker(command: Command, folder: Path) -> Path:
    return folder / "done" / f"{command.name}.json"


def _run(command: Command, folder: Path) -> None:
    log = folder / "logs" / f"{command.name}.log"
    with _started(command, folder, log) as process:
        code = process.wait()
    again = "mend the cause and run the same command again, which continues with this step"
    if code:
        raise StepError(f"step {command.name} ended with code {code}: {_last_line(log)} (all of it: {log}); {again}")
    if missing := [output for output in command.outputs if not (folder / output).exists()]:
        raise StepError(f"step {command.name} left no {missing[0]}: read {log}; {again}")
    write_json(_marker(command, folder), {"argv": command.argv})


@contextlib.contextmanager
def _started(step: Command | Service, folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a pyrag command in the folder; stop it and its children when the block ends."""
    gpus = step.visible if isinstance(step, Command) else step.gpus
    paths = [path for path in sys.path if path and Path(path).is_dir()]  # so that it imports the same pyrag
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    with log.open("ab") as file:
        file.write(f"$ {step.line}\n".encode())
        file.flush()
        process = subprocess.Popen(  # noqa: S603  our own command
            [sys.executable, "-m", "pyrag", *step.argv],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    try:
        yield process
    finally:
        end(process, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def _last_line(log: Path) -> str:
    with contextlib.suppress(OSError):
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if lines and not lines[-1].startswith("$ "):
            return lines[-1].strip()[:300]
    return "it printed nothing"


class _Servers:
    """Running servers. A server is stopped if a step needs its GPUs or port, or if no step needs it any more."""

    def __init__(self, known: dict[str, Service], folder: Path, say: Callable[[str], None]) -> None:
        self.known, self.folder, self.say = known, folder, say
        self.running: dict[str, tuple[subprocess.Popen[bytes], ExitStack]] = {}

    def prepare(self, command: Command) -> None:
        for name in servers_in_the_way(self.running, command, self.known):
            self._stop(name)
        for service in [self.known[name] for name in command.services]:
            if service.name in self.running and self.running[service.name][0].poll() is not None:
                self._stop(service.name)
            if service.name not in self.running:
                self._start(service)

    def stop_unneeded(self, ahead: tuple[Command, ...]) -> None:
        needed = {name for command in ahead if not _is_done(command, self.folder) for name in command.services}
        for name in self.running.keys() - needed:
            self._stop(name)

    def stop_all(self) -> None:
        for name in [*self.running]:
            self._stop(name)

    def _start(self, service: Service) -> None:
        until = time.monotonic() + _FREE
        while not is_free(service.port):
            if time.monotonic() > until:
                raise ServiceError(
                    f"port {service.port}, which {service.name} is to have, is taken by another process: end that, or "
                    "pass another --port",
                    service=service.name,
                )
            time.sleep(_POLL)
        log = self.folder / "logs" / f"{service.name}.log"
        stack = ExitStack()
        process = stack.enter_context(_started(service, self.folder, log))
        self.running[service.name] = process, stack
        self.say(f"server {service.name}: {service.line}")
        self._await(service, process, log)

    def _await(self, service: Service, process: subprocess.Popen[bytes], log: Path) -> None:
        until = time.monotonic() + _READY
        while process.poll() is None and time.monotonic() < until:
            if is_ready(service.health):
                return
            time.sleep(_POLL)
        raise ServiceError(
            f"the server {service.name} did not start: {_last_line(log)} (all of it: {log}); mend the cause and run "
            "the same command again",
            service=service.name,
        )

    def _stop(self, name: str) -> None:
        self.running.pop(name)[1].close()
        self.say(f"server {name}: stopped")
