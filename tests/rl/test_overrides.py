"""Our config as verl's settings, without verl; with it, see test_verl.py."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from pyrag_rl.config import TrainConfig, load_config, with_settings
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl.overrides import agent_loop, agent_loops, rendered, verl_overrides

FOLDER = RunFolder(Path("/runs/a"))
_SAVINGS = ("data.dataloader_num_workers", "algorithm.rollout_correction.bypass_mode")
_TESTING = (
    "+actor_rollout_ref.model.override_config",
    "transfer_queue.",
    "trainer.device",
    "ray_kwargs.",
    "+ray_kwargs.",
)


def rows(config: TrainConfig) -> dict[str, str]:
    return dict(one.split("=", 1) for one in verl_overrides(config, FOLDER))


def made(agent: str = "answer", *pairs: str) -> TrainConfig:
    return with_settings(load_config(agent, model="m", data="train.parquet", out="/runs/a"), list(pairs))


def test_the_reward_function_is_under_verls_key() -> None:
    found = rows(made())
    path = found["reward.custom_reward_function.path"]
    assert path == "pkg://pyrag_rl.rewards.environment"
    assert callable(import_module(path.removeprefix("pkg://")).compute_score)
    assert found["reward.custom_reward_function.name"] == "compute_score"
    assert found["+reward.custom_reward_function.reward_kwargs.run"] == "/runs/a"
    assert "custom_reward_function.path" not in found  # verl knows that key, and ignores it


def test_grpo_is_the_paper_s() -> None:
    found = rows(made())
    assert found["algorithm.adv_estimator"] == "grpo"
    assert found["actor_rollout_ref.actor.kl_loss_type"] == "low_var_kl"
    assert float(found["actor_rollout_ref.actor.kl_loss_coef"]) == 0.001
    assert found["actor_rollout_ref.model.target_modules"] == "all-linear"
    assert float(found["actor_rollout_ref.actor.optim.lr"]) == 1e-6


def test_profiles_differ_in_rows_of_the_machine_only() -> None:
    gpu, cpu = rows(made()), rows(made("answer", "profile=cpu-smoke"))
    shared = gpu.keys() & cpu.keys()
    same = {key for key in shared if gpu[key] == cpu[key]}
    assert shared - same <= {
        "actor_rollout_ref.model.enable_gradient_checkpointing",
    }
    for key in cpu.keys() - gpu.keys():
        assert key.startswith(_TESTING) or "actor_rollout_ref" in key or key in _SAVINGS


def test_the_gpu_profile_knows_nothing_of_the_cpu_plugin() -> None:
    assert not [one for one in verl_overrides(made(), FOLDER) if "cpu" in one.lower()]


def test_all_weights_are_trained_without_a_rank() -> None:
    assert not [key for key in rows(made("answer", "lora_rank=0")) if "lora" in key]


def test_an_adapter_is_gone_on_from() -> None:
    assert (
        rows(made("answer", "adapter=/runs/b/adapter"))["actor_rollout_ref.model.lora_adapter_path"]
        == "/runs/b/adapter"
    )


def test_repairs_choose_the_program_loop() -> None:
    assert agent_loop(made("plan")) == "single_turn_agent"
    assert agent_loop(made("plan", "repairs=2")) == "program_agent"
    assert "program_agent" in {loop["name"] for loop in agent_loops(FOLDER)}


def test_evaluation_needs_a_set_of_its_own() -> None:
    without, with_one = rows(made()), rows(made("answer", "eval_data=dev.parquet", "eval_every=5"))
    assert (without["trainer.val_before_train"], without["trainer.test_freq"]) == ("False", "-1")
    assert (with_one["trainer.val_before_train"], with_one["trainer.test_freq"]) == ("True", "5")
    assert with_one["data.val_files"] == "dev.parquet"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"), (None, "null"), (1e-06, "1e-06"), ("a/b-c.d_e", "a/b-c.d_e"), ("two words", "'two words'"),
        ("it's", r"'it\'s'"), (["a", "b c"], "[a,'b c']"), ({"a": "x"}, "{a:x}"), ("a,b=c", "'a,b=c'"),
        ("2026", "'2026'"), ("1e5", "'1e5'"), (".5", "'.5'"), ("-1", "'-1'"), ("null", "'null'"), ("True", "'True'"),
        ("nan", "'nan'"), ("nano", "nano"), ("./5", "./5"), ("/runs/5", "/runs/5"), ("", "''"),
    ],
)  # fmt: skip
def test_values_are_rendered_in_hydra_s_grammar(value: object, text: str) -> None:
    assert rendered(value) == text
