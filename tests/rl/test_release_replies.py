"""Replies in the form that a prompt set asks for are read back as what they were written from."""

from __future__ import annotations

import asyncio

import pytest

from pyrag.agents.goals.goal import Goal
from pyrag.agents.parsing.judgements import parse_judged
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.rewriter import parse_rewrite
from pyrag.methods.opera.goals import read_goals
from pyrag.trace.model import UNKNOWN, Answer, Attempt, Passage
from pyrag_rl.data.examples import Ask, ask_analysis, ask_decomposition, ask_goals, ask_joint_program, ask_rewrite
from pyrag_rl.data.release_replies import in_asked_form
from pyrag_rl.data.replies import goals_reply, joint_reply, judgement_reply, rewrite_reply, sub_queries_reply
from pyrag_rl.prompting import prompt_of

QUESTION = "Where was the author of Alpha born?"
GOALS = (
    Goal(1, "Who wrote Alpha?", "person", (), "Who wrote Alpha?"),
    Goal(2, "Where was [person from step 1], author of Alpha, born?", "place", (1,), "yes"),
)
PASSAGES = (Passage("p1", "Alpha", "Ada Smith wrote Alpha."), Passage("p2", "Beta", "Beta is a book."))


def asked(ask: Ask, prompts: str | None) -> str:
    return "\n".join(message.content for message in asyncio.run(prompt_of(ask, prompts)))


@pytest.mark.parametrize("prompts", [None, "paper"])
def test_plans_are_read_back(prompts: str | None) -> None:
    reply = in_asked_form(goals_reply(GOALS, "Two facts."), asked(ask_goals(QUESTION), prompts))
    assert ("<subquestion>Who wrote Alpha?</subquestion>" in reply) is (prompts == "paper")
    assert ("[Answer1]" in reply) is (prompts == "paper")
    reading = read_goals(reply, QUESTION)
    assert [(goal.step, goal.needs, bool(goal.search)) for goal in reading.goals] == [(1, (), True), (2, (1,), True)]
    assert not reading.warnings


@pytest.mark.parametrize("prompts", [None, "paper"])
@pytest.mark.parametrize("known", [True, False])
def test_judgements_are_read_back(prompts: str | None, known: bool) -> None:
    answer = Answer("Ada Smith", citations=("p1",)) if known else Answer(UNKNOWN, known=False)
    attempt = Attempt(
        "first", "Who wrote Alpha?", None, ("p1", "p2"), answer, rationale="Doc [1] names her.", missing="the author"
    )
    prompt = asked(ask_analysis("Who wrote Alpha?", PASSAGES, QUESTION), prompts)
    reply = in_asked_form(judgement_reply(attempt), prompt)
    assert ('"status"' in reply) is (prompts == "paper")
    judged = parse_judged(reply, 2)
    assert judged.known is known
    assert (judged.text == "Ada Smith") is known


@pytest.mark.parametrize("prompts", [None, "paper"])
def test_rewrites_are_read_back(prompts: str | None) -> None:
    attempt = Attempt("rewrite", "author novel Alpha", 10, strategy="shorter", keywords=("Alpha", "novel"))
    prompt = asked(ask_rewrite("Who wrote Alpha?", ("Who wrote Alpha?",), PASSAGES, "the author"), prompts)
    reply = in_asked_form(rewrite_reply(attempt), prompt)
    assert ('"rewritten_query"' in reply) is (prompts == "paper")
    assert parse_rewrite(reply) == ("author novel Alpha", ("Alpha", "novel"), "shorter")


@pytest.mark.parametrize("prompts", [None, "paper"])
def test_sub_queries_are_read_back(prompts: str | None) -> None:
    queries = ("Who wrote Alpha?", "Where was she born?")
    reply = in_asked_form(sub_queries_reply(queries), asked(ask_decomposition(QUESTION), prompts))
    assert reply.startswith("[" if prompts else "{")
    assert parse_sub_queries(reply) == queries


@pytest.mark.parametrize("prompts", [None, "paper"])
def test_joint_replies_keep_their_program(prompts: str | None) -> None:
    made = joint_reply("final_answer = 1", ("Who wrote Alpha?",))
    reply = in_asked_form(made, asked(ask_joint_program(QUESTION), prompts))
    assert (reply == made) is (prompts is None)
    assert reply.endswith("\n\n```python\nfinal_answer = 1\n```")
    assert parse_sub_queries(reply) == ("Who wrote Alpha?",)


def test_other_replies_stay_as_they_are() -> None:
    for reply in ("<answer>x</answer>", "```python\nfinal_answer = 1\n```", "[1, 2]", "{broken"):
        assert in_asked_form(reply, '"status" "rewritten_query" <subquestion>') == reply
