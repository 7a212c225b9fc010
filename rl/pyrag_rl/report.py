"""Report of a run, `RUN/report.html`: rewards and verl's metrics over time, with sample completions and their traces.

It can be read during the run or after it. Scores are summed line by line, so that long runs fit into memory. Steps are
verl's, counted from 1. A score records the number of steps that its completion's weights were trained for. TensorBoard
and Weights & Biases show verl's other metrics.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

from pyrag._io.files import write_atomic
from pyrag.errors import DataError
from pyrag.evaluation.intervals import difference
from pyrag.evaluation.reports import svg
from pyrag.evaluation.reports.writer import Table, document, plots_html, section, table_html, with_legend
from pyrag_rl.config import TrainConfig, saved_config
from pyrag_rl.folder import RunFolder, decoded, read_lines
from pyrag_rl.rewards.score import KEYS, OUTSIDE

PARTS = tuple(key for key in KEYS if key not in ("score", "calls", "seconds", "waited", "retries", "error", "infra"))
_TAUGHT = "share of groups that teach"  # groups whose completions differ in reward
# Metrics of the embedded reader's training, which has no scored completions.
_OF_DRAWS = {
    "critic/score/mean": "mean reward",
    "greedy/score/mean": "mean reward of the likeliest spans",
    "groups/taught": _TAUGHT,
    "draws/unknown": "share of draws that are unknown",
}
_METRICS = {
    "actor/kl_loss": "KL to the start",
    "response_length/mean": "tokens of a completion",
    "actor/entropy": "entropy",
    "actor/grad_norm": "gradient norm",
    "train/loss": "loss",  # loss of supervised fine-tuning
    "timing_s/step": "seconds a step",
    "training/rollout_probs_diff_mean": "difference of probabilities between rollout and trainer",
}
# Metrics of trainers whose rollouts continue during updates.
_STALENESS = {
    "training/off_policy/trajectory_staleness/mean": "staleness: updates since a completion's weights, mean",
    "training/off_policy/trajectory_staleness_worst/max": "staleness: updates since a completion's weights, maximum",
    "training/off_policy/evicted_samples": "groups dropped as too stale",
    "training/rollout_failure/evicted_samples": "groups replaced because a reward failed",
}
_SHOWN = 4  # number of completions shown of the last step, best and worst


@dataclass(slots=True)
class StepScores:
    """Sums over the scored completions of a step, with counts of reasons, and the rewards of each set by row.

    `outside` counts completions whose reward failed for an external reason: they count in `reasons`, but not in any
    mean.
    """

    count: int = 0
    outside: int = 0
    retried: int = 0
    waited: list[float] = field(default_factory=list)  # seconds that each completion waited for services
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    reasons: Counter[str] = field(default_factory=Counter)
    rows: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, line: Mapping[str, Any]) -> None:
        self.reasons[line["reason"]] += 1
        self.retried += bool(line.get("retries"))
        self.waited.append(line.get("waited", 0.0))
        if line["reason"] in OUTSIDE:
            self.outside += 1
            return
        self.count += 1
        for key in ("score", *PARTS):
            self.sums[key] += line.get(key, 0.0)
        if line.get("index") is not None:  # lines of older runs have no index
            self.rows[line["source"], line["index"]].append(line["score"])

    def mean(self, key: str) -> float:
        return self.sums[key] / self.count if self.count else 0.0

    @property
    def total(self) -> int:
        return self.count + self.outside


@dataclass(frozen=True, slots=True)
class Learning:
    """Course of a run by step: scores of training (`train`) and of the evaluation set (`held`), and verl's metrics.

    `evaluated` has figures of the embedded reader before and after.
    """

    folder: RunFolder
    config: TrainConfig
    metrics: dict[int, dict[str, float]]
    train: dict[int, StepScores]
    held: dict[int, StepScores]
    evaluated: dict[str, dict[str, float]]


def read_learning(run: Path) -> Learning:
    """Return the course of a run. Raises `DataError` if the folder has no run, or one without a finished step."""
    folder = RunFolder(run)
    if not folder.config.is_file():
        raise DataError(f"{run} is not a run folder: pass the --out of pyrag train")
    train: dict[int, StepScores] = defaultdict(StepScores)
    held: dict[int, StepScores] = defaultdict(StepScores)
    for line in _scores(folder):
        if line["split"] == "train":
            train[(line["step"] or 0) + 1].add(line)
        else:
            held[line["step"] or 0].add(line)
    metrics = folder.read_metrics()
    if not metrics and not train:
        raise DataError(f"{run} has no finished step yet: look again when pyrag train has told of one")
    return Learning(
        folder,
        saved_config(folder.config),
        metrics,
        dict(sorted(train.items())),
        dict(sorted(held.items())),
        json.loads(folder.evaluation.read_bytes()) if folder.evaluation.is_file() else {},
    )


def _scores(folder: RunFolder) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.scores.glob("*.jsonl")):
        with path.open("rb") as file:
            yield from decoded(line for line in file if line.endswith(b"\n"))  # an incomplete line is being written


def write_report(run: Path) -> Path:
    """Write the report, and return its path. Raises `DataError` if the run cannot be read."""
    learning = read_learning(run)
    path = learning.folder.path / "report.html"
    write_atomic(path, page(learning).encode())
    return path


def page(learning: Learning) -> str:
    config = learning.config
    head = f"{config.agent} agent, {config.algorithm}, {config.model}, {len(learning.metrics)} steps"
    parts = [f"<p>{escape(head)}</p>", table_html(summary(learning))]
    if sum(bool(step.rows) for step in learning.held.values()) > 1:
        parts.append(section("Held-out questions", "", table_html(held_out(learning))))
    if learning.train:
        parts += [
            section("Reward", "", _rewards(learning)),
            section("Why completions scored nothing, or have no score", "", _reasons(learning)),
        ]
    parts.append(section("Training", "", plots_html(list(_metric_plots(learning)))))
    if learning.train:
        parts += [section("Completions of the last step", "", _rollouts(learning)), _traces(learning)]
    return document(f"Training: {learning.folder.path.resolve().name}", "\n".join(parts))


def summary(learning: Learning) -> Table:
    """Return the means of the first and of the last tenth of the steps, and of the evaluations before and after."""
    rows = []
    for name, steps in (("training", learning.train), ("held out", learning.held)):
        if not steps:
            continue
        some = max(1, len(steps) // 10)
        ends = list(steps.values())[:some], list(steps.values())[-some:]
        for key in ("score", *_present(steps)):
            first, last = (sum(step.sums[key] for step in end) / (sum(step.count for step in end) or 1) for end in ends)
            rows.append(_compared(name, key, first, last))
    if taught := [
        fmean(min(rewards) < max(rewards) for rewards in step.rows.values())
        for step in learning.train.values()
        if step.rows
    ]:
        some = max(1, len(taught) // 10)
        rows.append(_compared("training", _TAUGHT, fmean(taught[:some]), fmean(taught[-some:])))
    if learning.train:
        rows += _of_services(learning)
    else:
        rows += _of_draws(learning)
    return Table(("completions", "mean of", "at first", "in the end", "change"), rows, left=2)


def _of_services(learning: Learning) -> Iterator[tuple[str, ...]]:
    """Yield rows about external failures and waits, and about staleness if rollouts continued during updates."""
    steps = list(learning.train.values())
    some = max(1, len(steps) // 10)
    ends = steps[:some], steps[-some:]
    for name, part in (
        ("share of rewards that failed outside", lambda step: step.outside),
        ("share of rewards that were tried again", lambda step: step.retried),
        ("seconds waited for frozen agents and retriever", lambda step: sum(step.waited)),
    ):
        if any(map(part, steps)):
            first, last = (sum(map(part, end)) / sum(step.total for step in end) for end in ends)
            yield _compared("training", name, first, last)
    for key, name in _STALENESS.items():
        values = [data[key] for data in learning.metrics.values() if key in data]
        if any(values):
            yield _compared("training", name, fmean(values[:some]), fmean(values[-some:]))


def held_out(learning: Learning) -> Table:
    """Return the mean reward of the evaluation set before the run and at its last evaluation.

    Rows are compared in pairs, and the change has an interval over questions of the same kind.
    """
    before, *_, after = (step.rows for step in learning.held.values() if step.rows)
    shared = sorted(before.keys() & after.keys())
    sets = {name: [key for key in shared if key[0] == name] for name in sorted({name for name, _ in shared})}
    groups = {**sets, "all": shared} if len(sets) > 1 else sets
    rows = []
    for name, keys in groups.items():
        first, last = ([fmean(step[key]) for key in keys] for step in (before, after))
        change = difference(last, first)
        bounds = f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"
        rows.append((name, f"{len(keys)}", f"{fmean(first):.3f}", f"{fmean(last):.3f}", bounds, f"{change.p:.3f}"))
    return Table(("set", "rows", "at first", "in the end", "change [95 %]", "p"), rows, left=1)


def _compared(of: str, key: str, first: float, last: float) -> tuple[str, ...]:
    return of, key, f"{first:.3f}", f"{last:.3f}", f"{last - first:+.3f}"


def _of_draws(learning: Learning) -> Iterator[tuple[str, ...]]:
    """Yield rows about the embedded reader, from its metrics and its evaluation."""
    for key, name in _OF_DRAWS.items():
        if values := [data[key] for data in learning.metrics.values() if key in data]:
            some = max(1, len(values) // 10)
            yield _compared("training", name, fmean(values[:some]), fmean(values[-some:]))
    before, after = (learning.evaluated.get(when, {}) for when in ("before", "after"))
    for key in (name for name in before if name in after and name != "rows"):
        yield _compared("held out", key, before[key], after[key])


def _present(steps: Mapping[int, StepScores]) -> list[str]:
    """Return the parts of the reward that occur in at least one completion."""
    return [key for key in PARTS if any(step.sums[key] for step in steps.values())]


def _rewards(learning: Learning) -> str:
    reward = {"training": _line(learning.train, "score")}
    if learning.held:
        reward["held out"] = _line(learning.held, "score")
    parts = {key: _line(learning.train, key) for key in _present(learning.train)}
    plots = [_curves("Mean reward", reward), _curves("Its parts", parts)] if parts else [_curves("Mean reward", reward)]
    return plots_html(plots)


def _line(steps: Mapping[int, StepScores], key: str) -> list[tuple[float, float]]:
    return [(float(step), scores.mean(key)) for step, scores in steps.items()]


def _curves(title: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    return with_legend(svg.curves(title, lines, "step", "mean", highest=None), list(lines))


def _reasons(learning: Learning) -> str:
    names = Counter(name for step in learning.train.values() for name in step.reasons.elements() if name)
    if not names:
        return "<p>Every completion could be scored.</p>"
    total = sum(step.total for step in learning.train.values())
    lines = {
        name: [(float(step), 100 * scores.reasons[name] / scores.total) for step, scores in learning.train.items()]
        for name, _ in names.most_common(8)
    }
    rows = [(name, str(count), f"{100 * count / total:.1f}") for name, count in names.most_common()]
    plot = svg.curves("Share of completions, %", lines, "step", "%")
    table = table_html(Table(("reason", "completions", "%"), rows))
    outside = sum(step.outside for step in learning.train.values())
    sentence = (
        f"<p>{outside} of {total} rewards failed for a reason outside the completion "
        f"({100 * outside / total:.1f} %): these completions were left out of the training and of all means.</p>"
        if outside
        else ""
    )
    return sentence + plots_html([with_legend(plot, list(lines)), table])


def _metric_plots(learning: Learning) -> Iterator[str]:
    for key, name in ((_METRICS | _STALENESS) if learning.train else _OF_DRAWS | _METRICS).items():
        points = [(float(step), data[key]) for step, data in learning.metrics.items() if key in data]
        if points and (key not in _STALENESS or any(value for _, value in points)):
            yield svg.curves(name, {name: points}, "step", "", highest=None)


def _rollouts(learning: Learning) -> str:
    """Return the best and the worst completions of the last step that verl dumped, as HTML."""
    files = sorted(learning.folder.rollouts.glob("*.jsonl"), key=lambda file: int(file.stem))
    if not files:
        return "<p>None were kept (the setting dump_rollouts).</p>"
    lines = sorted(read_lines(files[-1])[0], key=lambda completion: -completion["score"])
    chosen = lines if len(lines) <= _SHOWN else [*lines[: _SHOWN // 2], *lines[-_SHOWN // 2 :]]
    shown = (
        f"<h3>reward {completion['score']:.3f}, gold {escape(str(completion['gts']))}</h3>"
        f"<details><summary>prompt</summary><pre>{escape(completion['input'])}</pre></details>"
        f"<pre>{escape(completion['output'])}</pre>"
        for completion in chosen
    )
    return f"<p>Step {files[-1].stem}, from {escape(str(files[-1]))}.</p>{''.join(shown)}"


def _traces(learning: Learning) -> str:
    files = sorted(learning.folder.traces.glob("*.jsonl"))
    if not files:
        return ""
    commands = "".join(f"<li><code>pyrag trace show {escape(str(file))}</code></li>" for file in files)
    return section("Traces behind the rewards", "", f"<ul>{commands}</ul>")
