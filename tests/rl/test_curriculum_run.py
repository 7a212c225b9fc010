"""A whole curriculum by its command: verl trains, vLLM serves, `pyrag bench` measures; killed, resumed, and ended.

Minutes: `make test-rl-e2e`. Only the model's weights are a stand-in.
"""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl", reason="make test-rl-e2e runs these where verl is installed")

from pyrag_rl.curriculum.notes import NOTES
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.folder import RunFolder
from tests.rl import facts, tasks
from tests.rl.processes import left
from tests.rl.school import SMALL, School

pytestmark = pytest.mark.slow
SHORT = {
    "answer.evidence.system": "You are the Answer Agent.",
    "answer.evidence.user": "{{documents}}\n{{query}}",
    "plan.system": "You are the Plan Agent.",
    "plan.user": "{{question}}\n{{sub_queries}}",
    "decompose.system": "You are the Decompose Agent.",
    "decompose.user": "{{question}}",
}
AGENTS = ("answer", "plan", "decompose")
BATCH = {**SMALL, "batch_size": 6, "micro_batch_size": 24}


def stage(name: str, agent: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "agent": agent, "data": f"data/{agent}.parquet", "settings": {**BATCH, **settings}}


def replies(row: TrainRow) -> tuple[str, str]:
    """A right and a wrong one, as vLLM's schemas allow them."""
    if row.agent == "answer":
        others = [fact.answer for fact in facts.FACTS if fact.answer != row.answers[0]]
        return f"<answer>{row.answers[0]}</answer>", f"<answer>{others[row.index % len(others)]}</answer>"
    if row.agent == "plan":
        return tasks.fenced(tasks.good(row.sub_queries)), tasks.fenced(tasks.faulty(row.sub_queries)[1])
    return json.dumps({"sub_queries": [row.question]}), json.dumps({"sub_queries": ["What?"]})


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Iterator[School]:
    folder = tmp_path_factory.mktemp("school")
    with facts.opened(folder, SHORT) as (url, prompts):
        rows = [
            row
            for agent in AGENTS
            for split in ("train", "")
            for row in facts.rows_of(agent, folder, url, prompts, split)
        ]
        facts.teach(folder, [one for row in rows for one in facts.preferring(row.messages, *replies(row))], steps=400)
        yield School(folder, url)


def test_a_killed_curriculum_resumes_and_ends_at_a_harmful_stage(school: School) -> None:
    """The fourth stage learns at a rate that leaves nothing of the model."""
    school.write([*(stage(agent, agent) for agent in AGENTS), stage("harm", "answer", learning_rate=1.0)])
    killed_in_the_second_stage(school)
    process = school.start()
    said, errors = process.communicate()
    assert process.returncode == 1, errors
    check_stages(school.run, said)
    check_end(school.run, errors)
    assert left(str(school.folder), but=facts.SERVER) == []


def killed_in_the_second_stage(school: School) -> None:
    """As by a machine that goes down. The servers and trainers that it started must end all the same."""
    process = school.start()
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(line)
        if line.startswith("step 1/") and (school.run / "plan").is_dir():
            break
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert [line for line in told if line.startswith("stage plan: exact match")], errors
    assert left(str(school.folder), but=facts.SERVER) == []


def check_stages(run: Path, said: str) -> None:
    noted = json.loads((run / NOTES).read_text())["stages"]
    assert [one["name"] for one in noted] == [*AGENTS, "harm"]
    assert all(one["before"] >= 0.5 for one in noted)
    for before, after in itertools.pairwise(noted):
        assert before["after"] == after["before"]
        trained = RunFolder(run / before["name"])
        assert sorted(trained.read_metrics()) == [1, 2]
        assert f"actor_rollout_ref.model.lora_adapter_path={trained.adapter}" in overrides(run / after["name"])
        assert (trained.path / "report.html").is_file()
    assert "lora_adapter_path" not in overrides(run / "answer")
    # Before its first update, a policy differs from the model by what it started from. Little of it rounds to nothing.
    divergences = [RunFolder(run / one["name"]).read_metrics()[1]["actor/kl_loss"] for one in noted]
    assert divergences[0] == 0
    assert any(divergences)
    assert "stage answer" not in said  # it was done before the kill
    started_where_the_last_one_ended(run)


def overrides(run: Path) -> str:
    return RunFolder(run).overrides.read_text()


def started_where_the_last_one_ended(run: Path) -> None:
    """The adapters of two stages are nearer to each other than to nothing, and not the same."""
    from safetensors.torch import load_file

    first, second = (load_file(run / name / "adapter" / "adapter_model.safetensors") for name in ("answer", "plan"))
    assert first.keys() == second.keys()
    moved = sum(float((second[name].float() - first[name].float()).abs().sum()) for name in first)
    whole = sum(float(first[name].float().abs().sum()) for name in first)
    assert 0 < moved < 0.5 * whole


def check_end(run: Path, errors: str) -> None:
    harm = json.loads((run / NOTES).read_text())["stages"][-1]
    assert harm["after"] < harm["before"] - 0.2
    last = errors.strip().splitlines()[-1]
    assert "stage harm made things worse" in last
    assert f"{100 * harm['before']:.1f} before and {100 * harm['after']:.1f} after" in last
    assert str(Path("run") / "harm" / "report.html") in last
    assert str(run / "decompose" / "adapter") in last  # the last good one
