"""The line that serves a model, and the adapters that it names."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import ConfigError, DataError
from pyrag.llm.clients.adapters import RANKS, Adapter, lora_rank, read_adapter
from pyrag.llm.clients.serve_line import Serving, serve_line


def adapter_folder(folder: Path, config: Any) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").write_bytes(b"")
    return folder


def test_a_model_alone_is_served_on_loopback_with_prefix_caching() -> None:
    assert serve_line(Serving(model="org/model")) == [
        "vllm", "serve", "org/model", "--host", "127.0.0.1", "--port", "8000", "--enable-prefix-caching",
        "--override-generation-config", '{"repetition_penalty": 1.0}',
    ]  # fmt: skip


def test_everything_that_can_be_said() -> None:
    serving = Serving(
        model="m",
        adapters=(Adapter("planner", "/a/planner", 4), Adapter("answerer", "/a/answerer", 12)),
        host="0.0.0.0",
        port=9000,
        served_name="base",
        tensor_parallel=2,
        data_parallel=4,
        dtype="bfloat16",
        max_model_len=8192,
        gpu_memory=0.8,
        prefix_caching=False,
        more=("--enforce-eager",),
    )
    line = serve_line(serving)
    assert shlex.join(line) == (
        "vllm serve m --host 0.0.0.0 --port 9000 --served-model-name base --tensor-parallel-size 2 "
        "--data-parallel-size 4 --dtype bfloat16 --max-model-len 8192 --gpu-memory-utilization 0.8 "
        "--no-enable-prefix-caching --override-generation-config '{\"repetition_penalty\": 1.0}' "
        "--enable-lora --max-lora-rank 16 --max-loras 2 "
        "--lora-modules planner=/a/planner answerer=/a/answerer --enforce-eager"
    )


def test_many_adapters_take_turns_in_memory() -> None:
    adapters = [Adapter(f"a{number}", f"/a/{number}", 8) for number in range(9)]
    line = serve_line(Serving(model="m", adapters=adapters))
    assert line[line.index("--max-loras") + 1] == "8"
    assert line[line.index("--max-cpu-loras") + 1] == "9"


@pytest.mark.parametrize(("rank", "allowed"), [(1, 1), (2, 8), (8, 8), (9, 16), (64, 64), (257, 320), (512, 512)])
def test_ranks_are_rounded_up(rank: int, allowed: int) -> None:
    assert lora_rank([1, rank]) == allowed
    assert allowed in RANKS


def test_a_rank_that_nobody_serves() -> None:
    with pytest.raises(ConfigError, match=r"rank 513 .* at most 512"):
        lora_rank([8, 513])


def test_adapters_by_name_or_by_folder(tmp_path: Path) -> None:
    folder = adapter_folder(tmp_path / "step_100", {"r": 4, "peft_type": "LORA", "rank_pattern": {"q_proj": 12}})
    assert read_adapter(f"planner={folder}") == Adapter("planner", str(folder), 12)
    assert read_adapter(str(folder)).name == "step_100"


@pytest.mark.parametrize("config", [{}, [], {"r": "8"}, {"r": 0}, {"r": 8, "peft_type": "IA3"}])
def test_folders_that_hold_no_lora_adapter(tmp_path: Path, config: Any) -> None:
    with pytest.raises(DataError, match="does not describe a LoRA adapter"):
        read_adapter(str(adapter_folder(tmp_path / "a", config)))


def test_adapters_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist: give the folder"):
        read_adapter(f"planner={tmp_path / 'none'}")
    with pytest.raises(DataError, match="is not a LoRA adapter: give the folder"):
        read_adapter(str(tmp_path))
    with pytest.raises(ConfigError, match="cannot be the name of an adapter"):
        read_adapter(f"my planner={tmp_path}")
