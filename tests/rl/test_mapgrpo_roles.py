"""OPERA's rewards through verl's reward function: what a completion says is run over the bundled corpus."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")

from pyrag.errors import RetryableServiceError
from pyrag.trace.model import Passage
from pyrag_rl.config import make_config, save_config
from pyrag_rl.data.rows import Document, TrainRow, as_columns
from pyrag_rl.folder import RunFolder
from pyrag_rl.rewards.environment import OutsideFailureError, RewardEnvironment, compute_score
from pyrag_rl.rewards.score import ERRORS, KEYS

QUESTION = "In which city was the director of The Seventh Seal born?"
ROW = TrainRow(
    index=0, id="q", agent="plan", source="bundled", question=QUESTION, answers=("Uppsala",), hops=2, messages=()
)  # fmt: skip
GOOD = json.dumps(
    {
        "goals": [
            {"step": 1, "goal": "Who directed The Seventh Seal?", "type": "person", "needs": []},
            {"step": 2, "goal": "In which city was [person from step 1] born?", "type": "city", "needs": [1]},
        ]
    }
)


def told(folder: Path, row: TrainRow, completion: str, **settings: Any) -> dict[str, float]:
    """What verl is told, by the function that it calls."""
    run = RunFolder(folder)
    values = {"agent": row.agent, "algorithm": "mapgrpo", "runtime": {"llm": "embedded"}, **settings}
    save_config(make_config(values), run.config)
    extra: Mapping[str, Any] = as_columns(row)["extra_info"]
    return asyncio.run(compute_score("bundled", completion, "", extra, run=str(folder)))


class TestPlan:
    def test_a_plan_is_executed(self, tmp_path: Path) -> None:
        found = told(tmp_path, ROW, GOOD)
        assert tuple(found) == KEYS
        assert (found["score"], found["em"], found["execution"]) == (1.0, 1.0, 1.0)

    def test_a_plan_for_another_question_keeps_its_form_only(self, tmp_path: Path) -> None:
        other = json.dumps({"goals": [{"step": 1, "goal": "Who wrote Dracula?", "type": "person", "needs": []}]})
        found = told(tmp_path, ROW, other)
        assert found["em"] == 0.0
        assert found["logic"] == 0.5  # one search for two hops
        assert found["score"] <= 0.4 * 0.5 + 0.3 + 0.3 * 0.5

    @pytest.mark.parametrize(
        "hostile", ["", "SystemExit", "x" * 10_000_000, "[" * 5000, QUESTION, "import os; os._exit(1)"]
    )
    def test_hostile_completions_score_nothing(self, hostile: str, tmp_path: Path) -> None:
        found = told(tmp_path, ROW, hostile)
        assert found["score"] == 0.0
        assert ERRORS[int(found["error"])] == "no_program"

    def test_weights_are_the_configs(self, tmp_path: Path) -> None:
        broken = GOOD.replace('"needs": []', '"needs": [2]')
        found = told(tmp_path, ROW, broken, role_weights={"logic": 0.1, "structure": 0.8, "execution": 0.1})
        assert found["score"] == pytest.approx(0.8)
        assert ERRORS[int(found["error"])] == "bad_form"


class TestAnalysis:
    row = replace(
        ROW, agent="answer", query="Who wrote Dracula?", answers=("Bram Stoker",), sufficient=True,
        documents=(Document(id="d", title="Dracula", text="By Bram Stoker."),),
    )  # fmt: skip

    def test_a_judgement_is_parsed_and_compared(self, tmp_path: Path) -> None:
        said = {
            "analysis": "",
            "decision": "YES",
            "answer": "Bram Stoker",
            "confidence": 1,
            "documents": [1],
            "missing": "",
        }
        assert told(tmp_path, self.row, json.dumps(said))["score"] == 1.0
        assert told(tmp_path, replace(self.row, sufficient=False), json.dumps(said))["score"] == pytest.approx(0.1)

    def test_a_row_without_a_document_label_is_our_fault(self, tmp_path: Path) -> None:
        with pytest.raises(OutsideFailureError, match="crash: DataError"):
            told(tmp_path, replace(self.row, sufficient=None), "x")


class TestRewrite:
    row = replace(
        ROW, agent="rewrite", query="When did it open?", documents=(), supporting=("fenway-park",), tried=("the park",)
    )  # fmt: skip

    def said(self, query: str) -> str:
        return json.dumps({"strategy": "", "query": query, "keywords": []})

    def test_the_query_is_searched_for(self, tmp_path: Path) -> None:
        found = told(tmp_path, self.row, self.said("Fenway Park"))
        assert found["ndcg"] == 1.0
        assert found["score"] == pytest.approx(1.0)

    def test_what_was_tried_finds_nothing(self, tmp_path: Path) -> None:
        found = told(tmp_path, self.row, self.said("park, THE"))
        assert found["score"] == pytest.approx(0.1)
        assert ERRORS[int(found["error"])] == "tried_before"

    def test_an_unreachable_retriever_is_a_reason(self) -> None:
        class Down:
            name = "down"

            async def retrieve(self, query: str, topk: int) -> list[Passage]:
                raise RetryableServiceError("nobody there", service="down")

            async def aclose(self) -> None:
                return None

        async def work() -> dict[str, float]:
            config = make_config({"agent": "rewrite", "algorithm": "mapgrpo", "runtime": {"llm": "embedded"}})
            frozen = RewardEnvironment(config)
            frozen.engines.retriever = Down()
            frozen.pauses = ()
            try:
                return await frozen.numbers(as_columns(self.row)["extra_info"], self.said("Fenway Park"))
            finally:
                await frozen.aclose()

        with pytest.raises(OutsideFailureError, match="service: nobody there"):
            asyncio.run(work())
