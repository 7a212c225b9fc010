"""Updates of an index: any history ends where a fresh build does."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pyrag.retrieval.documents.model import Columns
from pyrag.retrieval.index import read_info, update_index
from pyrag.retrieval.indexing import bm25_part, update
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.verify import verify_index

from .updating import Recording, assert_like_fresh, content, records, results


@pytest.fixture(autouse=True)
def trusted_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of tests are young, and would all be compared by content."""
    monkeypatch.setattr(update, "RACY", -1)


@pytest.fixture
def real_times(trusted_times: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "RACY", 2_000_000_000)


def test_what_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n"), tmp_path / "ix"
    first = update_index([folder], index)
    assert (first.added, first.files_read, first.info.files) == (300, 6, 6)
    assert update_index([folder], index).info == first.info  # not even another generation
    (folder / "0.jsonl").write_text((folder / "0.jsonl").read_text().replace("word7 ", "word8 "))
    (folder / "1.jsonl").unlink()
    (folder / "new.md").write_text("# New\nA zebra.")
    second = update_index([folder], index)
    assert (second.added, second.removed, second.files_read) == (1, 50, 2)
    assert second.changed == 1
    assert_like_fresh(index, [folder], tmp_path / "fresh")


def test_moved_passages_reach_parts_that_keep_places(tmp_path: Path) -> None:
    folder, index = tmp_path / "n", tmp_path / "ix"
    folder.mkdir()
    (folder / "a.md").write_text("# A\nOne zebra.\n\n# B\nTwo lions.\n")
    part = Recording()
    update_index([folder], index, parts=(Bm25Part(), part))
    (folder / "a.md").write_text("# A\nOne zebra!\n\n\n# B\nTwo lions.\n")
    part.calls.clear()
    built = update_index([folder], index, parts=(Bm25Part(), part))
    assert (built.added, built.changed, built.removed) == (1, 1, 1)  # A has another text, so another id; B moved
    assert [(what, len(ids)) for what, ids in part.calls] == [("add", 1), ("delete", 1)]
    lions = next(one for one in content(index) if "lions" in one.text)
    assert (folder / "a.md").read_text()[lions.start : lions.end] == "Two lions."


Step = tuple[str, str, list[str]]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a.md", "b.md", "x/a.md", "y/a.md", "r.jsonl", "s.jsonl"]),
        st.sampled_from(["write", "write", "write", "remove", "break"]),
        st.lists(st.sampled_from(["zebra one", "lion two", "tiger three", "otter four"]), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=4,
)


def apply(folder: Path, name: str, what: str, texts: list[str]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "remove":
        path.unlink(missing_ok=True)
    elif what == "break":
        path.write_bytes(b'{"text": "cut off\xff')
    elif name.endswith(".md"):
        path.write_text("".join(f"# {text}\n{text} is what it says.\n\n" for text in texts))
    else:
        ids = [None, f"{texts[0]}-{name}", "shared"]
        lines = [{"id": ids[number % 3], "text": text} for number, text in enumerate(texts)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.usefixtures("real_times")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(st.lists(STEPS, min_size=2, max_size=4))
@example([[("a.md", "write", ["zebra one"])], [("a.md", "remove", ["x"]), ("a.md", "break", ["x"])]])
def test_any_history_ends_where_a_fresh_build_does(
    tmp_path: Path, history: list[list[tuple[str, str, list[str]]]]
) -> None:
    """Of two roots whose files share keys, so that the same ids come from several files."""
    tmp_path = Path(tempfile.mkdtemp(dir=tmp_path))  # a thread of tantivy's may still write to that of the last example
    folder, index = tmp_path / "n", tmp_path / "ix"
    roots = [folder, folder / "x", folder / "y"]
    for root in roots:
        root.mkdir(parents=True)
    (folder / "always.txt").write_text("A fixed zebra.")
    part = Recording()
    indexed: set[str] = set()
    for steps in history:
        for name, what, texts in steps:
            # Passages of an indexed file stay if it is spoiled, also if it was removed and came back meanwhile.
            if what != "break" or not (name in indexed or (folder / name).exists()):
                apply(folder, name, what, texts)
        given = [folder / "x", folder / "y", folder]
        update_index(given, index, parts=(Bm25Part(), part))
        indexed = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        fresh = Recording()
        shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
        update_index(given, tmp_path / "fresh", parts=(Bm25Part(), fresh))
        assert content(index) == content(tmp_path / "fresh")
        assert results(index) == results(tmp_path / "fresh")
        assert part.held == fresh.held == {one.id for one in content(index)}


def test_passages_of_a_spoiled_file_stay_until_it_is_read(tmp_path: Path) -> None:
    folder, index = tmp_path / "n", tmp_path / "ix"
    folder.mkdir()
    path = folder / "a.txt"
    for text, held in (("One zebra.", "One zebra."), ("Two\xe9 lions.", "One zebra."), ("x\xe9", "One zebra.")):
        path.write_bytes(text.encode("latin-1"))
        for _ in range(2):
            built = update_index([folder], index)
            assert [one.text for one in content(index)] == [held]
            assert verify_index(index).problems == ()
    assert built.problems[0][1].endswith("; its passages of before stay (1)")
    path.write_text("A tiger.")
    assert update_index([folder], index).problems == ()
    assert [one.text for one in content(index)] == ["A tiger."]


def test_passages_of_a_broken_archive_stay(tmp_path: Path) -> None:
    folder, index = tmp_path / "n", tmp_path / "ix"
    folder.mkdir()
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("b.txt", "One zebra.")
    update_index([folder], index)
    (folder / "a.zip").write_bytes(b"junk")
    for _ in range(2):
        built = update_index([folder], index)
        assert (built.removed, [one.text for one in content(index)]) == (0, ["One zebra."])
    (folder / "a.zip").unlink()
    assert update_index([folder], index).removed == 1


def test_files_of_other_kinds_are_counted(tmp_path: Path) -> None:
    folder, index = tmp_path / "n", tmp_path / "ix"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.BIN", "deep/c.bin", "README", ".hidden"):
        (folder / name).write_text("One zebra.")
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("d.bin", "x")
    assert update_index([folder], index).unread == ((".bin", "3"), ("without an ending", "1"))
    (folder / "b.BIN").unlink()
    assert update_index([folder], index).unread == ((".bin", "2"), ("without an ending", "1"))


def test_the_same_text_in_two_roots_stays_when_one_goes(tmp_path: Path) -> None:
    for root in ("x", "y", "z"):
        (tmp_path / root).mkdir()
        (tmp_path / root / "a.md").write_text("# A\nOne zebra.\n")
    paths, index = [tmp_path / root for root in "zxy"], tmp_path / "ix"
    update_index(paths, index)
    assert [one.source for one in content(index)] == [str(tmp_path / "x/a.md")]
    (tmp_path / "x/a.md").write_text("# A\nA lion.\n")
    update_index(paths, index)
    assert_like_fresh(index, paths, tmp_path / "fresh")
    (tmp_path / "y/a.md").unlink()
    (tmp_path / "x/a.md").write_text("# A\nOne zebra.\n")
    update_index(paths, index)
    assert [one.source for one in content(index)] == [str(tmp_path / "x/a.md")]
    shutil.rmtree(tmp_path / "x")
    update_index([tmp_path / "z"], index)
    assert [one.source for one in content(index)] == [str(tmp_path / "z/a.md")]


def test_records_may_move_between_files_and_folders_be_renamed(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 2, 10), tmp_path / "ix"
    part = Recording()
    parts = (Bm25Part(), part)
    update_index([folder], index, parts=parts)
    zero, one = (folder / "0.jsonl", folder / "1.jsonl")
    lines = zero.read_text().splitlines(keepends=True)
    zero.write_text("".join(lines[1:]))
    one.write_text(lines[0] + one.read_text())
    part.calls.clear()
    update_index([folder], index, parts=parts)
    folder.rename(tmp_path / "renamed")
    update_index([tmp_path / "renamed"], index, parts=parts)
    assert not any(ids for _, ids in part.calls)  # nothing would have been embedded again
    assert {passage.source for passage in content(index)} == {str(tmp_path / f"renamed/{n}.jsonl") for n in (0, 1)}


@pytest.mark.usefixtures("real_times")
def test_a_change_that_size_and_time_do_not_show(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("zebra")
    os.utime(tmp_path / "a.txt", ns=(10**18, 10**18))
    update_index([tmp_path / "a.txt"], tmp_path / "ix")
    (tmp_path / "a.txt").write_text("otter")
    os.utime(tmp_path / "a.txt", ns=(10**18, 10**18))
    assert update_index([tmp_path / "a.txt"], tmp_path / "ix").files_read == 0
    assert update_index([tmp_path / "a.txt"], tmp_path / "ix", check_contents=True).files_read == 1
    assert [one.text for one in content(tmp_path / "ix")] == ["otter"]
    (tmp_path / "a.txt").write_text("tiger")  # a young file is compared by content anyway
    os.utime(tmp_path / "a.txt")
    update_index([tmp_path / "a.txt"], tmp_path / "ix")
    status = (tmp_path / "a.txt").stat()
    (tmp_path / "a.txt").write_text("zebra")
    os.utime(tmp_path / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert update_index([tmp_path / "a.txt"], tmp_path / "ix").files_read == 1


def test_other_settings_build_anew(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,body\nzebra,lion\n")
    update_index([tmp_path / "t.csv"], tmp_path / "ix")
    built = update_index([tmp_path / "t.csv"], tmp_path / "ix", columns=Columns(text="body"))
    assert (built.files_read, content(tmp_path / "ix")[0].text) == (1, "lion")
    assert update_index([tmp_path / "t.csv"], tmp_path / "ix", columns=Columns(text="body"), rebuild=True).added == 1


def test_an_index_of_another_version_is_built_anew(tmp_path: Path) -> None:
    folder, index = records(tmp_path / "n", 1), tmp_path / "ix"
    update_index([folder], index)
    mark = index / "pyrag-index.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "format": 1}))
    assert update_index([folder], index).added == 50
    assert len(list(index.glob("gen-*"))) == 1


def test_deleted_documents_leave_no_trace_in_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, index = records(tmp_path / "n"), tmp_path / "ix"
    update_index([folder], index)
    (folder / "0.jsonl").unlink()
    monkeypatch.setattr(bm25_part, "SMALL", 0)
    monkeypatch.setattr(bm25_part, "MAX_GHOSTS", 1.0)
    update_index([folder], index)
    assert bm25_part.count_ghosts(index / read_info(index).generation / "bm25")[0] > 0
    monkeypatch.undo()
    monkeypatch.setattr(update, "RACY", -1)
    (folder / "1.jsonl").unlink()
    update_index([folder], index)
    assert bm25_part.count_ghosts(index / read_info(index).generation / "bm25") == (0, 200)
    assert_like_fresh(index, [folder], tmp_path / "fresh")


def test_without_hard_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    folder, index = records(tmp_path / "n"), tmp_path / "ix"
    update_index([folder], index, checkpoint=0)
    (folder / "0.jsonl").unlink()
    update_index([folder], index, checkpoint=0)
    monkeypatch.undo()
    monkeypatch.setattr(update, "RACY", -1)
    assert_like_fresh(index, [folder], tmp_path / "fresh")
