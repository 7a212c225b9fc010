"""The real command line in a process of its own, in an empty folder, with nothing of the user's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
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
