"""Reward function for verl, and the environment of an agent in training: frozen agents, retriever, sandbox and scores.

    compute_score(data_source, solution_str, ground_truth, extra_info=None, *, run) -> {key: number for key in KEYS}

It is asynchronous and always returns the same keys (`pyrag_rl.rewards.score`). `run` is the run's folder, whose config
names the trained agent and the frozen ones; `REWARDS` names the function of each agent. A reward that fails for a
reason outside its completion is computed again; if it still fails, an exception is raised, and verl drops the
completion instead of giving it a reward of 0.

A reward worker has one `RewardEnvironment` per run. Completions are scored in parallel, at most `concurrency` at once
(a setting of the runtime), each within its deadline; equal completions to the same row are scored once. Each score adds
a line to the run folder, and for a sample of scores, the trace is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from pyrag._io.threads import PerLoop
from pyrag.agents.protocol import Agents
from pyrag.errors import BadOutputError, ServiceError
from pyrag.runtime.engine_owner import EngineOwner
from pyrag.runtime.engines import Engines
from pyrag.runtime.question_request import request_of
from pyrag.settings import Settings, make_settings
from pyrag.trace.codec import to_json
from pyrag.trace.model import Passage, Trace
from pyrag_rl.config import TrainConfig, packaged_name, saved_config
from pyrag_rl.data.rows import TrainRow, read_rows, row_of
from pyrag_rl.folder import RunFolder
from pyrag_rl.rewards.score import OUTSIDE, Score
from pyrag_rl.rewards.services import Deadline, Memo, SharedAnswerer, SharedRetriever, Waits
from pyrag_sandbox import SandboxError

logger = logging.getLogger(__name__)
_SHUFFLED = 256  # number of recent scores from which a control run draws
_NAMED = ("id", "source", "index", "split")  # fields of the row in a score's line
_BEYOND_DEADLINE = 10.0  # seconds beyond the runtime's own deadline after which a score is given up
_PAUSES = (2.0, 10.0, 30.0)  # seconds before each further try of a score for which a service failed
_OF_SERVICES = 0.5  # share of the deadline spent waiting for services from which they are at fault
_waits: ContextVar[Waits | None] = ContextVar("waits", default=None)  # waits of the score being computed
_environments: PerLoop[dict[str, RewardEnvironment]] = PerLoop(dict)


Reward = Callable[[TrainRow, str, "RewardEnvironment"], Awaitable[Score]]
"""A function that scores a completion; `RewardEnvironment.score` turns what it raises into a named error.

Args:
    row: the question, with what its agent was shown.
    completion: the agent's reply.
    environment: frozen agents, retriever, sandbox and settings of the run.
"""

# Module and function of each reward, by `packaged_name`. Imported when first needed.
REWARDS: Mapping[str, str] = {
    "answer": "pyrag_rl.rewards.pyrag_agents:answer",
    "plan": "pyrag_rl.rewards.pyrag_agents:plan",
    "decompose": "pyrag_rl.rewards.pyrag_agents:decompose",
    "rewrite": "pyrag_rl.rewards.opera_agents:rewrite",
    "mapgrpo-plan": "pyrag_rl.rewards.opera_agents:plan",
    "mapgrpo-answer": "pyrag_rl.rewards.opera_agents:answer",
}


def reward_named(name: str) -> Reward:
    """Return the reward of `pyrag_rl.config.packaged_name(agent, algorithm)`."""
    module, function = REWARDS[name].split(":")
    reward: Reward = getattr(import_module(module), function)
    return reward


def environment_of(run: str) -> RewardEnvironment:
    """Return the environment of a run in this event loop, since connections and worker processes belong to a loop."""
    mine = _environments.get()
    if run not in mine:
        folder = RunFolder(Path(run))
        mine[run] = RewardEnvironment(saved_config(folder.config), folder)
    return mine[run]


class OutsideFailureError(Exception):
    """Error for a completion whose reward could not be computed, for a reason outside the completion."""


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    run: str,
    **_: Any,
) -> dict[str, float]:
    """Return the reward and other numbers for one completion.

    Args:
        data_source: Name of the data set. Ignored, since the row contains it.
        solution_str: The completion.
        ground_truth: Ignored, since the row contains all gold answers.
        extra_info: The row (`pyrag_rl.data.rows.TrainRow`), with verl's `global_steps`.
        run: Path of the run folder.

    Returns:
        A number for each of `pyrag_rl.rewards.score.KEYS`; `score` is the reward.

    Raises:
        OutsideFailureError: Scoring failed at every try, for a reason outside the completion. verl continues without
            the completion (its asynchronous trainers continue without the whole group).
    """
    info = extra_info or {}
    try:
        return await environment_of(run).numbers(info, solution_str)
    except OutsideFailureError:
        raise
    except Exception as error:
        logger.exception("a completion could not be scored")
        score = Score(error="crash", detail=f"{type(error).__name__}: {error}")
        with contextlib.suppress(Exception):  # the reason is raised below
            note(run, score, {"id": "", "split": "train", **info}, info.get("global_steps"))
        raise OutsideFailureError(score.detail) from error


class RewardEnvironment:
    """Other agents of a run. `engines` may be passed if they are already open (tests, data builders)."""

    def __init__(self, config: TrainConfig, folder: RunFolder | None = None, engines: Engines | None = None) -> None:
        self.config = config
        self.settings: Settings = make_settings(config.runtime)
        self._folder = folder
        self._reward: Reward = reward_named(packaged_name(config.agent, config.algorithm))
        memo = Memo()
        self._owner = EngineOwner(self.settings, engines=engines)
        engines = self._owner.engines
        self.engines = replace(
            engines,
            agents=replace(engines.agents, answerer=SharedAnswerer(engines.agents.answerer, memo)),
            retriever=SharedRetriever(engines.retriever, memo),
        )
        self._scores = Memo()
        self._slots = asyncio.Semaphore(self.settings.concurrency)
        self._pool: deque[float] = deque(maxlen=_SHUFFLED)
        self._random = random.Random(config.seed)  # noqa: S311  a control's draw, no secret
        self._count = 0
        self.pauses: Sequence[float] = _PAUSES

    async def ask(self, question: str, agents: Agents, *, own: Collection[str] = (), **settings: Any) -> Trace:
        """Answer a question with the run's retriever and sandbox. A failure is in the trace.

        If the deadline passes while the question is mostly waiting for frozen agents or the retriever, this counts as
        their failure.

        Args:
            question: The user's question.
            agents: The agents, one of them with a fixed reply.
            own: Roles of the trained agent, if it replies during the question.
            settings: Settings that replace the run's.
        """
        engines, waits = replace(self.engines, agents=agents), Waits(own)
        request = request_of(question, replace(self.settings, **settings))
        # No gate: a program that costs too much is scored by what it did before its limit.
        trace = await self._owner.answer(replace(request, gated=False), engines=engines, observer=waits)
        if (counted := _waits.get()) is not None:
            counted.add(waits)
        if trace.error and trace.error.kind == "deadline" and waits.seconds >= _OF_SERVICES * trace.usage.seconds:
            message = f"{trace.error.message} ({waits.seconds:.1f} s in frozen agents and retriever)"
            return replace(trace, error=replace(trace.error, kind=ServiceError.kind, message=message))
        return trace

    async def search(self, query: str, topk: int) -> list[Passage]:
        """Return the passages that match a query. Raises `ServiceError` if the retriever failed.

        Args:
            query: Search text.
            topk: Maximum number of passages.
        """
        with (_waits.get() or Waits()).request():
            return await self.engines.retriever.retrieve(query, topk)

    @cached_property
    def _held(self) -> frozenset[str]:
        """Questions of the evaluation set, which has none in common with the training set."""
        path = self.config.eval_data
        return frozenset(row.question for row in read_rows(Path(path))) if path else frozenset()

    def row(self, extra_info: Mapping[str, Any]) -> TrainRow:
        """Return the row in `extra_info`, with the split `eval` if it belongs to the evaluation set.

        Raises:
            DataError: `extra_info` does not contain a row.
        """
        row = row_of(extra_info)
        return replace(row, split="eval") if row.question in self._held else row

    async def numbers(self, extra_info: Mapping[str, Any], completion: str) -> dict[str, float]:
        """Return verl's numbers for a completion.

        Args:
            extra_info: The row, with verl's `global_steps`.
            completion: The agent's reply.

        Raises:
            DataError: `extra_info` does not contain a row.
            OutsideFailureError: The completion could not be scored, despite repeated tries.
        """
        row = self.row(extra_info)
        # Two sets may both count from 0; no question is in both.
        key = (row.split, row.index, row.question, completion)
        score = await self._scores.get(key, lambda: self.score(row, completion))
        if score.error in OUTSIDE:  # the service may have recovered at the next request
            self._scores.forget(key)
        return self.report(score, row, extra_info.get("global_steps"))

    async def score(self, row: TrainRow, completion: str) -> Score:
        """Score a completion, with a retry after a pause if a service failed. Errors become part of the score.

        Args:
            row: Row of the question.
            completion: The agent's reply.
        """

        async def once() -> Score:
            async with self._slots:
                return await self.guarded(self._reward(row, completion, self))

        return await self.retried(once)

    async def retried(self, once: Callable[[], Awaitable[Score]]) -> Score:
        """Return a score. As long as a service fails, compute it again after a pause. Other faults are permanent.

        Args:
            once: Function that computes the score.
        """
        score = await once()
        for tries, pause in enumerate(self.pauses, start=1):
            if score.error != "service":
                break
            await asyncio.sleep(pause)
            score = replace(await once(), retries=float(tries))
        return score

    async def guarded(self, work: Awaitable[Score], deadline: Deadline | None = None) -> Score:
        """Await a score within the deadline. An exception becomes the score's error.

        Args:
            work: Function that computes the score.
            deadline: Deadline that replaces the run's, which is some seconds beyond a question's.
        """
        began, waits = time.perf_counter(), Waits()
        limit = None if self.settings.deadline is None else self.settings.deadline + _BEYOND_DEADLINE
        counting = _waits.set(waits)
        try:
            score = await (deadline or Deadline(limit)).bound(work)
        except TimeoutError:
            theirs = waits.seconds > 0 and waits.seconds >= _OF_SERVICES * (self.settings.deadline or 0.0)
            message = f"no score in time (deadline: {self.settings.deadline} s)"
            score = Score(error="service" if theirs else "timeout", detail=message)
        except BadOutputError as error:
            score = Score(error="bad_form", detail=str(error))
        except (ServiceError, SandboxError) as error:
            score = Score(error="service", detail=str(error))
        except Exception as error:  # a bug of ours must not end a run of days; it is counted and reported
            logger.exception("a completion could not be scored")
            score = Score(error="crash", detail=f"{type(error).__name__}: {error}")
        finally:
            _waits.reset(counting)
        return replace(score, seconds=time.perf_counter() - began, waited=waits.seconds)

    def report(self, score: Score, row: TrainRow, weights: int | None) -> dict[str, float]:
        """Record a score and return verl's numbers.

        Raises `OutsideFailureError` if the completion is not the cause of a failure.

        With `shuffle_rewards`, the reward of a training row is drawn from recent rewards; its parts are unchanged.

        Args:
            score: Score of a completion.
            row: Row of its question.
            weights: Number of training steps that the policy's weights were trained for.
        """
        self.keep(score, row, weights)
        if score.error in OUTSIDE:
            raise OutsideFailureError(f"{score.error}: {score.detail}")
        if not self.config.shuffle_rewards or row.split != "train":
            return score.numbers()
        self._pool.append(score.score)
        return {**score.numbers(), "score": self._random.choice(self._pool)}

    def keep(self, score: Score, row: TrainRow, weights: int | None) -> None:
        """Record a score in the run folder, and the trace of every `trace_every`-th score.

        Args:
            score: Score of a completion.
            row: Row of its question.
            weights: Number of training steps that the policy's weights were trained for.
        """
        if self._folder is None:
            return
        self._count += 1
        note(self._folder.path, score, {name: getattr(row, name) for name in _NAMED}, weights)
        if score.trace is not None and self.config.trace_every and self._count % self.config.trace_every == 0:
            _append(self._folder.traces, to_json(score.trace))

    async def aclose(self) -> None:
        """Close the engines."""
        await self._owner.aclose()


def note(run: Path | str, score: Score, row: Mapping[str, Any], weights: int | None) -> None:
    """Log one score in the run folder, for `pyrag_rl.verl.watch` and `pyrag_rl.report`.

    Args:
        run: Path of the run folder.
        score: Score of a completion.
        row: Row of its question; the fields in `_NAMED` are logged.
        weights: Number of training steps that the policy's weights were trained for.
    """
    import msgspec

    named = {"step": weights, **{name: row.get(name) for name in _NAMED}}
    outcome = {"reason": score.error, "detail": score.detail}
    _append(RunFolder(Path(run)).scores, msgspec.json.encode({**named, **outcome, **score.numbers()}))


def _append(folder: Path, line: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{os.getpid()}.jsonl").open("ab") as file:
            file.write(line + b"\n")
    except OSError:  # such as a full disk; the score is still valid
        logger.exception("a score could not be kept")
