"""The Python examples of README and docs/python.md run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/python.md"))
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number: int, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", EXAMPLES[number]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"print\(.*?\)  # (.+)", EXAMPLES[number])
    assert expected == done.stdout.splitlines()[: len(expected)]
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4
