"""`pyrag index` and its commands, as a person types them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from pyrag.cli.index.work import line
from pyrag.retrieval.indexing.update import IndexProgress

from .conftest import COMMAND, Run, environment


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Mill\nThe mill was founded by Ann.\n")
    (folder / "b.jsonl").write_text('{"id": "z", "title": "Zoo", "text": "A zebra."}\n')
    return folder


def test_build_update_and_rebuild(pyrag: Run, notes: Path) -> None:
    done = pyrag("index", "notes/", "--out", "ix")
    assert done.stdout.startswith("2 passages in ix (2 added, 0 changed, 0 removed; ")
    assert (done.returncode, done.stderr) == (0, "")
    (notes / "bad.txt").write_bytes(b"\xff")
    (notes / "a.md").unlink()
    done = pyrag("index", "--out", "ix", "notes", "--json")
    told = json.loads(done.stdout)
    assert (told["passages"], told["added"], told["removed"], told["files"]) == (1, 0, 1, 1)
    assert [one["file"] for one in told["left_out"]] == ["notes/bad.txt"]
    done = pyrag("index", "build", "notes", "-o", "ix", "--rebuild")
    assert done.stdout.startswith("1 passage in ix (1 added")
    assert done.stderr.startswith("left out 1 file:\n  notes/bad.txt line 1: not UTF-8")


def test_info(pyrag: Run, notes: Path) -> None:
    (notes / "bad.txt").write_bytes(b"\xff")
    pyrag("index", "notes", "--out", "ix")
    done = pyrag("index", "info", "ix")
    assert "ix: bm25, 2 passages of 2 files, built 20" in done.stdout
    assert "notes/bad.txt line 1: not UTF-8" in done.stderr
    told = json.loads(pyrag("index", "info", "ix", "--json").stdout)
    assert (told["kind"], told["passages"], told["sources"], list(told["parts"])) == ("bm25", 2, ["notes"], ["bm25"])
    assert told["left_out"][0]["file"] == "notes/bad.txt"


def test_search_names_the_place(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes", "--out", "ix")
    done = pyrag("index", "search", "ix", "who founded the mill", "--topk", "1")
    assert done.stdout.startswith("1. Mill (")
    assert done.stdout.endswith(" notes/a.md:7-35\n   The mill was founded by Ann.\n")
    (found,) = json.loads(pyrag("index", "search", "ix", "zebra", "--json").stdout)
    assert (found["id"], found["start"], found["end"]) == ("z", 0, 47)
    assert pyrag("index", "search", "ix", "xyzzy").stderr == "nothing found\n"


def test_a_citation_opens_the_exact_place(pyrag: Run, notes: Path, tmp_path: Path) -> None:
    (notes / "mill.md").write_text(
        "# Harrow\n\nÉire apart.\n\n## Founding\n\nHarrow Mill was founded by Edda Brandt.\n"
    )
    assert pyrag("index", "notes", "--out", "ix").returncode == 0
    (cited,) = json.loads(pyrag("ask", "Who founded Harrow Mill?", "--index", "ix", "--json").stdout)["citations"]
    assert (tmp_path / cited["source"]).read_text()[cited["start"] : cited["end"]] == cited["text"]
    assert "Edda Brandt" in cited["text"]


@pytest.mark.slow
def test_dense_needs_nothing_but_the_package(pyrag: Run, notes: Path) -> None:
    (notes / "c.jsonl").write_text('{"id": "s", "title": "Sea Lion", "text": "Its vessel was wrecked by Bo Ray."}\n')
    assert pyrag("index", "notes", "--out", "ix", "--dense").returncode == 0
    told = json.loads(pyrag("index", "info", "ix", "--json").stdout)
    assert (told["kind"], told["embedder"], told["passages"]) == ("hybrid", "bundled", 3)
    (best, *_) = json.loads(pyrag("index", "search", "ix", "a ship that sank", "--json").stdout)
    assert (best["id"], set(best["parts"])) == ("s", {"dense"})  # no word in common
    assert pyrag("ask", "Who founded the mill?", "--index", "ix").stdout == "Ann\n"
    (notes / "d.txt").write_text("A dam.")  # an update keeps the vectors
    assert pyrag("index", "notes", "--out", "ix").returncode == 0
    assert "in the records and in bm25, vectors" in pyrag("index", "verify", "ix").stdout


@pytest.mark.parametrize(
    "name", [pytest.param("pyrag-index.json", marks=pytest.mark.slow), "gen-*/vectors/vectors.json"]
)
def test_damage_costs_no_index_its_vectors(pyrag: Run, notes: Path, tmp_path: Path, name: str) -> None:
    pyrag("index", "notes", "--out", "ix", "--dense")
    next((tmp_path / "ix").glob(name)).write_text("{")
    assert pyrag("ask", "Who founded the mill?", "--index", "ix").returncode == 2
    assert pyrag("index", "notes", "--out", "ix").returncode == 0
    assert json.loads(pyrag("index", "info", "ix", "--json").stdout)["kind"] == "hybrid"
    assert pyrag("index", "verify", "ix").returncode == 0


@pytest.mark.slow
def test_shards_and_types_are_options_and_stay(pyrag: Run, notes: Path) -> None:
    assert pyrag("index", "notes", "--out", "ix", "--dense", "--shards", "2", "--type", "SQ8").returncode == 0
    for _ in range(2):
        told = json.loads(pyrag("index", "info", "ix", "--json").stdout)["vectors"]
        assert (told["shards"], told["type"], {one["type"] for one in told["segments"]}) == (2, "SQ8", {"SQ8"})
        assert "1 x SQ8" in (shown := pyrag("index", "info", "ix").stdout) or "2 x SQ8" in shown
        (notes / "b.jsonl").write_text('{"id": "z", "title": "Zoo", "text": "A lion."}\n')
        assert pyrag("index", "notes", "--out", "ix").returncode == 0
    assert pyrag("index", "verify", "ix").returncode == 0


@pytest.mark.slow
def test_a_recall_that_is_not_reached_is_said(pyrag: Run, notes: Path) -> None:
    lines = (
        json.dumps({"id": str(n), "title": f"Mill {n}", "text": f"Mill {n} has {n * n} sails."}) for n in range(300)
    )
    (notes / "c.jsonl").write_text("\n".join(lines))
    built = pyrag("index", "notes", "--out", "ix", "--dense", "--type", "PQ4x8", "--recall", "0.99")
    assert built.returncode == 0
    says = r"reaches a recall of 0\.\d+, not 0\.99: name another --type or auto\n"
    assert re.search(says, built.stderr)
    assert re.search(says, pyrag("index", "info", "ix").stdout)
    assert "name another" not in pyrag("index", "notes", "--out", "ix", "--type", "auto").stderr


def test_verify(pyrag: Run, notes: Path, tmp_path: Path) -> None:
    pyrag("index", "notes", "--out", "ix")
    done = pyrag("index", "verify", "ix")
    assert (done.returncode, done.stdout) == (0, "ok   2 passages, in the records and in bm25\n")
    next((tmp_path / "ix").glob("gen-*/bm25/*.store")).write_bytes(b"x")
    done = pyrag("index", "verify", "ix")
    assert done.returncode == 1
    assert "FAIL bm25/" in done.stdout
    assert "build it again with pyrag index PATH... --out ix --rebuild" in done.stderr
    done = pyrag("index", "verify", "ix", "--json")
    assert (done.returncode, bool(json.loads(done.stdout)["problems"])) == (1, True)


def test_columns(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,body\nMill,founded by Ann\n")
    done = pyrag("index", "t.csv", "--out", "ix")
    assert done.returncode == 2
    assert "t.csv has no column 'text'" in done.stderr
    pyrag("index", "t.csv", "--out", "ix", "--text-column", "body", "--title-column", "name")
    assert "1. Mill" in pyrag("index", "search", "ix", "Ann").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("index", "notes", "--out", "ix", "--shards", "2"), 2, "--shards is about vectors, and this index has none"),
        (("index", "nothing", "--out", "ix"), 2, "pyrag: nothing does not exist: check the path"),
        (("index", "notes"), 2, "missing option '--out'"),
        (("index", "info", "notes"), 2, "pyrag: notes is not a pyrag index"),
        (("index", "verify", "no"), 2, "pyrag: there is no index at no: build one"),
        (("index", "search", "notes", "x"), 2, "is not a pyrag index"),
        (("index", "notes", "--out", "ix", "--dense", "--embedder", "st:x"), 2, "--dense means --embedder bundled"),
        (("index", "notes", "--out", "notes"), 2, "holds files that are not a pyrag index"),
        (("serve-retriever", "no"), 2, "pyrag: there is no index at no"),
        (("serve-retriever", "no", "--where", "team ="), 2, "pyrag: "),
    ],
)
def test_what_cannot_be_done(pyrag: Run, notes: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = pyrag(*arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_named_like_a_command(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "info").mkdir()
    (tmp_path / "info/a.txt").write_text("A zebra.")
    assert pyrag("index", "./info", "--out", "ix").returncode == 0


def test_help_lists_the_commands(pyrag: Run) -> None:
    done = pyrag("index", "--help")
    assert all(word in done.stdout for word in ("build", "info", "search", "verify", "pyrag index PATH... --out DIR"))
    assert "--text-column" in pyrag("index", "build", "--help").stdout


def test_progress_on_a_terminal(notes: Path, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    command = [*COMMAND, "index", "notes", "--out", "ix"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=terminal) as process:
        assert process.wait(60) == 0
    os.close(terminal)
    shown = os.read(controller, 10_000).decode()
    os.close(controller)
    assert re.search(r"\d passages?, ", shown)
    assert shown.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (IndexProgress(1000, 250, 1000, 10.0, "f"), "1000 passages, 100/s, 25 %, 30 s left"),
        (IndexProgress(1000, 1, 1000, 1.0, "f"), "1000 passages, 1000/s, 0 %, 17 min left"),
        (IndexProgress(1000, 1, 100_000, 1.0, "f"), "1000 passages, 1000/s, 0 %, 27.8 h left"),
        (IndexProgress(0, 0, 10, 0.0, "f"), "0 passages, 0/s"),
    ],
)
def test_rate_and_time_left(progress: IndexProgress, words: str) -> None:
    assert line(progress) == words


def test_encodings_and_whole_rows_are_said(pyrag: Run, tmp_path: Path) -> None:
    notes = tmp_path / "n"
    notes.mkdir()
    (notes / "a.txt").write_bytes("Jürgen Möller baute die Mühle.".encode("cp1252"))
    (notes / "staff.csv").write_text("name,town\nAnn Lee,Ystad\n")
    done = pyrag("index", "n", "--out", "ix")
    assert "n/a.txt line 1: not UTF-8" in done.stderr
    assert "no column 'text', so every row was taken whole: n/staff.csv" in done.stderr
    done = pyrag("index", "n", "--out", "ix", "--encoding", "auto")
    assert (done.returncode, "read as windows-1252: n/a.txt" in done.stderr) == (0, True)
    assert "Jürgen Möller" in pyrag("index", "search", "ix", "Mühle").stdout
    told = json.loads(pyrag("index", "n", "--out", "ix", "--encoding", "latin-1", "--json").stdout)
    assert {"file": "n/a.txt", "remark": "read as iso8859-1"} in told["remarks"]
    done = pyrag("index", "n", "--out", "ix", "--encoding", "klingon")
    assert (done.returncode, "there is no encoding 'klingon'" in done.stderr) == (2, True)


def test_links_out_are_left_out_unless_told(pyrag: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "p.txt").write_text("A secret cellar.")
    (notes / "etc").symlink_to(tmp_path / "private")
    done = pyrag("index", "notes", "--out", "ix")
    assert "notes/etc leads out of the folder" in done.stderr
    assert "cellar" not in pyrag("index", "search", "ix", "cellar").stdout
    assert pyrag("index", "notes", "--out", "ix", "--follow-links").stderr == ""
    assert "cellar" in pyrag("index", "search", "ix", "cellar").stdout
