"""The real command line in a process of its own, in an empty folder, with nothing of the user's settings."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = [sys.executable, "-m", "pyrag"]


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYRAG_", "OPENAI_"))}
    root = Path(__file__).parent.parent.parent
    paths = [str(root), *(str(root / one) for one in ("sandbox", "rl", "prompts"))]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200", **more}


@pytest.fixture
def pyrag(tmp_path: Path) -> Run:
    return pyrag_in(tmp_path)


@dataclass(frozen=True)
class Shown:
    """What a terminal was sent, stdout and stderr together."""

    text: str
    code: int


def in_terminal(folder: Path, *arguments: str, columns: int = 80, **env: str) -> Shown:
    """The command line on a pseudo-terminal of so many columns."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {"TERM": "xterm", **environment(), **env}
    del variables["COLUMNS"]
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=child, stdout=child, stderr=child, cwd=folder, env=variables
    )
    os.close(child)
    sent = b""
    try:
        while chunk := os.read(parent, 65536):
            sent += chunk
    except OSError:
        pass  # a pseudo-terminal whose process has ended
    os.close(parent)
    return Shown(sent.decode(), process.wait(timeout=60))


def pyrag_in(folder: Path) -> Run:
    def run(*arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment(**env),
            timeout=60,
        )

    return run
