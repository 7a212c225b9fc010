"""Rendering of a `TrainConfig` as verl's settings: the `key=value` arguments of `verl.trainer.main_ppo` (verl 0.9.1).

The profiles `gpu` and `cpu` (or `cpu-smoke`) differ only in `_gpu` and `_cpu`. verl refuses unknown keys, so a version
with renamed keys fails before anything starts. Omitted settings have verl's defaults. `pyrag_rl.verl.sft` is for
supervised fine-tuning, and `pyrag_rl.verl.launch` runs the command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyrag_rl.config import TrainConfig
from pyrag_rl.folder import RunFolder
from pyrag_rl.packed import replaces_flash_attention
from pyrag_rl.verl.forms import has_form
from pyrag_rl.verl.sizes import PADDING_TOKENS

SINGLE_TURN = "single_turn_agent"  # verl's own loop
PROGRAM_LOOP = "program_agent"
PRESCORED_LOOP = "prescored_agent"
FORMED_LOOP = "formed_agent"
# Our agent loops by name; `agent_loops` registers them with verl.
LOOPS: Mapping[str, str] = {
    PROGRAM_LOOP: "pyrag_rl.verl.loops.ProgramAgentLoop",
    FORMED_LOOP: "pyrag_rl.verl.loops.FormedAgentLoop",
    PRESCORED_LOOP: "pyrag_rl.verl.loops.PrescoredAgentLoop",
}
# On two cores without AMX, products of bf16 matrices took 1.8 times as long as those of fp32.
FULL_PRECISION = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
# Matches texts that Hydra does not read as a number or a constant.
_PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)\Z)(?:[a-z_/@]|\.(?!\d))[a-z0-9_./:@-]*", re.IGNORECASE)


def verl_overrides(config: TrainConfig, folder: RunFolder, temp: str = "") -> list[str]:
    """Return the overrides of `main_ppo`.

    Args:
        config: Configuration of the run.
        folder: Folder of the run.
        temp: Folder for Ray's sockets, separate for each run so that clusters do not interfere.
    """
    rows = _common(config, folder) | (_cpu(config) if config.on_cpu else _gpu(config))
    if replaces_flash_attention(config):
        rows["+actor_rollout_ref.model.override_config.attn_implementation"] = "sdpa"
    rows |= {"+ray_kwargs.ray_init.address": "local"}
    if temp:
        rows |= {"+ray_kwargs.ray_init._temp_dir": temp}
    return [f"{key}={rendered(value)}" for key, value in rows.items()]


def agent_loop(config: TrainConfig) -> str:
    """Return the name of the agent loop that produces completions."""
    if config.prescored:
        return PRESCORED_LOOP
    if config.repairs:
        return PROGRAM_LOOP
    return FORMED_LOOP if has_form(config) else SINGLE_TURN


def agent_loops(folder: RunFolder) -> list[dict[str, str]]:
    """Return our agent loops in the format of verl's `agent_loop_config_path`."""
    return [{"name": name, "_target_": target, "run": str(folder.path)} for name, target in LOOPS.items()]


def rendered(value: Any) -> str:
    """Return a value in Hydra's grammar."""
    if isinstance(value, bool) or value is None:
        return {True: "True", False: "False", None: "null"}[value]
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{rendered(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(rendered(item) for item in value) + "]"
    if not isinstance(value, str) or _PLAIN.fullmatch(value):
        return str(value)
    # Backslashes only need escaping before a quote.
    escaped = re.sub(r"(\\*)'", lambda match: match[1] * 2 + "\\'", value)
    return "'" + re.sub(r"(\\+)\Z", lambda match: match[1] * 2, escaped) + "'"


def _common(config: TrainConfig, folder: RunFolder) -> dict[str, Any]:
    model = {**_data(config), **_model(config), **_actor(config)}
    return {**model, **_rollout(config, folder), **_trainer(config, folder), **_mode(config)}


def _data(config: TrainConfig) -> dict[str, Any]:
    return {
        "data.train_files": config.data,
        "data.val_files": config.eval_data or config.data,
        "data.train_batch_size": config.batch_size,
        "data.max_prompt_length": config.prompt_tokens,
        "data.max_response_length": config.response_tokens,
        "data.filter_overlong_prompts": True,
        "data.seed": config.seed,
    }


def _model(config: TrainConfig) -> dict[str, Any]:
    rows: dict[str, Any] = {"actor_rollout_ref.model.path": config.model}
    if config.lora_rank:
        rows |= {
            "actor_rollout_ref.model.lora_rank": config.lora_rank,
            "actor_rollout_ref.model.lora_alpha": config.lora_alpha,
            "actor_rollout_ref.model.target_modules": "all-linear",
            "actor_rollout_ref.rollout.load_format": "safetensors",  # required for adapters
            "+actor_rollout_ref.actor.checkpoint.save_lora_only": True,  # leaves out the frozen weights
        }
    if config.adapter:
        rows |= {"actor_rollout_ref.model.lora_adapter_path": config.adapter}
    return rows


def _actor(config: TrainConfig) -> dict[str, Any]:
    micro = config.micro_batch_size
    return {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": config.norm_adv_by_std,
        "algorithm.use_kl_in_reward": False,
        "actor_rollout_ref.actor.use_kl_loss": config.kl_coef > 0,
        "actor_rollout_ref.actor.kl_loss_coef": config.kl_coef,
        "actor_rollout_ref.actor.kl_loss_type": "low_var_kl",
        "actor_rollout_ref.actor.data_loader_seed": config.seed,
        "actor_rollout_ref.actor.fsdp_config.seed": config.seed,
        # verl's older FSDP wraps each matrix of an adapter separately, and with peft 0.21 sends none of them to vLLM.
        "actor_rollout_ref.actor.strategy": "fsdp2",
        "actor_rollout_ref.actor.fsdp_config.strategy": "fsdp2",
        "actor_rollout_ref.ref.strategy": "fsdp2",
        "actor_rollout_ref.ref.fsdp_config.strategy": "fsdp2",
        "actor_rollout_ref.actor.entropy_coeff": config.entropy_coef,
        "actor_rollout_ref.actor.optim.lr": config.learning_rate,
        "actor_rollout_ref.actor.optim.lr_scheduler_type": config.schedule,
        "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": config.warmup,
        "actor_rollout_ref.actor.optim.min_lr_ratio": config.min_learning_rate,
        "actor_rollout_ref.actor.ppo_mini_batch_size": config.mini_batch_size or config.batch_size,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": micro,
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": micro,
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": micro,
    }


def _rollout(config: TrainConfig, folder: RunFolder) -> dict[str, Any]:
    return {
        "actor_rollout_ref.rollout.name": config.rollout,
        "actor_rollout_ref.rollout.n": config.group_size,
        "actor_rollout_ref.rollout.temperature": config.temperature,
        "actor_rollout_ref.rollout.seed": config.seed,
        "actor_rollout_ref.rollout.tensor_model_parallel_size": config.tensor_parallel,
        "actor_rollout_ref.rollout.calculate_log_probs": not config.prescored,  # an injected candidate has none
        "actor_rollout_ref.rollout.agent.num_workers": config.agent_workers,
        "actor_rollout_ref.rollout.agent.default_agent_loop": agent_loop(config),
        "actor_rollout_ref.rollout.agent.agent_loop_config_path": str(folder.agent_loops),
        # `reward.` is needed: verl's configuration also has the key without it, and ignores it.
        "reward.custom_reward_function.path": "pkg://pyrag_rl.rewards.environment",
        "reward.custom_reward_function.name": "compute_score",
        "+reward.custom_reward_function.reward_kwargs.run": str(folder.path),
        "reward.num_workers": config.reward_workers,
    }


def _trainer(config: TrainConfig, folder: RunFolder) -> dict[str, Any]:
    evaluates = config.eval_data is not None
    return {
        "trainer.project_name": "pyrag",
        "trainer.experiment_name": folder.path.name,
        "trainer.logger": ["console", "file", *config.loggers],
        "trainer.default_local_dir": str(folder.checkpoints),
        "trainer.rollout_data_dir": str(folder.rollouts) if config.dump_rollouts else None,
        "trainer.total_epochs": config.epochs,
        "trainer.total_training_steps": config.max_steps,
        "trainer.val_before_train": evaluates,
        "trainer.test_freq": config.eval_every or 10**9 if evaluates else -1,
        "trainer.save_freq": config.save_every,
        "trainer.max_actor_ckpt_to_keep": config.keep_checkpoints,
        "trainer.resume_mode": "auto",
        "trainer.n_gpus_per_node": config.gpus,
        "trainer.nnodes": config.nodes,
    }


def _mode(config: TrainConfig) -> dict[str, Any]:
    """Return the settings of verl's trainer. Only the synchronous one can remove single completions from a group."""
    rows: dict[str, Any] = {"trainer.v1.trainer_mode": config.trainer_mode}
    if config.trainer_mode == "sync":
        rows["trainer.v1.sampler.custom_sampler.path"] = "pkg://pyrag_rl.verl.sampler"
        rows["trainer.v1.sampler.custom_sampler.name"] = "ComparableGroups"
    if config.trainer_mode != "separate_async":
        return rows
    rows |= {
        "trainer.v1.separate_async.parameter_sync_step": config.sync_every,
        "actor_rollout_ref.hybrid_engine": False,  # rollouts have their own GPUs
        "actor_rollout_ref.rollout.nnodes": 1,
        "actor_rollout_ref.rollout.n_gpus_per_node": config.rollout_gpus,
        "actor_rollout_ref.rollout.checkpoint_engine.backend": "nccl",
    }
    # Weights cannot be sent as adapters in this mode.
    return rows | ({"actor_rollout_ref.model.lora.merge": True} if config.lora_rank else {})


def _gpu(config: TrainConfig) -> dict[str, Any]:
    longest = config.prompt_tokens + config.response_tokens
    rows = {
        "actor_rollout_ref.model.use_remove_padding": True,
        "actor_rollout_ref.model.enable_gradient_checkpointing": config.checkpoints_activations,
        "actor_rollout_ref.actor.use_dynamic_bsz": True,
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": max(config.micro_batch_size * longest, PADDING_TOKENS),
        "actor_rollout_ref.rollout.gpu_memory_utilization": config.gpu_memory,
        "actor_rollout_ref.rollout.max_num_batched_tokens": max(8192, longest),
    }
    return rows | ({"actor_rollout_ref.rollout.layered_summon": True} if config.lora_rank else {})


def _reports_the_policy(config: TrainConfig) -> bool:
    """Return whether a rollout's log-probabilities equal the policy's, which saves a pass per step.

    Both sides compute in fp32 here. However, with a form the rollout can only choose among some tokens, and a candidate
    has no log-probabilities.
    """
    return config.trainer_mode == "sync" and not (config.prescored or has_form(config))


def _cpu(config: TrainConfig) -> dict[str, Any]:
    """Return the settings for a machine without an accelerator, which `pyrag_rl.cpu_smoke` replaces."""
    rows: dict[str, Any] = {
        "data.dataloader_num_workers": 0,
        "actor_rollout_ref.model.use_remove_padding": True,
        "actor_rollout_ref.model.enable_gradient_checkpointing": config.checkpoints_activations,
        "actor_rollout_ref.actor.use_torch_compile": False,
        "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
        "+actor_rollout_ref.actor.fsdp_config.mixed_precision": FULL_PRECISION,  # bf16 would make every KL 0
        "actor_rollout_ref.ref.use_torch_compile": False,
        "+actor_rollout_ref.ref.fsdp_config.mixed_precision": FULL_PRECISION,
        "actor_rollout_ref.rollout.dtype": "float32",
        "actor_rollout_ref.rollout.free_cache_engine": False,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        "trainer.device": "cpu",
        "ray_kwargs.ray_init.num_cpus": 16,  # logical CPUs: verl reserves more than a small machine has
        "+ray_kwargs.ray_init.num_gpus": config.gpus,
        "+ray_kwargs.ray_init.include_dashboard": False,
        "+ray_kwargs.ray_init.object_store_memory": 300_000_000,
    }
    if config.lora_rank:
        rows["actor_rollout_ref.model.lora.merge"] = True  # vLLM is slow with an adapter on a CPU
    if config.rollout == "vllm":
        return rows | {
            "algorithm.rollout_correction.bypass_mode": _reports_the_policy(config),
            "actor_rollout_ref.rollout.enforce_eager": True,
            "+actor_rollout_ref.rollout.enable_sleep_mode": False,
            "actor_rollout_ref.rollout.gpu_memory_utilization": config.gpu_memory,
            "+actor_rollout_ref.rollout.engine_kwargs.vllm.worker_extension_cls": (
                "pyrag_rl.cpu_smoke.vllm.CPUWorkerExtension"
            ),
        }
    return rows
