"""Questions that name several reports: one search for each report and thing told, one answer over all of them."""

from __future__ import annotations

import pytest

from pyrag.embedded.planner.goals import goals_of
from pyrag.embedded.planner.planner import parse
from pyrag.embedded.planner.program_text import sub_queries, write_program
from pyrag.episode.plan_checks import check_plan
from pyrag_helpers import HELPERS


def searched(question: str) -> list[str]:
    return [goal.search for goal in goals_of(question, parse(question)) if goal.search]


@pytest.mark.parametrize(
    ("question", "pieces"),
    [
        (
            "Which guild, reported by Kell News to have lost money in 1921 and also described in The Ashton Post as "
            "a leader in mining, hired Ada Quill?",
            [
                "which guild, reported by Kell News to have lost money in 1921",
                "described in The Ashton Post as a leader in mining, hired Ada Quill",
            ],
        ),
        (
            "Which team lost the final, as reported by Kell News, and then hired a coach, according to Norland Today?",
            ["which team lost the final, as reported by Kell News", "hired a coach, according to Norland Today"],
        ),
        (
            "Does the Kell News article on the merger of Ashton Mills agree with the Norland Today article on it?",
            ["does the Kell News article on the merger of Ashton Mills agree", "the Norland Today article on it"],
        ),
        (
            "Between the report by Kell News on the strike published in May and the report by Norland Today on the "
            "strike published in June, was there a change in wages?",
            [
                "Between the report by Kell News on the strike published in May",
                "the report by Norland Today on the strike published in June, was there a change in wages",
            ],
        ),
        (
            "Which guild is discussed in articles from Kell News and Norland Today for its mines?",
            [
                "which guild is discussed in articles from Kell News for its mines",
                "which guild is discussed in articles from Norland Today for its mines",
            ],
        ),
        (
            "Who, according to Kell News, founded a large guild in Norland, was accused of stealing a golden ship, "
            "and is known for painting the old gates?",
            [
                "who, according to Kell News, founded a large guild in Norland",
                "was accused of stealing a golden ship",
                "is known for painting the old gates",
            ],
        ),
        (
            "Is the article on the flood published by Kell News older than the Norland Today report on the dam?",
            ["is the article on the flood published by Kell News older", "the Norland Today report on the dam"],
        ),
    ],
)
def test_each_report_and_claim_is_searched_on_its_own(question: str, pieces: list[str]) -> None:
    assert searched(question) == pieces
    program = write_program(question, parse(question))
    assert program.count("retrieve(") == len(pieces)
    assert program.count(" answer(") == 1
    assert not check_plan(program, sub_queries(question, parse(question)), ("retrieve", "answer"), tuple(HELPERS))


@pytest.mark.parametrize(
    ("question", "pieces"),
    [
        (
            "Which actor starred in Copper Moon and was born in Ashton?",
            ["which actor starred in Copper Moon", "was born in Ashton"],
        ),
        (
            "Copper Moon starred which Norland actress, known for a role in The Glass Harbour?",
            ["Copper Moon starred which Norland actress", "known for a role in The Glass Harbour"],
        ),
    ],
)
def test_each_condition_is_searched_on_its_own(question: str, pieces: list[str]) -> None:
    assert searched(question) == pieces


@pytest.mark.parametrize(
    "question",
    [
        "Along with Norland and Ashton, which country signed the Kell Treaty?",
        "When Ada Quill visited Norland, did she sing in Ashton?",
        "Which guild forged rings and sold them?",
    ],
)
def test_a_circumstance_is_no_condition(question: str) -> None:
    assert len(searched(question)) == 1


@pytest.mark.parametrize(
    "question",
    ["According to Kell News, who won the Kell Prize?", "Who wrote the Ashton Report?", "What story was told by Ada?"],
)
def test_one_report_is_one_search(question: str) -> None:
    assert len(searched(question)) == 1
