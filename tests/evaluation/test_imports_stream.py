"""Large arrays stream: records come out one by one, wherever the window ends, and memory does not follow the file."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.evaluation.datasets.importers import source as imports_source
from pyrag.evaluation.datasets.importers.source import read_records

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(min_size=1), VALUES, max_size=4), max_size=6)


@given(RECORDS, st.integers(1, 40), st.sampled_from([None, 1]))
def test_any_array_reads_as_json_does(tmp_path_factory, records, chunk, indent) -> None:
    path: Path = tmp_path_factory.mktemp("array") / "x.json"
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imports_source, "_CHUNK", chunk)
        assert [record.fields for record in read_records(path)] == records


def test_places_are_lines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('\n[\n {"a": 1},\n\n {"a":\n  2}\n,{"a": 3}]\n')
    assert [record.where.removeprefix(f"{path} ") for record in read_records(path)] == ["line 3", "line 5", "line 7"]


def test_memory_follows_the_record_and_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("w") as file:
        file.write("[" + ",\n".join(json.dumps({"id": n, "text": "x" * 1000}) for n in range(20_000)) + "]")
    assert path.stat().st_size > 20_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_records(path)) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
