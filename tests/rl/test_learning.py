"""A model that learns: verl's real trainer on the CPU makes the mean reward rise; with shuffled rewards it does not.

Minutes each: `make train-learns`. `PYRAG_CURVES=FOLDER` keeps the curves (mean reward of each step) as JSON.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

pytest.importorskip("verl", reason="make train-learns runs these where verl is installed")

from pyrag_rl.config import load_config, with_settings
from pyrag_rl.folder import RunFolder, read_lines
from pyrag_rl.verl.launch import train
from tests.rl import tasks, tiny

pytestmark = pytest.mark.slow
STEPS = 40
START, END = 2, 8  # steps that are averaged at either end of a curve; it rises early
SMALL = [
    "profile=cpu-smoke", "rollout=hf_cpu", "gpus=1", "tensor_parallel=1", "reward_workers=1", "agent_workers=1",
    "group_size=8", "schedule=constant", "learning_rate=0.003", "lora_rank=16", "lora_alpha=32",
    "prompt_tokens=128", "response_tokens=96", "epochs=1000", f"max_steps={STEPS}", "save_every=1000", "loggers=[]",
]  # fmt: skip


def learn(agent: str, folder: Path, *, shuffled: bool, lessons: int = 300) -> list[float]:
    """The mean reward of each step of a run, as the completions deserved it."""
    task = tasks.answer_task(folder) if agent == "answer" else tasks.plan_task(folder)
    tiny.make(folder / "model", task.texts, vocabulary=1024)
    tiny.pretrain(folder / "model", task.lessons, steps=lessons)
    runtime = {"llm": "embedded", "retriever": None, "prompts": str(task.prompts), "max_calls": 20, "deadline": 60}
    rows = len({message for message, _ in task.lessons})
    config = load_config(
        agent, model=str(folder / "model"), data=str(task.data), out=str(folder / "run"), runtime=runtime
    )
    config = with_settings(
        config,
        [*SMALL, f"batch_size={rows}", f"micro_batch_size={8 * rows}", f"shuffle_rewards={str(shuffled).lower()}"],
    )
    return curve(train(config))


def curve(run: RunFolder) -> list[float]:
    steps: dict[int, list[float]] = defaultdict(list)
    for path in run.scores.glob("*.jsonl"):
        for score in read_lines(path)[0]:
            steps[score["step"]].append(0.7 * score["f1"] + 0.3 * score["em"])
    found = [mean(steps[step]) for step in sorted(steps)]
    if folder := os.environ.get("PYRAG_CURVES"):
        place = Path(folder) / f"{run.path.parent.name}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found))
    return found


def rise(rewards: list[float]) -> float:
    return mean(rewards[-END:]) - mean(rewards[:START])


@pytest.mark.parametrize("agent", ["answer", "plan"])
def test_mean_reward_rises(agent: str, tmp_path: Path) -> None:
    rewards = learn(agent, tmp_path, shuffled=False)
    assert len(rewards) == STEPS
    assert rise(rewards) >= 0.3, rewards


@pytest.mark.parametrize("agent", ["answer", "plan"])
def test_shuffled_rewards_teach_nothing(agent: str, tmp_path: Path) -> None:
    rewards = learn(agent, tmp_path, shuffled=True)
    assert len(rewards) == STEPS
    assert rise(rewards) <= 0.15, rewards
