"""Passages, answers, citations and traces in a REPL and a notebook."""

from __future__ import annotations

import pytest

from pyrag.trace.model import Answer, Citation, Passage, Step, Trace, TraceError, Usage

HOSTILE = "<script>alert('x')</script> & \"y\""


def test_passages_show_the_beginning_of_their_text() -> None:
    passage = Passage("mill", "The mill", "word " * 100, score=1.25, source="notes.md", start=3, end=9)
    assert repr(passage) == f"Passage('mill', 'The mill', '{'word ' * 15}word…', score=1.25)"
    assert str(passage) == f"The mill\n{'word ' * 100}\n(notes.md:3-9)"
    assert str(Passage("a", "", "text")) == "text"


def test_answers_and_citations_read_as_texts() -> None:
    assert f"{Answer('Ada Berg', confidence=0.5)}" == "Ada Berg"
    assert str(Citation(2, "mill", 4)) == "[2] mill"
    assert repr(Citation(2, "mill", 4)) == "Citation(number=2, passage='mill', step=4)"


def test_traces_are_one_line_and_a_summary() -> None:
    trace = Trace(
        "Who built it?",
        Answer("Ada Berg"),
        steps=(Step(0, "retrieve", "x"),),
        citations=(Citation(1, "mill", 0), Citation(2, "gone", 0)),
        passages={"mill": Passage("mill", "The mill", "Ada Berg built it.\nIn 1871.")},
        usage=Usage(seconds=1.234),
    )
    assert repr(trace) == "<Trace 'Who built it?' → 'Ada Berg' (1 step, 2 citations, 1.23 s)>"
    assert str(trace) == "Who built it?\n→ Ada Berg\n[1] The mill: Ada Berg built it. In 1871."
    failed = Trace("Who?", Answer("unknown", known=False), error=TraceError("service", "no server: start it"))
    assert repr(failed) == "<Trace 'Who?' → failed: no server: start it (0 steps, 0 citations, 0.00 s)>"
    assert str(failed) == "Who?\n→ unknown\n✗ no server: start it"


@pytest.mark.parametrize("value", [Passage("p", HOSTILE, HOSTILE, source=HOSTILE), Answer(HOSTILE)])
def test_notebooks_get_no_markup_of_texts(value: Passage | Answer) -> None:
    page = value._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_notebooks_tell_unknown_from_known() -> None:
    assert Answer("Ada", confidence=0.734)._repr_html_() == "<div><b>Ada</b> <small>confidence 0.73</small></div>"
    assert Answer("unknown", known=False, confidence=0.1)._repr_html_() == "<div><i>unknown</i></div>"
    assert len(Passage("p", "t", "x" * 10_000)._repr_html_()) < 1_000
