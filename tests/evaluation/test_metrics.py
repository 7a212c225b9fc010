"""Scores on edge cases worked out by hand from the official scripts' definitions, to four decimals.

HotpotQA: hotpot_evaluate_v1.py (yes/no/noanswer score an F1 by equality only; no shared token scores 0).
MuSiQue: metrics/answer.py (two texts without tokens agree; best of answer and aliases).
SQuAD 1.1 and 2.0: evaluate-v1.1.py, evaluate-v2.0.py (2.0 drops gold spellings that normalise to nothing).
"""

from __future__ import annotations

import pytest

from pyrag.evaluation.metrics import (
    HOTPOT,
    MUSIQUE,
    SQUAD2,
    Script,
    as_label,
    normalise,
    score_text,
    script_of,
)

CASES = [
    # script, prediction, golds, exact match, F1
    (MUSIQUE, "The Eiffel Tower", ["eiffel tower"], 1, 1.0),
    (MUSIQUE, "a an the", ["The"], 1, 1.0),  # all articles: equal, and without tokens
    (HOTPOT, "a an the", ["The"], 1, 0.0),
    (SQUAD2, "a an the", ["The"], 1, 1.0),
    (MUSIQUE, "", ["Paris"], 0, 0.0),
    (SQUAD2, "", [], 1, 1.0),  # unanswerable, and not answered
    (SQUAD2, "Paris", [], 0, 0.0),
    (SQUAD2, "", ["The", "Paris"], 0, 0.0),  # "The" is dropped, so the empty answer is wrong
    (MUSIQUE, "", ["The", "Paris"], 1, 1.0),  # here it stays, and equals the empty answer
    (MUSIQUE, "U.S.A.", ["USA"], 1, 1.0),
    (MUSIQUE, "co-op", ["coop"], 1, 1.0),  # punctuation goes, it does not part words
    (MUSIQUE, "co op", ["coop"], 0, 0.0),
    (MUSIQUE, "O'Neill’s", ["oneills"], 0, 0.0),  # ’ is no ASCII punctuation, so it stays
    (MUSIQUE, "“Paris”", ["Paris"], 0, 0.0),
    (MUSIQUE, "Beyoncé", ["Beyonce"], 0, 0.0),  # accents count
    (MUSIQUE, "STRASSE", ["Straße"], 0, 0.0),  # lower(), not casefold()
    (MUSIQUE, "New\u00a0York  City", ["new york city"], 1, 1.0),  # any white space parts words
    (MUSIQUE, "12 May 1969", ["May 12, 1969"], 0, 1.0),  # the same tokens in another order
    (MUSIQUE, "1,000", ["1000"], 1, 1.0),
    (MUSIQUE, "Barack Obama", ["Obama", "Barack H. Obama"], 0, 0.8),  # 2/2 and 2/3
    (MUSIQUE, "the city of Paris in France", ["Paris"], 0, 0.3333),  # 1/5 and 1/1
    (MUSIQUE, "Paris Paris", ["Paris"], 0, 0.6667),  # a token counts as often as it is there
    (MUSIQUE, "Theodore", ["odore"], 0, 0.0),  # articles are whole words
    (MUSIQUE, "the-the", ["thethe"], 1, 1.0),
    (HOTPOT, "yes", ["yes"], 1, 1.0),
    (HOTPOT, "Yes.", ["yes"], 1, 1.0),
    (HOTPOT, "yes they are", ["yes"], 0, 0.0),
    (MUSIQUE, "yes they are", ["yes"], 0, 0.5),
    (HOTPOT, "no", ["no one"], 0, 0.0),
    (HOTPOT, "noanswer", ["noanswer"], 1, 1.0),
    (HOTPOT, "noanswer", ["Paris"], 0, 0.0),
    (HOTPOT, "Yes Minister", ["Yes Minister"], 1, 1.0),
    (HOTPOT, "yes", ["no", "yes"], 1, 1.0),
]


@pytest.mark.parametrize(("script", "said", "golds", "em", "f1"), CASES)
def test_scores_are_those_of_the_official_scripts(
    script: Script, said: str, golds: list[str], em: float, f1: float
) -> None:
    got_em, got_f1, _ = score_text(said, golds, script)
    assert (got_em, round(got_f1, 4)) == (em, f1)


def test_accuracy_is_a_gold_spelling_within_the_answer() -> None:
    assert score_text("It is Paris, France.", ["Lyon", "paris"])[2] == 1.0
    assert score_text("Parisian", ["Paris"])[2] == 0.0
    assert score_text("", [])[2] == 1.0


def test_each_set_has_its_script() -> None:
    assert script_of("hotpotqa") == script_of("2wikimultihopqa") == HOTPOT
    assert script_of("squad") == SQUAD2
    assert script_of("musique") == script_of("popqa") == MUSIQUE


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("Yes", "SUPPORTED"), ("true", "SUPPORTED"), ("Supported.", "SUPPORTED"), ("Yes, it is.", "SUPPORTED"),
        ("no", "NOT_SUPPORTED"), ("NOT SUPPORTED", "NOT_SUPPORTED"), ("NOT_SUPPORTED", "NOT_SUPPORTED"),
        ("No, he was not", "NOT_SUPPORTED"), ("Norway", None), ("Yesterday", None), ("", None),
    ],
)  # fmt: skip
def test_claims_are_scored_by_label(said: str, label: str | None) -> None:
    assert as_label(said) == label
    assert score_text(said, ["NOT_SUPPORTED"])[0] == float(label == "NOT_SUPPORTED")


def test_normalising_twice_changes_nothing_more() -> None:
    assert normalise(normalise("The  U.S.' “best” A-team, an ode")) == normalise("The  U.S.' “best” A-team, an ode")
