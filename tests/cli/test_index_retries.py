"""Files that could not be read are tried again when a reader is installed or mended, and at no other time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .conftest import Run, environment

MAIL = """From: Ann <ann@x.example>
Subject: Plans
Content-Type: multipart/mixed; boundary="b"

--b

The otter mill.
--b
Content-Disposition: attachment; filename="plan.blot"

kiln
--b--
"""


def install(folder: Path, version: str, body: str) -> str:
    """Write a package that reads `.blot` files; return the module path with it."""
    info = folder / "blot_reader.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: blot-reader\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[pyrag.documents]\nblot = blot_reader:read\n")
    (folder / "blot_reader.py").write_text(f"def read(data, name):\n    {body}\n")
    return os.pathsep.join((str(folder), environment()["PYTHONPATH"]))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("The heron weir.")
    (folder / "b.blot").write_text("zebra")
    for path in folder.iterdir():
        os.utime(path, (1_600_000_000, 1_600_000_000))
    return folder


def index(pyrag: Run, *options: str, **env: str) -> dict[str, int]:
    done = pyrag("index", "notes", "--out", "ix", "--json", *options, **env)
    assert done.returncode == 0, done.stderr
    built = json.loads(done.stdout)
    return {"passages": built["passages"], "left_out": len(built["left_out"]), "added": built["added"]}


def test_a_refused_file_is_read_when_its_reader_is_mended(pyrag: Run, notes: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    broken = f"open({str(calls)!r}, 'a').write('x'); raise ValueError('no')"
    path = install(tmp_path / "package", "1.0", broken)
    assert index(pyrag, PYTHONPATH=path) == {"passages": 1, "left_out": 1, "added": 1}
    index(pyrag, PYTHONPATH=path)
    assert calls.read_text() == "x"  # the same reader does not try again
    index(pyrag, "--verify", PYTHONPATH=path)
    assert calls.read_text() == "xx"
    install(tmp_path / "package", "1.1", "return data.decode()")
    assert index(pyrag, PYTHONPATH=path) == {"passages": 2, "left_out": 0, "added": 1}
    assert "zebra" in pyrag("index", "search", "ix", "zebra", PYTHONPATH=path).stdout


def test_an_attachment_is_read_when_its_reader_is_installed(pyrag: Run, notes: Path, tmp_path: Path) -> None:
    (notes / "b.blot").unlink()
    (notes / "c.eml").write_text(MAIL)
    os.utime(notes / "c.eml", (1_600_000_000, 1_600_000_000))
    assert index(pyrag)["passages"] == 2
    assert index(pyrag)["added"] == 0
    assert "the attachment 'plan.blot' is left out" in pyrag("index", "info", "ix").stderr
    path = install(tmp_path / "package", "1.0", "return 'A ' + data.decode()")
    assert index(pyrag, PYTHONPATH=path) == {"passages": 3, "left_out": 0, "added": 1}
    assert "plan.blot" not in pyrag("index", "info", "ix", PYTHONPATH=path).stderr
