"""`pyrag run` over a whole index: values, coverage, recordings and limits on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PROGRAM = """
rows = each(documents('kind = "firm"'), "Who founded it?")
final_answer = {r.item: r.value for r in rows}
"""


@pytest.fixture
def index(pyrag: Run, tmp_path: Path) -> str:
    firms = {"Acme": "Ann Lee", "Blix": "Bo Chan", "Corvo": "Cy Diaz"}
    for name, founder in firms.items():
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / f"docs/{name}.md").write_text(
            f"---\nkind: firm\n---\n# {name}\n\n{name} was founded by {founder}.\n\n## Part\n\nMore on {name}."
        )
    (tmp_path / "docs/zebra.txt").write_text("A zebra has stripes.")
    (tmp_path / "program.py").write_text(PROGRAM)
    assert pyrag("index", "docs", "--out", "ix").returncode == 0
    return "ix"


def test_coverage_is_printed_beside_the_value(pyrag: Run, index: str) -> None:
    done = pyrag("run", "program.py", "--index", index)
    assert json.loads(done.stdout) == {"Acme": "Ann Lee", "Blix": "Bo Chan", "Corvo": "Cy Diaz"}
    assert "pyrag: 3 of 3 documents answered, 0 unknown" in done.stderr


def test_coverage_of_several_questions_names_each_question(pyrag: Run, index: str) -> None:
    questions = "('Who founded it?', 'What has stripes?')"
    program = f"docs = documents()\nfinal_answer = [len(each(docs, question)) for question in {questions}]"
    done = pyrag("run", "-", "--index", index, "--trace", "trace.json", stdin=program)
    lines = [line for line in done.stderr.splitlines() if "documents answered" in line]
    assert [line.rpartition(": ")[2] for line in lines] == ["Who founded it?", "What has stripes?"]
    shown = pyrag("trace", "show", "trace.json").stdout
    assert "weak: Who founded it?" in shown
    assert "unknown: What has stripes?" in shown


@pytest.mark.parametrize("value", ['["Acme"', "{'a': 1}", "[Acme]"])
def test_malformed_lists_and_objects_are_refused_as_inputs(pyrag: Run, value: str) -> None:
    done = pyrag("run", "-", "--input", f"names={value}", stdin="final_answer = names")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--input names is not valid JSON" in done.stderr
    assert json.loads(pyrag("run", "-", "--input", 'names=["a"]', stdin="final_answer = names").stdout) == ["a"]
    assert (
        pyrag("run", "-", "--input", f"names={json.dumps(value)}", stdin="final_answer = names").stdout.strip() == value
    )


def test_limits_refuse_a_program_that_exceeds_them(pyrag: Run, index: str) -> None:
    done = pyrag("run", "program.py", "--index", index, "--max-calls", "1", "--json")
    shown = json.loads(done.stdout)
    assert (done.returncode, shown["value"], shown["error"]["kind"]) == (1, None, "budget")
    assert "it needs at least 3 model calls" in shown["error"]["message"]
    assert pyrag("run", "program.py", "--index", index, "--max-calls", "3", "--json").returncode == 0


def test_recorded_program_replays_without_its_index(pyrag: Run, index: str, tmp_path: Path) -> None:
    first = pyrag("run", "program.py", "--index", index, "--record", "calls.jsonl", "--json")
    (tmp_path / "docs/other.txt").write_text("Other.")
    assert pyrag("index", "docs/other.txt", "--out", "other").returncode == 0
    again = pyrag("run", "program.py", "--index", "other", "--llm", "replay:calls.jsonl", "--json")
    assert json.loads(again.stdout)["value"] == json.loads(first.stdout)["value"]
    assert json.loads(again.stdout)["coverage"] == json.loads(first.stdout)["coverage"]


def test_traces_show_what_each_call_did(pyrag: Run, index: str) -> None:
    assert pyrag("run", "program.py", "--index", index, "--trace", "trace.jsonl").returncode == 0
    shown = pyrag("trace", "show", "trace.jsonl")
    assert shown.returncode == 0
    assert "documents" in shown.stdout
    assert "3 of 3 documents answered, 0 unknown" in shown.stdout


def test_recorded_question_over_all_documents_replays(pyrag: Run, index: str) -> None:
    ask = ("ask", "For each firm, who founded it?", "--json")
    first = json.loads(pyrag(*ask, "--index", index, "--profile", "corpus", "--record", "calls.jsonl").stdout)
    assert {row["item"]: row["value"] for row in first["value"]} == {
        "Acme": "Ann Lee", "Blix": "Bo Chan", "Corvo": "Cy Diaz",
    }  # fmt: skip
    again = json.loads(pyrag(*ask, "--llm", "replay:calls.jsonl").stdout)
    assert (again["value"], again["coverage"]) == (first["value"], first["coverage"])


def test_coverage_is_printed_beside_an_answer(pyrag: Run, index: str) -> None:
    done = pyrag("ask", "Which documents mention Acme?", "--index", index, "--profile", "corpus")
    assert done.stdout == "Acme\n"
    assert "pyrag: 4 of 4 documents answered, 0 unknown" in done.stderr


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many documents are there?", "4"),
        ("List all leases that mention the bakery", "South"),
        ("For each lease, what is the monthly rent?", "North: 4,200 euros; South: 1,750 euros; West: unknown"),
        ("Which lease has the highest monthly rent?", "North: 4200 EUR"),
        ("How many leases have a monthly rent above 2000 euros?", "1"),
    ],
)
def test_questions_over_all_documents_print_their_value(pyrag: Run, tmp_path: Path, question: str, answer: str) -> None:
    texts = {
        "north": "The tenant is Berg Mills. The monthly rent is 4,200 euros.",
        "south": "The tenant is Alpha Bakery. The monthly rent is 1,750 euros.",
        "west": "The tenant is Gamma Freight.",
    }
    (tmp_path / "all/leases").mkdir(parents=True)
    for name, text in texts.items():
        (tmp_path / f"all/leases/{name}.md").write_text(f"# {name.capitalize()}\n\n{text}")
    (tmp_path / "all/zebra.txt").write_text("A zebra has stripes.")
    assert pyrag("index", "all", "--out", "ix").returncode == 0
    asked = pyrag("ask", question, "--index", "ix", "--profile", "corpus")
    assert (asked.returncode, asked.stdout) == (0, f"{answer}\n")
