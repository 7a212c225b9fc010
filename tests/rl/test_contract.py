"""Programs that search for another query than they ask: mended by rule 2 of the contract, or not learnt."""

from __future__ import annotations

import ast

import pytest

from pyrag.embedded import embedded_agents
from pyrag_rl.data.contract import under_contract

MENDED = [
    ('d = retrieve("film director", topk=5)\na = answer("Who directed it?", d)',
     'd = retrieve("Who directed it?")\na = answer("Who directed it?", d)'),
    ('d = retrieve("é film")\na = answer("Wér?", d)\ne = retrieve(f"{a} born")\nb = answer(f"When was {a} born?", e)',
     'd = retrieve("Wér?")\na = answer("Wér?", d)\ne = retrieve(f"When was {a} born?")\n'
     'b = answer(f"When was {a} born?", e)'),
    ('d = retrieve(\n    "a",\n    topk=5,\n)\na = answer("Q?", d)', 'd = retrieve("Q?")\na = answer("Q?", d)'),
    ('d = retrieve("a", 20)\na = answer("Q?", d)', 'd = retrieve("Q?", topk=20)\na = answer("Q?", d)'),
    ('d = retrieve("a")\nif True:\n    e = retrieve("b")\n    a = answer("Q?", e)',
     'd = retrieve("a")\nif True:\n    e = retrieve("Q?")\n    a = answer("Q?", e)'),
]  # fmt: skip
KEPT = [
    'd = retrieve("Q?")\na = answer("Q?", d)\nfinal_answer = answer(f"Given: {a}. Answer the question: W?")',
    'd = retrieve("Q?")\ne = retrieve("R?")\nfinal_answer = answer("W?", d + e)',
    'd = [one for query in ("a", "b") for one in retrieve(query)]\nfinal_answer = answer("W?", d)',
    'final_answer = "yes"',
]
BROKEN = [
    'd = retrieve("a")\nx = answer("Q?", d)\ny = answer("R?", d)',  # two questions about one search
    'd = retrieve("a")\ne = retrieve("b")\nx = answer("Q?", e)\ny = answer(f"When was {x} born?", d)',
]


@pytest.mark.parametrize(("source", "mended"), MENDED)
def test_a_search_gets_the_query_that_is_asked(source: str, mended: str) -> None:
    assert under_contract(source) == mended
    assert under_contract(mended) == mended


@pytest.mark.parametrize("source", KEPT)
def test_what_keeps_the_rule_stays_word_for_word(source: str) -> None:
    assert under_contract(source) == source


@pytest.mark.parametrize("source", BROKEN)
def test_what_cannot_keep_the_rule_is_not_learnt(source: str) -> None:
    assert under_contract(source) is None


@pytest.mark.parametrize(
    "question",
    [
        "Are Olivier Lacoste-Lebuis and Kalvis Eisaks from the same country?",
        "Which film has the director died first, The Prairie King or Confessions Of An Opium Eater?",
        "What nationality is the director of film Hyderabad Blues 2?",
    ],
)
async def test_programs_of_the_embedded_planner_are_mended(question: str) -> None:
    agents = embedded_agents()
    found = await agents.decomposer.decompose(question)
    plan = await agents.planner.plan(question, found.sub_queries)
    mended = under_contract(plan.source)
    assert mended is not None
    assert mended != plan.source
    calls = [node for node in ast.walk(ast.parse(mended)) if isinstance(node, ast.Call)]
    searched = {ast.dump(one.args[0]) for one in calls if ast.unparse(one.func) == "retrieve"}
    asked = {ast.dump(one.args[0]) for one in calls if ast.unparse(one.func) == "answer" and len(one.args) > 1}
    assert searched <= asked
