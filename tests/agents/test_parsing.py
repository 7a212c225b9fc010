"""The parsers: examples of what models write, and properties over arbitrary text."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyrag.agents.parsing.sub_queries import MAX_SUB_QUERIES, parse_sub_queries
from pyrag.agents.parsing.thinking import split_thinking
from pyrag.errors import BadOutputError

PAYLOAD = r"<answer>"
FAMILIES = [
    ("<think>", "</think>"),
    ("<redacted_thinking>", "</redacted_thinking>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<REFLECTION>", "</REFLECTION>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]


@pytest.mark.parametrize(("opening", "closing"), FAMILIES)
def test_thinking_families(opening: str, closing: str) -> None:
    assert split_thinking(f"{opening}a [1]{closing}\nrest", PAYLOAD) == ("a [1]", "rest")
    assert split_thinking(f"{opening}a", PAYLOAD) == ("a", "")
    assert split_thinking(f"{opening}a <answer>x</answer>", PAYLOAD) == ("a", "<answer>x</answer>")


@pytest.mark.parametrize(
    ("text", "thinking", "rest"),
    [
        ("plain", "", "plain"),
        ("opened by the template</think>rest", "opened by the template", "rest"),
        ("<think>a</think>b<think>c</think>d", "a\nc", "bd"),
        ("<think>a <think> b</think>c</think>d", "a \n b\n\nc", "d"),
        ("<think>a</think><answer>x</answer></think>", "a", "<answer>x</answer>"),
        ("<think>a <answer>x</answer></think>", "a", "<answer>x</answer>"),
        ("1 < 2 and <b>bold</b>", "", "1 < 2 and <b>bold</b>"),
    ],
)
def test_thinking_shapes(text: str, thinking: str, rest: str) -> None:
    assert split_thinking(text, PAYLOAD) == (thinking, rest)


@given(st.text(), st.sampled_from(FAMILIES), st.text())
def test_thinking_is_taken_out(before: str, tags: tuple[str, str], after: str) -> None:
    if not any(char in before + after for char in "<>[]◁▷"):
        thinking, rest = split_thinking(f"{tags[0]}{before}{tags[1]}{after}", PAYLOAD)
        assert (thinking, rest) == (before.strip(), after.strip())


@pytest.mark.parametrize(
    "text",
    [
        '["a?", "b?"]',
        '```json\n["a?", "b?"]\n```',
        'Sure! Here they are [1]:\n["a?", "b?",]\nDoc [2] helps.',
        '```\n["a?",\n "b?",\n]\n``` Hope it helps [x].',
        "['a?', 'b?']",
        '{"sub_queries": ["a?", "b?"]}',
        '[{"id": 1, "sub_query": "a?", "needs": []}, {"id": 2, "question": "b?"}]',
        '<think>maybe ["x"]</think>["a?", " b? "]',
        'first draft ["x"], better: ["a?", "b?"]',
        '["a?", "A?", "b?", "a?"]',
        '<think>unclosed ... so ["a?", "b?"]',
    ],
)
def test_sub_queries(text: str) -> None:
    assert parse_sub_queries(text) == ("a?", "b?")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON list"),
        ("1. a\n2. b", "no JSON list"),
        ("[]", "empty"),
        ('["a", ""]', "empty"),
        ('["a", 3]', "must be a string, but one is 3"),
        ('["a", ["b"]]', "must be a string"),
        ('[{"x": "a"}]', "must be a string"),
        ('["a", "b', "no JSON list"),
        (json.dumps([f"q{i}" for i in range(MAX_SUB_QUERIES + 1)]), "are allowed"),
        ("[" * 5000, "no JSON list"),
        ("['" * 5000, "no JSON list"),
    ],
)
def test_no_sub_queries(text: str, said: str) -> None:
    with pytest.raises(BadOutputError, match=said):
        parse_sub_queries(text)


QUERIES = st.lists(
    st.text(min_size=1).map(lambda text: " ".join(text.split())).filter(bool), min_size=1, max_size=8,
    unique_by=str.casefold,
)  # fmt: skip


@given(QUERIES, st.sampled_from(["{}", "```json\n{}\n```", "Here:\n{}\nDone.", "<think>x</think>{}"]))
def test_any_list_survives(queries: list[str], frame: str) -> None:
    text = json.dumps(queries)
    if not any(mark in text for mark in ("```", "think", "<|")):  # what a model's template writes is taken out
        assert parse_sub_queries(frame.replace("{}", text)) == tuple(queries)


@given(st.text(alphabet=st.sampled_from("[]\"'{},: a\\\n`<>/think")))
@example("[" * 300 + '"')
@settings(max_examples=300)
def test_never_raises_anything_else(text: str) -> None:
    try:
        found = parse_sub_queries(text)
    except BadOutputError:
        return
    assert found
    assert all(query.strip() == query and query for query in found)
