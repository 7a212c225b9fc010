"""Plan checks: what they find, and that they leave good programs alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.episode.plan_checks import check_plan

PRIMITIVES = ("retrieve", "answer")

GOOD = """
docs1 = retrieve("Who directed Alpha?")
director = answer("Who directed Alpha?", docs1)
docs2 = retrieve(f"When was {director} born?")
born = answer(f"When was {director} born?", docs2)
final_answer = answer(f"Given: {director} was born {born}. Answer the question: When?")
"""
HOPS = ("Who directed Alpha?", "When was the director of Alpha born?")


def messages(source: str, sub_queries: tuple[str, ...] = HOPS) -> list[str]:
    return [str(problem) for problem in check_plan(source, sub_queries, PRIMITIVES, ("parse_date",))]


def test_a_good_program_has_no_problems() -> None:
    assert messages(GOOD) == []


def test_loops_functions_and_helpers_are_left_alone() -> None:
    source = """
def look(query):
    docs = retrieve(query)
    return answer(query, docs)
facts = [look(f"When was {name} born?") for name in ("Alpha", "Beta")]
final_answer = "Alpha" if parse_date(facts[0]) < parse_date(facts[1]) else "Beta"
"""
    assert messages(source, ("When was Alpha born?", "When was Beta born?", "Who is older?")) == []


def test_an_undefined_name_is_fatal_and_has_its_line() -> None:
    found = check_plan(GOOD.replace("{director} born", "{the_director} born"), HOPS, PRIMITIVES, ())
    assert found[0].fatal
    assert found[0].line == 4
    assert "'the_director'" in found[0].message


def test_a_program_without_result_is_fatal() -> None:
    assert any("never sets final_answer" in text for text in messages("x = 1", ()))


def test_under_decomposition() -> None:
    source = 'docs = retrieve("Alpha")\nfinal_answer = answer("Alpha", docs)'
    assert any("under-decomposition" in text for text in messages(source))


def test_a_comparison_needs_no_retrieval_of_its_own() -> None:
    source = """
a = answer("When was Alpha born?", retrieve("Alpha born"))
b = answer("When was Beta born?", retrieve("Beta born"))
final_answer = "Alpha" if parse_date(a) < parse_date(b) else "Beta"
"""
    assert messages(source, ("When was Alpha born?", "When was Beta born?", "Which of them is older?")) == []


def test_an_unused_answer() -> None:
    source = GOOD.replace("was born {born}", "is it")
    assert any("'born' is never used" in text for text in messages(source))


@pytest.mark.parametrize("result", ["'Paris'", "str(6 * 7)"])
def test_a_result_that_ignores_the_steps(result: str) -> None:
    source = GOOD.replace(GOOD.strip().splitlines()[-1], f"x = director + born\nfinal_answer = {result}")
    assert any("does not depend" in text for text in messages(source))


def test_a_result_built_in_place_depends_on_the_steps() -> None:
    source = 'facts = []\nfacts.append(answer("Alpha", retrieve("Alpha")))\nfinal_answer = ", ".join(facts)'
    assert messages(source, ("What is Alpha?",)) == []


def test_a_sub_query_that_never_appears() -> None:
    assert any("'When did Gamma die?'" in text for text in messages(GOOD, (*HOPS[:1], "When did Gamma die?")))


@given(st.text(max_size=200))
def test_any_text_is_checked_without_an_exception(source: str) -> None:
    check_plan(source, ("Who?",), PRIMITIVES, ())


SENTENCES = [
    'f"{director} was born on {born}."',
    'f"The director of Alpha is {director}"',
    '"The director was born on " + born',
    '"{} was born on {}".format(director, born)',
    '"%s was born on %s" % (director, born)',
    'f"{director} was first" if director else "unknown"',
    'director and f"It was {born}"',
    '(f"{director} directed it. " f"The date: {born}")',
]


@pytest.mark.parametrize("result", SENTENCES)
def test_a_sentence_put_together_goes_back(result: str) -> None:
    source = GOOD.replace(GOOD.strip().splitlines()[-1], f"final_answer = {result}")
    assert any("a sentence that the program puts together" in text for text in messages(source))


@pytest.mark.parametrize(
    "ending",
    [
        'result = f"{director} was born on {born}"\nfinal_answer = result',
        'def tell(who):\n    return f"{who} was born on {born}"\nfinal_answer = tell(director)',
        'if director:\n    final_answer = f"{director} was born on {born}"\nelse:\n    final_answer = "unknown"',
        'final_answer: str = f"{director} was born on {born}"',
    ],
)
def test_a_sentence_is_found_behind_names(ending: str) -> None:
    source = GOOD.replace(GOOD.strip().splitlines()[-1], ending)
    assert any("a sentence that the program puts together" in text for text in messages(source))


@pytest.mark.parametrize(
    "result",
    [
        'f"{years_between(director, born)} years"',
        'f"{director} and {born}"',
        'f"{director}, {born}"',
        'f"from {director} to {born}"',
        'f"{director} ({born})"',
        '", ".join([director, born])',
        "director + born",
        'f"The documents do not say when {director} was born ({born})"',
        'answer(f"Given: {director} was born on {born}. Answer the question: When?")',
        'answer(f"{director} was born on {born}. When was the director born?") or "unknown"',
    ],
)
def test_short_texts_and_refusals_are_no_sentences(result: str) -> None:
    source = GOOD.replace(GOOD.strip().splitlines()[-1], f"final_answer = {result}")
    assert not any("puts together" in text for text in messages(source))


CHAIN = "Where was the director of Alpha born?"
PAIR = "Which film came out earlier, Alpha or Beta?"


@pytest.mark.parametrize(
    ("question", "sub_queries", "source", "finding"),
    [
        # The decomposer gave the question itself, as after a fallback or in joint mode.
        (CHAIN, [CHAIN], 'd = retrieve("Where was the director of Alpha born?")\nfinal_answer = answer("Where?", d)',
         "needs at least 2 look-ups"),
        (PAIR, [PAIR], 'd = retrieve("Alpha or Beta")\nfinal_answer = answer("Which?", d)', "look each of the"),
        # One query three times, written out and in a loop.
        (CHAIN, ["Who directed Alpha?", "Where was #1 born?"],
         'd = retrieve("Alpha")\ne = retrieve("Alpha")\nf = retrieve("Alpha")\n'
         'final_answer = answer("Where?", d + e + f)',
         "only 1 retrieve() call with different queries"),
        (CHAIN, [CHAIN],
         'docs = []\nfor _ in range(3):\n    docs += retrieve("Alpha")\nfinal_answer = answer("Where?", docs)',
         "needs at least 2 look-ups"),
        # Hops that do not use each other's answers.
        (CHAIN, ["Who directed Alpha?", "Where was #1 born?"],
         'd = retrieve("Who directed Alpha?")\na = answer("Who directed Alpha?", d)\n'
         'e = retrieve("Where was the director born?")\nb = answer("Where was the director born?", e)\n'
         'final_answer = answer(f"Given: {a}, {b}. Answer: where?")', "no search uses the answer of an earlier step"),
        ("Ask Alpha", ["Who leads #1?", "Who is Alpha?"],
         'd = retrieve("Who is Alpha?")\na = answer("Who?", d)\ne = retrieve("Who leads #1?")\n'
         'final_answer = answer(f"Who leads {a}?", e)', "no search uses the answer of an earlier step"),
    ],
)  # fmt: skip
def test_too_few_or_unconnected_look_ups(question: str, sub_queries: list[str], source: str, finding: str) -> None:
    problems = check_plan(source, sub_queries, ("retrieve", "answer"), (), (), question)
    assert any(finding in problem.message for problem in problems), problems
    assert not any(problem.fatal for problem in problems)


@pytest.mark.parametrize(
    ("question", "sub_queries", "source"),
    [
        (CHAIN, ["Who directed Alpha?", "Where was #1 born?"],
         'd = retrieve("Who directed Alpha?")\na = answer("Who directed Alpha?", d)\n'
         'q = f"Where was {a} born?"\nfinal_answer = answer(q, retrieve(q))'),
        # Numbers that name things.
        ("Who opened #0?", ["Who opened #0?"], 'final_answer = answer("Who opened #0?", retrieve("Who opened #0?"))'),
        ("Do dock #1 and dock #2 open?", ["When does dock #1 open?", "When does dock #2 open?"],
         'a = answer("When does dock #1 open?", retrieve("dock #1"))\n'
         'b = answer("When does dock #2 open?", retrieve("dock #2"))\nfinal_answer = a + ", " + b'),
        (PAIR, ["When did Alpha come out?", "When did Beta come out?"],
         'a = answer("When did Alpha come out?", retrieve("Alpha"))\n'
         'b = answer("When did Beta come out?", retrieve("Beta"))\n'
         'final_answer = answer(f"Alpha: {a}, Beta: {b}. Which is earlier?")'),
        (PAIR, [PAIR], 'dates = [answer(f"When did {x} come out?", retrieve(x)) for x in ["Alpha", "Beta"]]\n'
         'final_answer = answer(f"Alpha: {dates[0]}, Beta: {dates[1]}. Which came out earlier, Alpha or Beta?")'),
        ("What is the name of the director of Alpha?", ["Who directed Alpha?"],
         'final_answer = answer("Who directed Alpha?", retrieve("Who directed Alpha?"))'),
        ("When was the Battle of Hastings fought?", ["When was the Battle of Hastings fought?"],
         'final_answer = answer("When was the Battle of Hastings fought?", retrieve("Battle of Hastings"))'),
        ("Who starred in Dead or Alive?", ["Who starred in Dead or Alive?"],
         'final_answer = answer("Who starred in Dead or Alive?", retrieve("Dead or Alive"))'),
    ],
)  # fmt: skip
def test_enough_look_ups_are_not_objected_to(question: str, sub_queries: list[str], source: str) -> None:
    assert check_plan(source, sub_queries, ("retrieve", "answer"), (), (), question) == []
