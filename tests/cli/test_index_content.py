"""What an index holds: other folders are added or refused, spellings of a path are one path, files can be removed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from pyrag.retrieval.index import update_index
from pyrag.retrieval.indexing import update

from .conftest import Run


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for name, text in (("notes/a", "The mill was founded by Ann."), ("notes/b", "A zebra."), ("more/c", "An otter.")):
        path = tmp_path / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {path.stem}\n{text}\n")
    return tmp_path


def files(pyrag: Run) -> dict[str, int]:
    listed = json.loads(pyrag("index", "list", "ix", "--json").stdout)["files"]
    return {one["file"]: one["passages"] for one in listed}


def test_another_folder_is_refused_and_nothing_is_lost(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes", "--out", "ix")
    before = (notes / "ix/pyrag-index.json").read_bytes()
    for paths in (["more"], ["more/c.md"], ["notes/a.md"], ["more", "--rebuild"]):
        done = pyrag("index", *paths, "--out", "ix")
        assert done.returncode == 2
        assert f"the index ix was built from notes, and {paths[0]} is not among them" in done.stderr
        assert "--add" in done.stderr
        assert "--replace" in done.stderr
    assert (notes / "ix/pyrag-index.json").read_bytes() == before
    assert pyrag("index", "more", "--out", "ix", "--add", "--replace").returncode == 2


def test_add_keeps_and_replace_drops_what_was_there(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes", "--out", "ix")
    done = pyrag("index", "more", "--out", "ix", "--add")
    assert (done.returncode, done.stderr) == (0, "")
    assert files(pyrag) == {"more/c.md": 1, "notes/a.md": 1, "notes/b.md": 1}
    (notes / "notes/a.md").write_text("# a\nThe mill is gone.\n")
    pyrag("index", "more", "--out", "ix", "--add")  # an update of all
    assert "The mill is gone." in pyrag("index", "search", "ix", "mill").stdout
    done = pyrag("index", "notes", "--out", "ix")  # one of the paths: an update
    assert done.stderr == "no longer in the index: more/c.md\n"
    done = pyrag("index", "more", "--out", "ix", "--replace", "--json")
    assert json.loads(done.stdout)["removed_files"] == [
        {"file": "notes/a.md", "passages": 1}, {"file": "notes/b.md", "passages": 1},
    ]  # fmt: skip
    assert files(pyrag) == {"more/c.md": 1}
    assert pyrag("index", "notes", "more", "--out", "ix").returncode == 0
    assert len(files(pyrag)) == 3


def test_a_folder_around_the_old_one_is_an_update(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes/a.md", "--out", "ix")
    assert pyrag("index", "notes", "--out", "ix").returncode == 0
    assert files(pyrag) == {"notes/a.md": 1, "notes/b.md": 1}


def test_add_without_the_old_folder_says_what_to_do(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes", "--out", "ix")
    (notes / "notes").rename(notes / "elsewhere")
    done = pyrag("index", "more", "--out", "ix", "--add")
    assert done.returncode == 2
    assert "notes, which the index holds, does not exist: remove it with pyrag index remove" in done.stderr
    assert pyrag("index", "remove", "ix", "notes").returncode == 0
    assert pyrag("index", "more", "--out", "ix").returncode == 0


SPELLINGS = [
    "notes", "./notes", "notes/", "notes/.", "more/../notes", "{here}/notes", "{here}/more/../notes/", "link/notes",
]  # fmt: skip


@pytest.mark.parametrize("first", ["notes", "{here}/notes", "link/notes"])
def test_another_spelling_of_a_path_changes_nothing(notes: Path, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "RACY", -1)  # the files are young
    monkeypatch.chdir(notes)
    (notes / "link").symlink_to(notes)
    built = update_index([first.format(here=notes)], "ix")
    for spelling in SPELLINGS:
        again = update_index([spelling.format(here=notes)], "ix", replace=False)
        assert (again.info, again.files_read) == (built.info, 0), spelling
    once = update_index(["notes/a.md", f"{notes}/notes/a.md", "notes/../notes/a.md"], "other")
    assert once.info.sources == ("notes/a.md",)


def test_a_spelling_on_the_command_line_changes_nothing(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes", "--out", "ix")
    done = pyrag("index", f"{notes}/more/../notes/", "--out", "ix")
    assert done.stdout.startswith("2 passages in ix (0 added, 0 changed, 0 removed; ")
    assert files(pyrag) == {"notes/a.md": 1, "notes/b.md": 1}


def test_spellings_from_another_folder_change_nothing(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(notes)
    monkeypatch.setattr(update, "RACY", -1)
    first = update_index(["notes", "more/*.md"], "ix")
    monkeypatch.chdir(notes / "more")
    again = update_index(["../notes", "*.md"], "../ix", replace=False)
    assert (again.info, again.added, again.changed, again.removed) == (first.info, 0, 0, 0)
    (notes / "notes/new.md").write_text("# new\nA lion.\n")
    added = update_index(["../notes", "*.md"], "../ix", replace=False)
    assert (added.added, added.changed, added.removed) == (1, 0, 0)
    assert added.info.sources == ("notes", "more/*.md")


def test_remove_and_name_again(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes", "more", "--out", "ix")
    (notes / "notes/new.md").write_text("# new\nA lion.\n")
    done = pyrag("index", "remove", "ix", f"{notes}/notes/b.md")
    assert done.stdout.startswith("2 passages in ix (0 added, 0 changed, 1 removed; ")  # and nothing else happened
    assert done.stderr == "no longer in the index: notes/b.md\n"
    assert pyrag("index", "search", "ix", "zebra").stderr == "nothing found\n"
    done = pyrag("index", "notes", "more", "--out", "ix")
    assert "left out, since pyrag index remove took it away: name it to index it again: notes/b.md" in done.stderr
    assert set(files(pyrag)) == {"more/c.md", "notes/a.md", "notes/new.md"}
    pyrag("index", "notes", "more", "notes/b.md", "--out", "ix")
    assert "notes/b.md" in files(pyrag)
    done = pyrag("index", "remove", "ix", "notes", "nothing.md")
    assert done.returncode == 2
    assert "nothing.md is not in the index ix: pyrag index list ix shows what is" in done.stderr
    assert len(files(pyrag)) == 4
    pyrag("index", "remove", "ix", "notes")
    assert set(files(pyrag)) == {"more/c.md"}
    assert pyrag("index", "verify", "ix").returncode == 0


def test_the_last_file_leaves_an_empty_index(pyrag: Run, notes: Path) -> None:
    pyrag("index", "notes", "--out", "ix", "--dense")
    (notes / "notes/a.md").unlink()
    assert pyrag("index", "remove", "ix", "notes/a.md", "notes/b.md").returncode == 0
    assert files(pyrag) == {}
    assert "ix is empty" in pyrag("index", "list", "ix").stderr
    assert pyrag("index", "search", "ix", "zebra").stderr == "nothing found\n"
    assert pyrag("ask", "Who founded the mill?", "--index", "ix").stdout == "unknown\n"
    assert pyrag("index", "verify", "ix").returncode == 0
    assert "0 passages of 0 files" in pyrag("index", "info", "ix").stdout
    assert pyrag("index", "more", "--out", "ix", "--add").returncode == 0
    assert set(files(pyrag)) == {"more/c.md"}


def test_what_two_files_share_stays_with_the_other(pyrag: Run, notes: Path) -> None:
    line = '{"id": "z", "text": "A heron."}\n'
    (notes / "notes/x.jsonl").write_text(line)
    (notes / "more/y.jsonl").write_text(line)
    pyrag("index", "notes", "more", "--out", "ix")
    pyrag("index", "remove", "ix", "more/y.jsonl")
    assert "A heron." in pyrag("index", "search", "ix", "heron").stdout
    assert files(pyrag)["notes/x.jsonl"] == 1
    pyrag("index", "remove", "ix", "notes/x.jsonl")
    assert pyrag("index", "search", "ix", "heron").stderr == "nothing found\n"
    assert pyrag("index", "verify", "ix").returncode == 0


def test_list_prints_files_with_their_passages(pyrag: Run, notes: Path) -> None:
    (notes / "notes/many.jsonl").write_text("".join(f'{{"text": "word{n}"}}\n' for n in range(12)))
    pyrag("index", "notes", "--out", "ix")
    done = pyrag("index", "list", "ix")
    assert done.stdout == " 1  notes/a.md\n 1  notes/b.md\n12  notes/many.jsonl\n"
    assert pyrag("index", "list", "more").returncode == 2
    assert pyrag("index", "remove", "more", "x").returncode == 2
    assert pyrag("index", "remove", "nowhere", "x").returncode == 2
    assert not list(notes.glob(".nowhere*"))


def test_a_filter_that_finds_nothing_is_explained(pyrag: Run, notes: Path) -> None:
    (notes / "notes/m.jsonl").write_text('{"text": "The mill was founded by Ann Lee.", "team": "ops", "year": 1999}\n')
    pyrag("index", "notes", "--out", "ix")
    for where, says in (("taem = 'ops'", "did you mean 'team'?"), ("year = '1999'", "write 1999 without quotes")):
        assert says in pyrag("index", "search", "ix", "mill", "--where", where).stderr
        done = pyrag("ask", "Who founded the mill?", "--index", "ix", "--where", where)
        assert (done.returncode, done.stdout) == (0, "unknown\n")
        assert says in done.stderr
        reply = json.loads(pyrag("ask", "Who founded the mill?", "--index", "ix", "--where", where, "--json").stdout)
        assert any(says in warning for warning in reply["warnings"])
    done = pyrag("ask", "Who founded the mill?", "--index", "ix", "--where", "year = 1999")
    assert (done.stdout, done.stderr) == ("Ann Lee\n", "")


def test_the_language_is_taken_shown_and_explained(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Das Haus ist alt und steht in der Stadt, und der Müller ist nicht da.")
    detected = "language: german (detected); the embedded engine answers in English only, so name a language model"
    assert detected in pyrag("index", "a.txt", "--out", "ix").stderr
    assert detected in pyrag("index", "info", "ix").stdout
    assert json.loads(pyrag("index", "info", "ix", "--json").stdout)["language"] == "german"
    assert "a.txt" in pyrag("index", "search", "ix", "Häuser").stdout
    assert pyrag("index", "a.txt", "--out", "ix", "--language", "English").stderr == ""
    assert pyrag("index", "a.txt", "--out", "ix").stderr == ""  # it stays
    assert "language: english\n" in pyrag("index", "info", "ix").stdout
    assert detected in pyrag("index", "a.txt", "--out", "ix", "--language", "auto").stderr
    wrong = pyrag("index", "a.txt", "--out", "ix", "--language", "klingon")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "--language does not support 'klingon': choose arabic, chinese, " in wrong.stderr


def test_filters_select_documents_by_their_author(tmp_path: Path, pyrag: Run) -> None:
    (tmp_path / "docs").mkdir()
    for name, author in (("a", "Ines Vidal"), ("b", "Per Aune")):
        with zipfile.ZipFile(tmp_path / f"docs/{name}.docx", "w") as archive:
            space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
            text = "<w:p><w:r><w:t>The weir was dredged.</w:t></w:r></w:p>"
            archive.writestr("word/document.xml", f"<w:document xmlns:w='{space}'><w:body>{text}</w:body></w:document>")
            creator = f"<dc:creator xmlns:dc='http://purl.org/dc/elements/1.1/'>{author}</dc:creator>"
            archive.writestr("docProps/core.xml", f"<coreProperties>{creator}</coreProperties>")
    index = str(tmp_path / "ix")
    assert pyrag("index", str(tmp_path / "docs"), "--out", index).stdout.startswith("2 passages")
    hits = pyrag("index", "search", index, "weir", "--where", 'author = "Ines Vidal"', "--json").stdout
    assert [hit["source"].rpartition("/")[2] for hit in json.loads(hits)] == ["a.docx"]
    assert "author (2)" in pyrag("index", "info", index).stdout
