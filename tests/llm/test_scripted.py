"""The scripted model, in all the forms that its docstring promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import DataError, ReplayError
from pyrag.llm.clients.scripted import ScriptedChat, role_of
from pyrag.llm.protocol import Message, Reply


def prompt(text: str, role: str = "Plan") -> list[Message]:
    return [Message("system", f"You are the {role} Agent of a system."), Message("user", text)]


async def said(model: ScriptedChat, text: str = "?", role: str = "Plan") -> str:
    return (await model.complete(prompt(text, role))).text


async def test_in_order_and_exhausted() -> None:
    model = ScriptedChat(["a", "b"])
    assert [await said(model), await said(model)] == ["a", "b"]
    with pytest.raises(ReplayError, match="scripted has no reply left for the plan agent, asked …'who\\?'"):
        await said(model, "who?")
    assert len(model.calls) == 3


async def test_in_order_per_role() -> None:
    model = ScriptedChat({"plan": ["p1", "p2"], "answer": "again"})
    assert [await said(model, role=role) for role in ("Answer", "Plan", "Answer", "Plan")] == [
        "again", "p1", "again", "p2",
    ]  # fmt: skip


async def test_by_pattern() -> None:
    model = ScriptedChat({"directed (Alpha|Beta)": "Ada", "(?i)born": ["1901", {"reply": "1902"}]})
    asked = ["Born when?", "Who directed Beta?", "born?", "Who directed Alpha?"]
    assert [await said(model, text) for text in asked] == ["1901", "Ada", "1902", "Ada"]


async def test_computed() -> None:
    model = ScriptedChat(lambda messages: Reply(messages[-1].content.upper(), 3))
    assert await said(model, "abc") == "ABC"


@pytest.mark.parametrize("name", ["script.json", "script.jsonl"])
async def test_files(tmp_path: Path, name: str) -> None:
    entries: list[Any] = ["any", {"reply": "cut", "role": "plan", "finish_reason": "length", "prompt_tokens": 5}]
    path = tmp_path / name
    path.write_text(json.dumps(entries) if name.endswith("n") else "\n\n".join(map(json.dumps, entries)))
    model = ScriptedChat.load(path)
    assert await said(model, role="Answer") == "any"
    assert await model.complete(prompt("?")) == Reply("cut", 5, 0, "length")


async def test_one_line_file(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"reply": "only"}\n')
    assert await said(ScriptedChat.load(path)) == "only"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a"\n{oops\n', "line 2 is not JSON"),
        ('[{"replay": "a"}]', "reply 1: unknown key 'replay'"),
        ('[{"role": "plan"}]', "must be a string"),
        ("[3]", "must be a string"),
        ('[{"reply": "a", "match": "("}]', "not a regular expression"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        ScriptedChat.load(path)


async def test_half_a_character_is_replaced_and_two_halves_are_one(tmp_path: Path) -> None:
    """Else no trace and no recording of the reply could be written."""
    path = tmp_path / "one.jsonl"
    path.write_text('{"reply": "a\\ud800 \\ud83d\\ude00 \\udc00b é"}\n')
    text = await said(ScriptedChat.load(path))
    assert text == "a\ufffd \U0001f600 \ufffdb é"
    assert text.encode().decode() == text


def test_role_of() -> None:
    assert role_of(prompt("?", "Decompose")) == "decompose"
    assert role_of([Message("user", "the Plan Agent")]) == ""
