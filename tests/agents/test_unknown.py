"""Wordings that say that there is no answer, and answers that look like them. Data: `unknown.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyrag.agents.parsing.answers import is_unknown, parse_answer
from pyrag_helpers.known import is_known

ROWS = [json.loads(line) for line in Path(__file__).with_name("unknown.jsonl").read_text(encoding="utf-8").splitlines()]
WORDINGS = [row["said"] for row in ROWS if row["unknown"]]
ANSWERS = [row["said"] for row in ROWS if not row["unknown"]]


def test_every_wording_of_unknown_is_recognised() -> None:
    assert len(WORDINGS) > 500
    assert [said for said in WORDINGS if not is_unknown(said)] == []


def test_answers_that_look_like_refusals_stay_answers() -> None:
    assert len(ANSWERS) > 300
    assert [said for said in ANSWERS if is_unknown(said)] == []


@pytest.mark.parametrize(
    "frame", ["<answer>{}</answer>", "<answer>**{}**</answer>", "Answer: {}", '{{"answer": "{}"}}']
)
def test_a_refusal_in_any_form_is_unknown(frame: str) -> None:
    for said in WORDINGS:
        if '"' not in said:
            assert not parse_answer(frame.format(said), 3).known, said


@pytest.mark.parametrize("said", ["Not mentioned [1].", "The documents do not say (Doc 2).", "Unknown [1][2]"])
def test_citations_change_nothing(said: str) -> None:
    assert not parse_answer(f"<answer>{said}</answer>", 3).known


@pytest.mark.parametrize(
    "said",
    [
        "The documents do not mention her birthplace, but she was born in Marrow Bay.",
        "The documents do not say. However, it was probably Marrow Bay.",
        "Unknown. Marrow Bay.",
    ],
)
def test_a_refusal_that_goes_on_to_answer_is_none(said: str) -> None:
    assert not is_unknown(said)


def test_programs_call_unknown_what_answers_do() -> None:
    assert not any(is_known(said) for said in WORDINGS if any(map(str.isalnum, said)))
    assert all(is_known(said) for said in ANSWERS if said != "none")


def test_a_long_refusal_is_judged_by_its_beginning() -> None:
    assert is_unknown("The documents do not mention where she was born. " + "They describe her films. " * 200)
    assert not is_unknown("Marrow Bay. " + "The documents do not mention it. " * 200)
