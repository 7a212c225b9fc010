"""Progress of a run: one line per step from verl's metrics and our scores, and the decision to give up.

`pyrag_rl.report` reports on a whole run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyrag_rl.config import TrainConfig
from pyrag_rl.folder import RunFolder, metrics_of, read_lines, whole_lines
from pyrag_rl.rewards.score import OUTSIDE

# Message of Ray in verl's output.
_OUT_OF_MEMORY = re.compile(rb"\b([1-9]\d*) Workers \([^)]*\) killed due to memory pressure")
_MAX_OUTSIDE = 0.05  # share of a step's rewards that may fail for external reasons before the run is ended


class Tail:
    """Reader of the complete lines that are added to the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = {path: path.stat().st_size for path in folder.glob("*.jsonl")}

    def new(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for path in sorted(self._folder.glob("*.jsonl")):
            start = self._read.get(path, 0)
            lines, self._read[path] = read_lines(path, start)
            entries += lines
        return entries


class Watch:
    """Watch that reports a run's progress to `console`, excluding earlier sessions."""

    def __init__(self, folder: RunFolder, config: TrainConfig, steps: int, console: Callable[[str], None]) -> None:
        self._config, self._steps, self._console = config, steps, console
        self._metrics, self._scores = Tail(folder.metrics), Tail(folder.scores)
        self._log, self._log_read = folder.log, folder.log.stat().st_size if folder.log.is_file() else 0
        self._reasons: dict[int, Counter[str]] = defaultdict(Counter)
        self._details: dict[str, str] = {}
        self._recent: Counter[str] = Counter()

    def look(self) -> str:
        """Report news. Return the reason why the run should end; empty if it should not."""
        for score in self._scores.new():
            self._recent[score["reason"]] += 1
            if score["detail"]:
                self._details[score["reason"]] = score["detail"]
        fault = self._fault() or self._out_of_memory()
        for step, data in metrics_of(self._metrics.new()):
            self._console(self._line_of(step, data))
            self._recent.clear()
        return fault

    def _fault(self) -> str:
        outside = sum(self._recent[reason] for reason in OUTSIDE)
        # An evaluation scores more completions at once than a step.
        wanted = max(self._config.batch_size * self._config.group_size, self._recent.total())
        if not outside or outside < _MAX_OUTSIDE * wanted:
            return ""
        reason = max(OUTSIDE, key=lambda kind: self._recent[kind])
        return (
            f"{outside} of {self._recent.total()} rewards could not be computed, on any try ({reason}: "
            f"{self._details.get(reason, 'no detail')}): fix this, then run the same command to continue"
        )

    def _out_of_memory(self) -> str:
        """Return a fault if Ray has killed workers for lack of memory, because verl might then wait forever."""
        if not self._log.is_file():
            return ""
        lines, self._log_read = whole_lines(self._log, self._log_read)
        matches = [match for line in lines if (match := _OUT_OF_MEMORY.search(line))]
        if not matches:
            return ""
        return (
            f"the memory is full, and Ray ended {int(matches[-1][1])} of the run's processes: pass a smaller "
            "micro_batch_size or gpu_memory (--set micro_batch_size=…), then the run continues from its last checkpoint"
        )

    def _line_of(self, step: int, data: dict[str, float]) -> str:
        parts = [f"step {step}/{self._steps}"]
        for name, key, form in _SHOWN:
            if key in data:
                parts.append(f"{name} {data[key]:{form}}")
        parts += [f"{key.split('/')[-3]} {value:.3f}" for key, value in data.items() if _is_eval(key)]
        errors = [f"{reason} {count}" for reason, count in self._recent.most_common() if reason]
        return "  ".join(parts) + (f"  ({', '.join(errors)})" if errors else "")


_SHOWN = (
    ("reward", "critic/score/mean", ".3f"),
    ("loss", "train/loss", ".4f"),  # loss of supervised fine-tuning
    ("kl", "actor/kl_loss", ".4f"),
    ("tokens", "response_length/mean", ".0f"),
    ("seconds", "timing_s/step", ".1f"),
)


def _is_eval(key: str) -> bool:
    """Return True for the reward on held-out questions, such as `val-core/SOURCE/score/mean@1`."""
    return key.startswith("val-core/")
