"""Sizes that must divide one another, and the message that names the number to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import ConfigError
from pyrag_rl.config import load_config, with_settings
from pyrag_rl.curriculum.stages import load_curriculum
from pyrag_rl.verl import preflight
from pyrag_rl.verl.sizes import check_shape, check_sizes

CONFIGS = Path(__file__).parents[2] / "rl" / "configs"
QWEN_7B = {"num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["gpus=6"], r"32 · 4 = 128 completions per step, which 6 GPUs cannot .* gpus=4, or mini_batch_size to"),
        (["gpus=6"], r"mini_batch_size to 30 or 33$"),
        (["gpus=5", "batch_size=4"], r"mini_batch_size to 5 \(and batch_size to at least 5\)"),
        (
            ["gpus=3", "group_size=6", "tensor_parallel=2"],
            r"gpus=3 is not a multiple of tensor_parallel=2: .* one of 1, 3",
        ),
        (["nodes=2"], r"nodes=2 is not supported: .* Set nodes=1"),
        (["lora_rank=1024"], "adapters up to rank 512"),
        (["trainer_mode=separate_async"], r"batch_size = sync_every · mini_batch_size, not 64 and 4 · 32: .*=128"),
        (["trainer_mode=separate_async", "sync_every=2"], "set rollout_gpus to their number"),
        (
            ["trainer_mode=separate_async", "sync_every=2", "rollout_gpus=3"],
            "rollout_gpus=3 is not a multiple of tensor_parallel=2",
        ),
        (["rollout_gpus=2"], "are those of trainer_mode=separate_async"),
        (["profile=cpu", "gpus=1", "tensor_parallel=1", "micro_batch_size=48"], r"= 128 .* one of 1, 2, 4, 8, 16, 32"),
        (["profile=cpu", "gpus=2", "tensor_parallel=1", "micro_batch_size=128"], r"= 64 completions of a process"),
        (
            ["profile=cpu", "gpus=2", "tensor_parallel=1", "batch_size=5", "mini_batch_size=2", "group_size=3"],
            r"= 15 is not a multiple of the 2 processes: set batch_size to a multiple of 2",
        ),
    ],
)
def test_the_number_to_change_is_named(pairs: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_sizes(with_settings(load_config("plan"), pairs))


SEPARATE = ["trainer_mode=separate_async", "sync_every=2", "gpus=4", "rollout_gpus=4"]


@pytest.mark.parametrize(
    "pairs", [[], ["gpus=4"], ["gpus=6", "group_size=6"], ["gpus=6", "mini_batch_size=30"], SEPARATE]
)
def test_sizes_that_fit_are_accepted(pairs: list[str]) -> None:
    check_sizes(with_settings(load_config("plan"), pairs))


def test_a_supervised_batch_is_shared_out_whole() -> None:
    with pytest.raises(ConfigError, match=r"batch_size 64 is not a multiple of the 6 GPUs: .* Set batch_size=60"):
        check_sizes(with_settings(load_config("plan", "sft"), ["gpus=6"]))


@pytest.mark.parametrize(
    ("parts", "shape", "said"),
    [
        (3, QWEN_7B, "28 attention heads, which tensor_parallel=3 .* one of 1, 2, 4"),
        (8, {**QWEN_7B, "num_attention_heads": 24, "num_key_value_heads": 6}, "6 key-value heads"),
        (4, {"text_config": {"num_attention_heads": 6}}, "6 attention heads"),
        (2, {"num_attention_heads": 4, "intermediate_size": 7}, "7 columns"),
    ],
)
def test_a_model_that_cannot_be_split_is_refused(parts: int, shape: dict[str, Any], said: str) -> None:
    config = with_settings(load_config("plan"), [f"tensor_parallel={parts}", f"gpus={8 * parts}"])
    with pytest.raises(ConfigError, match=said):
        check_shape(config, shape)


@pytest.mark.parametrize(("parts", "shape"), [(4, QWEN_7B), (8, {**QWEN_7B, "num_attention_heads": 32}), (2, {})])
def test_few_key_value_heads_are_copied(parts: int, shape: dict[str, Any]) -> None:
    check_shape(with_settings(load_config("plan"), [f"tensor_parallel={parts}"]), shape)


def adapter(folder: Path, **values: object) -> str:
    import json

    (folder / "adapter_config.json").write_text(json.dumps(values))
    return str(folder)


def test_an_adapter_does_not_override_the_settings_silently(tmp_path: Path) -> None:
    path = adapter(tmp_path, r=16, lora_alpha=32)
    with pytest.raises(ConfigError, match=r"has rank 16 and alpha 32, .* lora_rank=64 .* set lora_rank=16 and lora_a"):
        preflight.check_adapter(path, load_config("plan"))
    with pytest.raises(ConfigError, match="lora_rank=0 trains all weights"):
        preflight.check_adapter(path, with_settings(load_config("plan"), ["lora_rank=0"]))
    preflight.check_adapter(path, with_settings(load_config("plan"), ["lora_rank=16"]))
    with pytest.raises(ConfigError, match="holds no PEFT adapter"):
        preflight.check_adapter(adapter(tmp_path, peft="?"), load_config("plan"))


def test_packaged_curricula_have_sizes_that_fit(tmp_path: Path) -> None:
    for name in ("curriculum", "mapgrpo", "opera-grpo"):
        made = load_curriculum(CONFIGS / f"{name}.yaml", str(tmp_path))
        for stage in made.stages:
            config = load_config(stage.agent, stage.algorithm, **stage.settings)
            check_sizes(config)
            assert config.gpus == 4  # the other four of a node serve the frozen agents
