"""Supervised fine-tuning (`--algorithm sft`) with verl's own trainer, for the baseline RAG-SFT and for warm starts.

Sets consist of whole conversations (`pyrag_rl.data.rows.SftWriter`); only replies count in the loss. Rows that are too
long are dropped before verl reads them (`sft_rows`). The run folder and the export are the same as with GRPO.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyrag.errors import DataError
from pyrag.evaluation.runs.folder import locked
from pyrag.trace.words import counted
from pyrag_rl.config import TrainConfig, absolute
from pyrag_rl.data.rows import write_conversations
from pyrag_rl.folder import RunFolder
from pyrag_rl.packed import replaces_flash_attention
from pyrag_rl.verl import preflight
from pyrag_rl.verl.launch import Console, composed_by, hydra_rows, prepare, run_verl
from pyrag_rl.verl.lengths import Length, length_by
from pyrag_rl.verl.overrides import FULL_PRECISION, rendered
from pyrag_rl.verl.sft_rows import FittedRows, check_sets, fit_rows
from pyrag_rl.verl.watch import Watch

_FILE = "sft_trainer_engine"  # name among verl's configurations


def train_sft(config: TrainConfig, *, console: Console = print, length: Length | None = None) -> RunFolder:
    """Train to the end, starting from the last checkpoint if any. Raises the errors of `pyrag_rl.verl.launch.train`.

    Args:
        config: Configuration of the run.
        console: Called with one line at a time.
        length: Function that counts the tokens of a conversation; None for the model's own tokenizer.
    """
    config = absolute(config)
    preflight.check(config)
    check_sets(config.data, config.eval_data)
    learnt, held = fit(config, length or length_by(config.model), console)
    steps = len(learnt.rows) // config.batch_size * config.epochs
    steps = min(steps, config.max_steps or steps)
    folder = prepare(config)
    write_conversations(folder.train_rows, learnt.rows)
    if held:
        write_conversations(folder.eval_rows, held.rows)
    config = preflight.saving_often(config, steps)
    if folder.latest_step >= steps:
        console(f"{config.out} is trained already: {folder.latest_step} of {steps} steps")
        return folder
    went_on = f", on from step {folder.latest_step}" if folder.latest_step else ""
    shown = f"{counted(steps, 'step')}{went_on}"
    console(f"fine-tuning the {config.agent} agent: {shown}; all that verl prints is in {folder.log}")
    with locked(folder.path):
        run_verl(command_of(config, folder), config, folder, Watch(folder, config, steps, console))
    console(f"trained: export it with pyrag train export {config.out}")
    return folder


def fit(config: TrainConfig, length: Length, console: Console) -> tuple[FittedRows, FittedRows | None]:
    """Return the rows of the training set and of the evaluation set that verl will read.

    Args:
        config: Configuration of the run.
        length: Function that counts the tokens of a conversation.
        console: Called with the numbers of rows and of dropped rows.

    Raises:
        DataError: The remaining rows of a set are fewer than a batch.
    """

    def fitted(data: str, seed: int | None) -> FittedRows:
        rows = fit_rows(data, length, _limit(config), seed)
        console(rows.summary(data))
        if len(rows.rows) < config.batch_size:
            raise DataError(
                f"{data} has {len(rows.rows)} rows of at most {_limit(config)} tokens, fewer than a batch of "
                f"{config.batch_size}: add rows, or set batch_size lower"
            )
        return rows

    return fitted(config.data, config.seed), fitted(config.eval_data, None) if config.eval_data else None


def command_of(config: TrainConfig, folder: RunFolder) -> list[str]:
    """Return the command of verl's supervised trainer.

    Args:
        config: Configuration of the run.
        folder: Folder of the run.
    """
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={config.gpus}"]
    return [*torchrun, "-m", "verl.trainer.sft_trainer", *sft_overrides(config, folder), *hydra_rows(folder)]


def composed(config: TrainConfig) -> str:
    """Return the YAML that verl composes from the configuration. Raises `ConfigError` if verl does not know a key."""
    config = absolute(config)
    return composed_by(_FILE, sft_overrides(config, RunFolder(Path(config.out))))


def sft_overrides(config: TrainConfig, folder: RunFolder) -> list[str]:
    """Return the overrides of verl's supervised trainer.

    Args:
        config: Configuration of the run.
        folder: Folder of the run.
    """
    rows = {**_data(config, folder), **_model_overrides(config), **_trainer(config, folder)}
    if replaces_flash_attention(config):
        rows["+model.override_config.attn_implementation"] = "sdpa"
    if config.on_cpu:
        rows |= {
            "data.num_workers": 0,
            "engine.use_torch_compile": config.compiles,
            "+engine.mixed_precision": FULL_PRECISION,
            "trainer.device": "cpu",
        }
    return [f"{key}={rendered(value)}" for key, value in rows.items()]


def _data(config: TrainConfig, folder: RunFolder) -> dict[str, Any]:
    """Return settings for rows without padding: micro-batches are packed, and positions separate rows in attention."""
    return {
        "data.train_files": str(folder.train_rows),
        "data.val_files": str(folder.eval_rows) if config.eval_data else None,
        "data.train_batch_size": config.batch_size,
        "data.use_dynamic_bsz": True,
        "data.max_length": _limit(config),
        "data.max_token_len_per_gpu": config.micro_batch_size * _limit(config),
        "data.truncation": "error",  # `fit` has left out rows that are too long
        "model.use_remove_padding": True,
    }


def _model_overrides(config: TrainConfig) -> dict[str, Any]:
    adapter: dict[str, Any] = {"model.lora_adapter_path": config.adapter} if config.adapter else {}
    if config.lora_rank:
        adapter["+checkpoint.save_lora_only"] = True  # leaves out the frozen weights
    return {
        "model.path": config.model,
        "model.lora_rank": config.lora_rank,
        "model.lora_alpha": config.lora_alpha,
        "model.target_modules": "all-linear",
        "engine.seed": config.seed,
        "optim.lr": config.learning_rate,
        "optim.lr_scheduler_type": config.schedule,
        "optim.lr_warmup_steps_ratio": config.warmup,
        "optim.min_lr_ratio": config.min_learning_rate,
        "model.enable_gradient_checkpointing": config.checkpoints_activations,
        "engine.strategy": "fsdp2",  # the older FSDP wraps each matrix of an adapter separately
        "engine.reshard_after_forward": config.gpus * config.nodes > 1,
        **adapter,
    }


def _trainer(config: TrainConfig, folder: RunFolder) -> dict[str, Any]:
    return {
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


def _limit(config: TrainConfig) -> int:
    """Return the maximum number of tokens of a row, prompt and reply together."""
    return config.prompt_tokens + config.response_tokens
