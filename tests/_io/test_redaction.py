"""Secrets in texts: which are struck out, in which forms, and what stays."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag._io.redaction import Redactor, looks_secret, secrets_of_query, without_secrets
from pyrag.errors import ConfigError

KEY = "sk-planted-0123456789abcdef"
PASSWORD = "hunter2/&?"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://bob:hunter2@H/x?token=t0ken", "http://H/x"),
        ("http://bob:hun/ter2@H/x", "http://H/x"),
        ("http://bob:hun?ter2@H/x", "http://H/x"),
        ("http://bob@H:8000/x#token", "http://H:8000/x"),
        ("openai:m@https://b:p@h/v1?key=k", "openai:m@https://h/v1"),
        ("qdrant:notes@http://k:p@h:6333", "qdrant:notes@http://h:6333"),
        ("pgvector:notes@postgresql://k:p@h/d?sslcert=x", "pgvector:notes@postgresql://h/d"),
        ("(see http://h/x?token=a): try again", "(see http://h/x): try again"),
        ("a http://b:c@d?e=f and ftp://g:h@i", "a http://d and ftp://i"),
        ("http://h:8000/v1/@me", "http://h:8000/v1/@me"),
        ("is it so? bob@home", "is it so? bob@home"),
    ],
)
def test_addresses_lose_their_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert str(ConfigError(text)) == shown


def test_values_of_a_query_are_found_as_given_and_decoded() -> None:
    assert set(secrets_of_query("a=1&token=x%2Fy+z&bare")) == {"1", "x%2Fy+z", "x/y+z", "x/y z", "bare"}


@pytest.mark.parametrize("value", [KEY, "hunter2", "AIzaSyD-abcdefgh", "correct-horse-battery"])
def test_odd_values_look_secret(value: str) -> None:
    assert looks_secret(value)


@pytest.mark.parametrize("value", ["EMPTY", "ollama", "London", "2024-02-01", "v1.2.3", "two words 2", "x1"])
def test_words_and_versions_do_not(value: str) -> None:
    assert not looks_secret(value)
    assert Redactor([value]).content(f"It is {value}.") == f"It is {value}."
    assert value not in Redactor([value]).message(f"It is {value}.")


@pytest.mark.parametrize("secret", [KEY, PASSWORD, "ab", 'quo"te\\4you'])
@pytest.mark.parametrize(
    "echo",
    [
        lambda secret: secret,
        lambda secret: quote(secret),
        lambda secret: quote(secret, safe=""),
        lambda secret: quote(secret, safe="").lower() if "%" in quote(secret, safe="") else secret,
        lambda secret: base64.b64encode(secret.encode()).decode(),
        lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
        json.dumps,
    ],
)
def test_every_form_is_struck_out_of_messages(secret: str, echo) -> None:
    said = Redactor([secret]).message(f"you sent {echo(secret)} to us")
    assert echo(secret) not in said
    assert secret not in said
    assert said.startswith("you sent ")
    assert said.endswith(" to us")


def test_a_part_of_a_secret_is_struck_out() -> None:
    redactor = Redactor([KEY, "hunter2"])
    assert redactor.message("key sk-planted-01… and hunte…") == "key …… and ……"
    assert redactor.message("ends in 789abcdef") == "ends in …"
    assert redactor.content("it was planted-0123456789") == "it was …"
    assert redactor.content("planted 0123456789") == "planted 0123456789"


@pytest.mark.parametrize("form", [KEY, "".join(f"\\u00{ord(char):02x}" for char in KEY), quote(KEY), KEY[:20]])
def test_a_key_in_json_is_struck_out(form: str) -> None:
    content = Redactor([KEY]).body(f'{{"text": "the key is {form}."}}'.encode())
    assert json.loads(content) == {"text": "the key is …."}


def test_other_json_stays_as_it_is() -> None:
    redactor = Redactor([KEY])
    for content in (rb'{"a": "\u003cb\u003e \"c\" \\u0041 \/"}', b"[1, 2]", '"é🙂"'.encode()):
        assert json.loads(redactor.body(content)) == json.loads(content)
    assert Redactor([]).body(b"\\u0041") == b"\\u0041"


@given(st.text("sk-planted0123 \n", max_size=60), st.integers(1, 9))
def test_pieces_add_up_to_the_text(text: str, size: int) -> None:
    redactor = Redactor([KEY])
    shown: list[str] = []
    pieces = redactor.pieces(shown.append)
    for start in range(0, len(text), size):
        pieces(text[start : start + size])
    pieces.end()
    assert "".join(shown) == text


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 30))
def test_a_key_in_pieces_is_never_shown(before: str, after: str, size: int) -> None:
    shown: list[str] = []
    pieces = Redactor([KEY]).pieces(shown.append)
    text = before + KEY + after
    for start in range(0, len(text), size):
        pieces(text[start : start + size])
    pieces.end()
    assert KEY[:12] not in "".join(shown)
    assert KEY[-12:] not in "".join(shown)


@given(st.text(), st.text(min_size=1))
def test_messages_never_hold_a_secret(text: str, secret: str) -> None:
    said = Redactor([secret]).message(f"{text} {secret} {text}")
    assert len(secret) < 3 or secret == "…" or secret not in said
