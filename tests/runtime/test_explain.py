"""Estimates of programs: counts of lines, dependencies, branches, exact enumerations, refusals, and what happened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError, UsageError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message, Reply
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.runtime.explain.control import call_sites
from pyrag.runtime.explain.history import History
from pyrag.trace.model import Passage

PASSAGES = [
    Passage(f"d{number}", f"Firm {number}", f"Firm {number} was founded in 1{number:03}.") for number in range(40)
]
SUB = ("Who founded A?", "Who founded B?")
CHAIN = (
    'd1 = retrieve("Who founded A?")\na1 = answer("Who founded A?", d1)\n'
    'd2 = retrieve(f"When was {a1} born?")\na2 = answer(f"When was {a1} born?", d2)\n'
    'final_answer = answer(f"Given: {a1} and {a2}. Answer the question: when?")'
)


class Counted(ScriptedChat):
    """Model that replies with tokens, and keeps its calls."""

    async def complete(self, messages: Sequence[Message], sampling: Any = None) -> Reply:
        reply = await super().complete(messages)
        return Reply(reply.text, sum(len(message.content) for message in messages) // 4, 12)


def model(program: str = CHAIN) -> Counted:
    plan = f"```python\n{program}\n```"
    return Counted({"decompose": json.dumps(SUB), "plan": plan, "answer": "<answer>Ann Lee</answer> [1]"})


def opened(llm: Any, **settings: Any) -> PyRAG:
    return PyRAG(llm=llm, retriever=InMemoryRetriever(PASSAGES), plan_checks=False, **settings)


def test_only_planning_calls_the_model() -> None:
    llm = model()
    with opened(llm, price_in=2.0, price_out=10.0) as rag:
        explanation = rag.explain("When was the founder of A born?")
    assert (len(llm.calls), explanation.planning.model_calls, explanation.happened) == (2, 2, None)
    assert (explanation.calls.low, explanation.retrievals.low) == (3, 2)
    assert explanation.calls.low < explanation.calls.expected < explanation.calls.high
    lines = {line.line: line for line in explanation.lines}
    assert [lines[number].depends_on for number in range(1, 6)] == [(), (1,), (2,), (2, 3), (2, 4)]
    assert explanation.cost is not None
    assert 0 < explanation.cost.low < explanation.cost.expected < explanation.cost.high
    assert "model calls" in str(explanation)
    assert json.loads(json.dumps(explanation.as_object()))["calls"]["low"] == 3


def test_analyze_lies_within_the_estimate() -> None:
    llm = model()
    with opened(llm, price_in=2.0, price_out=10.0) as rag:
        explanation = rag.explain("When was the founder of A born?", analyze=True)
    happened = explanation.happened
    assert happened is not None
    assert len(llm.calls) == 5
    assert (happened.calls, happened.retrievals, happened.answer) == (3, 2, "Ann Lee")
    assert happened.calls in explanation.calls
    assert happened.tokens in explanation.tokens
    assert happened.cost is not None
    assert explanation.cost is not None
    assert happened.cost in explanation.cost
    assert abs(explanation.tokens.expected / happened.tokens - 1) < 0.5


@pytest.mark.parametrize(
    ("source", "inputs", "calls"),
    [
        ("final_answer = {c: answer(f'Who founded {c}?', retrieve(c)) for c in cs}", {"cs": ["A", "B", "C"]}, 3),
        ("final_answer = [answer('Who?', retrieve('x')) for _ in range(4)]", {}, 1),  # equal calls are made once
        ("rows = each(documents(), 'When was it founded?')\nfinal_answer = rows", {}, 40),
        ("docs = [d for d in documents() if d.title.endswith('7')]\nfinal_answer = each(docs, 'When?')", {}, 4),
        ("final_answer = count()", {}, 0),
        (
            "def ask(c):\n    return answer(f'Who founded {c}?', retrieve(c))\nfinal_answer = [ask(c) for c in 'ABC']",
            {},
            3,
        ),
    ],
)
def test_loops_and_enumerations_are_counted_exactly(source: str, inputs: dict[str, Any], calls: int) -> None:
    llm = model()
    with opened(llm, recovery="none") as rag:
        explanation = rag.explain(source, inputs)
    assert llm.calls == []
    assert explanation.error == ""
    assert (explanation.calls.low, explanation.calls.expected, explanation.calls.high) == (calls, calls, calls)


def test_branches_on_answers_lower_the_low_estimate() -> None:
    source = (
        "a = answer('Who?', retrieve('x'))\nif a == 'Bo':\n    a = answer('When?', retrieve('y'))\nfinal_answer = a"
    )
    with opened(model(), recovery="none") as rag:
        explanation = rag.explain(source)
    assert (explanation.calls.low, explanation.calls.high) == (1, 2)
    assert [line.sure for line in explanation.lines] == [True, False]


@pytest.mark.parametrize(
    ("source", "high"),
    [
        ("final_answer = answer('1 + 1?', returns='number')", 2),
        ("final_answer = each(documents(), 'When was it founded?', returns='date')", 80),
        ("final_answer = [answer(c, retrieve(c), None) for c in ['Firm', 'A']]", 4),
    ],
)
def test_replies_of_a_wrong_type_raise_the_high_estimate(source: str, high: int) -> None:
    with opened(model(), recovery="none") as rag:
        explanation = rag.explain(source)
    assert (explanation.calls.expected, explanation.calls.high) == (high / 2, high)


def test_a_branch_that_is_not_reached_counts_its_recoveries() -> None:
    source = (
        "a = answer('Who?', retrieve('Firm'))\nif not is_known(a):\n"
        "    a = answer('Who else?', retrieve('Firm 1'))\nfinal_answer = a"
    )
    llm = Counted({"answer": "<answer>unknown</answer>"})
    with opened(llm) as rag:
        explanation = rag.explain(source, analyze=True)
    happened = explanation.happened
    assert happened is not None
    assert happened.calls == 4
    assert happened.calls in explanation.calls
    assert happened.retrievals in explanation.retrievals


def test_a_program_beyond_placeholders_is_counted_in_its_source() -> None:
    source = (
        "a = answer('Who founded it?', retrieve('x'))\nn = parse_number(a)\n"
        "b = answer('Where?', retrieve('y'))\nfinal_answer = b"
    )
    with opened(model(), recovery="none") as rag:
        explanation = rag.explain(source)
    assert (explanation.calls.low, explanation.calls.high) == (2, 2)
    assert any("needs a real answer to run: line 2" in sentence for sentence in explanation.basis)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("final_answer = (", "was never closed"),
        ("import os\nfinal_answer = answer(os.getcwd())", "import of 'os' is not available"),
        ("final_answer = answer(f'{x}?')", "name 'x' is not defined"),
        ("n = int('many')\nfinal_answer = answer(f'{n}?')", "invalid literal"),
    ],
)
def test_a_program_that_fails_before_its_first_call_is_refused(source: str, words: str) -> None:
    llm = model()
    with opened(llm) as rag:
        explanation = rag.explain(source)
    assert (words in explanation.error, explanation.exit_code, llm.calls) == (True, 1, []), explanation.error


def test_a_wrong_program_has_no_estimate() -> None:
    with opened(model()) as rag:
        explanation = rag.explain("final_answer = anser('q')")
        assert ("Did you mean answer?" in explanation.error, explanation.exit_code) == (True, 1)
        with pytest.raises(UsageError, match="empty"):
            rag.explain(" ")
    with (
        opened(model(), method="vanilla") as rag,
        pytest.raises(ConfigError, match="vanilla writes no program before its calls"),
    ):
        rag.explain("Who?")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_calls": 4}, "needs at least 3 model calls after the 2 of its planning, and max_calls allows 4"),
        ({"max_cost": 0.001, "price_in": 1.0}, "max_cost allows 0.001"),
    ],
)
def test_a_question_beyond_its_limit_is_refused_after_planning(limits: dict[str, Any], words: str) -> None:
    llm = model()
    with opened(llm, **limits) as rag:
        trace = rag.ask("When was the founder of A born?")
    assert trace.error is not None
    assert (trace.error.kind, len(llm.calls), trace.steps) == ("budget", 2, ())
    assert words in trace.error.message


def test_a_limit_that_suffices_lets_the_program_run() -> None:
    with opened(model(), max_calls=5, max_cost=1.0, price_in=1.0) as rag:
        trace = rag.ask("When was the founder of A born?")
    assert (trace.error, trace.answer.text, trace.usage.model_calls) == (None, "Ann Lee", 5)


def test_programs_are_refused_by_settings_and_cut_by_budgets() -> None:
    source = "rows = each(documents(), 'When?')\nfinal_answer = [row.value for row in rows]"
    llm = model()
    with opened(llm, max_calls=10) as rag:
        trace = rag.run(source)
        assert trace.error is not None
        assert ("needs at least 40 model calls" in trace.error.message, llm.calls) == (True, [])
    with opened(llm) as rag:
        trace = rag.run(source, budget={"calls": 10})
    assert (trace.complete, trace.coverage[0].answered) == (False, 10)


def test_earlier_traces_set_the_rates() -> None:
    history = History()
    before = (history.recovery_rate, history.repair_rate)
    with opened(model()) as rag:
        trace = rag.ask("When was the founder of A born?")
        for _ in range(50):
            history.add(trace)
        assert history.recovery_rate < before[0]
        assert history.repair_rate < before[1]
        assert history.reply == 12
        explanation = rag.explain("When was the founder of A born?", traces=[trace] * 9)
    assert any("20 earlier answers" in sentence for sentence in explanation.basis), explanation.basis


def test_call_sites_know_what_answers_decide() -> None:
    source = (
        "for c in ['a']:\n    x = answer(c)\nfor y in split_list(x):\n    z = answer(y)\n"
        "w = answer('q') if x else None\ntry:\n    v = answer('r')\nexcept ValueError:\n    v = answer('s')\n"
        "u = [answer(t) for t in ['b'] if t != x]\n"
    )
    sites = {site.line: (site.sure, site.repeats) for site in call_sites(source, ["answer"], {})}
    assert sites == {
        2: (True, False), 4: (False, True), 5: (False, False), 7: (True, False), 9: (False, False), 10: (False, True),
    }  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "final_answer = answer('q')" + " + 'a'" * 1500,
        "x = answer('q')\nif x == '0':\n    pass\n"
        + "".join(f"elif x == '{number}':\n    pass\n" for number in range(1200))
        + "final_answer = 1",
    ],
)
def test_long_chains_are_refused_with_their_line(source: str) -> None:
    with opened(model(), recovery="none") as rag:
        assert "nested deeper than 60 levels" in rag.explain(source).error
        error = rag.run(source).error
    assert error is not None
    assert "nested deeper than 60 levels" in error.message
    assert [site.name for site in call_sites(source, ["answer"], {})] == ["answer"]


def test_names_are_followed_through_long_programs() -> None:
    steps = "".join(f"    x{number} = x{number + 1}\n" for number in range(3000))  # quadratic, if followed in passes
    source = f"def follow():\n{steps}x3000 = answer('q')\nif x0:\n    y = answer('r')\n"
    assert [site.sure for site in call_sites(source, ["answer"], {})] == [True, False]


def test_tools_are_not_called() -> None:
    called = []

    def lookup(name: str) -> str:
        """Look a name up.

        Args:
            name: Name.
        """
        called.append(name)
        return name

    with PyRAG(retriever=InMemoryRetriever(PASSAGES), tools=[lookup]) as rag:
        explanation = rag.explain("final_answer = lookup('x')")
    assert (called, explanation.error) == ([], "")
    assert [line.primitives for line in explanation.lines] == [("lookup",)]


def test_files_and_questions_are_told_apart(tmp_path: Path) -> None:
    from pyrag.runtime.explain.explaining import is_program

    assert is_program("final_answer = 1")
    assert is_program("x = 1\nfinal_answer = (")
    assert is_program("final_answer = (")
    assert not is_program("What is final_answer in pyrag?")
