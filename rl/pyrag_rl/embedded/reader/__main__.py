"""Command line: prepare, train both stages, export, calibrate and measure. What is done already is not done again.

The data folder holds `squad`, `2wikimultihopqa`, `musique` and `hotpotqa` in the common layout; only files named
`train_*` are read unless `--measure` is given. A run that was killed goes on with `--resume`.
"""

# ruff: noqa: T201  progress goes to the terminal

from __future__ import annotations

import argparse
import time
from pathlib import Path

from pyrag.cli.main import guarded
from pyrag_rl.embedded.reader.hops import SETS
from pyrag_rl.embedded.reader.layout import missing
from pyrag_rl.embedded.reader.recipe import Settings, make


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pyrag_rl.embedded.reader", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for examples, checkpoints and the model")
    parser.add_argument("--resume", action="store_true", help="go on with what lies in --out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=_count, help="train each stage on at most so many examples (default: all)")
    parser.add_argument("--workers", type=_count, default=2, help="processes, one core each; the result depends on it")
    parser.add_argument("--save-every", type=float, default=120.0, help="seconds between checkpoints")
    parser.add_argument("--measure", action="store_true", help="at the end, score the measured questions as well")
    given = parser.parse_args()
    if lacks := missing(given.data, ("squad", *SETS)):
        parser.error(lacks)
    if given.out.exists() and any(given.out.iterdir()) and not given.resume:
        parser.error(f"{given.out} is not empty: add --resume to go on there, or name another folder")
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    make(Settings(given.data, given.out, given.seed, given.examples, given.workers, given.measure, given.save_every))
    print(f"done in {(time.monotonic() - began) / 60:.0f} min", flush=True)


def _count(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


if __name__ == "__main__":
    guarded(main)
