"""Plans in whose place a fallback was taken: counted in the trace, and shown by bench and its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.agents.llm import make_llm_agents
from pyrag.cli.bench.view import print_summary
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.reports.summary import summarise
from pyrag.evaluation.reports.tables import course_table
from pyrag.evaluation.scoring import score
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Answer, Trace
from tests.methods.hera.conftest import case, team
from tests.methods.opera.conftest import Case, yes

__all__ = ["case"]


async def test_a_question_without_a_usable_topology_is_counted(case: Case) -> None:
    model = team({"orchestrator": "I would search.", "generator": yes("Meta", 1)})
    trace = await case.ask("Who bought WhatsApp?", agents=make_llm_agents(model), method="hera")
    assert (trace.answer.text, trace.fallbacks) == ("Meta", ("topology",))
    assert from_json(to_json(trace)).fallbacks == ("topology",)


def test_bench_shows_the_share_of_questions_without_a_usable_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [Trace("Who?", Answer("Meta"), fallbacks=found) for found in ((), ("goals",), (), ())]
    rows = [score("town", "opera", Question(str(place), "Who?", ("Meta",)), one) for place, one in enumerate(traces)]
    summary = summarise(rows, ["town"], ["opera"], len(rows))
    assert [row.fallbacks for row in rows] == [0, 1, 0, 0]
    assert summary.sets[0].all.unplanned == 0.25
    table = course_table(summary.sets)
    assert table.rows[0][table.header.index("unplanned")] == "25.0"
    print_summary(summary, tmp_path, as_json=False)
    assert "town, opera: 25.0 % of the questions had no usable plan" in capsys.readouterr().out
