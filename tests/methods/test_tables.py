"""Whole tables of an index as data for programs, and questions that the embedded engine computes over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pyrag import PyRAG
from pyrag.cli.app import app
from pyrag.episode.corpus.table_data import of_passages
from pyrag.retrieval.index import update_index
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.model import Passage, Trace
from pyrag.trace.plain import encoded

NAMES = [f"{first} {last}" for first in ("Ada", "Ben", "Cleo", "Dan", "Eva") for last in ("Krug", "Moe", "Lind", "Vik")]
CITIES = ("Berlin", "Oslo", "Lisbon")


def files() -> dict[str, str]:
    """Return the files of the index, in which no table fits into the passages of one search."""
    staff = [f"{name};{CITIES[place % 3]};{4000 + 10 * place}" for place, name in enumerate(NAMES)]
    prices = [f"| Lamp {place} | {place}.50 | {place % 4} |" for place in range(1, 61)]
    sales = "".join(
        f"<tr><td>{month}</td><td>{year}</td><td>{amount}</td></tr>"
        for month, year, amount in (("May", 2024, 100), ("June", 2024, 200), ("May", 2025, 400), ("June", 2025, 800))
    )
    return {
        "staff.csv": "\n".join(["Name;City;Salary", *staff, ""]),
        "prices.md": "\n".join(["# Price list", "", "| Product | Price | Stock |", "|---|---|---|", *prices, ""]),
        "sales.html": f"<h1>Sales</h1><table><tr><th>Month</th><th>Year</th><th>Amount</th></tr>{sales}</table>",
        "visit.md": "# Visit\n\nThe plant in Tampere has 140 visitors a day. It was opened in 1998.\n",
    }


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyRAG]:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "docs").mkdir()
    for name, text in files().items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["index", str(folder / "docs"), "--out", str(folder / "index")])
    assert done.exit_code == 0, done.output
    with PyRAG(retriever=str(folder / "index")) as opened:
        yield opened


def value_of(trace: Trace) -> Any:
    assert trace.error is None, trace.error.message
    return trace.value


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many employees are in Berlin?", "7"),
        ("What is the number of employees in Oslo?", "7"),
        ("How many employees are not in Berlin?", "13"),
        ("How many of our employees earn more than 4,100?", "9"),
        ("Which employee has the highest salary?", "Eva Vik"),
        ("Who has the lowest salary in Oslo?", "Ada Moe"),
        ("What is the average salary of the employees?", "4095"),
        ("How much more does Ben Vik earn than Ben Krug?", "30"),
        ("Which product has the highest price?", "Lamp 60"),
        ("What is the cheapest product?", "Lamp 1"),
        ("How many products have a stock of more than 2?", "15"),
        ("How much more expensive is Lamp 60 than Lamp 12?", "48"),
        ("What is the difference in price between Lamp 7 and Lamp 3?", "4"),
        ("What is the total of amount for 2025?", "1200"),
        ("What is the sum of the amounts in 2024?", "300"),
        ("What is the sum of the amounts?", "1500"),
        ("Which month of 2025 has the highest amount?", "June"),
    ],
)
def test_questions_are_computed_over_all_rows(rag: PyRAG, question: str, expected: str) -> None:
    trace = rag.ask(question)
    assert trace.answer.text == expected
    assert trace.citations
    assert not trace.weak


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many visitors does the plant in Tampere have a day?", "140"),
        ("When was the plant in Tampere opened?", "1998"),
        ("How many pilots are in Berlin?", None),
    ],
)
def test_other_questions_are_read_as_before(rag: PyRAG, question: str, expected: str | None) -> None:
    trace = rag.ask(question)
    assert not trace.answer.known or trace.weak or trace.answer.text.startswith(str(expected))
    assert all(citation.passage.startswith("visit.md") for citation in trace.citations if expected)


def test_programs_read_whole_tables(rag: PyRAG) -> None:
    source = (
        'tables = read_tables(retrieve("Lamp 7 price", topk=1))\n'
        'final_answer = [tables[0]["title"], tables[0]["source"], len(tables[0]["rows"]), tables[0]["rows"][6]]'
    )
    row = {"Product": "Lamp 7", "Price": 7.5, "Stock": 3}
    title, name, rows, seventh = value_of(rag.run(source))
    assert (title, name.rpartition("/")[2], rows, seventh) == ("Price list", "prices.md", 60, row)


def test_tables_are_read_from_documents_and_ids(rag: PyRAG) -> None:
    source = (
        'prices = [doc for doc in documents() if doc.title == "Price list"]\n'
        'final_answer = [len(table["rows"]) for table in read_tables(prices) + read_tables("sales.html")]'
    )
    assert value_of(rag.run(source)) == [60, 4]


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("staff.csv", [2, 20]),
        ("docs/staff.csv", [20]),
        ("./docs/old/staff.csv", [2]),
        ("old/staff.csv", [2]),
        ("prices.md", [60]),
        ("docs/prices.md", [60]),
        ("visit.md", []),
    ],
)
def test_tables_of_a_relative_folder_are_read_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lengths: list[int]
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, text in {**files(), "old/staff.csv": "Name;City;Salary\nFay;Oslo;1\nGus;Oslo;2\n"}.items():
        Path("docs", path).parent.mkdir(parents=True, exist_ok=True)
        Path("docs", path).write_text(text, encoding="utf-8")
    update_index([Path("docs")], Path("index"))
    with PyRAG(index="index") as opened:
        trace = opened.run(f'final_answer = [len(table["rows"]) for table in read_tables("{name}")]')
    assert sorted(value_of(trace)) == lengths


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("staf.csv", "there is no document or file 'staf.csv': did you mean 'staff.csv'?"),
        ("aff.csv", "did you mean 'staff.csv'?"),
        ("prises.md", "did you mean 'prices.md'?"),
        ("zoo.xlsx", "there is no document or file 'zoo.xlsx': take one that documents() returned"),
    ],
)
def test_unknown_names_of_files_are_refused_with_advice(rag: PyRAG, name: str, advice: str) -> None:
    trace = rag.run(f'final_answer = table_value(read_tables("{name}"), "count")')
    assert trace.error is not None
    assert advice in trace.error.message


def test_no_table_is_an_empty_list(rag: PyRAG) -> None:
    assert value_of(rag.run('final_answer = read_tables(retrieve("plant in Tampere", topk=1))')) == []


def test_callers_filter_holds_for_tables(rag: PyRAG) -> None:
    source = 'final_answer = table_value(read_tables(retrieve("staff Berlin")), "count")'
    assert value_of(rag.run(source)) == 20
    assert value_of(rag.run(source, where='City = "Berlin"')) == 7


def test_wrong_arguments_are_explained(rag: PyRAG) -> None:
    trace = rag.run("final_answer = read_tables(7)")
    assert trace.error is not None
    assert "needs passages, documents or their ids, not" in trace.error.message


def test_tables_of_passages_in_memory() -> None:
    table = "| Bell | Weight (kg) |\n|---|---|\n| Greta | 120 |\n| Mina | 340 |"
    with PyRAG(retriever=InMemoryRetriever([Passage("bells", "Bells", table)])) as opened:
        assert opened.ask("Which bell has the highest weight?").answer.text == "Mina"


def test_replays_need_no_index(rag: PyRAG, tmp_path: Path) -> None:
    source = 'final_answer = table_value(read_tables(retrieve("staff Berlin")), "count", where="Berlin")'
    trace = rag.run(source, keep=True)
    (tmp_path / "record.jsonl").write_bytes(b"\n".join(map(encoded, trace.exchanges)))
    with PyRAG(f"replay:{tmp_path / 'record.jsonl'}", retriever=InMemoryRetriever([])) as other:
        assert value_of(other.run(source)) == 7


def test_like_tables_of_other_files_are_not_forgotten(tmp_path: Path) -> None:
    """A search may return rows of one file only, though the question means all of them."""
    (tmp_path / "docs").mkdir()
    for year in (2023, 2024, 2025):
        rows = "".join(f"{year}-{n},Foo,{n}\n" for n in range(30))
        (tmp_path / f"docs/orders_{year}.csv").write_text(f"order,customer,amount\n{rows}{year}-x,Foo,{year - 2000}\n")
    done = CliRunner().invoke(app, ["index", str(tmp_path / "docs"), "--out", str(tmp_path / "index")])
    assert done.exit_code == 0, done.output
    with PyRAG(retriever=str(tmp_path / "index")) as opened:
        for question in ("How many orders are there?", "What is the total amount?"):
            trace = opened.ask(question)
            assert trace.weak or not trace.answer.known
        assert opened.ask("What is the total amount of orders 2024?").answer.text == str(435 + 24)


@pytest.mark.parametrize(("name", "stock"), [("a.xlsx", 1250), ("A.XLS", 1250), ("a.md", "1,250"), ("a.ods", "1,250")])
def test_numbers_of_excel_files_have_english_marks(name: str, stock: object) -> None:
    text = "| Item | Stock | Weight |\n|---|---|---|\n| Lamp | 1,250 | 12,5 kg |\n| Desk | 3,050 | 8 kg |"
    (table,) = of_passages([Passage("1", "Shop", text, source=name)])
    assert table.rows[0]["Stock"] == stock
