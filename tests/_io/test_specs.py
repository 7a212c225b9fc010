"""Specs are taken apart in one place, whatever they name."""

from __future__ import annotations

import pytest

from pyrag._io.specs import Spec, parse_named_spec, parse_spec


@pytest.mark.parametrize(
    ("text", "name", "url"),
    [
        ("openai:m@http://h:1/v1", "m", "http://h:1/v1"),
        ("openai:org@m@https://h/v1", "org@m", "https://h/v1"),
        ("openai:@http://user@h/v1", "", "http://user@h/v1"),
        ("openai:m", "m", ""),
        ("openai:m@ftp://h", "m@ftp://h", ""),
        (" openai:m\n@http://h ", "m\n", "http://h"),
        ("embedded", "", ""),
    ],
)
def test_a_name_at_a_url(text: str, name: str, url: str) -> None:
    assert parse_spec(text).at_url == (name, url)


def test_a_place_follows_the_first_at() -> None:
    assert parse_spec("qdrant:docs@:memory:").at_place == ("docs", ":memory:")
    assert parse_spec("pgvector:t@postgresql://u@h/d").at_place == ("t", "postgresql://u@h/d")
    assert parse_spec("qdrant:docs").at_place == ("docs", "")


def test_a_spec_may_have_a_name() -> None:
    assert parse_named_spec("orders=sql:a:b.db") == ("orders", Spec("sql", "a:b.db"))
    assert parse_named_spec("my.module:f") == ("", Spec("my.module", "f"))
    assert parse_named_spec("x=y=sql:f") == ("", Spec("x=y=sql:f", ""))
    assert parse_named_spec("plain") == ("", Spec("plain", ""))
