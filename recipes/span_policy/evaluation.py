"""Rewards of a reader's answers, and the gain of one reader over another on the same rows, with a 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pyrag.agents.protocol import Reading
from pyrag.trace.model import Answer, Passage
from pyrag_rl.config import TrainConfig
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.rewards.pyrag_agents import graded

Read = Callable[[str, Sequence[Passage]], Reading]


@dataclass(frozen=True, slots=True)
class Scored:
    """Score of the answer to a row.

    Args:
        enough: Whether the row's passages contain the answer, so that "unknown" earns no reward.
        known: True if the answer is not "unknown".
        reward: Reward of the answer.
        em: Exact match with a reference answer. Zero if the passages do not contain the answer.
        f1: F1 with a reference answer. Zero if the passages do not contain the answer.
    """

    enough: bool
    known: bool
    reward: float
    em: float
    f1: float


def score(read: Read, rows: Sequence[TrainRow], config: TrainConfig) -> list[Scored]:
    """Return the scores of a reader's answers to rows, in the rows' order.

    Args:
        read: Function that answers a question from passages.
        rows: Rows with documents.
        config: Weights of EM and F1 in the reward.
    """
    readings = [read(row.asked, [document.passage() for document in row.documents or ()]) for row in rows]
    return [scored(Answer(item.text, item.known), row, config) for item, row in zip(readings, rows, strict=True)]


def scored(answer: Answer, row: TrainRow, config: TrainConfig) -> Scored:
    """Return the score of an answer. If the row's documents do not suffice, only "unknown" is correct.

    Args:
        answer: Answer of a reader.
        row: The question with its reference answers.
        config: Weights of EM and F1 in the reward.
    """
    if row.sufficient is False:
        reward = 0.0 if answer.known else config.f1_weight + config.em_weight
        return Scored(False, answer.known, reward, 0.0, 0.0)
    grade = graded(answer, row, config)
    return Scored(True, answer.known, grade.score, grade.em, grade.f1)


def figures(results: Sequence[Scored]) -> dict[str, float]:
    """Return the mean reward and other means of scores.

    `em`, `f1` and `known_enough` (the share of known answers) cover rows whose passages contain the answer.
    `known_short` is the share of known answers among the other rows.
    """
    enough = [each for each in results if each.enough]
    lacking = [each for each in results if not each.enough]
    return {
        "reward": _mean([each.reward for each in results]),
        "em": _mean([each.em for each in enough]),
        "f1": _mean([each.f1 for each in enough]),
        "known_enough": _mean([each.known for each in enough]),
        "known_short": _mean([each.known for each in lacking]),
        "rows": float(len(results)),
    }


def gain(before: Sequence[Scored], after: Sequence[Scored]) -> dict[str, float]:
    """Return the increase of the mean reward, and half the width of its 95 % interval.

    Args:
        before: Scores of the first reader.
        after: Scores of the second reader on the same rows, in the same order.

    Returns:
        `reward` and `half_interval`, which is NaN for fewer than two rows.
    """
    differences = [new.reward - old.reward for old, new in zip(before, after, strict=True)]
    spread = stdev(differences) if len(differences) > 1 else math.nan
    return {"reward": _mean(differences), "half_interval": 1.96 * spread / math.sqrt(max(len(differences), 1))}


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
