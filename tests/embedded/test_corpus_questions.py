"""Questions over all documents, read by the embedded planner's rules, and answered over a made corpus of 300."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.agents.corpus.overview import CorpusOverview, overview_of
from pyrag.embedded.planner.corpus.program import corpus_program
from pyrag.embedded.planner.corpus.reading import asks_for_count, read_corpus_question
from pyrag.trace.model import Trace
from tests.cli.conftest import pyrag_in

TEAMS, PEOPLE, LAWS = ("ops", "legal", "sales"), ("Ada Lind", "Bo Chan", "Cy Diaz"), ("Delaware", "England", "New York")
FIRMS = ("Acme Ltd", "Blix Inc", "Corvo AG", "Dunmore plc")
CONTRACTS, MEMOS = 200, 100


@dataclass(frozen=True)
class Made:
    """Document of the made corpus. `law`, `cap`, `firm` and `signer` stand only in its text."""

    number: int
    kind: str
    team: str
    year: int
    author: str = ""
    status: str = ""
    law: str = ""
    cap: int = 0
    firm: str = ""
    signer: str = ""

    @property
    def title(self) -> str:
        return f"{self.kind.title()} {self.number:03}"


def made() -> list[Made]:
    choose = random.Random(7).choice
    years = range(2016, 2024)
    contracts = [
        Made(
            n, "contract", choose(TEAMS), choose(years), status=choose(("active", "expired")), law=choose(LAWS),
            cap=choose((0, *range(1000, 200_000, 1000))), firm=choose(FIRMS), signer=choose(PEOPLE),
        )
        for n in range(CONTRACTS)
    ]  # fmt: skip
    memos = [Made(n, "memo", choose(TEAMS), choose(years), choose(PEOPLE), firm=choose(FIRMS)) for n in range(MEMOS)]
    return [*contracts, *memos]


def text_of(document: Made) -> str:
    if document.kind == "memo":
        return f"This memo by {document.author} reports on the audit of {document.firm}."
    law = (f"governed by the laws of {document.law}", f"governed by the law of {document.law}")[document.number % 2]
    cap = f"The penalty cap is {document.cap:,} euros." if document.cap else "No penalties apply."
    signed = f"It was signed by {document.signer} on 3 May {document.year}."
    return f"This contract with {document.firm} is {law}.\n\n{cap} {signed}"


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyRAG]:
    folder = tmp_path_factory.mktemp("made")
    for document in made():
        path = folder / f"docs/{document.kind}s/{document.number:03}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        fields = {"kind": document.kind, "team": document.team, "year": document.year}
        fields |= {"author": document.author} if document.author else {"status": document.status}
        head = "\n".join(f"{name}: {value}" for name, value in fields.items())
        path.write_text(f"---\n{head}\n---\n# {document.title}\n\n{text_of(document)}\n")
    assert pyrag_in(folder)("index", "docs", "--out", "ix").returncode == 0
    with PyRAG(retriever=folder / "ix", profile="corpus") as opened:
        yield opened


def listed(trace: Trace) -> list[str]:
    assert trace.error is None
    return sorted(row.get("item") or row["title"] for row in trace.value)


def titles(condition: Any) -> list[str]:
    return sorted(document.title for document in made() if condition(document))


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("How many documents are there?", lambda d: True),
        ("How many contracts are there?", lambda d: d.kind == "contract"),
        ("How many contracts and memos are there?", lambda d: True),
        (
            "How many active contracts of the legal team are there?",
            lambda d: d.status == "active" and d.team == "legal",
        ),
        ("How many memos did Ada Lind write?", lambda d: d.author == "Ada Lind"),
        ("List all memos by Bo Chan from 2021", lambda d: d.author == "Bo Chan" and d.year == 2021),
        (
            "List all contracts where year >= 2022 and team is ops",
            lambda d: d.status and d.year > 2021 and d.team == "ops",
        ),
        ("Which contracts are not from the sales team?", lambda d: d.kind == "contract" and d.team != "sales"),
        ("Which documents mention Acme Ltd?", lambda d: d.firm == "Acme Ltd"),
        ("Which memos mention Blix Inc or Corvo AG?", lambda d: d.kind == "memo" and d.firm in FIRMS[1:3]),
        ("How many contracts do not mention Acme Ltd?", lambda d: d.kind == "contract" and d.firm != "Acme Ltd"),
    ],
)
def test_counts_and_lists_are_exact_over_300_documents(rag: PyRAG, question: str, condition: Any) -> None:
    trace = rag.ask(question)
    expected = titles(condition)
    assert trace.value == len(expected) if question.startswith("How many") else listed(trace) == expected
    assert all(coverage.unknown == coverage.missing == 0 for coverage in trace.coverage)


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("Which ops contracts from 2020 are governed by Delaware law?", lambda d: d.law == "Delaware"),
        ("How many ops contracts from 2020 were signed by Ada Lind or Bo Chan?", lambda d: d.signer in PEOPLE[:2]),
        ("How many ops contracts from 2020 have a penalty cap above 50,000 euros?", lambda d: d.cap > 50_000),
        ("Which ops contracts from 2020 have no penalty cap?", lambda d: not d.cap),
    ],
)
def test_facts_of_the_text_are_asked_of_each_document(rag: PyRAG, question: str, condition: Any) -> None:
    trace = rag.ask(question)
    assert "each(docs" in trace.program
    asked = [d for d in made() if (d.kind, d.team, d.year) == ("contract", "ops", 2020)]
    expected = sorted(document.title for document in asked if condition(document))
    assert trace.value == len(expected) if question.startswith("How many") else listed(trace) == expected
    lacking = sum(not document.cap for document in asked) if "cap" in question else 0
    (coverage,) = trace.coverage
    assert coverage.total == len(asked)
    assert coverage.unknown == lacking or "law" in question  # of one contract the reader misses the law, and says so
    assert any(str(coverage) in warning for warning in trace.warnings) is bool(coverage.unknown)


def test_each_and_extreme_keep_the_documents_own_citations(rag: PyRAG) -> None:
    asked = [d for d in made() if (d.kind, d.team, d.year) == ("contract", "ops", 2019)]
    trace = rag.ask("For each contract of the ops team from 2019, what is the penalty cap?")
    assert {row["item"]: row["known"] for row in trace.value} == {d.title: bool(d.cap) for d in asked}
    assert all(len(trace.item_citations[str(n)]) == row["known"] for n, row in enumerate(trace.value))
    highest = max(asked, key=lambda d: d.cap)
    trace = rag.ask("Which ops contract from 2019 has the highest penalty cap?")
    assert (listed(trace), trace.value[0]["value"]) == ([highest.title], highest.cap)
    assert trace.answer.text.endswith("EUR")
    assert [trace.passages[citation.passage].title for citation in trace.citations] == [highest.title]


FIELDS = [
    {"kind": "contract", "team": TEAMS[n % 3], "year": 2015 + n % 9, "status": ("active", "expired")[n % 2], "value": n}
    for n in range(60)
] + [
    {"kind": "memo", "author": PEOPLE[n % 3], "date": f"20{15 + n % 9}-03-01", "tags": ["urgent", "old"]}
    for n in range(30)
]
OVERVIEW = overview_of(90, FIELDS, [f"d/{n}.md" for n in range(90)], [f"Paper {n}" for n in range(90)])


def program(question: str, overview: CorpusOverview = OVERVIEW) -> str:
    meaning = read_corpus_question(question, overview)
    return "" if meaning is None else corpus_program(meaning)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How many contracts with a value of more than 30 are there?", ['kind = \\"contract\\" and value > 30']),
        ("How many contracts between 2018 and 2020 are there?", ["year >= 2018 and year <= 2020"]),
        ("How many contracts are still active?", ['status = \\"active\\"']),
        ("Which memos are tagged urgent?", ['tags contains \\"urgent\\"']),
        ("Which memos lack an author?", ["not exists author"]),
        ("List memos dated before 2018", ['date < \\"2018\\"']),
        ("Please list all contracts with team = legal, thanks", ['team = \\"legal\\"']),
        ("How many papers are there?", ["paper", "doc.title"]),
        ("Which contract has the lowest value?", ["min(values", 'doc.metadata["value"]']),
        ("What is the average value of all contracts?", ["sum(values) / len(values)"]),
        ("What is the total penalty of all contracts?", ['each(docs, "What is the penalty?", returns="number")']),
        ("Which contracts were signed in May 2020?", ['row.value[:7] == "2020-05"']),
        ("How many contracts expire before 2025?", ['When does it expire?', 'row.value[:4] < "2025"']),
        ("Who wrote each memo?", ["final_answer = each(docs, "]),
        ("For every memo: who wrote it?", ['"Who wrote it?"']),
        ("What are the titles of all memos?", ["final_answer = docs"]),
        ("Which contracts mention both Acme and Blix?", ['mention \\"Acme\\" and \\"Blix\\"?']),
        ("Which contracts require approval by the board?", ["Does the contract require approval by the board?"]),
        ("Which contracts are governed by English law?", ["What is the governing law?", '"English"']),
    ],
)  # fmt: skip
def test_questions_become_programs(question: str, parts: list[str]) -> None:
    source = program(question)
    ast.parse(source)
    for part in parts:
        assert part in source


@pytest.mark.parametrize(
    "question",
    [
        "Who is the chief executive of Acme?", "When was Ada Lind born?", "How many films did Ada Lind direct?",
        "How many contracts does each team have?", "Which team has the most contracts?",
        "How many people live in Paris?", "Which contracts with value of abc def ghi and mention or?",
    ],
)  # fmt: skip
def test_other_questions_are_left_to_the_other_rules(question: str) -> None:
    assert program(question) == ""


def mixed() -> CorpusOverview:
    """Return an overview of contracts with amounts as texts, mails in one file, and files without metadata."""
    contracts: list[dict[str, Any]] = [
        {"type": "contract", "city": city, "signed": f"202{n % 4}-0{1 + n % 9}-11", "amount": amount}
        for n, (city, amount) in enumerate([("Berlin", 500), ("Oslo", "1,200 EUR"), ("Berlin", "300 EUR")] * 4)
    ]
    del contracts[0]["amount"]
    mails = [{"sender": PEOPLE[n % 3], "recipient": PEOPLE[n % 2], "attachments": n % 4} for n in range(9)]
    sources = (
        [f"x/{n}.md" for n in range(12)]
        + ["x/mails.jsonl"] * 9
        + [f"x/client_policies/vegan/{n}.txt" for n in range(6)]
    )
    fields = [*contracts, *mails, *({} for _ in range(6))]
    return overview_of(27, fields, sources, [f"n{n}" for n in range(27)])


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("What is the total amount of all contracts?", ['parse_number(doc.metadata["amount"])', "sum(values)"]),
        ("What is the total amount of contracts signed in 2021?", ['signed >= \\"2021\\"', "sum(values)"]),
        ("Which contract has the highest amount?", ['parse_number(doc.metadata["amount"]) == best']),
        ("How many contracts have an amount of more than 400 EUR?", ['parse_number(doc.metadata["amount"]) > 400']),
        ("How many contracts with an amount between 200 and 400 are there?", ["200 <= parse_number("]),
        ("How many contracts in Berlin were signed after 2021?", ['city = \\"Berlin\\" and signed >= \\"2022\\"']),
        ("How many contracts were signed in 2021 or 2022?", [" or "]),
        ("How many contracts were signed before March 2021?", ['signed < \\"2021-03\\"']),
        ("Which contract was signed last?", ['doc.metadata["signed"]']),
        ("What is the most recent contract?", ["max(values", 'doc.metadata["signed"]']),
        ("What are the cities of all contracts?", ['doc.metadata["city"]']),
        ("How many contracts are in Berlin but not from 2021?", ['city = \\"Berlin\\"']),
        ("How many mails did Ada Lind send?", ['sender = \\"Ada Lind\\"']),
        ("How many mails did Ada Lind receive?", ['recipient = \\"Ada Lind\\"']),
        ("How many emails from Bo Chan to Ada Lind are there?", ["sender", "recipient"]),
        ("How many mails have no attachments?", ["attachments <= 0 or not exists attachments"]),
        ("How many mails have more than 2 attachments?", ["attachments > 2"]),
        ("What is the total number of attachments of all mails?", ['doc.metadata["attachments"]', "sum(values)"]),
        ("How many policies are there?", ["polic(?:y|ie)"]),
        ("List all vegan policies", ["polic(?:y|ie)", "vegan"]),
        ("How many files are in the folder vegan?", ["vegan"]),
        ("Which policies use butter or eggs?", ['mention \\"butter\\" or \\"eggs\\"?']),
        ("How many policies are by Ada Lind?", ["each(docs"]),
    ],
)
def test_conditions_are_read_by_the_documents_own_metadata(question: str, parts: list[str]) -> None:
    source = program(question, mixed())
    ast.parse(source)
    for part in parts:
        assert part in source


def test_amounts_in_another_currency_are_not_compared() -> None:
    assert "parse_number(" in program("How many contracts have an amount above 400 euros?", mixed())
    assert "parse_number(" not in program("How many contracts have an amount above 400 dollars?", mixed())


def test_documents_without_the_metadata_are_named() -> None:
    meaning = read_corpus_question("What is the total amount of all contracts?", mixed())
    assert meaning is not None
    assert "1 of 12 documents have no 'amount' in their metadata" in meaning.note
    plain = read_corpus_question("How many contracts are in Berlin?", mixed())
    assert plain is not None
    assert plain.note == ""


def test_values_that_cannot_be_compared_are_listed() -> None:
    fields = [{"kind": "bond", "price": price} for price in ("5 EUR", "7 USD", "9 EUR")]
    overview = overview_of(3, fields, [f"{n}.md" for n in range(3)], ["a", "b", "c"])
    for question in ("Which bond has the highest price?", "What is the total price of all bonds?"):
        meaning = read_corpus_question(question, overview)
        assert meaning is not None
        assert (meaning.use, meaning.field) == ("each", "price")
        assert "are not all numbers of one unit" in meaning.note


def test_unknown_values_are_not_cut_into_filters() -> None:
    assert "legal mention" not in program("Which contracts with team legal mention Acme?")
    assert "mention" in program("Which contracts with team legal mention Acme?")
    assert 'author = \\"Jane Roe\\"' in program("How many memos have the author Jane Roe?")


CALLED = {"documents", "count", "each", "len", "str", "zip", "re.search", "re.sub", "same_entity", "parse_number"}


def test_hostile_text_stays_inside_literals() -> None:
    choose, words = random.Random(3), ['"', "'", "\\", "{x}", '"); import os; ("', "mention", "contracts", "and", "or",
        "`", "$(", "with", "team", "=", "the", "Acme", "\u2028", "}}", "not", "of", "2020", "by", "each"]  # fmt: skip
    read = 0
    for _ in range(800):
        opening = choose.choice(
            ("How many contracts ", "Which memos ", "List all contracts ", "For each memo, what is ")
        )
        source = program(opening + " ".join(choose.choices(words, k=choose.randint(1, 8))))
        calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
        methods = {call for call in calls if call.startswith("re.sub(") and call.endswith(", str(row.value)).strip")}
        assert calls - methods <= CALLED
        read += bool(source)
    assert read > 80


def test_long_questions_are_read_in_bounded_steps() -> None:
    assert program("Which contracts mention Acme " + "and mention Acme " * 25)
    assert program("Which contracts " + "and of the or with " * 26) == ""


@pytest.mark.parametrize(
    "question", ["How many documents are there?", "how many files do you have", "Count the documents"]
)
def test_plain_counts_are_known_by_their_wording(question: str) -> None:
    assert asks_for_count(question)


@pytest.mark.parametrize(
    "question", ["How many documents did Ada leak?", "How many documents mention Acme?", "How many books are there?"]
)
def test_other_counts_are_not_plain(question: str) -> None:
    assert not asks_for_count(question)
