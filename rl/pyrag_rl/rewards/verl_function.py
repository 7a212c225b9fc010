"""verl's reward function: a completion becomes the reply of an agent of the pyrag runtime, and what comes of it a
score.

    compute_score(data_source, solution_str, ground_truth, extra_info=None, *, run) -> {key: number for key in KEYS}

It is asynchronous, never raises and always returns the same keys (`pyrag_rl.rewards.score`). `run` is the run's folder;
its config says which agent is trained and what the frozen ones are. Which function scores which agent is in `REWARDS`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyrag_rl.rewards.score import Score

if TYPE_CHECKING:
    from pyrag_rl.data.rows import TrainRow
    from pyrag_rl.rewards.environment import RewardEnvironment

logger = logging.getLogger(__name__)

# A reward: (row, completion, what is frozen) -> Score. What it raises is given a name by `RewardEnvironment.score`.
Reward = Callable[["TrainRow", str, "RewardEnvironment"], Awaitable[Score]]

# Where the rewards are, by agent and, for MAPGRPO's, algorithm. Imported when first needed.
REWARDS: Mapping[str, str] = {
    "answer": "pyrag_rl.rewards.agents:answer",
    "plan": "pyrag_rl.rewards.agents:plan",
    "decompose": "pyrag_rl.rewards.agents:decompose",
    "rewrite": "pyrag_rl.rewards.roles:rewrite",
    "mapgrpo-plan": "pyrag_rl.rewards.roles:plan",
    "mapgrpo-answer": "pyrag_rl.rewards.roles:answer",
}


def reward_named(name: str) -> Reward:
    """The reward of `pyrag_rl.config.packaged_name(agent, algorithm)`."""
    module, function = REWARDS[name].split(":")
    found: Reward = getattr(import_module(module), function)
    return found


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    run: str,
    **_: Any,
) -> dict[str, float]:
    """The numbers of a completion; `score` is the reward. Never raises: verl drops the group of a reward that does."""
    from pyrag_rl.rewards.environment import frozen_of, note

    given = extra_info or {}
    try:
        return await frozen_of(run).numbers(given, solution_str)
    except Exception as error:
        logger.exception("a completion could not be scored")
        score = Score(error="crash", detail=f"{type(error).__name__}: {error}")
        named = {"id_": str(given.get("id", "")), "split": str(given.get("split", "train"))}
        with contextlib.suppress(Exception):  # it never raises
            note(run, score, **named, weights=given.get("global_steps"))
        return score.numbers()
