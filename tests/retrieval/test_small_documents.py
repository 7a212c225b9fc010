"""Documents of a retrieval server: those decoded at once read like those decoded field by field."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrag.retrieval import http
from pyrag.retrieval.checked import Passages, checked
from pyrag.trace.model import Passage

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
NAMES = st.sampled_from([*http._SHORT, *http._LONG, "other"])
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=8)
HITS = VALUES | DOCUMENTS | st.builds(lambda hit, inner: {**hit, "document": inner}, DOCUMENTS, DOCUMENTS | VALUES)


def read_both_ways(raw: msgspec.Raw) -> tuple[Passages, Passages]:
    return checked([http._document(raw, "a server")], 1), checked([http._fields(raw, "a server")], 1)


@given(HITS)
@settings(max_examples=400, deadline=None)
def test_small_documents_read_like_large_ones(hit: Any) -> None:
    small, large = read_both_ways(msgspec.Raw(msgspec.json.encode(hit)))
    assert (small, small.notes) == (large, large.notes)


def test_broken_fields_leave_the_others_readable() -> None:
    small, large = read_both_ways(msgspec.Raw(b'{"id": "1", "score": NaN, "text": "x"}'))
    assert small == large
    assert [(passage.id, passage.text) for passage in small] == [("1", "x")]


def test_a_checked_list_is_not_checked_again_unless_changed() -> None:
    passages = checked([Passage("1", "t", "x"), Passage("2", "t", "y")], 5)
    assert checked(passages, 5) is passages
    assert [passage.id for passage in checked(passages, 1)] == ["1"]
    passages.append(Passage("3", "t", "half \ud800"))
    assert checked(passages, 5)[2].text == "half ?"
    assert not Passages([Passage("4", "t", "half \ud800")]).are_checked
