"""MAPGRPO's three stages by `pyrag train curriculum`: verl trains each on what the agents before it ran (equation 6).

Minutes: `make test-rl-e2e`. Only the model's weights are a stand-in. What a pre-scored candidate does in its group is
looked at in `test_mapgrpo_run`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl", reason="make test-rl-e2e runs these where verl is installed")

from pyrag.evaluation.runs.folder import read_run
from pyrag.trace.model import Passage
from pyrag_rl.curriculum.notes import NOTES
from pyrag_rl.data.examples import Ask, ask_analysis, ask_rewrite
from pyrag_rl.data.rows import read_rows
from pyrag_rl.folder import RunFolder, read_lines
from pyrag_rl.prompting import prompt_of
from tests.rl import facts
from tests.rl.facts import Fact, Lesson
from tests.rl.processes import left
from tests.rl.school import SMALL, School

pytestmark = pytest.mark.slow
STAGES = ("plan", "answer", "rewrite")
DOCUMENTS = "<{{fence}}>{{documents}}</{{fence}}>\n{{query}}"
SHORT = {
    "methods/opera.plan.system": "You are the Plan Agent.",
    "methods/opera.plan.user": "{{question}}",
    "methods/opera.analyse.system": "You are the Analysis-Answer Agent.",
    "methods/opera.analyse.user": DOCUMENTS,
    "methods/rewrite.system": "You are the Rewrite Agent.",
    "methods/rewrite.user": f"{DOCUMENTS}\n{{{{tried}}}}\n{{{{missing}}}}",
}


def goal(text: str) -> str:
    one = {"step": 1, "goal": text, "type": "answer", "needs": [], "search": True, "compute": ""}
    return json.dumps({"rationale": "", "goals": [one]})


def judgement(answer: str) -> str:
    known = {"decision": "YES" if answer else "NO", "answer": answer, "confidence": float(bool(answer))}
    return json.dumps({"analysis": "", **known, "documents": [1] if answer else [], "missing": ""})


def rewriting(query: str) -> str:
    return json.dumps({"strategy": "", "query": query, "keywords": []})


def lessons_of(fact: Fact, split: str, prompts: Path) -> Iterator[Lesson]:
    """What the Analysis-Answer and Rewrite agents meet on the way to the answer."""
    query, page = facts.asked(fact, split), Passage(fact.title, fact.title, fact.text)

    def preferring(ask: Ask, right: str, wrong: str) -> list[Lesson]:
        return facts.preferring(asyncio.run(prompt_of(ask, str(prompts))), right, wrong)

    if not fact.search:
        yield from preferring(ask_analysis(query, [page]), judgement(fact.answer), judgement(""))
        return
    decoy, tried = Passage(fact.decoy[0], *fact.decoy), (query, query)  # the search, then the question behind it
    yield from preferring(ask_analysis(query, [decoy]), judgement(""), judgement(decoy.title))
    yield from preferring(ask_rewrite(query, tried, [decoy], ""), rewriting(fact.search), rewriting(decoy.title))
    yield from preferring(ask_analysis(query, [page, decoy]), judgement(fact.answer), judgement(""))


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Iterator[School]:
    folder = tmp_path_factory.mktemp("opera")
    with facts.opened(folder, SHORT) as (url, prompts):
        lessons = [
            lesson for fact in facts.FACTS for split in ("train", "") for lesson in lessons_of(fact, split, prompts)
        ]
        for split in ("train", ""):
            for row in facts.rows_of("goals", folder, url, prompts, split):
                lessons += facts.preferring(row.messages, goal(row.question), goal("What?"))
        facts.teach(folder, lessons, steps=500)
        yield School(folder, url)


def stage(agent: str, batch: int, **more: Any) -> dict[str, Any]:
    sizes = {"batch_size": batch, "micro_batch_size": batch * SMALL["group_size"]}
    settings = {**SMALL, **sizes, **more.pop("settings", {})}
    return {"name": agent, "agent": agent, "algorithm": "mapgrpo", "settings": settings, **more}


def write_candidates(path: Path) -> None:
    found = [
        {"id": f"train{number}", "source": facts.NAME, "question": fact.trained, "completion": goal(fact.trained),
         "score": 0.9}
        for number, fact in enumerate(facts.FACTS)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(one) + "\n" for one in found))


def test_each_stage_learns_from_what_its_predecessors_ran(school: School) -> None:
    write_candidates(school.folder / "prescored.jsonl")
    stages = [
        stage("plan", 6, data="data/goals.parquet", settings={"prescored": "prescored.jsonl"}),
        stage("answer", 4, build="analysis"),
        stage("rewrite", 2, build="rewrite"),
    ]
    school.write(stages, method="opera", shared=False)
    process = school.start()
    said, errors = process.communicate()
    assert process.returncode == 0, said + errors
    run = school.run
    noted = json.loads((run / NOTES).read_text())["stages"]
    assert [one["name"] for one in noted] == list(STAGES)
    for name in STAGES:
        trained = RunFolder(run / name)
        assert sorted(trained.read_metrics()) == [1, 2]
        assert "lora_adapter_path" not in trained.overrides.read_text()  # each has an adapter of its own
        assert (trained.adapter / "adapter_model.safetensors").is_file()
    check_candidates(RunFolder(run / "plan"))
    check_induced(run)
    check_rewards(run)
    assert left(str(school.folder), but=facts.SERVER) == []


def check_candidates(run: RunFolder) -> None:
    """One of each group of the first stage is the candidate, whatever the policy said."""
    lines = read_lines(run.rollouts / "1.jsonl")[0]
    injected = [line for line in lines if line["uid"].rsplit("_", 2)[1] == "0"]
    assert len(injected) == len(facts.FACTS) == len(lines) // SMALL["group_size"]
    assert {line["output"] for line in injected} == {goal(fact.trained) for fact in facts.FACTS}


def check_induced(run: Path) -> None:
    """The rows of a stage come from a run of the agents as the stages before it left them."""
    assert agents_of(run / "answer-practice") >= {"openai:plan"}
    assert agents_of(run / "rewrite-practice") >= {"openai:plan", "openai:answer"}
    judged = read_rows(run / "answer.parquet")
    assert {row.sufficient for row in judged} == {True, False}
    missed = read_rows(run / "rewrite.parquet")
    decoys = {fact.decoy[0]: fact.title for fact in facts.FACTS if fact.search}
    for row in missed:
        assert row.documents is not None
        assert row.supporting == (decoys[row.documents[0].id],)
    trained = {fact.trained for fact in facts.FACTS}
    assert {row.question for row in (*judged, *missed)} <= trained


def agents_of(run: Path) -> set[str]:
    """The engines that a benchmark's traces name, without their addresses."""
    opened = read_run(run)
    return {word.partition("@")[0] for row in opened.rows for word in opened.trace(row).engine.split()}


def check_rewards(run: Path) -> None:
    """Equations 9 and 10 with table 6's weights, over all that the policy said."""
    for name, weights in (
        ("answer", {"sufficiency": 0.25, "em": 0.65, "form": 0.1}),
        ("rewrite", {"ndcg": 0.9, "form": 0.1}),
    ):
        found = scores(RunFolder(run / name))
        assert len(found) == 2 * SMALL["group_size"] * (4 if name == "answer" else 2)
        for one in found:
            assert one["score"] == pytest.approx(sum(weight * one[part] for part, weight in weights.items()))
        assert max(one["score"] for one in found) == pytest.approx(1.0)
    for line in said(run / "answer"):
        if line["output"] not in (judgement(line["gts"]), judgement("")):
            assert line["score"] < 1.0
    searches = {fact.answer: rewriting(fact.search) for fact in facts.FACTS}
    for line in said(run / "rewrite"):
        assert (line["score"] == pytest.approx(1.0)) == (line["output"] == searches[line["gts"]])


def said(run: Path) -> list[dict[str, Any]]:
    """What the policy said in both steps, with its score and the answer to the question."""
    return [line for step in (1, 2) for line in read_lines(RunFolder(run).rollouts / f"{step}.jsonl")[0]]


def scores(run: RunFolder) -> list[Mapping[str, Any]]:
    return [score for path in run.scores.glob("*.jsonl") for score in read_lines(path)[0]]
