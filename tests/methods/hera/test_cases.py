"""The paper's case studies (its appendix H). The figures that hold its questions are not in the text we have: names,
periods and wrong answers are the appendix's, the rest of the wording is ours.
"""

from __future__ import annotations

import json
from typing import Any

from pyrag.agents.llm import make_llm_agents
from pyrag.cli.traces import replay_trace
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.methods.hera.topology import STATE
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace
from tests.methods.hera.conftest import Say, agent, done_by, kept, team, topology, verdict
from tests.methods.opera.conftest import Case, rewrite, yes

MOVIES = "Are the movies Northern Quay and Paper Harbour from the same country?"
CAUSE = "Is the exact cause of the death of the man whom Pontius Pilate had crucified known?"
ACTIVE = "During which years were both Charles Hutchison and William K. Howard active?"
SHARED = "Which nationality did Pavel Alexandrov and Valentin Turchin share?"
PERIODS = {"Hutchison": "1914–1938", "Howard": "1921–1944"}


async def ask(case: Case, question: str, model: ScriptedChat, **settings: Any) -> Trace:
    return await case.ask(question, agents=make_llm_agents(model), method="hera", **settings)


def by_country(asked: str) -> str:
    return yes("Denmark" if "Northern Quay" in asked.rpartition("Question:")[2] else "Norway", 1)


async def test_case_1_entities_are_looked_up_in_parallel_then_compared(case: Case) -> None:
    case.delay = 0.05
    plan = topology(
        "comparison",
        agent("docs_a", "retriever", "country of Northern Quay"),
        agent("a", "answer_generator", "Which country is Northern Quay from?", "docs_a", kind="country"),
        agent("docs_b", "retriever", "country of Paper Harbour"),
        agent("b", "answer_generator", "Which country is Paper Harbour from?", "docs_b", kind="country"),
        agent("same", "conclude", MOVIES, "a", "b", kind="yes/no"),
        asks="yes/no",
    )
    trace = await ask(case, MOVIES, team({"orchestrator": plan, "generator": by_country, "conclude": yes("no")}))
    assert (trace.answer.text, trace.error) == ("no", None)
    assert done_by(trace) == ["retrieve", "answer", "retrieve", "answer", "conclude"]
    assert case.most_in_flight == 2
    asked = trace.steps[-1].query
    assert "Which country is Northern Quay from? Denmark; Which country is Paper Harbour from? Norway" in asked


async def test_case_2_settles_cause_before_certainty(case: Case) -> None:
    plan = topology(
        "causal",
        agent("docs_who", "retriever", "man whom Pontius Pilate had crucified"),
        agent("man", "answer_generator", "Whom did Pontius Pilate have crucified?", "docs_who", kind="person"),
        agent("docs_why", "retriever", "cause of the death of {man}", "man"),
        agent("enough", "context_validator", "Is the exact cause of the death of {man} known?", "man", "docs_why"),
        agent("better", "query_rewriter", "cause of the death of {man}", "man", "enough"),
        agent("more", "retriever", "", "better"),
        agent("said", "conclude", "Is the exact cause of the death of {man} known?", "man", "more", kind="yes/no"),
        asks="yes/no",
    )
    replies = {
        "orchestrator": plan,
        "generator": yes("Jesus", 1),
        "validator": verdict("NO", missing="what historians hold"),
        "rewriter": rewrite("Jesus crucifixion medical hypotheses", strategy="name the debate"),
        "conclude": yes("no", 1, analysis="Several causes are contested."),
    }
    case.found = {"Jesus crucifixion medical hypotheses": ["At least ten causes of death have been proposed."]}
    trace = await ask(case, CAUSE, team(replies))
    assert (trace.answer.text, trace.error) == ("no", None)
    assert done_by(trace) == ["retrieve", "answer", "retrieve", "validate", "rewrite", "retrieve", "conclude"]
    read = [trace.passages[one].text for one in trace.steps[-1].passages]
    assert "At least ten causes of death have been proposed." in read
    assert len(read) == 10


async def test_case_2_searches_once_where_that_suffices(case: Case) -> None:
    plan = topology(
        "single",
        agent("docs", "retriever", CAUSE),
        agent("enough", "context_validator", "", "docs"),
        agent("better", "query_rewriter", "", "enough"),
        agent("more", "retriever", "", "better"),
        agent("said", "answer_generator", "", "more", kind="yes/no"),
    )
    trace = await ask(case, CAUSE, team({"orchestrator": plan, "validator": verdict("YES"), "generator": yes("no", 1)}))
    assert (trace.answer.text, done_by(trace)) == ("no", ["retrieve", "validate", "answer"])
    assert len(trace.steps[-1].passages) == 5


BOTH_PERIODS = [
    agent("parts", "query_decomposer", ACTIVE),
    agent("docs", "retriever", "", "parts"),
    agent("periods", "answer_generator", "", "docs", kind="period"),
]
UNION = topology("temporal", *BOTH_PERIODS, agent("both", "answer_generator", ACTIVE, "periods", kind="period"))
COMPUTED = topology(
    "temporal",
    *BOTH_PERIODS,
    agent("both", "conclude", ACTIVE, "periods", kind="period", compute="overlap({periods}[0], {periods}[1])"),
)


def by_period(asked: str) -> str:
    question = asked.rpartition("Question:")[2] or asked
    named = [period for name, period in PERIODS.items() if name in question]
    return yes(named[0] if len(named) == 1 else "1914–1944", 1)  # the union that the paper's agent came to


PARTS = '{"sub_queries": ["When was Charles Hutchison active?", "When was William K. Howard active?"]}'


async def test_case_3_the_intersection_of_periods_is_computed(case: Case) -> None:
    """The paper's answer was the union. Here its topology is refused, as it leaves the years to a model."""
    replies: dict[str, Say] = {"orchestrator": [UNION, COMPUTED], "decomposer": PARTS, "generator": by_period}
    trace = await ask(case, ACTIVE, team(replies))
    assert (trace.answer.text, trace.answer.known, trace.error) == ("1921–1938", True, None)
    assert [program.origin for program in trace.programs] == ["plan", "check"]
    assert "both is left to work out periods in its head" in trace.programs[0].error
    assert done_by(trace) == ["decompose", "retrieve", "retrieve", "answer", "answer"]
    assert {citation.step for citation in trace.citations} == {3, 4}


async def test_case_3_fails_if_the_orchestrator_insists(case: Case) -> None:
    replies: dict[str, Say] = {"orchestrator": [UNION, UNION], "decomposer": PARTS, "generator": by_period}
    trace = await ask(case, ACTIVE, team(replies))
    assert trace.answer.text == "1914–1944"
    assert any("plan check: both is left" in warning for warning in trace.warnings)


KNOWN_FOR = topology(
    "intersection",
    *(
        one
        for name, at in (("Pavel Alexandrov", "a"), ("Valentin Turchin", "t"))
        for one in (
            agent(f"query_{at}", "query_rewriter", f"What was {name} known for?"),
            agent(f"docs_{at}", "retriever", "", f"query_{at}"),
            agent(f"evidence_{at}", "evidence_selector", f"What was {name} known for?", f"docs_{at}"),
        )
    ),
    agent("shared", "conclude", SHARED, "evidence_a", "evidence_t", kind="nationality"),
    asks="nationality",
)
BY_NATIONALITY = topology(
    "intersection",
    agent("parts", "query_decomposer", SHARED),
    agent("queries", "query_rewriter", "", "parts", kind="nationality"),
    agent("docs", "retriever", "", "queries"),
    agent("evidence", "evidence_selector", "", "docs"),
    agent("shared", "conclude", SHARED, "evidence", kind="nationality"),
    asks="nationality",
)
CAREERS = {
    "Pavel Alexandrov known for": ["Pavel Alexandrov was a mathematician."],
    "Valentin Turchin known for": ["Valentin Turchin was a computer scientist."],
}
NATIONALITIES = {
    "Pavel Alexandrov known for nationality": ["Pavel Alexandrov was a Soviet mathematician."],
    "Valentin Turchin known for nationality": ["Valentin Turchin was a Soviet and American computer scientist."],
}


def known_for(asked: str) -> str:
    """The paper's rewriter, which turned the question to what they were known for."""
    return rewrite(f"{'Pavel Alexandrov' if 'Alexandrov' in asked else 'Valentin Turchin'} known for")


def concluded(asked: str) -> str:
    return yes("Soviet" if asked.count("Soviet") == 2 else "scientists", 1)


SHARED_TEAM: dict[str, Say] = {
    "decomposer": '{"sub_queries": ["nationality of Pavel Alexandrov", "nationality of Valentin Turchin"]}',
    "rewriter": known_for,
    "selector": kept(1),
    "conclude": concluded,
}


async def test_case_4_the_property_asked_for_is_kept(case: Case) -> None:
    """The paper's answer was "scientists". Here its topology is refused, and a rewritten query keeps the property."""
    case.found = {**CAREERS, **NATIONALITIES}
    trace = await ask(case, SHARED, team({"orchestrator": [KNOWN_FOR, BY_NATIONALITY], **SHARED_TEAM}))
    assert (trace.answer.text, trace.error) == ("Soviet", None)
    assert "the question asks for a nationality, but evidence_a is asked" in trace.programs[0].error
    assert done_by(trace) == ["decompose", *["rewrite"] * 2, *["retrieve"] * 2, *["select"] * 2, "conclude"]
    rewritten = [step for step in trace.steps if step.primitive == "rewrite"]
    assert [step.output for step in rewritten] == list(NATIONALITIES)
    assert "no longer asked for the nationality" in rewritten[0].rationale


async def test_a_query_for_the_property_stays_unchanged(case: Case) -> None:
    asking = {**SHARED_TEAM, "rewriter": lambda asked: rewrite(f"{json.loads(known_for(asked))['query']} Nationality")}
    case.found = {query.replace("nationality", "Nationality"): texts for query, texts in NATIONALITIES.items()}
    trace = await ask(case, SHARED, team({"orchestrator": BY_NATIONALITY, **asking}))
    assert [step.output for step in trace.steps if step.primitive == "rewrite"] == list(case.found)
    assert trace.answer.text == "Soviet"


async def test_case_4_fails_if_the_orchestrator_insists(case: Case) -> None:
    case.found = {**CAREERS, **NATIONALITIES}
    trace = await ask(case, SHARED, team({"orchestrator": [KNOWN_FOR, KNOWN_FOR], **SHARED_TEAM}))
    assert trace.answer.text == "scientists"
    assert sum("plan check: the question asks for a nationality" in one for one in trace.warnings) == 2


async def test_recorded_cases_replay_equal(case: Case) -> None:
    case.found = {**CAREERS, **NATIONALITIES}
    model = team({"orchestrator": [KNOWN_FOR, BY_NATIONALITY], **SHARED_TEAM})
    trace = await ask(case, SHARED, model, keep=True)
    again = from_json(to_json(trace))
    assert STATE.read(again) == STATE.read(trace) is not None
    assert await replay_trace(again) == []
