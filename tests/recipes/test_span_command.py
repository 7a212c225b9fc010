"""The command that trains the embedded reader by reward, and the sentences that lead to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrag.errors import ConfigError
from pyrag_rl.config import as_values, load_config
from recipes.span_policy.__main__ import config_of

ROOT = Path(__file__).parents[2]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(ROOT / name) for name in (".", "sandbox", "rl", "prompts"))
    line = [sys.executable, "-m", "recipes.span_policy", *words]
    return subprocess.run(line, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)


def test_a_dry_run_prints_settings_and_trains_nothing(tmp_path: Path) -> None:
    done = command("--data", "d", "--out", str(tmp_path / "run"), "--set", "max_steps=20", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "group_size: 64" in done.stdout
    assert "max_steps: 20" in done.stdout
    assert not (tmp_path / "run").exists()


def test_a_wrong_setting_is_one_sentence() -> None:
    done = command("--data", "d", "--out", "o", "--set", "lerning_rate=1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "did you mean 'learning_rate'?" in done.stderr


def test_a_file_and_pairs_lie_over_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("group_size: 8\nepochs: 3\n")
    config = config_of(tmp_path / "mine.yaml", ["epochs=2"], data="d", out="o", eval_data=None)
    assert (config.model, config.group_size, config.epochs, config.learning_rate) == ("embedded", 8, 2, 5e-5)
    assert {**as_values(config), "data": "x"} != as_values(config)


@pytest.mark.parametrize("named", ["flag", "file"])
def test_pyrag_train_leads_to_the_recipe(named: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("model: embedded\n")
    with pytest.raises(ConfigError, match=r"run python -m recipes\.span_policy"):
        load_config("answer", file=file) if named == "file" else load_config("answer", model="embedded")
