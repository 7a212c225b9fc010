"""Command that trains the embedded reader by reward, or resumes a stopped run."""

# ruff: noqa: T201  progress goes to the terminal

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pyrag.cli.main import guarded
from pyrag_rl.config import TrainConfig, as_yaml, make_config, read_yaml, with_settings

SETTINGS = Path(__file__).parent / "settings.yaml"


def config_of(file: Path | None = None, pairs: list[str] | None = None, **flags: Any) -> TrainConfig:
    """Return the configuration of a run.

    Args:
        file: YAML file of training settings. They override the recipe's settings.
        pairs: Settings as `KEY=VALUE`. They override everything else.
        flags: Settings that override the files. None counts as missing.

    Raises:
        ConfigError: A setting is unknown or out of its range.
    """
    values = {**read_yaml(SETTINGS), **(read_yaml(file) if file else {})}
    values |= {name: value for name, value in flags.items() if value is not None}
    return with_settings(make_config({**values, "agent": "answer", "algorithm": "grpo"}), pairs or [])


def main() -> None:
    """Train with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m recipes.span_policy", description=__doc__)
    parser.add_argument("--data", required=True, help="training rows, as recipes.span_policy.rows writes them")
    parser.add_argument("--eval-data", help="rows that share no question with --data, scored before and after")
    parser.add_argument("--out", required=True, help="folder of the run")
    parser.add_argument("--config", type=Path, help="YAML file of training settings")
    parser.add_argument("--set", action="append", metavar="KEY=VALUE", help="training setting; repeatable")
    parser.add_argument("--dry-run", action="store_true", help="print the settings without training")
    options = parser.parse_args()
    flags = {"data": options.data, "eval_data": options.eval_data, "out": options.out}
    config = config_of(options.config, options.set, **flags)
    if options.dry_run:
        print(as_yaml(config))
        return
    from recipes.span_policy.train import run

    run(config, lambda line: print(line, flush=True))


if __name__ == "__main__":
    guarded(main)
