"""MAPGRPO's first stage in verl's real trainer on the CPU: a pre-scored plan stands in one slot of every group.

Minutes each: `make test-rl-e2e`.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="make test-rl-e2e runs these where verl is installed")

from pyrag_rl.config import load_config, with_settings
from pyrag_rl.data.examples import ask_goals
from pyrag_rl.data.rows import TrainRow, write_rows
from pyrag_rl.folder import RunFolder, read_lines
from pyrag_rl.prompting import prompt_of
from pyrag_rl.verl.launch import train
from tests.rl import tiny

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
QUESTIONS = (
    ("Who directed The Seventh Seal?", ("Ingmar Bergman",)),
    ("In which city was Ingmar Bergman born?", ("Uppsala",)),
    ("When did Fenway Park open?", ("20 April 1912", "April 20, 1912", "1912")),
    ("Who directed Lawrence of Arabia?", ("David Lean",)),
)
STEPS, GROUP = 2, 8


def plan(question: str) -> str:
    return json.dumps({"goals": [{"step": 1, "goal": question, "type": "answer", "needs": []}]})


def prompts(folder: Path) -> Path:
    """The package's, but for a Plan agent of one line: the tiny model reads no pages."""
    place = folder / "prompts"
    shutil.copytree(str(files("pyrag_prompts")), place, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (place / "methods" / "opera.plan.system.txt").write_text("You are the Plan Agent.\n")
    (place / "methods" / "opera.plan.user.txt").write_text("{{question}}\n")
    return place


def rows(place: Path) -> list[TrainRow]:
    return [
        TrainRow(
            index=index, id=f"q{index}", agent="plan", source="bundled", question=question, answers=golds, hops=1,
            messages=asyncio.run(prompt_of(ask_goals(question), str(place))),
        )
        for index, (question, golds) in enumerate(QUESTIONS)
    ]  # fmt: skip


@pytest.mark.parametrize("injected", ["no_gradient", "gradient"])
def test_every_group_holds_its_candidate(injected: str, tmp_path: Path) -> None:
    place = prompts(tmp_path)
    made = rows(place)
    write_rows(tmp_path / "train.parquet", made)
    tiny.make(tmp_path / "model", [message.content for row in made for message in row.messages] * 4)
    found = [
        {"id": row.id, "source": row.source, "question": row.question, "completion": plan(row.question), "score": 0.9}
        for row in made
    ]
    (tmp_path / "prescored.jsonl").write_text("".join(json.dumps(one) + "\n" for one in found))
    config = load_config(
        "plan", "mapgrpo", model=str(tmp_path / "model"), data=str(tmp_path / "train.parquet"),
        out=str(tmp_path / "run"), prescored=str(tmp_path / "prescored.jsonl"), injected=injected,
        runtime={"llm": "embedded", "retriever": None, "prompts": str(place), "deadline": 60},
    )  # fmt: skip
    small = [
        "profile=cpu-smoke", "rollout=hf_cpu", "gpus=1", "tensor_parallel=1", "reward_workers=1", "agent_workers=1",
        f"group_size={GROUP}", "micro_batch_size=32", "batch_size=4", "lora_rank=8", "learning_rate=0.001",
        "prompt_tokens=128", "response_tokens=128", "epochs=100", f"max_steps={STEPS}", "save_every=1000", "loggers=[]",
    ]  # fmt: skip
    run = train(with_settings(config, small))
    assert run.latest_step == STEPS
    assert sorted(run.read_metrics()) == [1, 2]
    for step in range(1, STEPS + 1):
        check_rollouts(run, step)
    scores = [score for path in run.scores.glob("*.jsonl") for score in read_lines(path)[0]]
    assert len(scores) == STEPS * GROUP * len(QUESTIONS)
    assert sum(score["score"] >= 0.7 for score in scores) >= STEPS * len(QUESTIONS)


def check_rollouts(run: RunFolder, step: int) -> None:
    """The first of each group is the question's candidate, the others are the policy's."""
    lines = read_lines(run.rollouts / f"{step}.jsonl")[0]
    assert len(lines) == GROUP * len(QUESTIONS)
    for line in lines:
        _, slot, _ = line["uid"].rsplit("_", 2)
        question = line["input"].split("\n")
        candidate = [plan(one) for one, _ in QUESTIONS if one in question]
        assert (line["output"] in candidate) == (slot == "0"), line
