"""Which statements are finished while a program is written, however the reply is cut."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.agents.parsing.draft import DraftReader
from pyrag.agents.parsing.programs import parse_program
from pyrag.agents.parsing.thinking import MAX_REPLY

PROGRAM = '''docs = retrieve(
    "Who?",
)
# a comment
name = answer("Who?", docs)

def hop(query):
    found = retrieve(query)

    return answer(query, found)

if name:
    born = hop(f"When was {name} born?")
else:
    born = ""
text = """a
b"""
final_answer = answer(f"Given: {born}. Answer the question: When?")
'''
THOUGHT = "<think>retrieve('a')\n```python\nx = retrieve('b')\n```\n</think>\n"
REPLY = f"{THOUGHT}So:\n```json\n[]\n```\n```python\n{PROGRAM}```\n"


def drafts(reply: str, cuts: list[int]) -> list[str]:
    found: list[str] = []
    reader = DraftReader(found.append)
    for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True):
        reader.feed(reply[start:end])
    return found


def test_a_reply_too_long_for_a_program_is_not_drafted() -> None:
    found: list[str] = []
    reader = DraftReader(found.append)
    reader.feed("```python\n" + "# so\n" * (MAX_REPLY // 5))
    reader.feed('name = answer("Who?", [])\nfinal_answer = name\n')
    assert found == []


def test_a_draft_for_each_statement_that_works() -> None:
    found = drafts(REPLY, list(range(1, len(REPLY))))
    assert [draft.splitlines()[-1] for draft in found] == [
        ")",
        'name = answer("Who?", docs)',
        'b"""',  # the branch before it is known to be finished when this is
        'final_answer = answer(f"Given: {born}. Answer the question: When?")',
    ]
    assert found[-1] == PROGRAM


@given(st.lists(st.integers(0, len(REPLY)), max_size=30).map(sorted))
def test_every_draft_begins_the_program_and_is_whole(cuts: list[int]) -> None:
    found = drafts(REPLY, cuts)
    source = parse_program(REPLY)
    assert found[-1].rstrip() == source.rstrip()
    for draft in found:
        assert source.startswith(draft.rstrip())
        ast.parse(draft)


@given(st.text("ab(=)'\"\\\n `#:{}[],<think>/", max_size=300), st.integers(1, 20))
def test_anything_may_come(text: str, length: int) -> None:
    for draft in drafts(text, list(range(length, len(text), length))):
        ast.parse(draft)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("x = retrieve('a')\ny = 1\n", ["x = retrieve('a')\n"]),  # no fence
        ("I think retrieve('a')\nx = 3\n", []),
        ("<think>\n```python\nx = retrieve('a')\ny = 2\n```\n", []),  # thinking that is not closed
        ("```python\nx = retrieve('a'\ny = retrieve('b')\n```\n", []),  # never whole
        ("```python\n  x = retrieve('a')\n  y = 1\n```\n", ["x = retrieve('a')\n"]),
        ("```python\nx = retrieve(“a”)\n```\n", ['x = retrieve("a")\n']),
        ("```\nx = 1\ny = x\n```\n", []),  # nothing to do
    ],
)
def test_forms_of_replies(reply: str, expected: list[str]) -> None:
    assert drafts(reply, list(range(1, len(reply)))) == expected
