"""verl's reward function: a completion becomes an agent's reply, the runtime goes on from it, the result is scored.

    compute_score(data_source, solution_str, ground_truth, extra_info=None, *, run) -> {key: number for key in KEYS}

It is asynchronous, never raises and always returns the same keys (`pyrag_rl.rewards.score`). `run` is the run's folder;
its config names the trained agent and the frozen ones. `pyrag_rl.rewards.environment.REWARDS` names the function of
each agent.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from pyrag_rl.rewards.score import Score

logger = logging.getLogger(__name__)


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    run: str,
    **_: Any,
) -> dict[str, float]:
    """Score one completion. Never raises: verl drops the whole group of a reward that does.

    Args:
        data_source: name of the data set; ignored, as the row holds it.
        solution_str: the completion.
        ground_truth: ignored, as the row holds all gold answers.
        extra_info: the row (`pyrag_rl.data.rows.TrainRow`), with verl's `global_steps`.
        run: the run folder.

    Returns:
        A number for each of `pyrag_rl.rewards.score.KEYS`; `score` is the reward.
    """
    from pyrag_rl.rewards.environment import environment_of, note

    given = extra_info or {}
    try:
        return await environment_of(run).numbers(given, solution_str)
    except Exception as error:
        logger.exception("a completion could not be scored")
        score = Score(error="crash", detail=f"{type(error).__name__}: {error}")
        named = {"id_": str(given.get("id", "")), "split": str(given.get("split", "train"))}
        with contextlib.suppress(Exception):  # it never raises
            note(run, score, **named, weights=given.get("global_steps"))
        return score.numbers()
