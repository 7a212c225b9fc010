"""A folder in which `pyrag train curriculum` runs as a user has it, in a size for a small machine."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rl import facts

# Training settings of a stage.
SMALL: Mapping[str, Any] = {
    "profile": "cpu-smoke", "rollout": "hf_cpu", "gpus": 1, "tensor_parallel": 1, "reward_workers": 1,
    "agent_workers": 1, "group_size": 4, "lora_rank": 8, "lora_alpha": 16, "learning_rate": 0.001,
    "prompt_tokens": 128, "response_tokens": 96, "epochs": 100, "max_steps": 2, "save_every": 1, "trace_every": 1,
    "loggers": [],
}  # fmt: skip
_SERVED = ("--dtype", "float32", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8")
# What vLLM's server needs; verl's gets it from the profile.
_ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class School:
    """`folder` holds model, prompts and data; `url` is its retriever's."""

    folder: Path
    url: str

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def start(self) -> subprocess.Popen[str]:
        command = [*facts.PYRAG, "train", "curriculum", "curriculum.yaml", "--out", "run"]
        return subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **_ENVIRONMENT}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def write(self, stages: Sequence[Mapping[str, Any]], method: str = "pyrag", **more: Any) -> None:
        import yaml

        questions = {"data": "data", "sets": [facts.NAME], "retriever": self.url, "method": method}
        curriculum = {
            "model": str(self.folder / "model"),
            "tolerance": 0.2,
            "serving": {"port": _free_port(), "gpu_memory": 0.1, "more": list(_SERVED)},
            "runtime": {"prompts": str(self.folder / "prompts"), "topk": 1, "repairs": 0, "deadline": 40},
            "evaluation": questions,
            "practice": {**questions, "split": "train"},
            "stages": list(stages),
            **more,
        }
        (self.folder / "curriculum.yaml").write_text(yaml.safe_dump(curriculum), encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
