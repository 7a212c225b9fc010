"""How far an answer can be trusted is shown to people, and leaves the stdout of scripts as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyrag import PyRAG
from pyrag.cli.views import verdict
from pyrag.embedded.language import is_english
from pyrag.runtime.run import ENGLISH_ONLY
from pyrag.trace.codec import to_json
from pyrag.trace.model import Answer, Citation, Passage, Step, Trace, TraceError
from tests.cli.conftest import Run, in_terminal

SURE = "Who directed Gravity?"
NOWHERE = "What is the colour of the moon called Fooqux?"
GERMAN = "Wer hat den Film Gravity gedreht?"
PASSAGES = {key: Passage(key, f"Page {key}", "text") for key in "abcde"}
RETRIEVED = Step(0, "retrieve", "the moon of Foo", topk=5, passages=tuple(PASSAGES))
TRACE = Trace("Who?", Answer("Ada"), engine="embedded", retriever="bm25:x", passages=PASSAGES, config={"topk": 5})


def answered(step: int, query: str, text: str, confidence: float | None) -> Step:
    known = text != "unknown"
    return Step(step, "answer", query, answer=Answer(text, known, ("a",) if known else (), confidence))


DOUBTED = answered(1, "its colour?", "unknown", 0.125)


def test_confidence_is_that_of_the_weakest_step_it_rests_on() -> None:
    steps = (answered(1, "who?", "Ada", 0.4), answered(2, "where?", "Rome", 0.9), answered(3, "else?", "x", 0.1))
    trace = replace(TRACE, answer=Answer("Rome", confidence=0.9), steps=steps)
    trace = replace(trace, citations=(Citation(1, "a", 1), Citation(2, "b", 2)))
    assert verdict.confidence(trace) == 0.4
    assert verdict.remark(trace) == (
        "weak answer, confidence 0.40, since 'who?' was answered 'Ada': check it in Page a, Page b"
    )


@pytest.mark.parametrize(("confidence", "weak"), [(None, False), (0.49, True), (0.5, False), (1.0, False), (0.0, True)])
def test_an_answer_is_weak_below_half(confidence: float | None, weak: bool) -> None:
    trace = replace(TRACE, answer=Answer("Ada", confidence=confidence))
    assert verdict.is_weak(trace) == weak
    assert bool(verdict.remark(trace)) == weak


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": ()}, "unknown, and nothing was searched: try a method that searches, such as --method pyrag"),
        (
            {"steps": (replace(RETRIEVED, passages=()),), "passages": {}},
            "unknown: 1 search found no passage in bm25:x; try other words, or index documents about it (pyrag index)",
        ),
        (
            {"steps": (RETRIEVED, DOUBTED)},
            "unknown: 1 search found 5 passages (Page a, Page b, Page c, …), none of which answers 'its colour?' "
            "(evidence 0.12); try other words, --topk 10, or a language model (--llm)",
        ),
        (
            {"steps": (RETRIEVED,) * 2, "engine": "openai:m"},
            "unknown: 2 searches found 5 passages (Page a, Page b, Page c, …), none of which answers it; "
            "try other words, --topk 10, or --recovery boost+rewrite",
        ),
        (
            {
                "steps": (replace(RETRIEVED, topk=100), replace(DOUBTED, rationale="not believed: 'Ada'")),
                "config": {"least_evidence": 0.75},
            },
            "unknown: 1 search found 5 passages (Page a, Page b, Page c, …), none of which answers 'its colour?' "
            "(evidence 0.12); try other words, a lower --least-evidence than 0.75, or a language model (--llm)",
        ),
        ({"error": TraceError("deadline", "the deadline passed")}, ""),
    ],
)
def test_an_unknown_says_what_was_found_and_what_to_try(changes: dict[str, object], said: str) -> None:
    trace = replace(TRACE, answer=Answer("unknown", known=False), **changes)  # type: ignore[arg-type]
    assert verdict.remark(trace) == said


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
