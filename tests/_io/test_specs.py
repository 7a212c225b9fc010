"""Specs are taken apart in one place, whatever they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag._io.specs import Spec, expanded, parse_named_spec, parse_spec


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


def test_a_tilde_stands_for_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert expanded("~/ix") == Path("/home/ann/ix")
    assert expanded(Path("~")) == Path("/home/ann")
    assert expanded("a/~") == Path("a/~")


@pytest.mark.parametrize("path", ["~no-such-user", "~no-such-user/ix", "~a\0b"])
def test_a_path_of_no_user_stays_as_it_is(path: str) -> None:
    assert expanded(path) == Path(path)
