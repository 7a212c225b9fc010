"""Reading users' files: every accepted form, every complaint, ids that stay, memory that is bounded."""

from __future__ import annotations

import gzip
import json
import os
import re
import tracemalloc
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrag.errors import DataError
from pyrag.retrieval.documents.reading import MAX_LINE, read_passages
from pyrag.trace.model import Passage


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def read(*paths: Path) -> list[Passage]:
    return list(read_passages(paths))


def complaint(*paths: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(*paths)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.jsonl.gz", "NOTES.JSONL"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    path = write(
        tmp_path / name,
        "\ufeff"
        + lines(
            {"id": "a", "title": "T", "text": " x "},
            {"id": 7, "text": "y", "other": [1]},
            {"id": "c", "contents": '"Jed Hoyer"\nHe was born.\nIn 1973.'},
            {"id": "d", "contents": "no title\nhere"},
        )
        + "\n  \n",
    )
    passages = read(path)
    assert [replace(passage, start=None, end=None) for passage in passages] == [
        Passage("a", "T", "x", source=str(path)),
        Passage("7", "", "y", source=str(path), metadata={"other": [1]}),
        Passage("c", "Jed Hoyer", "He was born.\nIn 1973.", source=str(path)),
        Passage("d", "", "no title\nhere", source=str(path)),
    ]
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    assert [text[one.start : one.end] for one in passages] == text.splitlines()[:4]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{nope", r"notes\.jsonl line 2: not JSON \(.*\): fix or remove the line"),
        ('{"id": "x", "text": "cut', r"line 2: not JSON"),
        ("[1]", r"line 2: not a passage \(Expected `object`, got `array`\): write an object"),
        ('{"id": [], "text": "x"}', r"line 2: not a passage \(.*\$\.id.*\)"),
        ('{"id": "x", "text": 3}', r"line 2: not a passage \(.*\$\.text.*\)"),
        ('{"id": "x", "title": "t"}', r"line 2: holds neither"),
        ('{"id": "x", "text": "  "}', r"line 2: its text is empty"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = write(tmp_path / "notes.jsonl", lines({"id": "a", "text": "x"}) + line + "\n")
    assert re.search(says, complaint(path))


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "n.jsonl", lines({"id": "a", "text": "x"}).encode() + '{"text": "é"}'.encode("latin-1"))
    assert complaint(path) == f"{path} line 2: not UTF-8 (byte 0xe9 at column 11): save the file as UTF-8"


def test_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    assert "a.txt line 2: not UTF-8 (byte 0xe9 at column 4)" in complaint(write(tmp_path / "a.txt", b"ok\ncaf\xe9 x\n"))
    assert "d.txt line 2: not text (a zero byte)" in complaint(write(tmp_path / "d.txt", b"a\nb\0c"))
    assert "cut off" in complaint(write(tmp_path / "c.md", "é".encode()[:1]))


def test_an_endless_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    with path.open("wb") as file:
        file.truncate(MAX_LINE + 10)
    assert "line 1: longer than 32 MiB" in complaint(path)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: b"no gzip", lambda data: data[:15] + b"\xff" * 40]
)
def test_a_broken_gzip_file_is_named(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    path = write(tmp_path / "n.jsonl.gz", lines(*({"id": n, "text": f"x{n * n}"} for n in range(500))))
    path.write_bytes(damage(path.read_bytes()))
    assert f"{path} is a broken .gz file" in complaint(path)


def test_the_same_id_in_two_files_is_made_distinct(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", lines({"id": "k", "text": "x"}, {"id": "k", "text": "x"}))
    write(tmp_path / "b.jsonl", lines({"id": "j", "text": "x"}, {"id": "k", "text": "y"}, {"id": "k", "text": "x"}))
    first, second, third = read(tmp_path)
    assert (first.id, second.id, third.text) == ("k", "j", "y")
    assert re.fullmatch(r"k#[0-9a-f]{16}", third.id)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    assert "does not exist: check the path" in complaint(tmp_path / "no.txt")
    assert "of a kind that pyrag does not read: convert" in complaint(write(tmp_path / "x.exe", "x"))
    assert "neither a file nor a folder" in complaint(tmp_path / "pipe.txt")
    assert "holds no file to read: name" in complaint(tmp_path / "empty")
    assert "no passage was found" in complaint(write(tmp_path / "blank.txt", "\n \n"))
    assert "no files were given" in complaint()


def test_folders_are_walked_in_order_without_foreign_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.md", "sub/c.txt.gz", ".hidden.txt", ".git/x.txt", "photo.jpg"):
        write(tmp_path / name, f"text of {name}")
    write(tmp_path / "index/pyrag-index.json", "{}")
    write(tmp_path / "index/x.txt", "not to be read")
    os.mkfifo(tmp_path / "pipe.txt")
    assert [passage.text for passage in read(tmp_path)] == ["text of a.md", "text of b.txt", "text of sub/c.txt.gz"]


def test_symbolic_links_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "in/a.txt", "one")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    (tmp_path / "in/self.txt").symlink_to("self.txt")
    (tmp_path / "in/again.txt").symlink_to("a.txt")
    write(tmp_path / "other/b.txt", "two")
    (tmp_path / "in/other").symlink_to(tmp_path / "other")
    with pytest.warns(UserWarning, match=r"in/other leads out of the folder, to .*/other: .* add --follow-links"):
        assert [passage.text for passage in read(tmp_path / "in", tmp_path / "in/a.txt")] == ["one"]
    followed = read_passages([tmp_path / "in", tmp_path / "in/a.txt"], follow_links=True)
    assert [passage.text for passage in followed] == ["one", "two"]
    assert [passage.text for passage in read(tmp_path / "in", tmp_path / "other")] == ["one", "two"]


def test_ids_of_running_text_depend_on_place_and_content_only(tmp_path: Path) -> None:
    write(tmp_path / "one/sub/a.md", "# A\nText.")
    write(tmp_path / "one/b.txt", "Other.")
    write(tmp_path / "two/sub/a.md", "# A\nText.\n# B\nNew.")
    first = {passage.id for passage in read(tmp_path / "one")}
    second = {passage.id for passage in read(tmp_path / "two")}
    assert len(first & second) == 1
    assert (first & second).pop().startswith("sub/a.md#")


def test_repeated_texts_are_kept_within_a_file_only(tmp_path: Path) -> None:
    section = "# Same\nText.\n"
    write(tmp_path / "x/a.md", section * 2)
    write(tmp_path / "y/a.md", section * 2)
    ids = [passage.id for passage in read(tmp_path / "x", tmp_path / "y")]
    assert len(ids) == len(set(ids)) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.text("ab c.", min_size=1).filter(str.strip), min_size=1, max_size=6), st.randoms())
def test_ids_without_ids_survive_reordering(tmp_path: Path, texts: list[str], random: object) -> None:
    def ids(texts: list[str]) -> set[str]:
        return {passage.id for passage in read(write(tmp_path / "p.jsonl", lines(*({"text": text} for text in texts))))}

    before = ids(texts)
    assert before == ids(sorted(texts, reverse=True)) == ids(texts * 2)
    assert len(before) == len({text.strip() for text in texts})


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    with open(folder + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123 (Path cannot say it)
        file.write(b"text")
    (passage,) = read(tmp_path)
    assert passage.title == "caf?"
    passage.source.encode()


def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    with path.open("w") as file:
        for n in range(32_000):
            file.write(f"Sentence number {n} of a long file. " + ("\n\n" if n % 50 == 0 else ""))
    tracemalloc.start()
    deque(read_passages([path]), 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size  # about two fifths of it; what other tests left running may add to that
