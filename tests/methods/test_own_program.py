"""Programs of callers: values, citations of items, inputs, budgets, faults that an author can mend in one go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pyrag import Budget, PyRAG
from pyrag.errors import ConfigError, FilterError, UsageError
from pyrag.methods.program_reference import answer, program_reference, retrieve
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Passage, Trace
from pyrag_helpers import HELPERS

FOUNDERS = {"Acme": "Ann Lee", "Blix": "Bo Chan", "Corvo": "Cy Diaz"}
ASKED = 'answer(f"Who founded {c}?", retrieve(f"{c} founded"))'


@pytest.fixture(scope="module")
def rag() -> Iterator[PyRAG]:
    passages = [
        Passage(name.lower(), name, f"{name} was founded by {founder} in {1990 + number}.", metadata={"n": number})
        for number, (name, founder) in enumerate(FOUNDERS.items())
    ]
    with PyRAG(retriever=InMemoryRetriever(passages)) as opened:
        yield opened


def cited(trace: Trace, item: str) -> set[str]:
    numbers = {citation.number: citation.passage for citation in trace.citations}
    return {numbers[number] for number in trace.item_citations[item]}


def test_value_is_any_json_with_citations_per_item(rag: PyRAG) -> None:
    trace = rag.run(
        f'"""Founders."""\nfinal_answer = {{c: {ASKED} for c in companies}}', {"companies": ["Acme", "Blix"]}
    )
    assert trace.error is None
    assert trace.value == {"Acme": "Ann Lee", "Blix": "Bo Chan"}
    assert (cited(trace, "Acme"), cited(trace, "Blix")) == ({"acme"}, {"blix"})
    assert (trace.method, trace.question, trace.sub_queries, trace.usage.model_calls) == ("program", "Founders.", (), 0)
    read = from_json(to_json(trace))
    assert (read.value, read.item_citations) == (trace.value, trace.item_citations)


@pytest.mark.parametrize(
    ("source", "item", "passages"),
    [
        (f"rows = []\nfor c in cs:\n    rows.append({{'name': c, 'by': {ASKED}}})\nfinal_answer = rows", "1", {"blix"}),
        (f"final_answer = [len({ASKED}) for c in cs]", "0", {"acme"}),
        (f"c = 'Acme'\na = {ASKED}\nc = 'Blix'\nb = {ASKED}\nfinal_answer = {{'a': a[:1], 'b': b[1:]}}", "b", {"blix"}),
        ("docs = retrieve('Corvo founded', topk=1)\nfinal_answer = {'top': docs[0], 'k': 3}", "top", {"corvo"}),
        ("docs = retrieve('Corvo founded', topk=1)\nfinal_answer = [d.title for d in docs]", "0", {"corvo"}),
        ("final_answer = {'known': 1}", "known", set()),
    ],
)  # fmt: skip
def test_each_item_has_its_own_citations(rag: PyRAG, source: str, item: str, passages: set[str]) -> None:
    trace = rag.run(source, {"cs": ["Acme", "Blix"]})
    assert trace.error is None
    assert cited(trace, item) == passages


def test_item_of_a_function_keeps_all_sources(rag: PyRAG) -> None:
    source = f"def ask(c):\n    return str({ASKED}).lower()\nfinal_answer = {{'a': ask('Acme'), 'b': ask('Blix')}}"
    assert cited(rag.run(source), "a") >= {"acme"}


def test_unknown_items_are_marked_and_cite_nothing(rag: PyRAG) -> None:
    trace = rag.run("final_answer = [answer('Who is the king of Mars?', retrieve('king Mars')), None]")
    assert (trace.value, trace.answer.known) == (["unknown", None], False)
    assert trace.item_citations == {"0": (), "1": ()}


@pytest.mark.parametrize(
    ("source", "line", "quoted", "words"),
    [
        ("x = 1\ny = anser('q')\nfinal_answer = y", 2, "y = anser('q')", "Did you mean answer?"),
        (
            "final_answer = each(documents(), f'Who founded {title}?')",
            1,
            "final_answer = each(documents(), f'Who founded {title}?')",
            "Leave out the f before the question: each() fills in {title}",
        ),
        ("final_answer = each('Q?')", 1, "final_answer = each('Q?')", "write each(items, question, returns=…)"),
        ("final_answer = retrieve('x', k=3)", 1, "final_answer = retrieve('x', k=3)", "(query, topk=…, where=…)"),
        ("final_answer = people[0]", 1, "final_answer = people[0]", "pass it as an input (--input people=…"),
        ("final_answer = await retrieve('x')", 1, "final_answer = await retrieve('x')", "without await"),
        ("a = 1\nreturn a", 2, "return a", "Assign the result to final_answer"),
        ("final_answer = retrieve('x', topk=0)", 1, "final_answer = retrieve('x', topk=0)", "between 1 and 100"),
        ("final_answer = int('seven')", 1, "final_answer = int('seven')", "parse_number"),
        ("import os\nfinal_answer = 1", 1, "import os", "offered modules"),
        ("final_answer = retrieve('Acme')[0].titel", 1, "final_answer = retrieve('Acme')[0].titel", "there are: id"),
        ("final_answer = answer('q', 'docs')", 1, "final_answer = answer('q', 'docs')", "passages from retrieve"),
        ("```python\nfinal_answer = 1\n```", 1, "```python", "Markdown fences"),
        ("x = {'a': 1}\nfinal_answer = x['b']", 2, "final_answer = x['b']", "Use .get(key)"),
    ],
)
def test_fault_names_line_and_says_what_to_write(rag: PyRAG, source: str, line: int, quoted: str, words: str) -> None:
    error = rag.run(source).error
    assert error is not None
    assert (error.kind, error.line, error.source_line) == ("program", line, quoted)
    assert f"line {line}: {quoted}\n" in error.message
    assert words in error.message


def test_records_as_keys_are_refused_with_what_to_write(rag: PyRAG) -> None:
    trace = rag.run("final_answer = {doc: 1 for doc in documents()}")
    assert trace.error is not None
    assert "use text as keys, such as a field of the record" in trace.error.message


@pytest.mark.parametrize("source", ["x = 1", "if 0:\n    final_answer = 1", "while True:\n    pass\nfinal_answer = 1"])
def test_program_without_a_value_says_why(rag: PyRAG, source: str) -> None:
    error = rag.run(source).error
    assert error is not None
    assert error.kind == "program"
    assert "final_answer" in error.message or "the program was stopped" in error.message


def test_output_is_returned_even_after_an_error(rag: PyRAG) -> None:
    trace = rag.run("print('so far')\nfinal_answer = [][0]")
    assert trace.programs[-1].output == "so far\n"


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"retrieve": 1}, "rename it"),
        ({"parse_date": 1}, "rename it"),
        ({"_x": 1}, "cannot be a name"),
        ({"for": 1}, "cannot be a name"),
        ({"x": {1, 2}}, "not JSON values"),
        ({"x": float("nan")}, "not JSON values"),
        ({"x": {1: 2}}, "not JSON values"),
        ([1], "must be a dict"),
    ],
)
def test_wrong_inputs_are_refused_before_running(rag: PyRAG, inputs: Any, words: str) -> None:
    try:
        error = rag.run("final_answer = 1", inputs).error
        message = "" if error is None else error.message
    except UsageError as refusal:
        message = str(refusal)
    assert words in message


@pytest.mark.parametrize("value", ["text", "ünï\n'\"", 3, 2.5, True, None, [1, ["a"]], {"a": {"b": [None]}}, {"$h": 3}])
def test_inputs_arrive_as_they_were_given(rag: PyRAG, value: Any) -> None:
    assert rag.run("final_answer = {'v': x}", {"x": value}).value == {"v": value}


def test_empty_or_long_programs_are_refused(rag: PyRAG) -> None:
    for source in ("", " \n", "#" * 70_000, 3):
        with pytest.raises(UsageError, match="program"):
            rag.run(source)  # type: ignore[arg-type]


def test_budget_bounds_calls_and_keeps_what_was_answered() -> None:
    passages = [Passage(name, name, f"{name} was founded by {by}.") for name, by in FOUNDERS.items()]
    source = f"rows = []\nfor c in cs:\n    rows.append({ASKED})\nfinal_answer = rows"
    with PyRAG(retriever=InMemoryRetriever(passages)) as rag:
        trace = rag.run(source, {"cs": list(FOUNDERS)}, budget=Budget(calls=2))
        assert trace.error is not None
        assert trace.error.kind == "budget"
        assert rag.run(source, {"cs": list(FOUNDERS)}).value == list(FOUNDERS.values())
        with pytest.raises(UsageError, match="did you mean 'calls'"):
            rag.run(source, budget={"call": 2})  # type: ignore[typeddict-unknown-key]
        with pytest.raises(UsageError, match="whole number"):
            rag.run(source, budget={"calls": 2.5})  # type: ignore[typeddict-item]
        with pytest.raises(ConfigError, match="max_calls"):
            rag.run(source, budget={"calls": 0})


def test_filter_of_the_caller_holds_for_the_program(rag: PyRAG) -> None:
    searches = "retrieve('founded', topk=9) + retrieve('founded', where='n >= 0')"
    source = f"final_answer = [d.id for d in {searches}]"
    assert set(rag.run(source, where="n >= 1").value) == {"blix", "corvo"}
    with pytest.raises(FilterError):
        rag.run(source, where="n >=")


def test_tools_of_one_run_are_offered_to_it_only(rag: PyRAG) -> None:
    def price(company: str) -> int:
        """Price of a share."""
        return len(company)

    source = "final_answer = price('Acme') + 1"
    assert rag.run(source, tools=[price]).value == 5
    error = rag.run(source).error
    assert error is not None
    assert "price" in error.message


def test_equal_calls_are_made_and_recorded_once(rag: PyRAG) -> None:
    trace = rag.run(f"c = 'Acme'\na = {ASKED}\nb = {ASKED}\nfinal_answer = [a, b]", keep=True)
    assert sum(step.memo for step in trace.steps) == 2
    assert len(trace.exchanges) == 2


def test_programs_run_beside_each_other_in_one_loop(rag: PyRAG) -> None:
    async def all_of_them() -> list[Any]:
        source = f"final_answer = {ASKED}"
        return [trace.value for trace in await asyncio.gather(*(rag.arun(source, {"c": c}) for c in FOUNDERS))]

    assert asyncio.run(all_of_them()) == list(FOUNDERS.values())


def test_reference_lists_all_that_programs_may_call() -> None:
    text = program_reference()
    names = [function.__name__ for function in (retrieve, answer)] + list(HELPERS)
    assert all(f"### `{name}(" in text for name in names)
    assert "topk: int = 5" in text


def test_programs_of_the_reference_run(rag: PyRAG) -> None:
    lines = [line.removeprefix("    ") for line in program_reference().splitlines() if line.startswith("    ")]
    program = "\n".join(lines[: next(i for i, line in enumerate(lines) if line.startswith("final_answer")) + 1])
    trace = rag.run(program, {"company": "Acme"})
    assert trace.error is None or "unknown" in trace.error.message
    assert trace.steps[1].answer is not None
    assert trace.steps[1].answer.text == "Ann Lee"
