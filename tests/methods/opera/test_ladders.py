"""Ladders of rewrites: which queries are made, when they end, what is recorded, for OPERA and for PyRAG."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.agents.context_window import WindowedRewriter
from pyrag.agents.llm import make_llm_agents
from pyrag.agents.protocol import Rewritten
from pyrag.agents.rewriter import LLMRewriter
from pyrag.embedded.rewriter import EmbeddedRewriter
from pyrag.episode.recovery import Boost, Rewrite, calls_for, ladder_of
from pyrag.errors import BadOutputError, ConfigError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.methods.opera.agents import opera_agents
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines, open_engines
from pyrag.settings import Settings, make_settings
from pyrag.trace.events import Recovering
from pyrag.trace.model import Passage, Trace
from tests.methods.opera.conftest import Case, goal, no, plan, rewrite, yes

SINGLE = plan(goal(1, "Who?", "person"))


def attempts(trace: Trace) -> list[tuple[str, str, int | None]]:
    return [(one.policy, one.query, one.topk) for one in trace.steps[1].attempts]


def test_ladders_are_data() -> None:
    assert ladder_of("boost", 10) == (Boost(10),)
    assert ladder_of("boost+rewrite", 10) == (Boost(10), Rewrite((10, 15)))
    assert ladder_of("rewrite+boost", 0) == (Rewrite(),)
    assert ladder_of("none", 10) == ladder_of("boost", 0) == ()
    with pytest.raises(ConfigError, match="recovery must be one of auto, none, boost"):
        make_settings({"recovery": "pray"})


async def test_two_rewrites_with_larger_topks(case: Case) -> None:
    script = {"plan": [SINGLE], "answer": [no("it")] * 3, "rewrite": [rewrite("a"), rewrite("b"), rewrite("c")]}
    trace = await case.ask("Who?", script)
    assert case.log == [("Who?", 5), ("a", 10), ("b", 15)]
    assert attempts(trace) == [("first", "Who?", None), ("rewrite", "a", 10), ("rewrite", "b", 15)]
    assert (trace.answer.known, trace.usage.model_calls) == (False, 6)
    assert trace.steps[1].usage.model_calls == 5


def test_the_budget_bears_four_hops_on_any_ladder() -> None:
    boost, rewrite_ = Boost(10), Rewrite((10, 15))
    assert [calls_for(one) for one in ((), (boost,), (rewrite_,), (boost, rewrite_))] == [20, 20, 44, 52]


@pytest.mark.parametrize(("max_calls", "answer"), [(None, "Fay"), (20, "Eve")])
async def test_four_hops_with_full_recovery_fit_the_budget(case: Case, max_calls: int | None, answer: str) -> None:
    later = (goal(n, f"Who taught [person from step {n - 1}]?", "person", n - 1) for n in (2, 3, 4))
    script = {
        "plan": [plan(goal(1, "Who wrote Alpha?", "person"), *later)],
        "answer": [
            *(said for name in ("Cay", "Dee", "Eve", "Fay") for said in (no("it"), no("it"), yes(name, 1))),
            "<answer>Fay</answer>",
        ],
        "rewrite": [rewrite(f"asked otherwise {n}") for n in range(8)],
    }
    trace = await case.ask("Who taught the teacher of the teacher of Alpha's author?", script, max_calls=max_calls)
    assert trace.answer.text == answer
    assert (trace.usage.model_calls, trace.error and trace.error.kind) == ((20, "budget") if max_calls else (22, None))


async def test_no_query_is_searched_for_twice(case: Case) -> None:
    script = {"plan": [SINGLE], "answer": [no("it")] * 2, "rewrite": [rewrite("Ada born"), rewrite("born, ADA?")]}
    trace = await case.ask("Who?", script)
    assert case.log == [("Who?", 5), ("Ada born", 10)]
    last = trace.steps[1].attempts[-1]
    assert (last.policy, last.topk, last.rationale) == ("rewrite", None, "the query had been tried before")


async def test_the_rewriter_sees_what_was_tried_found_and_missed(case: Case) -> None:
    case.found = {"Who?": ["Ada is a name."]}
    model = ScriptedChat(
        {
            "plan": [SINGLE],
            "answer": [no("a surname"), yes("Ada Berg", 1)],
            "rewrite": [rewrite("Ada surname", "surname")],
        }
    )
    trace = await case.ask("Who?", agents=make_llm_agents(model))
    (prompt,) = [call[1].content for call in model.calls if "Rewrite Agent" in call[0].content]
    assert all(part in prompt for part in ("Ada is a name.", "1. Who?", "What is missing: a surname"))
    assert trace.steps[1].attempts[1].keywords == ("surname",)


async def test_a_rewriter_out_of_form_is_a_warning(case: Case) -> None:
    script = {"plan": [SINGLE], "answer": [no("it")], "rewrite": ["Hm.", "Hm."]}
    trace = await case.ask("Who?", script)
    assert (len(case.log), trace.error) == (1, None)
    assert trace.warnings[0].startswith("no rewritten query for 'Who?'")


PROGRAM = '```python\ndocs = retrieve("Who?")\nfinal_answer = answer("Who?", docs)\n```'
UNKNOWN = "<answer>unknown</answer>"


@pytest.mark.parametrize(
    ("recovery", "searches"),
    [
        ("auto", [("Who?", 5), ("Who?", 10)]),
        ("none", [("Who?", 5)]),
        ("rewrite", [("Who?", 5), ("a", 10), ("b", 15)]),
        ("boost+rewrite", [("Who?", 5), ("Who?", 10), ("a", 10), ("b", 15)]),
        ("rewrite+boost", [("Who?", 5), ("a", 10), ("b", 15), ("Who?", 10)]),
    ],
)
async def test_the_rewriter_serves_pyrag_too(case: Case, recovery: str, searches: list[tuple[str, int]]) -> None:
    script = {
        "decompose": ['["Who?"]'],
        "plan": [PROGRAM],
        "answer": [UNKNOWN] * 5,
        "rewrite": [rewrite("a"), rewrite("b")],
    }
    trace = await case.ask("Who?", script, method="pyrag", recovery=recovery)
    assert (case.log, trace.error) == (searches, None)


async def test_a_rewrite_is_announced(case: Case) -> None:
    script = {"plan": [SINGLE], "answer": [no("it"), yes("Ada", 1)], "rewrite": [rewrite("Ada")]}
    events = []
    engines = Engines(make_llm_agents(ScriptedChat(script)), case, case.sandbox)
    await answer_question("Who?", engines, Settings(method="opera"), observer=events.append)
    assert Recovering(1, "rewrite", 10, "Ada") in events


QUESTION = "Who is the director of the film Alpha?"


async def embedded(tried: list[str], *titles: str) -> Rewritten:
    passages = [Passage(title, title, "") for title in titles]
    return await EmbeddedRewriter().rewrite(QUESTION, tried, passages, "")


async def test_the_embedded_rewriter_never_repeats_itself() -> None:
    tried = [QUESTION]
    while len(tried) < 10:
        try:
            tried.append((await embedded(tried)).query)
        except BadOutputError:
            break
    assert 3 <= len(tried) < 10
    assert len({" ".join(sorted(one.lower().split())) for one in tried}) == len(tried)


async def test_the_embedded_rewriter_tries_page_then_words() -> None:
    assert "own page" in (await embedded([], "Beta")).strategy
    found = await embedded([], "Alpha (film)")
    assert "directed" in found.keywords
    assert found.query.startswith("Alpha ")


def test_the_rewrite_agent_has_a_model_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "small.json"
    script.write_text("[]")
    agents = open_engines(make_settings({"rewrite_llm": f"scripted:{script}"})).agents
    assert isinstance(agents.rewriter, WindowedRewriter)
    assert isinstance(agents.rewriter.inner, LLMRewriter)
    assert agents.name == f"embedded (rewrite: scripted:{script})"
    team = agents.team(opera_agents)
    assert team is not None
    assert team.analyst is None  # the embedded answerer judges for itself
