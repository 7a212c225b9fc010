"""The declared surface: members of `pyrag.extend`, and what the sample plug-in and its page import."""

from __future__ import annotations

import re
from pathlib import Path

import pyrag.extend

ROOT = Path(__file__).parent.parent
PUBLIC = {"pyrag", "pyrag.extend", "pyrag.trace", "pyrag.testing", "pyrag_sandbox"}
IMPORT = re.compile(r"^\s*(?:from|import) (pyrag[\w.]*)", re.MULTILINE)


def test_every_exported_member_can_be_imported() -> None:
    assert all(getattr(pyrag.extend, name) is not None for name in pyrag.extend.__all__)
    assert set(pyrag.extend.__all__) == set(pyrag.extend._HOMES)


def test_plugin_and_its_page_import_public_modules_only() -> None:
    files = [ROOT / "docs/extending.md", *(ROOT / "examples").rglob("*.py")]
    used = {name for path in files for name in IMPORT.findall(path.read_text(encoding="utf-8"))}
    assert {"pyrag", "pyrag.extend", "pyrag.testing"} <= used <= PUBLIC
