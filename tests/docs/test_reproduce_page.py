"""docs/reproduce.md has the needs that `pyrag reproduce list` computes."""

from __future__ import annotations

from .blocks import ROOT
from .needs_table import table


def test_the_table_of_needs_is_the_computed_one() -> None:
    run = "run python -m tests.docs.needs_table and paste what it prints into docs/reproduce.md"
    assert table() in (ROOT / "docs/reproduce.md").read_text(encoding="utf-8"), run
