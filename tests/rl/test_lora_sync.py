"""Adapters reach verl's rollout engine: two ranks on gloo, verl's own engine and collecting function, a tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl", reason="make test-rl runs these where verl is installed")

from pyrag_rl.config import load_config
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl import launch
from tests.rl import tiny

TENSORS = 2 * 7 * 2  # layers, matrices of each, and two of an adapter's for each matrix


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sync")
    tiny.make(out / "model", ["one two three"], layers=2)
    return out


def synchronised(folder: Path, *words: str) -> dict[str, Any]:
    """What two ranks would send, and the error of sending nothing."""
    config = load_config("answer", profile="cpu-smoke", model=str(folder / "model"), out=str(folder / "run"))
    env = {**os.environ, **launch.environment(config, RunFolder(folder / "run"))}
    script = Path(__file__).with_name("lora_sync.py")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*torchrun, str(script), str(folder / "model"), str(folder), *words],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((folder / "sent.json").read_text())
    return found


def test_every_tensor_of_an_adapter_is_sent(folder: Path) -> None:
    found = synchronised(folder)
    assert found["error"] == ""
    assert len(found["names"]) == TENSORS
    assert all("lora_" in name for name in found["names"])
    for shard in (folder / "checkpoint").glob("model_world_size_2_rank_*.pt"):
        import torch

        assert all("lora_" in name for name in torch.load(shard, weights_only=False))


def test_shards_of_an_adapter_are_joined_without_the_base(folder: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    synchronised(folder)
    done = subprocess.run(
        [sys.executable, "-m", "pyrag_rl.verl.adapter_merger", str(folder / "checkpoint"), str(folder / "out")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (folder / "out").iterdir()] == ["lora_adapter"]
    base = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, folder / "out" / "lora_adapter")
    assert (adapted.peft_config["default"].r, adapted.peft_config["default"].lora_alpha) == (4, 8)
    assert len([name for name, _ in adapted.named_parameters() if "lora_" in name]) == TENSORS


def test_sending_nothing_ends_the_run_with_a_sentence(folder: Path) -> None:
    found = synchronised(folder, "nothing")
    assert "no tensor of the trained weights reaches the rollout engine" in found["error"]
