"""Start of a training run with verl's GRPO or verl's supervised trainer."""

from __future__ import annotations

import shlex
from pathlib import Path

from pyrag.errors import ConfigError
from pyrag_rl.config import TrainConfig
from pyrag_rl.verl.launch import Console


def start(config: TrainConfig, *, console: Console = print, dry_run: bool = False) -> None:
    """Train as the configuration specifies.

    Args:
        config: Configuration of the run.
        console: Called with one line at a time.
        dry_run: Whether to show the configuration and the command instead.

    Raises:
        PyRAGError: The configuration was refused, or the training failed.
    """
    if dry_run:
        _show(config, console)
    elif config.algorithm == "sft":
        from pyrag_rl.verl.sft import train_sft

        train_sft(config, console=console)
    else:
        from pyrag_rl.verl.launch import train

        train(config, console=console)


def _show(config: TrainConfig, console: Console = print) -> None:
    """Print the configuration that verl composes, and the command; without verl, print only the overrides."""
    from pyrag_rl.folder import RunFolder
    from pyrag_rl.verl import launch, preflight, sft
    from pyrag_rl.verl.sizes import check_sizes

    preflight.check_named(config)
    check_sizes(config)
    trainer = sft if config.algorithm == "sft" else launch
    folder = RunFolder(Path(config.out))
    try:
        console(trainer.composed(config))
    except ConfigError as error:
        console(f"# {error}")
    console(shlex.join(trainer.command_of(config, folder)))
