"""Excerpts of foreign replies: keys are struck, marks stay where they are asked for, nothing takes long."""

from __future__ import annotations

import asyncio
import contextvars
import time

import pytest

from pyrag._io.excerpts import excerpt, has_excerpt, mark_excerpts, without_excerpts, without_keys
from pyrag._io.http.errors import server_words, status_cure
from pyrag._io.redaction import without_secrets
from pyrag.errors import nearest
from pyrag.server.errors import public_text


def marked(text: str, limit: int = 300) -> str:
    context = contextvars.copy_context()
    context.run(mark_excerpts)
    return context.run(excerpt, text, limit)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcd1234efgh5678",
        "sk-svcacct-****************Zq8A",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ",
        "xoxb-123456789012-abcdefABCDEF",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "0123456789abcdef0123456789abcdef",
        "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "bad key {}: try again", '{{"error": "no {}"}}', "Authorization: Bearer {}", "({})."]
)
def test_what_looks_like_a_key_is_struck(secret: str, around: str) -> None:
    words = excerpt(around.format(secret), 300)
    assert not any(part in words for part in (secret, secret[:12], secret[-12:]))
    assert secret[-12:] not in server_words(f'{{"error": {{"message": "it is {secret}"}}}}')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("password: hunter", "hunter"),
        ("password=hunter&x", "hunter"),
        ('{"api_key": "123e4567-e89b-12d3-a456-426614174000"}', "123e"),
        ("your token is abc12345", "abc12345"),
        ("x-api-key: abcdef", "abcdef"),
        ("Cookie: session=abcd", "abcd"),
        ("Basic dXNlcjpwdw==", "dXNl"),
    ],
)
def test_what_is_called_a_key_is_struck(text: str, value: str) -> None:
    assert value not in without_keys(text)


@pytest.mark.parametrize(
    "text",
    [
        "The model `meta-llama/Llama-3.1-8B-Instruct` does not exist",
        "This model's maximum context length is 4096 tokens, you asked for 5000",
        "invalid_api_key",
        "CUDA out of memory. Tried to allocate 2.00 GiB (39.59 GiB total)",
        "token limit: 4096",
    ],
)
def test_other_words_are_kept(text: str) -> None:
    assert excerpt(text, 300) == text


def test_an_excerpt_is_one_short_line() -> None:
    assert excerpt("a\n b\t\tc", 5) == "a b c"
    assert excerpt("a" * 10_000, 80) == "a" * 80 + "…"
    assert excerpt("  \n", 80) == marked(" ") == ""


def test_marks_are_made_and_struck() -> None:
    assert excerpt("no ‹x› model", 80) == "no ‹x› model"
    assert marked("no ‹x› model") == "‹no <x> model›"
    message = f"it replied HTTP 400 ({marked('a (b) ‹c› d')}): {marked('e')} change it"
    assert has_excerpt(message)
    assert without_excerpts(message) == public_text(message) == "it replied HTTP 400 (…): … change it"


@pytest.mark.parametrize("cut", [slice(0, 12), slice(10, None), slice(4, 12)])
def test_a_cut_message_shows_no_words_of_it(cut: slice) -> None:
    text = f"failed ({marked('secret words here')}): look"[cut]
    assert not {*text.split()} & {"secret"} or "secret" not in without_excerpts(text)


def test_a_redirection_is_an_excerpt() -> None:
    assert "nowhere" in status_cure(302, {"Location": "nowhere"})
    context = contextvars.copy_context()
    context.run(mark_excerpts)
    assert public_text(context.run(status_cure, 302, {"Location": "a passage"})) == "use the URL it redirects to, …"


async def test_tasks_of_a_marking_context_mark() -> None:
    async def work() -> str:
        return await asyncio.to_thread(excerpt, "x", 9)

    async def marking() -> str:
        mark_excerpts()
        return await asyncio.create_task(work())

    assert await asyncio.create_task(marking()) == "‹x›"
    assert await asyncio.create_task(work()) == "x"


@pytest.mark.parametrize(
    "piece", ["a.", "aa:/", "ab:/c:@", "aa:/?.", "key: ", "'/a", "1.1.1.1:1", "[a", "‹", "a1", "key a1"]
)
def test_redaction_takes_time_in_proportion_to_a_text(piece: str) -> None:
    def cost(size: int) -> float:
        text = "zz:/ " + piece * (size // len(piece)) + "a"
        began = time.process_time()
        public_text(text)
        without_keys(text)
        without_secrets.__wrapped__(text)
        return time.process_time() - began

    once, four = cost(50_000), cost(200_000)
    assert four < 0.1 or four < 10 * once, (once, four)


def test_a_long_unknown_name_is_compared_by_its_start() -> None:
    began = time.process_time()
    nearest("a." * 100_000, ["pyrag", "vanilla"])
    once = time.process_time() - began
    assert once < 0.1
    assert nearest("pyragg", ["pyrag", "vanilla"]) == ": did you mean 'pyrag'?"
