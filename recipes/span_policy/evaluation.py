"""Rewards that a reader earns on rows, and its gain over another reader on the same rows, with its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pyrag.agents.protocol import Reading
from pyrag.trace.model import Answer, Passage
from pyrag_rl.config import TrainConfig
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.rewards.agents import graded

Read = Callable[[str, Sequence[Passage]], Reading]


@dataclass(frozen=True, slots=True)
class Scored:
    """One row as the engine answered it. `enough`: its passages hold the answer, so unknown earns nothing."""

    enough: bool
    known: bool
    reward: float
    em: float
    f1: float


def score(read: Read, rows: Sequence[TrainRow], config: TrainConfig) -> list[Scored]:
    """Have each row read and return what it earns, in the rows' order.

    Args:
        read: Answers a question from passages.
        rows: Rows with documents.
        config: Weights of EM and F1 in the reward.
    """
    said = [read(row.asked, [one.passage() for one in row.documents or ()]) for row in rows]
    return [scored(Answer(one.text, one.known), row, config) for one, row in zip(said, rows, strict=True)]


def scored(answer: Answer, row: TrainRow, config: TrainConfig) -> Scored:
    """Score an answer. Where the row says that its documents do not suffice, only unknown is right.

    Args:
        answer: What a reader says.
        row: The question.
        config: Weights of EM and F1 in the reward.
    """
    if row.sufficient is False:
        reward = 0.0 if answer.known else config.f1_weight + config.em_weight
        return Scored(False, answer.known, reward, 0.0, 0.0)
    found = graded(answer, row, config)
    return Scored(True, answer.known, found.score, found.em, found.f1)


def figures(results: Sequence[Scored]) -> dict[str, float]:
    """Mean reward; EM and F1 where the passages suffice; how often an answer is given there, and where they do not."""
    enough = [each for each in results if each.enough]
    short = [each for each in results if not each.enough]
    return {
        "reward": _mean([each.reward for each in results]),
        "em": _mean([each.em for each in enough]),
        "f1": _mean([each.f1 for each in enough]),
        "known_enough": _mean([each.known for each in enough]),
        "known_short": _mean([each.known for each in short]),
        "rows": float(len(results)),
    }


def gain(before: Sequence[Scored], after: Sequence[Scored]) -> dict[str, float]:
    """Return by how much the mean reward rose, and half the width of its 95 % interval.

    Args:
        before: Results of the first reader.
        after: Results of the second on the same rows, in the same order.

    Returns:
        `reward` and `half_interval`; the latter is not a number for fewer than two rows.
    """
    differences = [new.reward - old.reward for old, new in zip(before, after, strict=True)]
    spread = stdev(differences) if len(differences) > 1 else math.nan
    return {"reward": _mean(differences), "half_interval": 1.96 * spread / math.sqrt(max(len(differences), 1))}


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
