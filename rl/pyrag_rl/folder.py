"""Layout of a run folder, for all code that reads a run (resume, export, report).

config.yaml            the configuration of the run
lock                   held by the process that trains
overrides.txt          settings passed to verl, one per line
log.txt                output of verl and Ray
metrics/N.jsonl        verl's metrics, one file per session: {"step": …, "data": {name: number}}
scores/PID.jsonl       one line per scored completion: {"step", "id", "split", **Score.numbers(), "detail"}
traces/PID.jsonl       a sample of the traces behind the scores; `pyrag trace show` reads them
rows/                  conversations of a supervised run, as verl reads them
rollouts/STEP.jsonl    verl's dump: input, output, gts, score
tensorboard/, wandb/   files of TensorBoard, and of Weights & Biases if it is enabled
checkpoints/           verl's checkpoints: global_step_N/…, latest_checkpointed_iteration.txt
adapter/, merged/      results of `pyrag train export`
report.html            result of `pyrag train report`
reader/                the trained embedded reader
evaluation.json        evaluation of the embedded reader before and after, on held-out rows
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyrag.errors import DataError


class RunFolder:
    """Paths of a run. Naming a path does not create it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.overrides = path / "overrides.txt"
        self.agent_loops = path / "agent_loops.yaml"
        self.log = path / "log.txt"
        self.metrics = path / "metrics"
        self.scores = path / "scores"
        self.traces = path / "traces"
        self.train_rows, self.eval_rows = path / "rows/train.parquet", path / "rows/eval.parquet"
        self.rollouts = path / "rollouts"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.adapter, self.merged = path / "adapter", path / "merged"
        self.reader = path / "reader"
        self.evaluation = path / "evaluation.json"

    @property
    def latest_step(self) -> int:
        """Step that a resumed run starts from; 0 without a checkpoint. verl writes it when a checkpoint is complete."""
        marker = self.checkpoints / "latest_checkpointed_iteration.txt"
        if not marker.is_file():
            return 0
        try:
            return int(marker.read_text())
        except ValueError as error:  # verl was killed, or the disk was full, while the number was written
            raise DataError(
                f"{marker} names no step: write the number of the last whole global_step_… into it"
            ) from error

    def checkpoint(self, step: int | None = None) -> Path:
        """Return the folder of a step, by default the last. Raises `DataError` if it is missing or incomplete."""
        wanted = step or self.latest_step
        folder = self.checkpoints / f"global_step_{wanted}"
        if not 0 < wanted <= self.latest_step or not folder.is_dir():
            raise DataError(f"{self.path} holds no checkpoint{f' of step {step}' if step else ''}: train first")
        return folder

    def new_metrics_file(self) -> Path:
        """Return a new file for a session's metrics, because verl overwrites an existing one."""
        self.metrics.mkdir(parents=True, exist_ok=True)
        return self.metrics / f"{len(list(self.metrics.glob('*.jsonl'))) + 1}.jsonl"

    def read_metrics(self) -> dict[int, dict[str, float]]:
        """Return verl's metrics by step. If a step was repeated, its last session counts."""
        metrics: dict[int, dict[str, float]] = {}
        for path in sorted(self.metrics.glob("*.jsonl"), key=lambda file: int(file.stem)):
            for step, data in metrics_of(read_lines(path)[0]):
                metrics[step] = {**metrics.get(step, {}), **data}
        return dict(sorted(metrics.items()))


def read_lines(path: Path, start: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Read the complete lines of a JSON Lines file that may still be written to.

    Args:
        path: The file.
        start: Byte to start from.

    Returns:
        The decoded lines, and the byte to continue from.
    """
    lines, position = whole_lines(path, start)
    return list(decoded(lines)), position


def whole_lines(path: Path, start: int = 0) -> tuple[list[bytes], int]:
    """Read the complete lines of a file that may still be written to.

    Args:
        path: The file.
        start: Byte to start from.

    Returns:
        The lines, and the byte to continue from.
    """
    with path.open("rb") as file:
        file.seek(start)
        whole, newline, _ = file.read().rpartition(b"\n")
    return whole.splitlines(), start + len(whole) + len(newline)


def metrics_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield step and metrics of verl's lines, without values that are not finite, such as a diverged gradient."""
    for line in lines:
        yield int(line["step"]), {key: value for key, value in line["data"].items() if value is not None}


def decoded(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines. Lines damaged by a full disk are skipped, so that they do not end a long run."""
    import msgspec

    decoder = msgspec.json.Decoder(dict[str, Any])
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield decoder.decode(line)
