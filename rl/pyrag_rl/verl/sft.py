"""`--algorithm sft`: supervised fine-tuning by verl's own trainer, for the baseline RAG-SFT and for warm starts.

Sets hold whole conversations (`pyrag_rl.data.rows.SftWriter`); the loss is that of the replies. What the run leaves
behind, and how it is exported, is as with GRPO.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyrag.errors import DataError
from pyrag.evaluation.runs.folder import locked
from pyrag_rl.config import TrainConfig, absolute
from pyrag_rl.data.rows import count_conversations
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl import preflight
from pyrag_rl.verl.launch import Console, composed_by, hydra_rows, prepare, run_verl
from pyrag_rl.verl.overrides import rendered
from pyrag_rl.verl.watch import Watch

_FILE = "sft_trainer_engine"  # of verl's configs


def train_sft(config: TrainConfig, *, console: Console = print) -> RunFolder:
    """Train to the end, or on from the last checkpoint. Raises as `pyrag_rl.verl.launch.train` does.

    Args:
        config: the run.
        console: called with one line at a time.
    """
    config = absolute(config)
    preflight.check(config)
    steps = _steps(config)
    if config.eval_data:
        count_conversations(Path(config.eval_data))
    folder = prepare(config)
    if folder.latest_step >= steps:
        console(f"{config.out} is trained already: {folder.latest_step} of {steps} steps")
        return folder
    console(f"fine-tuning the {config.agent} agent: {steps} steps; all that verl prints is in {folder.log}")
    with locked(folder.path):
        run_verl(command_of(config, folder), config, folder, Watch(folder, config, steps, console))
    console(f"trained: export it with pyrag train export {config.out}")
    return folder


def command_of(config: TrainConfig, folder: RunFolder) -> list[str]:
    """Return the command of verl's supervised trainer.

    Args:
        config: the run.
        folder: its folder.
    """
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={config.gpus}"]
    return [*torchrun, "-m", "verl.trainer.sft_trainer", *sft_overrides(config, folder), *hydra_rows(folder)]


def composed(config: TrainConfig) -> str:
    """The YAML that verl makes of the config. Raises `ConfigError`."""
    config = absolute(config)
    return composed_by(_FILE, sft_overrides(config, RunFolder(Path(config.out))))


def sft_overrides(config: TrainConfig, folder: RunFolder) -> list[str]:
    """Return the overrides of verl's supervised trainer.

    Args:
        config: the run.
        folder: its folder.
    """
    rows: dict[str, Any] = {
        "data.train_files": config.data,
        "data.val_files": config.eval_data,
        "data.train_batch_size": config.batch_size,
        "data.micro_batch_size_per_gpu": config.micro_batch_size,
        "data.max_length": config.prompt_tokens + config.response_tokens,
        "data.max_token_len_per_gpu": config.micro_batch_size * (config.prompt_tokens + config.response_tokens),
        "data.truncation": "right",
        "model.path": config.model,
        "model.lora_rank": config.lora_rank,
        "model.lora_alpha": config.lora_alpha,
        "model.target_modules": "all-linear",
        "optim.lr": config.learning_rate,
        "optim.lr_scheduler_type": config.schedule,
        "optim.lr_warmup_steps_ratio": config.warmup,
        "optim.min_lr_ratio": config.min_learning_rate,
        "trainer.project_name": "pyrag",
        "trainer.experiment_name": folder.path.name,
        "trainer.logger": ["console", "file", *config.loggers],
        "trainer.default_local_dir": str(folder.checkpoints),
        "trainer.total_epochs": config.epochs,
        "trainer.total_training_steps": config.max_steps,
        "trainer.seed": config.seed,
        "trainer.save_freq": config.save_every,
        "trainer.test_freq": config.eval_every or -1 if config.eval_data else -1,
        "trainer.max_ckpt_to_keep": config.keep_checkpoints,
        "trainer.n_gpus_per_node": config.gpus,
        "trainer.nnodes": config.nodes,
    }
    if config.adapter:
        rows |= {"model.lora_adapter_path": config.adapter}
    if config.profile == "cpu-smoke":
        rows |= {
            "data.num_workers": 0,
            "data.use_dynamic_bsz": False,
            "model.use_remove_padding": False,
            "model.enable_gradient_checkpointing": False,
            "+model.override_config.attn_implementation": "sdpa",
            "engine.strategy": "fsdp2",
            "engine.use_torch_compile": False,
            "trainer.device": "cpu",
        }
    return [f"{key}={rendered(value)}" for key, value in rows.items()]


def _steps(config: TrainConfig) -> int:
    steps = count_conversations(Path(config.data)) // config.batch_size * config.epochs
    if not steps:
        raise DataError(f"{config.data} has fewer rows than a batch of {config.batch_size}: set batch_size lower")
    return min(steps, config.max_steps or steps)
