"""Metadata: read from every kind of file, kept in every index, bounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import DataError
from pyrag.retrieval.bm25 import index_of
from pyrag.retrieval.documents.reading import read_passages
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.filters.metadata import MAX_FIELDS, MAX_SIZE, MAX_VALUE, metadata_of, value_of_text
from pyrag.retrieval.index import open_index, update_index
from pyrag.trace.model import Passage

YAML = """---
title: The Mill
team: ops   # whose
year: 2020
open: true
tags: [draft, "a, b", 3]
people:
  - Ann
  - Bo
author:
  name: "Ann \\"B\\" C"
empty:
more: |
  passed over
---
It turns.
"""
TOML = '+++\ntitle = "T"\nyear = 2020\nday = 2024-05-02\ntags = ["a"]\n[author]\nname = "Ann"\n+++\nText.\n'


def metadata(path: Path, text: str) -> dict[str, Any]:
    path.write_text(text)
    (passage,) = read_passages([path])
    return passage.metadata


def test_front_matter_is_metadata(tmp_path: Path) -> None:
    assert metadata(tmp_path / "a.md", YAML) == {
        "team": "ops", "year": 2020, "open": True, "tags": ["draft", "a, b", 3], "people": ["Ann", "Bo"],
        "author.name": 'Ann "B" C', "more": "passed over",
    }  # fmt: skip
    toml = {"year": 2020, "day": "2024-05-02", "tags": ["a"], "author.name": "Ann"}
    assert metadata(tmp_path / "b.md", TOML) == toml


def test_records_keep_their_further_fields(tmp_path: Path) -> None:
    record = {
        "id": 1, "text": "x", "team": "ops", "n": None, "author": {"name": "Ann", "born": {"year": 1980}},
        "rows": [{"a": 1}], "metadata": {"year": 2020, "team": "lost to the record's own"},
    }  # fmt: skip
    wanted = {"team": "ops", "author.name": "Ann", "author.born.year": 1980, "rows": ['{"a":1}'], "year": 2020}
    assert metadata(tmp_path / "a.jsonl", json.dumps(record) + "\n") == wanted
    assert metadata(tmp_path / "a.json", json.dumps([record])) == wanted
    assert metadata(tmp_path / "a.csv", "id,text,Team,zip,share,open,empty\n1,x,ops,00123,0.5,TRUE,\n") == {
        "Team": "ops", "zip": "00123", "share": 0.5, "open": True,
    }  # fmt: skip


def test_the_same_text_of_two_teams_is_two_passages(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x", "team": "a"}\n{"text": "x", "team": "b"}\n{"text": "x", "team": "b"}\n')
    assert [one.metadata for one in read_passages([path])] == [{"team": "a"}, {"team": "b"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2020", 2020),
        (" -3 ", -3),
        ("007", "007"),
        ("1.50", 1.5),
        ("1e5", "1e5"),
        ("True", True),
        ("", None),
        ("x", "x"),
    ],
)
def test_texts_that_show_values(text: str, value: object) -> None:
    assert (value_of_text(text), type(value_of_text(text))) == (value, type(value))


def test_fields_that_are_too_large_are_left_out_and_named(tmp_path: Path) -> None:
    record = {"id": "a", "text": "x", "small": 1, "large": "y" * (MAX_VALUE + 1), "huge": [0] * 100_000, "n" * 200: 1}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(record) + "\n")
    built = update_index([path], tmp_path / "ix")
    (passage,) = open_index(tmp_path / "ix").search("x", 1)
    assert passage.metadata == {"small": 1}
    assert {remark.split("'")[1] for _, remark in built.remarks} == {"large", "huge", "n" * 128}
    many, left_out = metadata_of({f"f{number:03}": "z" * 100 for number in range(500)})
    assert len(many) == MAX_FIELDS
    assert len(left_out) == 500 - MAX_FIELDS


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=6), anything, max_size=6))
def test_any_fields_become_bounded_plain_metadata(fields: dict[str, Any]) -> None:
    kept, _ = metadata_of(fields)
    assert len(msgspec.json.encode(kept)) <= MAX_SIZE + 2 * MAX_FIELDS
    assert metadata_of(kept) == (kept, [])
    (found,) = index_of([Passage("a", "", "word", metadata=kept)]).search("word", 1)
    assert found.metadata == kept


def write(path: Path, *records: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def test_an_update_keeps_and_changes_metadata(tmp_path: Path) -> None:
    corpus, index = tmp_path / "a.jsonl", tmp_path / "ix"
    write(corpus, {"id": "1", "text": "mill", "team": "ops"}, {"id": "2", "text": "mill", "team": "hr"})
    update_index([corpus], index)
    write(corpus, {"id": "1", "text": "mill", "team": "ops"}, {"id": "2", "text": "mill", "team": "ops", "year": 1})
    built = update_index([corpus], index)
    assert (built.added, built.changed, built.removed) == (0, 1, 0)
    opened = open_index(index)
    assert [one.id for one in opened.search("mill", 5, parsed("team = 'ops'"))] == ["1", "2"]
    assert opened.search("mill", 5, parsed("team = 'hr'")) == []
    assert opened.search("mill", 5, parsed("year = 1"))[0].metadata == {"team": "ops", "year": 1}
    assert opened.selector.fields == {"team": 2, "year": 1}


def test_an_index_of_another_version_is_built_again(tmp_path: Path) -> None:
    corpus, index = tmp_path / "a.jsonl", tmp_path / "ix"
    write(corpus, {"id": "1", "text": "mill", "team": "ops"})
    update_index([corpus], index)
    about = json.loads((index / "pyrag-index.json").read_text())
    (index / "pyrag-index.json").write_text(json.dumps({**about, "format": 2, "analysis": 1}))
    with pytest.raises(DataError, match=r"has version 2\.1 and this pyrag reads version .*: build it again"):
        open_index(index)
    update_index([corpus], index)
    assert open_index(index).search("mill", 5, parsed("team = 'ops'"))[0].metadata == {"team": "ops"}
