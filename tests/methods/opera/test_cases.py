"""The paper's cases (tables 4 and 5): its answers, and its agents' actions in its order."""

from __future__ import annotations

import pytest

from pyrag.cli.traces import replay_trace
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.scoring import asked, score
from pyrag.methods.opera.trajectory import actions
from pyrag.trace.codec import from_json, to_json
from tests.methods.opera.conftest import Case, goal, no, plan, rewrite, yes

WIZARD = 'Which actor, known for playing a wizard in a famous film series, also starred in the movie "The Good Liar"?'
WIZARD_SCRIPT = {
    "plan": [
        plan(
            goal(1, "Which actor played a wizard in a famous film series?", "actor"),
            goal(2, 'Did [actor from step 1] star in the movie "The Good Liar"?', "yes/no", 1),
        )
    ],
    "answer": [
        no("which actor is meant", "Multiple actors match, the information is ambiguous."),
        yes("Ian McKellen", 1, analysis="Doc [1] names Ian McKellen, known as Gandalf."),
        yes("YES", 1, analysis="Doc [1] lists Ian McKellen."),
    ],
    "rewrite": [rewrite("Ian McKellen Gandalf Lord of the Rings", "Gandalf", strategy="Name the candidates")],
}
WIZARD_FOUND = {
    "Ian McKellen Gandalf Lord of the Rings": ["Ian McKellen played Gandalf in The Lord of the Rings."],
    'Did Ian McKellen star in the movie "The Good Liar"?': ["The Good Liar stars Helen Mirren and Ian McKellen."],
}
POPULATION = "What is the population of the city where the company that acquired WhatsApp is headquartered?"
REWRITTEN = "Menlo Park California population census demographics statistics 2020 2023"
POPULATION_SCRIPT = {
    "plan": [
        plan(
            goal(1, "Which company acquired WhatsApp?", "company"),
            goal(2, "Where is [company from step 1] headquartered?", "city", 1),
            goal(3, "What is the population of [city from step 2]?", "number", 2),
            rationale="Company, then its city, then the city's population.",
        )
    ],
    "answer": [
        yes("Facebook (now Meta)", 1, 2, analysis="Clear evidence that Facebook (now Meta) acquired WhatsApp."),
        yes("Menlo Park, California", 1, confidence=0.98),
        no("population figures", "Retrieved documents lack specific population data."),
        yes("35,211 (as of 2020 census)", 1, 2, confidence=0.93),
        "<answer>35,211 (as of 2020 census)</answer>",
    ],
    "rewrite": [
        rewrite(
            REWRITTEN,
            "population",
            "census",
            "demographics",
            "statistics",
            "residents",
            strategy="Add demographic keywords and year specificity",
        )
    ],
}
POPULATION_FOUND = {
    "Which company acquired WhatsApp?": [
        "Facebook Inc. announced the acquisition of WhatsApp for $19 billion",
        "The messaging app WhatsApp, owned by Meta (formerly Facebook)",
    ],
    "Where is Facebook (now Meta) headquartered?": ["Meta Platforms, Inc. is headquartered in Menlo Park, California"],
    "What is the population of Menlo Park, California?": ["Menlo Park is known for its tech companies"],
    REWRITTEN: ["According to the 2020 census, Menlo Park had a population of 35,211"],
}


async def test_table_4_an_ambiguous_query_is_made_specific(case: Case) -> None:
    case.found = WIZARD_FOUND
    trace = await case.ask(WIZARD, WIZARD_SCRIPT)
    assert (trace.answer.text, trace.answer.known, trace.error) == ("Ian McKellen", True, None)
    assert [(one.role, one.decision) for one in actions(trace)] == [
        ("plan", "plan"),
        ("analysis", "NO"),
        ("rewrite", "searched"),
        ("analysis", "YES"),
        ("analysis", "YES"),
    ]
    resolved = [one.outcome for one in actions(trace) if one.decision == "YES"]
    assert resolved == ["actor from step 1 = Ian McKellen", "yes/no from step 2 = YES"]
    assert trace.usage.model_calls == 5


async def test_a_check_that_fails_is_weighed_with_the_question(case: Case) -> None:
    case.found = WIZARD_FOUND
    script = {**WIZARD_SCRIPT, "answer": [*WIZARD_SCRIPT["answer"][:2], yes("no", 1), "<answer>unknown</answer>"]}
    trace = await case.ask(WIZARD, script)
    assert (trace.answer.known, trace.error) == (False, None)
    assert trace.steps[-1].mode == "aggregation"


async def test_table_5_the_complete_trajectory(case: Case) -> None:
    case.found = POPULATION_FOUND
    trace = await case.ask(POPULATION, POPULATION_SCRIPT)
    assert (trace.answer.text, trace.answer.known, trace.error) == ("35,211 (as of 2020 census)", True, None)
    done = actions(trace)
    assert [(one.role, one.decision) for one in done] == [
        ("plan", "plan"),
        ("analysis", "YES"),
        ("analysis", "YES"),
        ("analysis", "NO"),
        ("rewrite", "searched"),
        ("analysis", "YES"),
        ("synthesis", "YES"),
    ]
    assert [one.role for one in done].count("analysis") == 4  # the table's metrics: plan 1, analysis 4, rewrite 1
    assert done[1].outcome == "company from step 1 = Facebook (now Meta)"
    assert done[3].rationale == "Retrieved documents lack specific population data."
    assert (done[4].input, done[4].output) == ("What is the population of Menlo Park, California?", REWRITTEN)
    assert done[4].keywords == ("population", "census", "demographics", "statistics", "residents")
    assert [one.confidence for one in done[1:]] == [0.95, 0.98, 0.1, None, 0.93, None]
    assert case.log[-2:] == [("What is the population of Menlo Park, California?", 5), (REWRITTEN, 10)]
    assert trace.programs[0].rationale == "Company, then its city, then the city's population."
    assert len(trace.citations) == 5


@pytest.mark.parametrize(("said", "em"), [("yes", 1.0), ("Yes, it is.", 1.0), ("no", 0.0)])
async def test_a_claim_is_planned_checked_and_scored_by_its_label(case: Case, said: str, em: float) -> None:
    claim = Question("1", "The director of Alpha was born in Rome.", ("SUPPORTED",))
    goals = plan(
        goal(1, "Who directed Alpha?", "person"),
        goal(2, "Was [person from step 1] born in Rome?", "yes/no", 1),
    )
    case.found = {"Who directed Alpha?": ["Ada Berg directed Alpha."], "Was Ada Berg born in Rome?": ["Berg: Rome."]}
    answers = [yes("Ada Berg", 1), yes(said, 1), f"<answer>{said}</answer>"]
    trace = await case.ask(asked(claim), {"plan": [goals], "answer": answers})
    row = score("hover", "opera", claim, trace)
    assert (row.em, trace.usage.model_calls) == (em, 4)


async def test_recorded_cases_replay_equal(case: Case) -> None:
    for question, script, found in (
        (WIZARD, WIZARD_SCRIPT, WIZARD_FOUND),
        (POPULATION, POPULATION_SCRIPT, POPULATION_FOUND),
    ):
        case.found = found
        trace = await case.ask(question, script, keep=True)
        assert await replay_trace(from_json(to_json(trace))) == []
