"""Times that no calendar or clock has are recognised in questions; scores, codes and names are not."""

from __future__ import annotations

import pytest

from pyrag.embedded.planner.impossible_times import impossible_time


@pytest.mark.parametrize(
    "question",
    [
        "Who left before 2022-15-01?",
        "What happened on 30.02.2021?",
        "Which boat sailed on April 31, 1999?",
        "Was the dam opened on 32 May 1960?",
        "Which bus leaves at 26:10?",
        "Who woke up at 25 o'clock?",
        "How many cranes were sold in Q9 2020?",
        "What was built in week 60 of 2020?",
        "What did she buy on 31 September?",
    ],
)
def test_impossible_times_are_named(question: str) -> None:
    assert "is not" in impossible_time(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who left before 2022-12-01?",
        "What happened in Sweden on 30 February 1712?",
        "Who won the final by 30:75?",
        "What is the ratio of 70:90 called?",
        "Which part has the number 2022-15-01?",
        "What did May 45 people eat?",
        "In June 60 herons came, but how many in July?",
        "Which emperor lived from 24 January 76 - 10 July 138?",
        "Who drives an Audi Q5?",
        "Which ship was sunk on 29 February 1904?",
        "Which train leaves at 24:00?",
        "Who wrote the week 60 report?",
    ],
)
def test_other_questions_have_no_impossible_time(question: str) -> None:
    assert impossible_time(question) == ""
