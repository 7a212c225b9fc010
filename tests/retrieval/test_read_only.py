"""An index where nothing can be written: a read-only mount, another user's folder, no folder for scratch files."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyrag.errors import DataError
from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag.retrieval.index import open_index, update_index
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.dense_part import DensePart

from .updating import records

ASK = """
import asyncio, sys
from pyrag.retrieval import open_retriever
from pyrag.retrieval.indexing.verify import verify_index
found = asyncio.run(open_retriever(sys.argv[1]).retrieve("word3", 2))
print(len(found), verify_index(sys.argv[1]).problems)
"""
mounts = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs to mount")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    update_index([records(tmp_path / "n", 2, 10)], tmp_path / "ix")
    return tmp_path / "ix"


def test_every_file_can_be_read_by_whom_the_umask_lets(index: Path) -> None:
    expected = stat.S_IMODE((index / "pyrag-index.json").stat().st_mode)
    files = [path for path in index.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {expected}


@mounts
def test_an_index_on_a_read_only_mount_is_asked(index: Path, tmp_path: Path) -> None:
    assert_asked_from_mount(index, tmp_path / "mount")


@mounts
def test_vectors_on_a_read_only_mount_are_asked(tmp_path: Path) -> None:
    dense = DensePart(open_embedder("bundled"))
    update_index([records(tmp_path / "n", 1, 10)], tmp_path / "ix", parts=(Bm25Part(), dense))
    dense.close()
    assert_asked_from_mount(tmp_path / "ix", tmp_path / "mount")


@contextmanager
def mounted(folder: Path, mount: Path) -> Iterator[None]:
    """Show the folder at `mount` too, where nothing can be written."""
    mount.mkdir()
    if subprocess.run(["mount", "--bind", folder, mount], capture_output=True).returncode:
        pytest.skip("may not mount")
    try:
        if subprocess.run(["mount", "-o", "remount,ro,bind", mount], capture_output=True).returncode:
            pytest.skip("may not mount read-only")
        yield
    finally:
        subprocess.run(["umount", "--lazy", mount], check=True)


def assert_asked_from_mount(index: Path, mount: Path) -> None:
    before = sorted(index.rglob("*"))
    with mounted(index, mount):
        with pytest.raises(OSError, match="Read-only file system"):
            (mount / "x").touch()
        done = subprocess.run([sys.executable, "-c", ASK, mount], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("2 ()\n", "")
    assert sorted(index.rglob("*")) == before


def without_privileges(*command: str | Path) -> list[str | Path]:
    """The command, run as a user whom permissions concern."""
    if os.geteuid():
        return list(command)
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner", *command]


def close(index: Path, mode: int) -> None:
    for path in (*index.rglob("*"), index):
        path.chmod(path.stat().st_mode & ~mode)


def test_an_index_without_permission_to_write_is_asked(index: Path) -> None:
    close(index, 0o222)
    try:
        done = subprocess.run(without_privileges(sys.executable, "-c", ASK, index), capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("2 ()\n", "")
    finally:
        subprocess.run(["chmod", "-R", "u+w", index], check=True)


def test_an_index_without_permission_to_read_is_not_called_damaged(index: Path) -> None:
    next(index.glob("gen-*/bm25/meta.json")).chmod(0)
    done = subprocess.run(without_privileges(sys.executable, "-c", ASK, index), capture_output=True, text=True)
    assert "meta.json cannot be read (Permission denied): check the permissions of the index" in done.stderr
    assert "damaged" not in done.stderr


def test_without_a_folder_for_scratch_files_memory_is_used(index: Path) -> None:
    close(index, 0o222)
    code = f"import tempfile; tempfile._candidate_tempdir_list = lambda: ['/nowhere']\n{ASK}"
    try:
        done = subprocess.run(without_privileges(sys.executable, "-c", code, index), capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("2 ()\n", "")
    finally:
        subprocess.run(["chmod", "-R", "u+w", index], check=True)


def test_a_damaged_index_is_still_called_damaged(index: Path) -> None:
    next(index.glob("gen-*/bm25/meta.json")).write_text("{")
    with pytest.raises(DataError, match="is damaged"):
        open_index(index)
