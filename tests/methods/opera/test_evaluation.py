"""What is counted over traces, and how a trajectory looks on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pyrag.cli.bench.view import show_agents
from pyrag.cli.views.saved import trace_view
from pyrag.evaluation.agent_behaviour import (
    AnsweredQuestion,
    Depth,
    agent_stats,
    completed,
    noise,
    pattern,
)
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.reports.tables import agents_table, depth_table, ladder_table
from pyrag.evaluation.runs.folder import open_run
from pyrag.evaluation.scoring import score
from pyrag.trace.model import Answer, Trace
from tests.methods.opera.conftest import Case, goal, no, plan, rewrite, yes
from tests.methods.opera.test_cases import POPULATION, POPULATION_FOUND, POPULATION_SCRIPT, REWRITTEN

DIRECT = {"plan": [plan(goal(1, "Who?", "person"))], "answer": [yes("Ada", 1)]}
LOST = {
    "plan": [plan(goal(1, "Who?", "person"))],
    "answer": [no("a name")] * 3,
    "rewrite": [rewrite("a"), rewrite("b")],
}


@pytest.fixture
async def traces(case: Case) -> list[Trace]:
    case.found = POPULATION_FOUND
    return [
        await case.ask(question, script)
        for question, script in ((POPULATION, POPULATION_SCRIPT), ("Who?", DIRECT), ("Who?", LOST))
    ]


def asked(*supporting: str, hops: int = 1) -> Question:
    return Question("1", "?", ("x",), hops=hops, supporting=supporting)


async def test_calls_patterns_and_recall(traces: list[Trace]) -> None:
    found = asked("Which company acquired WhatsApp?-1", f"{REWRITTEN}-1", hops=3)
    questions = (found, asked("Who?-1"), asked("nowhere"))
    stats = agent_stats([AnsweredQuestion(*one) for one in zip(questions, traces, (1.0, 1.0, 0.0), strict=True)])
    assert stats.roles == {"plan": 1.0, "analysis": (4 + 1 + 3) / 3, "rewrite": (1 + 0 + 2) / 3}
    assert stats.patterns == {"direct": 0.5, "one rewrite": 0.5, "several rewrites": 0.0}
    assert (stats.efficiency, stats.efficient) == (0.5, 0.5)
    assert (stats.before, stats.after) == (0.0, 0.25)
    assert (stats.goals, stats.hops) == (5 / 3, 4 / 3)
    assert stats.depth == {1: Depth(2, 1.0, 1.0, 0.0), 3: Depth(1, 3.0, 0.0, 0.0)}
    assert "3.00" in str(depth_table(stats.depth))
    assert stats.em_per_call == pytest.approx(100 * (2 / 3) / ((7 + 2 + 6) / 3))
    assert [pattern(one) for one in traces] == ["one rewrite", "direct", "several rewrites"]
    assert "one rewrite" in str(agents_table([("opera", stats)]))
    assert "EM/call" in str(ladder_table([("opera", stats)]))


async def test_a_plan_with_fewer_searches_than_hops_is_short(traces: list[Trace]) -> None:
    stats = agent_stats([AnsweredQuestion(asked(hops=4), trace, 1.0) for trace in traces])
    assert stats.depth == {4: Depth(3, 5 / 3, 2 / 3, 1.0)}


async def test_the_pages_of_a_claim_are_found_by_title(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = await case.ask("Who?", LOST)
    titled = {key: replace(one, title="Ada" if key.startswith("b-") else "") for key, one in trace.passages.items()}
    trace = replace(trace, passages=titled)
    claim = Question("1", "Ada is.", ("SUPPORTED",), supporting_titles=("Ada", "Berg"))
    stats = agent_stats([AnsweredQuestion(claim, trace, 0.0)])
    assert (stats.before, stats.after) == (0.0, 0.5)
    assert noise(claim, trace) == 1.0
    with open_run(tmp_path / "run", {"sets": ["toy"], "methods": ["opera"]}, {}) as writer:
        writer.write(score("hover", "opera", claim, trace), trace)
    show_agents(tmp_path / "run", sets=(), methods=(), as_json=True)
    assert '"before":0.0,"after":0.5' in capsys.readouterr().out


async def test_noise_and_hops(traces: list[Trace]) -> None:
    assert noise(asked("Who?-1"), traces[1]) == 0.8
    assert noise(asked(), traces[1]) is None
    assert [completed(one) for one in traces] == [3, 1, 0]


def test_no_outcomes() -> None:
    with pytest.raises(ValueError, match="no outcomes"):
        agent_stats([])


async def test_a_trajectory_looks_like_the_papers(traces: list[Trace]) -> None:
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(trace_view(traces[0]))
    text = console.export_text()
    for part in (
        "Step 1: Plan Agent",
        "2) Where is [company from step 1] headquartered? {deps: [1]}",
        "Resolved   company from step 1 = Facebook (now Meta)",
        "Step 4: Analysis-Answer Agent · goal 3",
        "Decision   NO: population figures",
        "Step 5: Rewrite Agent · goal 3",
        f"Rewritten  {REWRITTEN}",
        "Decision   YES → 35,211 (as of 2020 census) (confidence 0.93)",
        "Actions: 6 (Plan 1, Analysis-Answer 4, Rewrite 1) · success 75 %",  # the table's own figures
    ):
        assert part in text


def test_bench_show_agents_reads_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    question = asked("Who?-1")
    with open_run(folder, {"sets": ["toy"], "methods": ["opera"]}, {}) as writer:
        answered = Trace("?", Answer("x"), method="opera")
        writer.write(score("set", "opera", question, answered), answered)
    show_agents(folder, sets=(), methods=(), as_json=False)
    assert "set · opera" in capsys.readouterr().out
    show_agents(folder, sets=("set",), methods=("opera",), as_json=True)
    assert '"em":1.0' in capsys.readouterr().out
