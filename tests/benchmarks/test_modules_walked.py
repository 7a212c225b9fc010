"""Counts of the modules that run for a question or an update of an index."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("name", "package"), [("question", "pyrag.episode"), ("update", "pyrag.retrieval")])
def test_walk_counts_the_modules_that_run(name: str, package: str) -> None:
    command = [sys.executable, "-m", "benchmarks.modules_walked", name]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts = re.match(rf"{name}: (\d+) modules, (\d+) edges\n", shown)
    assert counts is not None, shown
    assert int(counts[2]) >= int(counts[1]) >= 10
    assert int(counts[1]) == sum(map(int, re.findall(r"^  [\w.]+: (\d+)$", shown, re.MULTILINE)))
    assert f"  {package}: " in shown
    assert "pyrag.cli" not in shown
