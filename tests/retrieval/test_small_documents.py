"""Documents of a retrieval server: those decoded at once read like those decoded field by field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
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


def field_by_field(raw: msgspec.Raw) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http, "_small_fields", lambda raw, source: None)
        return http._fields(raw, "a server")


@given(HITS)
@settings(max_examples=400, deadline=None)
def test_small_documents_read_like_large_ones(hit: Any) -> None:
    raw = msgspec.Raw(msgspec.json.encode(hit))
    assert http._fields(raw, "a server") == field_by_field(raw)


def test_broken_fields_leave_the_others_readable() -> None:
    raw = msgspec.Raw(b'{"id": "1", "score": NaN, "text": "x"}')
    assert http._fields(raw, "a server") == field_by_field(raw)


def test_a_checked_list_is_not_checked_again_unless_changed() -> None:
    passages = checked([Passage("1", "t", "x"), Passage("2", "t", "y")], 5)
    assert checked(passages, 5) is passages
    assert [passage.id for passage in checked(passages, 1)] == ["1"]
    passages.append(Passage("3", "t", "half \ud800"))
    assert checked(passages, 5)[2].text == "half ?"
    assert not Passages([Passage("4", "t", "half \ud800")]).are_checked
