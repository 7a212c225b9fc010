"""The questions of a program, as a trace shows them where the planner wrote no list of sub-queries."""

from __future__ import annotations

import pytest

from pyrag.agents.parsing.program_queries import program_queries


@pytest.mark.parametrize(
    ("source", "queries"),
    [
        ('q = "A?"\na = answer(q, retrieve(q))\nr = f"B {a}?"\nfinal_answer = answer(r, retrieve(r))', ("A?", "B #1?")),
        ('docs = retrieve("A?")\nx = answer("A?", docs)\nfinal_answer = answer(f"Given: {x}. Answer: z?")', ("A?",)),
        ('x = answer("A?", retrieve("a"))\nfinal_answer = answer(f"B {x.upper()}?", [])', ("A?", "B {x.upper()}?")),
        ('x = answer("A?", [])\nif x:\n    y = answer("B?", [])\nelse:\n    y = answer("A?", [])', ("A?", "B?")),
        ('for one in retrieve("list"):\n    print(one.title)\nfinal_answer = "x"', ("list",)),
        ("final_answer = 'yes'", ()),
        ("final_answer = (", ()),
        ("answer(*q, 1)\nanswer(query='x')\nretrieve()", ("{*q}",)),
    ],
)
def test_questions_are_read_in_order(source: str, queries: tuple[str, ...]) -> None:
    assert program_queries(source) == queries


def test_long_programs_are_bounded() -> None:
    source = "\n".join(f'a{number} = answer("Question {number}? {"x" * 2000}", [])' for number in range(50))
    queries = program_queries(source)
    assert len(queries) == 20
    assert max(map(len, queries)) == 1000
