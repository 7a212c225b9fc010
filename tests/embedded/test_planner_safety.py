"""Whatever is asked, the embedded planner writes a program that compiles and holds the text only in literals."""

from __future__ import annotations

import ast
import builtins
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.agents.python_text import literal
from pyrag.embedded.planner.meaning import Whole
from pyrag.embedded.planner.planner import parse
from pyrag.embedded.planner.program_text import listed_program, sub_queries, whole_program, write_program
from pyrag.embedded.relations.table import BY_NAME, COMPOSED, RELATIONS
from pyrag.episode.plan_checks import check_plan
from pyrag_helpers import HELPERS

CALLS = {"retrieve", "answer", "str", *HELPERS}
NAME = re.compile(r"[a-z][a-z0-9_]*|ValueError")
SHAPES = (
    "When was the director of film {} born?",
    "Who is older, {} or {}?",
    "Are {} and {} from the same country?",
    "What nationality do {} and {} share?",
    "What is the population of the city where {} died?",
    "Which film has the director who died first, {} or {}?",
    "{} was born on an island; who rules that island?",
    "Who {} the {} that {} {}?",
    "What is the {} of the {} where {} is located?",
)
# fmt: off
NASTY = st.sampled_from(
    ['"', "'", "\\", "{x}", "{0}", "{{", "}}", "\n", "\r\n", "\u2028", "\ud800", "\x00", "'''", '"; import os #', "⟦0⟧",
     "’s", "eval", "of", "#0", "#1", "#12"]
)
WORDS = ["the", "of", "who", "that", "director", "Alpha", "Beta", "and", "or", "same", "is", "was", "in", "born,",
         "film", "'s", "where", "which", ";", "both", "a", "whose", "with", "starring", "named", "by", "did", "There",
         "."]
# fmt: on
TEXT = st.one_of(st.text(max_size=30), NASTY, st.lists(st.one_of(st.text(max_size=8), NASTY), max_size=5).map("".join))


def assert_harmless(question: str) -> None:
    meaning = parse(question)
    source = write_program(question, meaning)
    tree = ast.parse(source)
    assert "final_answer" in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Lambda | ast.Subscript)
        if isinstance(node, ast.Name):
            assert NAME.fullmatch(node.id)
            assert isinstance(node.ctx, ast.Load) or node.id not in CALLS | set(dir(builtins))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id in CALLS
        if isinstance(node, ast.Attribute):
            assert node.attr == "join"
        if isinstance(node, ast.FormattedValue):
            assert isinstance(node.value, ast.Name)
    assert all(sub_queries(question, meaning))
    numbers = " ".join(re.findall(r"#\d+", question))  # without the words, from which needed look-ups are estimated
    queries = sub_queries(question, meaning)
    assert not check_plan(source, queries, ("retrieve", "answer"), tuple(HELPERS), question=numbers)


@given(TEXT)
def test_any_text_makes_a_harmless_program(question: str) -> None:
    assert_harmless(question or "?")


@given(st.sampled_from(SHAPES), st.lists(TEXT, min_size=4, max_size=4))
def test_any_text_inside_a_known_question_makes_a_harmless_program(shape: str, fillings: list[str]) -> None:
    assert_harmless(shape.format(*fillings))


@pytest.mark.parametrize(
    "question", ["Who  the  that  #0?", "Who is older, #0 or #1?", "Are Ada #1 and Ada #2 from the same country?"]
)
def test_numbers_of_a_question_are_not_references(question: str) -> None:
    assert_harmless(question)


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_order_of_question_words_makes_a_harmless_program(words: list[str]) -> None:
    assert_harmless(" ".join([*words, "?"]))


@given(TEXT)
def test_a_literal_is_the_text(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text


@given(TEXT)
def test_the_whole_question_is_asked_verbatim(text: str) -> None:
    asked = [node.value for node in ast.walk(ast.parse(whole_program(text))) if isinstance(node, ast.Constant)]
    assert asked.count(text) == 2


@given(TEXT, st.lists(TEXT, min_size=2, max_size=4))
def test_any_sub_queries_make_a_harmless_program(question: str, queries: list[str]) -> None:
    tree = ast.parse(listed_program(question, [f"{query} #1 of #2" for query in queries]))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert all(re.fullmatch(r"(?:docs|answer)_\d|retrieve|answer|final_answer", name) for name in names)
    assert not any(isinstance(node, ast.Attribute | ast.Subscript) for node in ast.walk(tree))


def test_a_long_text_is_read_quickly() -> None:
    for question in (
        "the film of the director that " * 500,
        "A and B or " * 3000,
        "who is the father of " * 200 + "X?",
    ):
        assert_harmless(question)
        assert isinstance(parse(question), Whole)


@pytest.mark.parametrize("name", [relation.name for relation in RELATIONS if relation.question or relation.nouns])
def test_a_relation_says_how_to_ask_and_search(name: str) -> None:
    row = BY_NAME[name]
    assert row.question.count("{x}") == 1
    assert row.question.endswith("?")
    assert "{x}" in row.query
    assert all("{x}" in form and re.compile(form.replace("{x}", "x")) for form in row.forms)
    assert row.ask("Alpha {x}").count("Alpha") == 1


def test_composed_relations_are_made_of_known_ones() -> None:
    assert all(name in BY_NAME for readings in COMPOSED.values() for reading in readings for name in reading)
