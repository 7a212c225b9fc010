"""`pyrag train` as a person meets it where verl is not installed: one sentence, and an exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyrag.llm.protocol import Message
from pyrag_rl.data.rows import TrainRow, write_rows

ROOT = Path(__file__).parents[2]
PATHS = ("--model", "m", "--data", "d", "--out", "o")


def pyrag(*words: str) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))]
    code = f"import sys; sys.path[:0] = {paths}; from pyrag.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which agent?"),
        (["--agent", "planner"], "did you mean 'plan'?"),
        (["--agent", "answer", "--algorithm", "ppo"], "there is no algorithm 'ppo'"),
        (["--agent", "answer", "--set", "lerning_rate=1"], "did you mean 'learning_rate'?"),
        (["--agent", "answer"], "data is missing: pass --data"),
        (["--agent", "answer", "--model", "m", "--data", "d"], "out is missing: pass --out"),
        (["--agent", "answer", "--model", "embedded", "--data", "d", "--out", "o"], "python -m recipes.span_policy"),
        (["--agent", "plan", *PATHS, "--dry-run", "--set", "gpus=6"], "6 GPUs cannot share equally: set gpus=4"),
        (["--agent", "answer", *PATHS, "--reward", "coverage"], "reward=coverage scores programs"),
        (["export", "nowhere"], "nowhere is not a run folder"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: list[str], said: str) -> None:
    done = pyrag("train", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_dry_run_prints_the_command_without_verl(tmp_path: Path) -> None:
    row = TrainRow(
        index=0, id="q", agent="answer", source="s", question="q?", answers=("a",), messages=(Message("user", "q?"),)
    )
    write_rows(tmp_path / "train.parquet", [row])
    done = pyrag(
        "train", "--agent", "answer", "--model", "org/model", "--data", str(tmp_path / "train.parquet"), "--out",
        str(tmp_path / "run"), "--dry-run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "-m verl.trainer.main_ppo" in done.stdout
    assert "reward.custom_reward_function.path=" in done.stdout
    assert not (tmp_path / "run").exists()


def test_a_dry_run_of_a_curriculum_shows_its_stages() -> None:
    command = ("train", "curriculum", str(ROOT / "rl/configs/curriculum.yaml"), "--out", "o", "--dry-run")
    assert pyrag(*command).stdout.splitlines()[0] == "answer: answer by grpo on data/answer.parquet → o/answer"
    stages = json.loads(pyrag(*command, "--json").stdout)
    assert [stage["agent"] for stage in stages] == ["answer", "plan", "decompose"]
