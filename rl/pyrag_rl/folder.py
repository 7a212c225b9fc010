"""Layout of a run folder. Everything that reads a run (resume, export, report) finds its files here.

config.yaml            the config as it ran
lock                   held by the process that trains
overrides.txt          what verl was told, one a line
log.txt                all that verl and Ray printed
metrics/N.jsonl        verl's metrics, one file a session: {"step": …, "data": {name: number}}
scores/PID.jsonl       one line a scored completion: {"step", "id", "split", **Score.numbers(), "detail"}
traces/PID.jsonl       a sample of the traces behind the scores; `pyrag trace show` reads them
rows/                  the conversations of a supervised run, as verl read them
rollouts/STEP.jsonl    verl's dump: input, output, gts, score
tensorboard/, wandb/   TensorBoard's, and that of Weights & Biases where it is a logger
checkpoints/           verl's: global_step_N/…, latest_checkpointed_iteration.txt
adapter/, merged/      what `pyrag train export` writes
report.html            what `pyrag train report` writes
reader/                the embedded reader as it was trained, and
evaluation.json        what it was before and after on held-out rows
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyrag.errors import DataError


class RunFolder:
    """Paths of a run; nothing is made by naming them."""

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
        """The step that a resumed run starts from; 0 without a checkpoint. verl names it once it is wholly written."""
        marker = self.checkpoints / "latest_checkpointed_iteration.txt"
        if not marker.is_file():
            return 0
        try:
            return int(marker.read_text())
        except ValueError as error:  # verl was killed, or the disk was full, while it wrote the number
            raise DataError(
                f"{marker} names no step: write the number of the last whole global_step_… into it"
            ) from error

    def checkpoint(self, step: int | None = None) -> Path:
        """The folder of a step, by default the last. Raises `DataError` where it is missing, or half written."""
        wanted = step or self.latest_step
        folder = self.checkpoints / f"global_step_{wanted}"
        if not 0 < wanted <= self.latest_step or not folder.is_dir():
            raise DataError(f"{self.path} holds no checkpoint{f' of step {step}' if step else ''}: train first")
        return folder

    def new_metrics_file(self) -> Path:
        """A file for one more session's metrics: verl overwrites what it is given."""
        self.metrics.mkdir(parents=True, exist_ok=True)
        return self.metrics / f"{len(list(self.metrics.glob('*.jsonl'))) + 1}.jsonl"

    def read_metrics(self) -> dict[int, dict[str, float]]:
        """verl's metrics by step; a step that a resumed session ran again counts as that session had it."""
        found: dict[int, dict[str, float]] = {}
        for path in sorted(self.metrics.glob("*.jsonl"), key=lambda one: int(one.stem)):
            for step, data in metrics_of(read_lines(path)[0]):
                found[step] = {**found.get(step, {}), **data}
        return dict(sorted(found.items()))


def read_lines(path: Path, start: int = 0) -> tuple[list[dict[str, Any]], int]:
    """Read the whole lines of a JSON Lines file that may still be written to.

    Args:
        path: the file.
        start: byte to start from.

    Returns:
        The decoded lines, and the byte to go on from.
    """
    lines, position = whole_lines(path, start)
    return list(decoded(lines)), position


def whole_lines(path: Path, start: int = 0) -> tuple[list[bytes], int]:
    """Read the whole lines of a file that may still be written to.

    Args:
        path: the file.
        start: byte to start from.

    Returns:
        The lines, and the byte to go on from.
    """
    with path.open("rb") as file:
        file.seek(start)
        whole, newline, _ = file.read().rpartition(b"\n")
    return whole.splitlines(), start + len(whole) + len(newline)


def metrics_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, dict[str, float]]]:
    """Step and metrics of verl's lines, without what is no finite number, as a gradient that ran off is not."""
    for line in lines:
        yield int(line["step"]), {key: value for key, value in line["data"].items() if value is not None}


def decoded(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The objects in JSON lines. One that a full disk tore is left out: a run of days is not to end by it."""
    import msgspec

    decoder = msgspec.json.Decoder(dict[str, Any])
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield decoder.decode(line)
