"""Questions of strangers over tables: groups, refusals with their reason, and programs of language models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.own_documents import tables_of_trades
from benchmarks.own_documents.tables import FILES, asked, verdict, write_files
from pyrag import PyRAG
from pyrag.cli.app import app
from pyrag.llm.clients.scripted import ScriptedChat, role_of
from pyrag.llm.protocol import Message
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage, Trace

MIXED = {
    "trips.csv": "Trip,Who,Cost,Currency\nBern,Lea,610,CHF\nOslo,Kim,840,NOK\nHamar,Kim,300,NOK\n",
    "loads.md": "# Loads\n\n| Load | Weight |\n|---|---|\n| Sand | 2 t |\n| Salt | 300 kg |\n| Grit | about 1 t |\n",
    "sold_may.csv": "Ticket,Hall,Seats\nA1,East,2\nA2,West,4\n",
    "sold_june.csv": "Ticket,Hall,Seats\nB1,East,3\nB2,East,1\n",
}


def indexed(folder: Path, files: dict[str, str]) -> str:
    (folder / "docs").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["index", str(folder / "docs"), "--out", str(folder / "index")])
    assert done.exit_code == 0, done.output
    return str(folder / "index")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    return indexed(tmp_path_factory.mktemp("mixed"), MIXED)


@pytest.fixture(scope="module")
def rag(index: str) -> Iterator[PyRAG]:
    with PyRAG(retriever=index) as opened:
        yield opened


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyRAG]:
    folder = tmp_path_factory.mktemp("strangers")
    (folder / "docs").mkdir()
    write_files(folder / "docs", sheets=False)
    with PyRAG(retriever=indexed(folder, {})) as opened:
        yield opened


def ask(index: str, question: str) -> Result:
    return CliRunner().invoke(app, ["ask", "--index", index, question])


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("What is the total cost?", "different units: chf, nok"),
        ("What is the average cost of the trips?", "different units: chf, nok"),
        ("Which trip was the most expensive?", "different units: chf, nok"),
        ("Which load has the highest weight?", "'about 1 t' in the column 'Weight' is not a number"),
        ("How many tickets are in the hall East?", "tables fit and differ"),
    ],
)
def test_refused_computations_are_unknown_with_their_reason(index: str, question: str, reason: str) -> None:
    done = ask(index, question)
    assert done.stdout.strip() == "unknown"
    assert reason in done.stderr
    assert "unknown: " in done.stderr


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Which trip started on 2023-14-40?", "'2023-14-40' is not in the calendar"),
        ("How many trips were made before 2023-02-30?", "'2023-02-30' is not in the calendar"),
        ("Who travelled on 31 June?", "'31 June' is not in the calendar"),
        ("Which trip began at 24:75?", "'24:75' is not a time of the day"),
        ("What did the trips cost in Q6 2023?", "'Q6 2023' is not in the calendar"),
        ("Which trip was in week 57 of 2023?", "'week 57' is not in the calendar"),
    ],
)
def test_times_that_do_not_exist_are_unknown(index: str, question: str, reason: str) -> None:
    done = ask(index, question)
    assert done.stdout.strip() == "unknown"
    assert f"unknown: {reason}" in done.stderr


def test_a_table_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.episode.corpus.tables.MAX_ROWS", 90)
    rows = "".join(f"g{place},hut {place % 9},{place % 40}\n" for place in range(99))
    notes = "# The keeper\n\nThe keeper of the huts is Edda Moe. The keeper has 3 dogs.\n"
    index = indexed(tmp_path, {"gauges.csv": f"Gauge,Hut,Level\n{rows}", "keeper.md": notes})
    questions = ("What is the average level?", "How many gauges are in hut 4?", "Which gauge has the highest level?")
    for question in questions:
        done = ask(index, question)
        assert done.stdout.strip() == "unknown"
        assert "the tables have 99 rows, over 90" in done.stderr
    assert ask(index, "Who is the keeper of the huts?").stdout.strip() == "Edda Moe"
    with PyRAG(retriever=index) as opened:
        trace = opened.run('final_answer = read_tables(retrieve("gauge level"))')
        assert trace.error is not None
        assert "the tables have 99 rows, over 90" in trace.error.message


def test_a_refusal_is_never_read_from_a_row(index: str) -> None:
    with PyRAG(retriever=index, whole_question=True) as opened:
        trace = opened.ask("What is the total cost?")
    assert not trace.answer.known
    assert not [step for step in trace.steps if step.primitive == "answer"]
    assert trace.remark == "unknown: the numbers of the column 'Cost' have different units: chf, nok"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the total cost per currency?", "CHF: 610 CHF; NOK: 1140 NOK"),
        ("Who spent the most in NOK?", "Kim"),
        ("What is the total cost of the trips in NOK?", "1140 NOK"),
        ("Which hall sold the most seats in the sold may table?", "West"),
    ],
)
def test_parts_with_one_unit_are_computed(rag: PyRAG, question: str, expected: str) -> None:
    trace = rag.ask(question)
    assert trace.answer.text == expected
    assert trace.citations
    assert not trace.weak


def test_strangers_questions_are_right_or_unknown(strangers: PyRAG) -> None:
    verdicts = {question: verdict(strangers.ask(question), gold) for name, question, gold in asked() if name in FILES}
    assert [question for question, result in verdicts.items() if result == "confident wrong"] == []
    assert sum(result == "right" for result in verdicts.values()) >= 54, verdicts


def test_questions_over_tables_of_trades_are_right(tmp_path: Path) -> None:
    questions = tables_of_trades.COMPUTED[::3]
    with PyRAG(retriever=indexed(tmp_path, tables_of_trades.FILES)) as opened:
        verdicts = {question: verdict(opened.ask(question), gold) for question, gold in questions}
    assert [question for question, result in verdicts.items() if result != "right"] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('table_value(tables, "sum", column="cost", where="NOK", by="who", rank="highest")', "Kim"),
        ('table_value(tables, "count", where="trips", by="who")', {"Lea": 1, "Kim": 2}),
        ('table_value(tables[0]["rows"], "highest", column="cost", where="NOK", show="trip")', "Oslo"),
        ('table_value(tables, "share", column="trips", where="trips in NOK")', "66.67%"),
    ],
)
def test_programs_of_a_model_group_and_rank(rag: PyRAG, source: str, expected: Any) -> None:
    trace = rag.run(f'tables = read_tables("trips.csv")\nfinal_answer = {source}')
    assert trace.error is None, trace.error.message
    assert trace.value == expected


def planned(index: str, *programs: str) -> tuple[Trace, list[str]]:
    """Return the trace of a question whose Plan agent writes the programs in turn, and that agent's prompts."""
    prompts: list[str] = []
    remaining = list(programs)

    def reply(messages: Sequence[Message]) -> str:
        if role_of(messages) == "decompose":
            return '{"sub_queries": ["What does each trip cost?"]}'
        prompts.append("\n".join(message.content for message in messages))
        return f"```python\n{remaining.pop(0)}\n```"

    with PyRAG(llm=ScriptedChat(reply), retriever=index, profile="corpus", stream=False) as opened:
        return opened.ask("What do the trips cost in total?"), prompts


def test_a_model_sees_refusals_and_groups_instead(index: str) -> None:
    summed = 'final_answer = table_value(read_tables(retrieve("trips cost")), "sum", column="cost", where="trips")'
    trace, prompts = planned(index, summed, summed.replace('where="trips"', 'where="trips", by="currency"'))
    assert "different units: chf, nok" in prompts[-1]
    assert 'table_value(tables, "sum", column="price", by="customer", rank="highest")' in prompts[0]
    assert trace.value == {"CHF": "610 CHF", "NOK": "1140 NOK"}


def test_a_model_may_end_with_its_reason(index: str) -> None:
    summed = 'final_answer = table_value(read_tables(retrieve("trips cost")), "sum", column="cost")'
    caught = f'try:\n    {summed}\nexcept TableError as error:\n    final_answer = f"unknown: {{error}}"'
    trace, _ = planned(index, caught)
    assert not trace.answer.known
    assert trace.remark == "unknown: the numbers of the column 'Cost' have different units: chf, nok"


def test_numbers_of_documents_keep_their_units() -> None:
    texts = {"ash": "The ash tree gave 12 kg.", "elm": "The elm tree gave 30 kg.", "oak": "The oak tree gave 7 kg."}
    source = 'rows = each(documents(), "How much did the tree give?", returns="number")\n'
    passages = [Passage(name, name, text) for name, text in texts.items()]
    with PyRAG(retriever=InMemoryRetriever(passages)) as opened:
        trace = opened.run(f"{source}final_answer = [[row.value, row.unit] for row in rows]")
        assert trace.value == [[12, "kg"], [30, "kg"], [7, "kg"]]


def test_numbers_in_unlike_units_are_not_compared() -> None:
    texts = {"ash": "The ash tree gave 12 kg.", "elm": "The elm tree gave 300 g."}
    source = 'rows = each(documents(), "How much did the tree give?", returns="number")\nfinal_answer = len(rows)'
    passages = [Passage(name, name, text) for name, text in texts.items()]
    with PyRAG(retriever=InMemoryRetriever(passages)) as opened:
        trace = opened.run(source)
        assert trace.error is not None
        assert "the numbers have different units: 12 kg (ash), 300 g (elm)" in trace.error.message
