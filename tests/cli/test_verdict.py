"""How far an answer can be trusted is shown to people, and leaves the stdout of scripts as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.agents.protocol import Reading
from pyrag.cli.views.excerpt import excerpt
from pyrag.embedded.language import is_english
from pyrag.trace import verdict
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.confidence import confidence
from pyrag.trace.model import Answer, Citation, Passage, SearchedIndex, Step, Trace, TraceError, Usage
from tests.cli.conftest import Run, in_terminal

SURE = "Who directed Gravity?"
NOWHERE = "What is the colour of the moon called Fooqux?"
UNREAD = "The flag of Orsk has which colour, please?"
ENGLISH_ONLY = (
    "the embedded engine reads English only, which this question does not seem to be: ask in English, "
    "or name a language model with --llm"
)
GERMAN = "Wer hat den Film Gravity gedreht?"
PASSAGES = {key: Passage(key, f"Page {key}", "text") for key in "abcde"}
BUNDLED = "bm25:bundled corpus"
TABLE = {"a": Passage("a", "Sales", "units: 3", source="shop/sales.csv")}
OVER_TABLES = "for sums, counts and comparisons over tables"
RETRIEVED = Step(0, "retrieve", "the moon of Foo", topk=5, passages=tuple(PASSAGES))
TRACE = Trace("Who?", Answer("Ada"), engine="embedded", retriever="bm25:x", passages=PASSAGES, config={"topk": 5})


def remark(trace: Trace) -> str:
    return verdict.remark(trace, verdict.COMMAND_LINE)


def answered(step: int, query: str, text: str, confidence: float | None) -> Step:
    known = text != "unknown"
    return Step(step, "answer", query, answer=Answer(text, known, ("a",) if known else (), confidence))


DOUBTED = answered(1, "its colour?", "unknown", 0.125)


def test_confidence_is_the_product_of_the_steps_it_rests_on() -> None:
    steps = (answered(1, "who?", "Ada", 0.4), answered(2, "where?", "Rome", 0.9), answered(3, "else?", "x", 0.1))
    trace = replace(TRACE, answer=Answer("Rome", confidence=0.9), steps=steps)
    trace = replace(trace, citations=(Citation(1, "a", 1), Citation(2, "b", 2)))
    assert confidence(trace) == 0.36
    assert remark(trace) == (
        "weak answer, confidence 0.36, since 'who?' was answered 'Ada': check it in Page a, Page b"
    )


@pytest.mark.parametrize(("confidence", "weak"), [(None, False), (0.49, True), (0.5, False), (1.0, False), (0.0, True)])
def test_an_answer_is_weak_below_half(confidence: float | None, weak: bool) -> None:
    trace = replace(TRACE, answer=Answer("Ada", confidence=confidence))
    assert verdict.is_weak(trace) == weak
    assert bool(remark(trace)) == weak


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": ()}, "unknown, and nothing was searched: try a method that searches, such as --method pyrag"),
        (
            {"steps": (), "method": "program"},
            "unknown, and the program searched nothing: pass passages to answer(), "
            "as in answer(query, retrieve(query))",
        ),
        (
            {"steps": (replace(RETRIEVED, passages=()),), "passages": {}},
            "unknown: 1 search of bm25:x found no passage; try other words, "
            "or documents about it in the index (pyrag index)",
        ),
        (
            {"steps": (RETRIEVED, DOUBTED)},
            "unknown: 1 search of bm25:x found 5 passages (Page a, Page b, Page c, …), none of which answers "
            "'its colour?' (evidence 0.12); try other words, --topk 10, or a language model (--llm)",
        ),
        (
            {"steps": (RETRIEVED,) * 2, "engine": "openai:m"},
            "unknown: 2 searches of bm25:x found 5 passages (Page a, Page b, Page c, …), none of which answers it; "
            "try other words, --topk 10, or --recovery boost+rewrite",
        ),
        (
            {
                "steps": (replace(RETRIEVED, topk=100), replace(DOUBTED, rationale="not believed: 'Ada'")),
                "config": {"least_evidence": 0.75},
            },
            "unknown: 1 search of bm25:x found 5 passages (Page a, Page b, Page c, …), none of which answers "
            "'its colour?' (evidence 0.12); try other words, a lower --least-evidence than 0.75, "
            "or a language model (--llm)",
        ),
        (
            {"steps": (RETRIEVED,), "retriever": BUNDLED, "config": {"where": "year > 1990"}},
            "unknown: 1 search of pyrag's bundled corpus (the default without --index) found 5 passages (Page a, "
            "Page b, Page c, …), none of which answers it; try other words, an index of your own documents (pyrag "
            "index FOLDER, then --index), a wider filter than year > 1990, --topk 10, or a language model (--llm)",
        ),
        (
            {"steps": (replace(RETRIEVED, topk=9),), "question": "How many units were sold?", "passages": TABLE},
            "unknown: 1 search of bm25:x found 1 passage (Sales), which does not answer it; try other words, "
            f"or {OVER_TABLES} a language model with tools (--llm … --tools table:FOLDER or --tools sql:FILE)",
        ),
        ({"error": TraceError("deadline", "the deadline passed")}, ""),
    ],
)
def test_an_unknown_says_what_was_found_and_what_to_try(changes: dict[str, object], said: str) -> None:
    trace = replace(TRACE, answer=Answer("unknown", known=False), **changes)  # type: ignore[arg-type]
    assert remark(trace) == said


@pytest.mark.parametrize(
    ("changes", "wider"),
    [
        ({}, True),
        ({"index": SearchedIndex("bm25:x", passages=5)}, False),  # all of them were read
        ({"index": SearchedIndex("bm25:x", passages=50)}, True),
        ({"steps": (replace(RETRIEVED, topk=6), DOUBTED)}, False),  # the search brought fewer than it asked for
        ({"events": ({"event": "recovering", "step": 1, "policy": "boost", "topk": 10},)}, False),  # nothing new
        ({"steps": (replace(RETRIEVED, topk=100), DOUBTED)}, False),
    ],
)
def test_a_larger_topk_is_advised_only_where_it_matters(changes: dict[str, Any], wider: bool) -> None:
    unknown = replace(TRACE, answer=Answer("unknown", known=False), steps=(RETRIEVED, DOUBTED))
    assert ("--topk" in remark(replace(unknown, **changes))) is wider


def test_a_weak_sum_names_the_tools() -> None:
    trace = replace(TRACE, question="What is the total of all units?", answer=Answer("3", confidence=0.3))
    trace = replace(trace, passages=TABLE, citations=(Citation(1, "a", 1),))
    assert f"{OVER_TABLES} try a language model with tools" in remark(trace)
    assert OVER_TABLES not in remark(replace(trace, question="Who sold units?"))
    assert OVER_TABLES not in remark(replace(trace, config={"tools": ["table:shop"]}))


def test_python_and_saved_traces_carry_the_verdict() -> None:
    with PyRAG() as rag:
        sure, unknown = rag.ask(SURE), rag.ask(NOWHERE)
    assert (sure.weak, sure.remark) == (False, "")
    assert "bundled corpus (the default without retriever)" in unknown.remark
    assert "--" not in unknown.remark
    assert f"! {unknown.remark}" in str(unknown)
    values = json.loads(to_json(unknown))
    assert (values["weak"], values["remark"]) == (False, unknown.remark)
    del values["weak"], values["remark"]  # which can be left out
    opened = from_json(json.dumps(values))
    assert (opened.weak, opened.remark) == (unknown.weak, unknown.remark)


def test_settings_of_the_embedded_engine_do_what_they_say() -> None:
    question = "Who is the wife of the composer?"
    with PyRAG(topk=3, recovery="none") as few, PyRAG(topk=9, recovery="none", least_evidence=0) as many:
        assert [len(rag.ask(question).steps[0].passages) for rag in (few, many)] == [3, 9]
        assert not few.ask(question).answer.known
        guess = many.ask(question)
    assert (guess.answer.known, guess.weak, guess.answer.weak) == (True, True, True)


class Sure:
    """An Answer agent of a fixed confidence."""

    def __init__(self, confidence: float) -> None:
        self.confidence = confidence

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        return Reading("green", True, (0,), confidence=self.confidence)


@pytest.mark.parametrize("method", ["pyrag", "opera"])
@pytest.mark.parametrize(("confidence", "doubted"), [(0.9, False), (0.3, True)])
def test_doubts_of_the_planner_stand_beside_weak_answers(method: str, confidence: float, doubted: bool) -> None:
    warned: list[str] = []
    with PyRAG(answerer=Sure(confidence), method=method) as rag:
        trace = rag.ask(UNREAD, observer=lambda event: warned.append(getattr(event, "message", "")))
    assert (trace.answer.text, trace.weak) == ("green", doubted)
    assert any("no rule reads this question" in one for one in trace.warnings) is doubted
    assert any("no rule reads this question" in one for one in warned) is doubted


def test_the_embedded_engine_reports_no_model_calls(pyrag: Run, tmp_path: Path) -> None:
    usage = json.loads(pyrag("ask", SURE, "--json").stdout)["usage"]
    assert (usage["model_calls"], usage["retrievals"]) == (0, 1)
    shown = in_terminal(tmp_path, "ask", SURE, columns=200).text
    assert "1 retrieval" in shown
    assert not any(word in shown for word in ("model call", "token"))
    (tmp_path / "t.json").write_bytes(to_json(replace(TRACE, usage=Usage(model_calls=4))))
    (tmp_path / "m.json").write_bytes(to_json(replace(TRACE, usage=Usage(model_calls=4), engine="openai:m")))
    assert "model call" not in pyrag("trace", "show", "t.json").stdout
    assert "4 model calls" in pyrag("trace", "show", "m.json").stdout


LONG = "The mill has a wheel of oak. " * 20
EXCERPTS = [
    (f"{LONG}It was founded by Ann Thorpe.", ["Ann Thorpe"], "who founded it", "It was founded by Ann Thorpe."),
    (f"{LONG}Its miller danced in 1820.", ["yes"], "had it a miller", "Its miller danced in 1820."),
    ("Nothing is known. The answer is no.", ["no"], "is it", "The answer is no."),
    ("Its head is Ann. Ann left Ulm.", ["Ann", "Ulm"], "where", "Ann left Ulm."),
    (f"It stood {'there ' * 50}until Ann left.", ["Ann"], "who", "there until Ann left."),
]


@pytest.mark.parametrize(("text", "answers", "query", "shown"), EXCERPTS)
def test_excerpts_show_the_evidence(text: str, answers: list[str], query: str, shown: str) -> None:
    found = excerpt(text, answers, query)
    assert found.endswith(shown)
    assert len(found) <= 160


def test_a_pipe_gets_the_answer_and_stderr_the_remark(pyrag: Run) -> None:
    done = pyrag("ask", SURE)
    assert (done.stdout, done.stderr) == ("Alfonso Cuarón\n", "")
    done = pyrag("ask", NOWHERE)
    assert (done.stdout, done.returncode) == ("unknown\n", 0)
    assert done.stderr.startswith("pyrag: unknown: ")
    assert done.stderr.count("\n") == 1
    assert pyrag("ask", NOWHERE, "--quiet").stderr == ""


def test_json_has_confidence_and_remark(pyrag: Run) -> None:
    sure, unknown = (json.loads(pyrag("ask", question, "--json").stdout) for question in (SURE, NOWHERE))
    assert (sure["known"], sure["weak"], sure["remark"]) == (True, False, "")
    assert sure["confidence"] > 0.5
    assert (unknown["known"], unknown["weak"]) == (False, False)
    assert unknown["remark"].startswith("unknown: ")


def test_a_terminal_shows_confidence_and_remark(tmp_path: Path) -> None:
    assert "confidence 0.9" in in_terminal(tmp_path, "ask", SURE).text
    shown = in_terminal(tmp_path, "ask", NOWHERE, columns=400).text
    assert "! unknown: " in shown
    assert "Answer: " in shown


def test_a_saved_trace_is_marked_weak_again(pyrag: Run, tmp_path: Path) -> None:
    weak = replace(TRACE, answer=Answer("Ada", confidence=0.31), citations=(Citation(1, "a", 0),))
    (tmp_path / "t.json").write_bytes(to_json(weak))
    shown = pyrag("trace", "show", "t.json").stdout
    assert "Answer: Ada [1]  confidence 0.31" in shown
    assert "! weak answer, confidence 0.31: check it in Page a" in shown


@pytest.mark.slow
def test_another_language_is_said_of_the_embedded_engine_alone(pyrag: Run, tmp_path: Path) -> None:
    assert f"pyrag: {ENGLISH_ONLY}\n" in pyrag("ask", GERMAN).stderr
    assert ENGLISH_ONLY in json.loads(pyrag("ask", GERMAN, "--json").stdout)["warnings"]
    assert "English only" in in_terminal(tmp_path, "ask", GERMAN, columns=400).text
    assert "English" not in in_terminal(tmp_path, "ask", NOWHERE, columns=400).text
    (tmp_path / "replies.json").write_text('{"replies": []}')
    done = pyrag("ask", GERMAN, "--llm", "scripted:replies.json")
    assert "English" not in done.stderr + done.stdout


async def test_a_caller_hears_of_the_language_too() -> None:
    async with PyRAG() as rag:
        assert ENGLISH_ONLY in (await rag.aask(GERMAN)).warnings
        assert ENGLISH_ONLY not in (await rag.aask(SURE)).warnings


@pytest.mark.parametrize(
    "question",
    """Who wrote À la recherche du temps perdu?
    In what city was the author of Der Prozess born?
    Leonardo da Vinci birthplace
    Is Ludwig van Beethoven older than Wolfgang Amadeus Mozart?
    Charles de Gaulle's wife
    the author of Cien años de soledad
    Who directed 千と千尋の神隠し?
    capital France
    NATO doesn't recognize double triangle flag countries?
    When did she die?""".splitlines(),
)
def test_foreign_names_make_no_foreign_question(question: str) -> None:
    assert is_english(question.strip())


@pytest.mark.parametrize(
    "question",
    """Was ist die Hauptstadt von Frankreich?
    In welchem Jahr wurde der Film Gravity gedreht?
    Wat is de hoofdstad van Nederland?
    Où est né Victor Hugo ?
    Est-ce que Paris est plus grand que Lyon ?
    ¿En qué año nació el director de Gravity?
    Onde nasceu Fernando Pessoa?
    Dove è nato Leonardo da Vinci?
    Gdzie urodził się Chopin?
    Hvor ligger Bergen?
    Missä Sibelius syntyi?
    Orhan Pamuk nerede doğdu?
    Apa ibu kota Indonesia?
    Ai viết Truyện Kiều?
    Кто написал «Войну и мир»?
    谁写了红楼梦？
    誰が源氏物語を書きましたか？
    대한민국의 수도는 어디입니까?
    من كتب ألف ليلة وليلة؟
    Ποιος έγραψε την Οδύσσεια;
    भारत की राजधानी क्या है?""".splitlines(),
)
def test_questions_of_other_languages_are_seen(question: str) -> None:
    assert not is_english(question.strip())
