"""Decoding: the best span of a window, and edges put right for what is asked."""

from __future__ import annotations

import pytest

from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.neural.decode import best_spans, trim
from pyrag.embedded.reader.neural.windows import Window

LIVED = "Kjetil Osvold (5 June 1961 – 3 May 2010 in Oslo) was a Norwegian footballer."
BORN = 'He was born on March 15, 1944 in Shanghai to "Li" and Ann.'


def window(count: int) -> Window:
    """Two question tokens, then `count` words of three letters."""
    return Window(0, [101, 1, 102, *range(count), 102], 3, 3, [(4 * at, 4 * at + 3) for at in range(count)])


def scores(count: int, **marks: float) -> list[list[float]]:
    """Zero everywhere but where marked: `s2=5` is the start score of the window's third token."""
    found = [[0.0, 0.0] for _ in range(count + 4)]
    for name, value in marks.items():
        at = 0 if name[1:] == "null" else 3 + int(name[1:])
        found[at]["se".index(name[0])] = value
    return found


def test_the_best_span_is_start_plus_end_less_null() -> None:
    best = best_spans(window(6), scores(6, s2=5, e3=4, snull=1, enull=1))[0]
    assert (best.start, best.end, best.margin) == (8, 15, 7)


def test_an_end_before_the_start_is_no_span() -> None:
    best = best_spans(window(6), scores(6, s4=5, e1=9))[0]
    assert best.start <= best.end
    assert best.margin == 9


def test_spans_do_not_overlap() -> None:
    found = best_spans(window(30), scores(30, s2=5, e3=4, s3=4.5, s9=2, e9=2), count=2)
    assert [(span.start, span.end) for span in found] == [(8, 15), (36, 39)]


@pytest.mark.parametrize(
    ("question", "text", "marked", "wanted"),
    [
        ("When was Kjetil Osvold born?", LIVED, "5 June 1961 – 3 May 2010", "5 June 1961"),
        ("When did Kjetil Osvold die?", LIVED, "5 June 1961 – 3 May 2010", "3 May 2010"),
        ("When did Kjetil Osvold die?", LIVED, "5 June 1961", "3 May 2010"),
        ("When was Kjetil Osvold born?", LIVED, "5 June", "5 June 1961"),
        ("In what year did Kjetil Osvold die?", LIVED, "3 May 2010", "2010"),
        ("When was he born?", BORN, "March 15, 1944 in", "March 15, 1944"),
        ("What is the nationality of Kjetil Osvold?", LIVED, "Norwegian footballer", "Norwegian"),
        ("Which country is Jask in?", "Jask is in Hormozgan, South Iran.", "Hormozgan, South Iran", "Iran"),
        ("Where was Erich born?", "Erich was born in Grimma, Saxony.", "Grimma, Saxony", "Grimma"),
        ("Who directed Alpha?", "Alpha was made by American director Ann Lee.", "American director Ann Lee", "Ann Lee"),
        ("Who was his father?", BORN, '"Li"', "Li"),
        ("Where was he born?", BORN, "Shanghai", "Shanghai"),
        ("Who sang it?", "It was sung by Sammy Davis Jr.", "Sammy Davis Jr.", "Sammy Davis Jr."),
    ],
)
def test_answers_are_trimmed_by_kind(question: str, text: str, marked: str, wanted: str) -> None:
    start = text.index(marked)
    assert trim(text, start, start + len(marked), analyse(question)) == wanted
