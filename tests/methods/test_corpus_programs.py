"""Programs that see the whole corpus: documents, count, open_document, each, typed answers, budget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrag import Budget, PyRAG
from pyrag.errors import PermanentServiceError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.methods.program_reference import CORPUS, program_reference
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Passage, Trace
from pyrag.trace.plain import encoded

FOUNDERS = {"Acme": "Ann Lee", "Blix": "Bo Chan", "Corvo": "Cy Diaz"}
FIRMS = [
    Passage(name.lower(), name, f"{name} was founded by {by} in {1990 + n}.", metadata={"n": n, "kind": "firm"})
    for n, (name, by) in enumerate(FOUNDERS.items())
]
ZEBRA = Passage("zebra", "Zebra", "A zebra has stripes.", metadata={"kind": "animal"})
MILL = [
    Passage(f"mill.md#{n}", f"The mill > Part {n}", f"Part {n} of the mill is old.", source="/x/mill.md", start=100 - n)
    for n in range(3)
]


@pytest.fixture(scope="module")
def rag() -> Iterator[PyRAG]:
    with PyRAG(retriever=InMemoryRetriever([*FIRMS, ZEBRA, *MILL])) as opened:
        yield opened


def value_of(trace: Trace) -> Any:
    assert trace.error is None, trace.error.message
    return trace.value


def test_documents_are_listed_without_text(rag: PyRAG) -> None:
    documents = value_of(rag.run("final_answer = documents()"))
    assert [one["id"] for one in documents] == ["acme", "blix", "corvo", "zebra", "mill.md"]
    assert documents[-1] == {"id": "mill.md", "title": "The mill", "source": "mill.md", "metadata": {}, "passages": 3}
    source = "d = documents('n = 1')[0]\nfinal_answer = [d.title, d['metadata']['n'], str(d), d.get('text')]"
    assert value_of(rag.run(source)) == ["Blix", 1, "Blix", None]


def test_counts_are_exact_and_narrowed_by_filters(rag: PyRAG) -> None:
    source = "final_answer = [count(), count('kind = \"firm\"'), count({'n': {'>': 0}}), len(documents('n > 0'))]"
    assert value_of(rag.run(source)) == [5, 3, 2, 2]
    assert value_of(rag.run(source, where="n < 2")) == [2, 2, 1, 1]


def test_documents_open_in_reading_order_with_citations(rag: PyRAG) -> None:
    trace = rag.run("final_answer = open_document('mill.md')")
    assert value_of(trace) == [{"passage": f"mill.md#{n}"} for n in (2, 1, 0)]
    assert [one.passage for one in trace.citations] == ["mill.md#2", "mill.md#1", "mill.md#0"]
    assert value_of(rag.run("final_answer = [d.id for d in open_document(documents()[-1], section='part 1')]")) == [
        "mill.md#1"
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("final_answer = open_document('nope')", "there is no document 'nope'"),
        ("final_answer = open_document(3)", "needs a document"),
        ("final_answer = open_document('acme', section=0)", "section must be a number from 1"),
        ("final_answer = open_document('mill.md', section='Part 9')", "its headings are 'Part 2', 'Part 1', 'Part 0'"),
        ("final_answer = documents('n >')", "ValueError"),
        ("final_answer = count(7)", "where must be a filter"),
        ("final_answer = each('Acme', 'Who founded {item}?')", "needs a list of items"),
        ("final_answer = each(['Acme'], 'Who founded it?')", "plain question only of documents"),
        ("final_answer = each(documents(), 'Who founded {boss}?')", "{boss}, which 'Acme' lacks: use {n}, {kind}"),
        ("final_answer = each(documents(), 'Who is {n}?')", "{n}, which 'Zebra' lacks"),
        ("final_answer = each(['Acme'], 'Who is {item.__class__}?')", "{item.__class__}, which 'Acme' lacks"),
        ("final_answer = each(['Acme'], 'Who is {item!r}?')", "with a format"),
        ("final_answer = each(['Acme'], 'Who is {?')", "wrong field"),
        ("final_answer = each([3], 'Who is {item}?')", "make texts of them with str()"),
        ("final_answer = each(['x'] * 5001, 'Who is {item}?')", "at most 5,000 items"),
        ("final_answer = each(documents(), 'Who?', returns='float')", '"number", "int", "date", "bool"'),
        ("final_answer = answer('q', retrieve('Acme'), returns={'type': 'thing'})", "unknown type 'thing'"),
        (
            "final_answer = answer('q', retrieve('Acme'), returns={'$ref': '#'})",
            "refers to itself by '#'",
        ),
        ("final_answer = answer('q', documents())", "open_document(doc)"),
        ("final_answer = budget(1)", "takes 0 arguments"),
        ("x = answer('Who is king of Mars?', retrieve('Mars'))\nfinal_answer = each([x], '{item}?')", "unknown answer"),
    ],
)
def test_wrong_calls_say_what_to_write(rag: PyRAG, source: str, words: str) -> None:
    error = rag.run(source).error
    assert error is not None
    assert (error.kind, error.line) == ("program", source.count("\n") + 1)
    assert words in error.message


def test_too_many_documents_say_how_to_narrow() -> None:
    passages = [Passage(f"p{n}", f"T{n}", "text", metadata={"year": n % 2}) for n in range(5002)]
    with PyRAG(retriever=InMemoryRetriever(passages)) as rag:
        error = rag.run("final_answer = documents()").error
        assert error is not None
        assert "at most 5,000 documents, and there are 5,002: narrow with where" in error.message
        assert value_of(rag.run("final_answer = [count(), len(documents('year = 1'))]")) == [5002, 2501]


def test_retrievers_without_catalogue_say_what_to_do() -> None:
    class Plain:
        async def retrieve(self, query: str, topk: int) -> list[Passage]:
            return [FIRMS[0]]

    with PyRAG(retriever=Plain()) as rag:  # type: ignore[arg-type]
        for call in ("documents()", "count()", "open_document('acme')"):
            error = rag.run(f"final_answer = {call}").error
            assert error is not None
            assert "cannot list its documents: search with retrieve()" in error.message
        source = "try:\n    final_answer = count()\nexcept Exception:\n    final_answer = 'no catalogue'"
        assert value_of(rag.run(source)) == "no catalogue"
        assert value_of(rag.run("final_answer = each(['Acme'], 'Who founded {item}?')"))[0]["value"] == "Ann Lee"


def test_each_answers_documents_with_citations_and_coverage(rag: PyRAG) -> None:
    trace = rag.run("final_answer = each(documents('exists kind'), 'Who founded it?')")
    rows = value_of(trace)
    assert [(row["item"], row["document"], row["value"], row["known"], row["citations"]) for row in rows] == [
        *((name, name.lower(), by, True, [name.lower()]) for name, by in FOUNDERS.items()),
        ("Zebra", "zebra", "unknown", False, []),
    ]
    assert trace.item_citations == {"0": (1,), "1": (2,), "2": (3,), "3": ()}
    (coverage,) = trace.coverage
    assert str(coverage) == "3 of 4 documents answered, 1 unknown; 1 of 3 answers is weak"
    assert (coverage.unknown_items, coverage.complete, trace.complete) == (("Zebra",), True, True)
    assert set(trace.passages) == {"acme", "blix", "corvo"}
    assert from_json(to_json(trace)).coverage == trace.coverage


@pytest.mark.parametrize(
    ("items", "question"),
    [
        ("list(names)", "Who founded {item}?"),
        ("[{'firm': n, 'verb': 'founded'} for n in names]", "Who {verb} {firm}?"),
        ("[retrieve(n, topk=1)[0] for n in names]", "Who founded {title}?"),
        ("each([d for d in documents('n >= 0')], 'Who founded {title}?')", "Who founded {item}?"),
    ],
)
def test_each_takes_names_dicts_passages_and_rows(rag: PyRAG, items: str, question: str) -> None:
    source = f"final_answer = [r.value for r in each({items}, {question!r})]"
    assert value_of(rag.run(source, {"names": list(FOUNDERS)})) == list(FOUNDERS.values())


def test_each_takes_answers_as_names(rag: PyRAG) -> None:
    founders = "[answer(f'Who founded {n}?', retrieve(n)) for n in names]"
    source = f"final_answer = [r.item for r in each({founders}, 'When was {{item}} born?')]"
    assert value_of(rag.run(source, {"names": list(FOUNDERS)})) == list(FOUNDERS.values())


def test_equal_items_and_calls_are_asked_once(rag: PyRAG) -> None:
    source = "a = each(ns, 'Who founded {item}?')\nb = each(ns, 'Who founded {item}?')\nfinal_answer = [a, b]"
    trace = rag.run(source, {"ns": ["Acme", "Acme", "Blix"]})
    assert [row["value"] for row in value_of(trace)[1]] == ["Ann Lee", "Ann Lee", "Bo Chan"]
    assert trace.roles["answer"].requests == 2


@pytest.mark.parametrize(
    ("question", "returns", "values"),
    [
        ("When was {title} founded?", '"number"', [1990, 1991, 1992]),
        ("When was {title} founded?", '"date"', ["1990", "1991", "1992"]),
        ("When was {title} founded?", '{"type": "integer", "minimum": 1991}', ["unknown", 1991, 1992]),
        ("Who founded it?", '"list[str]"', [["Ann Lee"], ["Bo Chan"], ["Cy Diaz"]]),
        ("Who founded it?", '{"enum": ["Bo Chan", "Cy Diaz"]}', ["unknown", "Bo Chan", "Cy Diaz"]),
        ("Who founded it?", '"number"', ["unknown", "unknown", "unknown"]),
    ],
)
def test_embedded_engine_reads_values_of_a_type(rag: PyRAG, question: str, returns: str, values: list[Any]) -> None:
    rows = value_of(rag.run(f"final_answer = each(documents('n >= 0'), {question!r}, returns={returns})"))
    assert [row["value"] for row in rows] == values
    asked = f"{question!r}.replace('{{title}}', d.title)"
    read = f"final_answer = [answer({asked}, open_document(d), returns={returns}) for d in documents('n >= 0')]"
    assert value_of(rag.run(read)) == values


def test_embedded_engine_refuses_schemas_of_objects(rag: PyRAG) -> None:
    error = rag.run("final_answer = each(documents('n = 1'), 'Who?', returns={'type': 'object'})").error
    assert error is not None
    assert "name a language model (--llm)" in error.message


def test_values_compute_and_unknown_stays_unknown(rag: PyRAG) -> None:
    source = (
        "rows = each(documents('exists kind'), 'When was {title} founded?', returns='number')\n"
        "final_answer = {'sum': sum(r.value for r in rows if r.known), 'known': [is_known(r.value) for r in rows]}"
    )
    assert value_of(rag.run(source)) == {"sum": 1990 + 1991 + 1992, "known": [True, True, True, False]}
    error = rag.run(
        "rows = each(documents(), 'Who founded it?')\nfinal_answer = retrieve(f'{rows[3].value} born')"
    ).error
    assert error is not None
    assert "is unknown" in error.message


def test_budget_that_ends_early_gives_rows_so_far(rag: PyRAG) -> None:
    source = "final_answer = each(documents('n >= 0'), 'Who founded it?')"
    trace = rag.run(source, budget=Budget(calls=2))
    rows = value_of(trace)
    assert [row["reached"] for row in rows] == [True, True, False]
    assert rows[2]["note"].startswith("not reached: the budget of 2 model calls")
    assert str(trace.coverage[0]).startswith("2 of 3 documents answered, 0 unknown, 1 not reached (the budget of 2")
    assert (trace.complete, trace.coverage[0].missing_items) == (False, ("Corvo",))
    assert any(warning.startswith("incomplete: 2 of 3") for warning in trace.warnings)


def test_question_that_ends_meanwhile_keeps_partial_rows(rag: PyRAG) -> None:
    source = (
        "rows = each(documents('n >= 0'), 'Who founded it?')\n"
        "final_answer = answer(f'What has {len(rows)} stripes?', retrieve('zebra stripes'))"
    )
    trace = rag.run(source, budget=Budget(calls=2))
    assert trace.error is not None
    assert trace.error.kind == "budget"
    assert [row["value"] for row in trace.value] == ["Ann Lee", "Bo Chan", "unknown"]
    assert "partial value: the rows of each() so far" in trace.warnings


class Slow:
    """Answers after a while, or fails from some call on."""

    name = "slow"

    def __init__(self, fails_at: int = 1000) -> None:
        self.calls, self.fails_at = 0, fails_at

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        self.calls += 1
        if self.calls >= self.fails_at:
            raise PermanentServiceError("the server is gone", service="slow")
        await asyncio.sleep(0.2)
        return Reply("<answer>Ann Lee</answer>")

    async def aclose(self) -> None:
        pass


def test_deadline_gives_rows_so_far() -> None:
    passages = [Passage(f"p{n}", f"T{n}", "Founded by Ann Lee.") for n in range(200)]
    with PyRAG(Slow(), retriever=InMemoryRetriever(passages), max_in_flight=2) as rag:
        trace = rag.run("final_answer = each(documents(), 'Who founded it?')", budget=Budget(seconds=3, calls=900))
    assert trace.error is None or trace.error.kind == "deadline"  # a busy machine
    reached = [row["value"] for row in trace.value if row["reached"]]
    assert 0 < len(reached) < 200
    assert set(reached) == {"Ann Lee"}
    assert trace.coverage[0].missing == 200 - len(reached)


def test_failing_service_keeps_rows_so_far() -> None:
    passages = [Passage(f"p{n}", f"T{n}", "Founded by Ann Lee.") for n in range(20)]
    with PyRAG(Slow(fails_at=5), retriever=InMemoryRetriever(passages), max_in_flight=1) as rag:
        trace = rag.run("final_answer = each(documents(), 'Who founded it?')")
    assert trace.error is not None
    assert trace.error.kind == "service"
    assert 0 < sum(row["reached"] for row in trace.value) < 20
    assert (trace.complete, trace.answer.known) == (False, False)
    assert trace.coverage[0].reason == "the question ended"


def test_budget_falls_in_program_order(rag: PyRAG) -> None:
    source = (
        "left = [budget()['calls']]\nfor name in names:\n"
        "    answer(f'Who founded {name}?', retrieve(name))\n    left.append(budget()['calls'])\nfinal_answer = left"
    )
    names = list(FOUNDERS)
    assert value_of(rag.run(source, {"names": names}, budget=Budget(calls=9))) == [9, 8, 7, 6]
    left = value_of(rag.run("final_answer = budget()", budget=Budget(calls=9, tokens=100, seconds=30)))
    assert (left["calls"], left["tokens"], left["cost"]) == (9, 100, None)
    assert 0 < left["seconds"] <= 30


@pytest.mark.parametrize("name", ["count", "documents", "each", "budget"])
def test_programs_may_use_the_names_as_their_own(rag: PyRAG, name: str) -> None:
    assert value_of(rag.run(f"{name} = 1\n{name} += 1\nfinal_answer = {name}")) == 2
    assert value_of(rag.run(f"final_answer = [{name} for {name} in [1, 2]]")) == [1, 2]
    assert value_of(rag.run(f"final_answer = {name} + 1", {name: 1})) == 2

    def tool(question: str) -> str:
        """Answer of a tool."""
        return f"tool {question}"

    tool.__name__ = name
    assert value_of(rag.run(f"final_answer = {name}('x')", tools=[tool])) == "tool x"


def test_recordings_replay_every_primitive(rag: PyRAG, tmp_path: Path) -> None:
    source = (
        "docs = documents('exists kind')\nrows = each(docs, 'When was {title} founded?', returns='number')\n"
        "more = each(['Acme'], 'Who founded {item}?')\nleft = budget()\n"
        "years = [answer(f'When was {d.title} founded?', open_document(d), returns='date') for d in docs[:2]]\n"
        "final_answer = {'n': count(), 'rows': rows, 'more': more, 'left': left, 'years': years}"
    )
    trace = rag.run(source, keep=True)
    assert value_of(trace)["years"] == ["1990", "1991"]

    (tmp_path / "record.jsonl").write_bytes(b"\n".join(map(encoded, trace.exchanges)))
    with PyRAG(f"replay:{tmp_path / 'record.jsonl'}", retriever=InMemoryRetriever([])) as other:
        again = other.run(source)
    assert value_of(again) == trace.value
    assert [step.coverage for step in again.steps] == [step.coverage for step in trace.steps]


def replies(messages: Sequence[Message]) -> str:
    prompt = messages[-1].content
    name = next((name for name in FOUNDERS if name in messages[1].content), "")
    if "cannot be used" in prompt:  # the second try
        return json.dumps({"evidence": "e", "documents": [1], "known": True, "value": 7})
    if name == "Acme":
        return json.dumps(
            {"evidence": "it tells", "documents": [1], "known": True, "value": {"by": "Ann", "year": 1990}}
        )
    if name == "Blix":
        return json.dumps({"evidence": "nothing", "documents": [], "known": False, "value": None})
    return "I do not like JSON."


def test_language_model_fills_schemas_with_one_retry() -> None:
    schema = {"type": "object", "properties": {"by": {"type": "string"}, "year": {"type": "integer"}}}
    model = ScriptedChat(replies)
    with PyRAG(model, retriever=InMemoryRetriever(FIRMS)) as rag:
        trace = rag.run(
            "final_answer = each(documents(), 'Who founded it, and when?', returns=schema)", {"schema": schema}
        )
        rows = value_of(trace)
        assert [row["value"] for row in rows] == [{"by": "Ann", "year": 1990}, "unknown", "unknown"]
        assert rows[0]["citations"] == ["acme"]
        assert "value must be of type object, not 7" in rows[2]["note"]
        assert trace.usage.model_calls == 4  # one retry
        number = rag.run("final_answer = answer('How many?', open_document('corvo'), returns='number')")
        assert value_of(number) == 7


def test_long_documents_are_read_section_by_section() -> None:
    parts = [Passage(f"a#{n}", "Long", f"part {n} " * 300, source="/d/long.md", start=n) for n in range(6)]
    seen: list[str] = []

    def reply(messages: Sequence[Message]) -> str:
        seen.append(messages[-1].content)
        return f"<answer>{'42' if 'part 5' in messages[-1].content else 'unknown'}</answer>"

    with PyRAG(ScriptedChat(reply), retriever=InMemoryRetriever(parts), context_tokens=3_000) as rag:
        trace = rag.run("final_answer = each(documents(), 'Which number?')")
        assert value_of(trace)[0]["value"] == "42"
        assert 1 < len(seen) <= 6
        source = (
            "ids = []\nn = 1\nwhile part := open_document('long.md', section=n):\n"
            "    ids += [p.id for p in part]\n    n += 1\nfinal_answer = ids"
        )
        assert value_of(rag.run(source)) == [f"a#{n}" for n in range(6)]
        first = rag.run("final_answer = len(open_document('long.md'))")
        assert value_of(first) < 6
        assert any("section 1 of" in warning for warning in first.warnings)


def test_reference_lists_the_corpus_primitives() -> None:
    text = program_reference()
    assert all(f"### `{function.__name__}(" in text for function in CORPUS)
    assert "returns: " in text
