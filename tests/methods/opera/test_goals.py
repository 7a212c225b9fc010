"""Plans of goals: what is refused, what is compiled, and that no answer can break the substitution."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.agents.goals.goal import PLACEHOLDER, Goal
from pyrag.agents.goals.goal_types import same_type
from pyrag.errors import BadOutputError
from pyrag.methods.opera.agents import written_goal
from pyrag.methods.opera.goal_program import compile_goals
from pyrag.methods.opera.goals import malformed, read_goals
from pyrag.methods.opera.protocol import planned_goals
from pyrag_helpers import HELPERS
from tests.methods.opera.conftest import Case, goal, no, plan, yes

# Plans as models of 3 to 8 billion parameters write them. Each line has a reply, and for every goal its text with
# placeholders in the one form, the steps that it needs, and whether it is searched for or drawn from earlier answers.
WRITTEN = [json.loads(line) for line in Path(__file__).with_name("plans.jsonl").read_text("utf-8").splitlines()]
FIRST = goal(1, "Which company acquired WhatsApp?", "company")


def where(**more: Any) -> dict[str, Any]:
    return goal(2, "Where is [company from step 1] headquartered?", "city", 1) | more


def test_what_is_nearly_a_placeholder_is_found_and_nothing_else() -> None:
    assert malformed("in [the city of step 1] or [x from step 2], [y] and [step") == ["[the city of step 1]"]
    assert malformed("[" + "step " * 400_000) == []  # in an hour, if the time grew with the square of the length


@pytest.mark.parametrize(
    ("goals", "said"),
    [
        ([], "the list of goals is empty"),
        ([goal(1, " ", "x")], "goal 1 has no text"),
        ([3], "goal 1 is not an object"),
        ([goal(1, "Where is [company from step 1]?", "city", 1)], "needs its own answer: that is a cycle"),
        ([goal(1, "Where is [city from step 2]?", "x", 2), goal(2, "Who is [x from step 1]?", "city", 1)], "later"),
        ([goal(1, "Who?", "person", 7)], "step 7, which does not exist: there are 1 steps"),
        ([goal(n, "Who?", "x") for n in range(1, 14)], "at most 12 are allowed"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(goals: list[Any], said: str) -> None:
    with pytest.raises(BadOutputError, match=said.replace("?", r"\?").replace("(", r"\(")):
        read_goals(json.dumps({"goals": goals}))


@pytest.mark.parametrize("written", [one for one in WRITTEN if "refused" in one], ids=lambda one: one["name"])
def test_a_reply_without_a_plan_that_can_run_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(BadOutputError) as refused:
        read_goals(written["reply"], written["question"])
    assert written["refused"] in str(refused.value)


@pytest.mark.parametrize("written", [one for one in WRITTEN if "goals" in one], ids=lambda one: one["name"])
def test_plans_of_small_models_are_read_as_they_are_meant(written: dict[str, Any]) -> None:
    goals = read_goals(written["reply"], written["question"]).goals
    found = [[one.text, list(one.needs), "search" if one.search else "draw"] for one in goals]
    assert found == written["goals"]
    ast.parse(compile_goals(written["question"], goals))


@pytest.mark.parametrize(
    ("second", "warning"),
    [
        (where(goal="Where is [city from step 1]?"), "takes the company of step 1 for a city"),
        (where(type=3), '"type" is 3: left out'),
        (where(compute="1 +", search=False), "is not a Python expression"),
        (where(compute='"a [company from step 1]"', search=False), "has a placeholder inside a text"),
        (where(compute="worth([company from step 1])", search=False), "uses the unknown name worth"),
        (where(needs=[1, 9]), "it says that it needs step 9, which cannot be: left out"),
        (where(goal="Where is it based?", needs=[]), "it is taken to mean the answer of step 1"),
        (where(goal="Who wrote Dracula?", needs=[]), "added, since nothing uses the answer of step 1"),
    ],
)
def test_what_is_left_out_or_assumed_is_a_warning(second: dict[str, Any], warning: str) -> None:
    read = read_goals(plan(FIRST, second), "Where is WhatsApp's owner based?")
    assert [warning in one for one in read.warnings] == [True]


def test_a_plan_in_form_has_no_warnings() -> None:
    assert read_goals(plan(FIRST, where()), "Where?").warnings == ()


def test_answers_that_nothing_uses_are_drawn_together_by_the_question() -> None:
    read = read_goals(plan(FIRST, goal(2, "Who wrote Dracula?", "person")), "Who wrote what?")
    assert read.goals[2] == Goal(3, "Who wrote what?", needs=(1, 2))


@pytest.mark.parametrize(
    "text",
    [
        plan(FIRST, where()),
        json.dumps([FIRST, where()]),
        f"<think>[1, 2]</think>Here:\n```json\n{plan(FIRST, where())}\n```\nDone.",
        str([FIRST, where()]),  # as Python writes it
        json.dumps({"plan": [{"id": "1", "subgoal": FIRST["goal"]}, {"subgoal": where()["goal"], "deps": [1]}]}),
    ],
)  # fmt: skip
def test_plans_are_read_in_the_forms_that_models_write(text: str) -> None:
    goals = read_goals(text).goals
    assert [(one.text, one.needs, one.search) for one in goals] == [
        (FIRST["goal"], (), FIRST["goal"]),
        (where()["goal"], (1,), where()["goal"]),
    ]
    assert goals[0].type == "company"


@pytest.mark.parametrize("text", ["", "No.", "[]", '{"goals": "x"}', "[1, 2", '{"rationale": "x"}'])
def test_no_plan(text: str) -> None:
    with pytest.raises(BadOutputError):
        read_goals(text)


@given(st.text(max_size=200))
def test_any_text_is_a_plan_or_a_bad_one(text: str) -> None:
    for reply in (text, json.dumps({"goals": [goal(1, text, text)]}), json.dumps([{"goal": "Who?", text: text}])):
        try:
            goals = read_goals(reply).goals
        except BadOutputError as error:
            assert str(error)  # noqa: PT017
        else:
            ast.parse(compile_goals("Who?", goals))


@given(st.integers(0, 2**12), st.integers(2, 6))
def test_written_goals_are_read_as_they_were(bits: int, count: int) -> None:
    """Plans of any shape: goal n needs those before it that the bits say, and the last one needs the rest."""
    listed = []
    for step in range(1, count + 1):
        needs = [one for one in range(1, step) if (bits >> (one + step)) & 1]
        if step == count:
            used = {one for each in listed for one in each["needs"]}
            needs = sorted({*needs, *(set(range(1, step)) - used)})
        listed.append(goal(step, " ".join(["What?", *(f"[x from step {n}]" for n in needs)]), "x", *needs))
    goals = read_goals(plan(*listed)).goals
    again = read_goals(plan(*map(written_goal, goals))).goals
    assert again == goals
    ast.parse(compile_goals("Q?", goals))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("city", "place", True), ("city", "person", False), ("football club", "team", True), ("entity", "film", True),
     ("directors", "director", True), ("gadget", "gizmo", False), ("answer", "gizmo", True), ("yes/no", "bool", True)],
)  # fmt: skip
def test_types(one: str, other: str, same: bool) -> None:
    assert same_type(one, other) is same


@dataclass
class Run:
    """A compiled program run as plain Python, over answers that are given."""

    answers: dict[str, str]

    def __call__(self, source: str) -> tuple[Any, list[str]]:
        asked: list[str] = []

        def answer(query: str, docs: object = None) -> str:
            asked.append(query)
            return self.answers.get(query, f"answer {len(asked)}")

        scope: dict[str, Any] = {"retrieve": lambda query: [query], "answer": answer, **HELPERS}
        scope["is_known"] = lambda text: text != "unknown"
        exec(source, scope)
        return scope["final_answer"], asked


NASTY = st.text(max_size=60) | st.sampled_from(
    ["\\", '"', "{", "}}", "{answer_1}", "\\N{BEL}", "\n", "[city from step 2]", "%s", "{{x}}", "' + '", "\ud800"]
)


@given(NASTY, NASTY, NASTY)
def test_substitution_is_literal(before: str, value: str, after: str) -> None:
    """Whatever stands around a placeholder or comes in its place, the query is their plain concatenation."""
    goals = (
        Goal(1, "Who?", "person", search="Who?"),
        Goal(2, f"{before}[person from step 1]{after}", "city", (1,), f"{before}[person from step 1]{after}"),
    )
    if len(PLACEHOLDER.findall(goals[1].text)) > 1 or PLACEHOLDER.search(before + after):
        return
    _, asked = Run({"Who?": value})(compile_goals("Where?", goals))
    assert asked == ["Who?", f"{before}{value}{after}"]


async def test_special_characters_reach_the_next_search_unchanged(case: Case) -> None:
    name = r'A "B" \1 {C} {{D}} [city from step 2] \N{BEL}'
    script = {"plan": [plan(FIRST, where())], "answer": [yes(name, 1), yes("Rome", 1)]}
    trace = await case.ask("Where?", script, synthesis="needed")
    assert (trace.answer.text, trace.error) == ("Rome", None)
    assert case.log[1][0] == f"Where is {name} headquartered?"


async def test_independent_goals_run_side_by_side(case: Case) -> None:
    case.delay = 0.05
    both = plan(
        goal(1, "When was A released?", "year"),
        goal(2, "When was B released?", "year"),
        goal(3, "Which was first, A or B?", "film", 1, 2, search=False,
             compute='"A" if parse_date([year from step 1]) < parse_date([year from step 2]) else "B"'),
    )  # fmt: skip
    trace = await case.ask("Which was first, A or B?", {"plan": [both], "answer": [yes("1990", 1), yes("1985", 1)]})
    assert (trace.answer.text, trace.usage.model_calls) == ("B", 3)  # computed, not asked
    assert case.most_in_flight == 2


async def test_what_cannot_be_computed_is_read_from_the_passages(case: Case) -> None:
    both = plan(
        goal(1, "When was A released?", "year"),
        goal(2, "Was A before 1990?", "yes/no", 1, search=False,
             compute='"yes" if parse_date([year from step 1]) < parse_date("1990") else "no"'),
    )  # fmt: skip
    trace = await case.ask("Was A before 1990?", {"plan": [both], "answer": [yes("long ago", 1), yes("yes", 1)]})
    assert (trace.answer.text, trace.usage.model_calls) == ("yes", 3)


async def test_plan_errors_go_back_to_the_agent(case: Case) -> None:
    circle = plan(goal(1, "Who is [x from step 2]?", "x"), goal(2, "Who is [x from step 1]?", "x"))
    script = {"plan": ["Hm.", circle, plan(FIRST)], "answer": [yes("Meta", 1)]}
    trace = await case.ask("Which company acquired WhatsApp?", script)
    assert (trace.answer.text, trace.usage.model_calls) == ("Meta", 4)
    assert len(planned_goals(trace)) == 1


async def test_without_a_usable_plan_the_question_is_its_only_goal(case: Case) -> None:
    trace = await case.ask("Who?", {"plan": ["Hm."] * 4, "answer": [yes("Meta", 1)]})
    assert trace.answer.text == "Meta"
    assert trace.warnings[0].startswith("the question was not planned: no usable goals in 4 replies")
    assert trace.fallbacks == ("goals",)


async def test_a_type_that_differs_is_a_warning_of_the_trace(case: Case) -> None:
    second = where(goal="Where is [messenger from step 1] based?")
    script = {"plan": [plan(FIRST, second)], "answer": [yes("Meta", 1), yes("Rome", 1)]}
    trace = await case.ask("Where?", script, synthesis="needed")
    assert (trace.answer.text, trace.fallbacks) == ("Rome", ())
    assert trace.warnings == ("goal 2 of the plan takes the company of step 1 for a messenger",)


async def test_a_plan_that_ends_unknown_is_revised_once(case: Case) -> None:
    other = plan(goal(1, "Who bought WhatsApp?", "company"), where())
    script = {
        "plan": [plan(FIRST, where()), other],
        "answer": [no("the buyer"), yes("Meta", 1), yes("Menlo Park", 1)],
    }
    trace = await case.ask("Where is WhatsApp's owner?", script, recovery="none", synthesis="needed")
    assert (trace.answer.text, trace.repairs, planned_goals(trace)[0].text) == ("Menlo Park", 1, "Who bought WhatsApp?")
    assert trace.programs[0].error.endswith("test is_known(…) first")


async def test_an_unmarked_comparison_is_not_searched_for(case: Case) -> None:
    both = plan(
        goal(1, "When was A released?", "year"),
        goal(2, "When was B released?", "year"),
        goal(3, "Which was released first, A or B?", "film", 1, 2),
    )
    script = {"plan": [both], "answer": [yes("1990", 1), yes("1985", 1), "<answer>B</answer>"]}
    trace = await case.ask("Which was released first, A or B?", script)
    assert (trace.answer.text, trace.usage.model_calls, len(case.log)) == ("B", 4, 2)


async def test_unused_answers_are_combined_in_one_more_call(case: Case) -> None:
    both = plan(goal(1, "When was A released?", "year"), goal(2, "When was B released?", "year"))
    script = {"plan": [both], "answer": [yes("1990", 1), yes("1985", 1), "<answer>B</answer>"]}
    trace = await case.ask("Which was released first, A or B?", script)
    assert (trace.answer.text, trace.usage.model_calls, len(case.log)) == ("B", 4, 2)
    assert trace.warnings == ("goal 3 of the plan: added, since nothing uses the answer of step 1",)


async def test_a_goal_repeating_the_answer_costs_no_call(case: Case) -> None:
    plans = plan(FIRST, where(), goal(3, "Provide the final answer", "answer", 2))
    script = {"plan": [plans], "answer": [yes("Meta", 1), yes("Menlo Park", 1)]}
    trace = await case.ask("Where?", script, synthesis="needed")
    assert (trace.answer.text, trace.usage.model_calls) == ("Menlo Park", 3)


BORN = plan(goal(1, "Who wrote Alpha?", "person"), goal(2, "When was [person from step 1] born?", "date", 1))
BORN_QUESTION = "When was the author of Alpha born?"


async def test_the_final_answer_is_composed_from_all_goals(case: Case) -> None:
    answers = [yes("Ada Berg", 1), yes("1 May 1950", 1), "<answer>1950</answer>"]
    trace = await case.ask(BORN_QUESTION, {"plan": [BORN], "answer": answers})
    assert (trace.answer.text, trace.usage.model_calls) == ("1950", 4)
    assert trace.steps[-1].query == (
        f"Given: Who wrote Alpha? Ada Berg; When was Ada Berg born? 1 May 1950. Answer the question: {BORN_QUESTION}"
    )
    assert trace.citations


async def test_without_synthesis_the_last_goal_answers(case: Case) -> None:
    script = {"plan": [BORN], "answer": [yes("Ada Berg", 1), yes("1 May 1950", 1)]}
    trace = await case.ask(BORN_QUESTION, script, synthesis="needed")
    assert (trace.answer.text, trace.usage.model_calls) == ("1 May 1950", 3)


async def test_an_unknown_last_goal_is_not_composed(case: Case) -> None:
    script = {"plan": [BORN], "answer": [yes("Ada Berg", 1), no("the date")]}
    trace = await case.ask(BORN_QUESTION, script, recovery="none")
    assert (trace.answer.known, trace.usage.model_calls, trace.repairs, trace.error) == (False, 3, 0, None)


async def test_the_question_as_its_only_goal_is_not_composed(case: Case) -> None:
    only = plan(goal(1, "Who wrote Alpha?", "person"))
    trace = await case.ask("Who wrote Alpha?", {"plan": [only], "answer": [yes("Ada Berg", 1)]})
    assert (trace.answer.text, trace.usage.model_calls) == ("Ada Berg", 2)
