"""The real command line in a process of its own (see `tests.warm`), in an empty folder, without the user's settings."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import warm

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = [sys.executable, "-m", "pyrag"]
_AT_START = ("PYTHON", "LC_", "LANG")  # variables that Python reads when it starts


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
    sent = b""
    with ThreadPoolExecutor(1) as pool:
        command = [*COMMAND[1:], *arguments]
        ended = pool.submit(warm.request, warm.address(), command, str(folder), variables, [child] * 3, 60)
        ended.add_done_callback(lambda _: os.close(child))
        try:
            while chunk := os.read(parent, 65536):
                sent += chunk
        except OSError:
            pass  # a pseudo-terminal whose process has ended
    os.close(parent)
    return Shown(sent.decode(), ended.result())


def pyrag_in(folder: Path) -> Run:
    def run(*arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        variables = environment(**env)
        if not any(name.startswith(_AT_START) for name in env):
            return warm.run([*COMMAND[1:], *arguments], folder, variables, stdin)
        command = [*COMMAND, *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, cwd=folder, env=variables, timeout=60
        )

    return run
