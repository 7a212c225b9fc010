"""verl's reward function, and the environment of an agent in training: frozen agents, retriever, sandbox, scores.

    compute_score(data_source, solution_str, ground_truth, extra_info=None, *, run) -> {key: number for key in KEYS}

It is asynchronous, never raises and always returns the same keys (`pyrag_rl.rewards.score`). `run` is the run's folder,
whose config names the trained agent and the frozen ones; `REWARDS` names the function of each agent.

A reward worker has one `RewardEnvironment` a run. Completions are scored side by side, at most `concurrency` at once (a
setting of the runtime), each within its deadline; an equal completion to the same row, an equal call of the frozen
Answer agent and an equal search are paid for once. Every score leaves a line in the run folder, a sample of them their
trace.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from pyrag._io.threads import PerLoop
from pyrag.agents.protocol import Agents, Answerer, Reading
from pyrag.errors import BadOutputError, ServiceError
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import Retriever, search
from pyrag.runtime.engines import Engines, open_engines
from pyrag.runtime.run import answer_question
from pyrag.settings import Settings, make_settings
from pyrag.trace.codec import to_json
from pyrag.trace.model import Passage, Trace
from pyrag_rl.config import TrainConfig, packaged_name, saved_config
from pyrag_rl.data.rows import TrainRow, read_rows, row_of
from pyrag_rl.folder import RunFolder
from pyrag_rl.rewards.score import OUTSIDE, Score
from pyrag_sandbox import SandboxError

T = TypeVar("T")
logger = logging.getLogger(__name__)
_REMEMBERED = 8192  # results that a memo holds
_SHUFFLED = 256  # scores among which a control run draws
_NAMED = ("id", "source", "index", "split")  # what a score's line says of its row
_BEYOND_DEADLINE = 10.0  # seconds that a score may take after the runtime's own deadline should have ended it
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
    "answer": "pyrag_rl.rewards.agents:answer",
    "plan": "pyrag_rl.rewards.agents:plan",
    "decompose": "pyrag_rl.rewards.agents:decompose",
    "rewrite": "pyrag_rl.rewards.roles:rewrite",
    "mapgrpo-plan": "pyrag_rl.rewards.roles:plan",
    "mapgrpo-answer": "pyrag_rl.rewards.roles:answer",
}


def reward_named(name: str) -> Reward:
    """Return the reward of `pyrag_rl.config.packaged_name(agent, algorithm)`."""
    module, function = REWARDS[name].split(":")
    found: Reward = getattr(import_module(module), function)
    return found


def environment_of(run: str) -> RewardEnvironment:
    """Return the environment of a run in this event loop: connections and worker processes belong to a loop."""
    mine = _environments.get()
    if run not in mine:
        folder = RunFolder(Path(run))
        mine[run] = RewardEnvironment(saved_config(folder.config), folder)
    return mine[run]


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
    given = extra_info or {}
    try:
        return await environment_of(run).numbers(given, solution_str)
    except Exception as error:
        logger.exception("a completion could not be scored")
        score = Score(error="crash", detail=f"{type(error).__name__}: {error}")
        with contextlib.suppress(Exception):  # it never raises
            note(run, score, {"id": "", "split": "train", **given}, given.get("global_steps"))
        return score.numbers()


class Memo:
    """Results by key, those used longest ago forgotten first. A failure is not remembered."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._tasks: OrderedDict[Hashable, asyncio.Future[Any]] = OrderedDict()

    async def get(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work` for a key. A caller that stops waiting does not end the work.

        Args:
            key: equal keys share one result.
            work: called if no result is there or under way.
        """
        task = self._tasks.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._tasks[key] = asyncio.ensure_future(work())
            if len(self._tasks) > self._most:
                self._tasks.popitem(last=False)
        self._tasks.move_to_end(key)
        result: T = await asyncio.shield(task)
        return result

    def forget(self, key: Hashable) -> None:
        self._tasks.pop(key, None)


@dataclass(frozen=True, slots=True)
class _SharedAnswerer:
    inner: Answerer
    memo: Memo

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        ids = None if passages is None else tuple(passage.id for passage in passages)
        return await self.memo.get(("answer", query, ids), lambda: self.inner.answer(query, passages))


class _SharedRetriever:
    def __init__(self, inner: Retriever, memo: Memo) -> None:
        self.name = inner.name
        self._inner, self._memo = inner, memo

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        key = ("retrieve", query, topk, None if where is None else str(where))
        return await self._memo.get(key, lambda: search(self._inner, query, topk, where))

    async def aclose(self) -> None:
        await self._inner.aclose()


class RewardEnvironment:
    """The other agents of a run. `engines` may be given where they are open already (tests, data builders)."""

    def __init__(self, config: TrainConfig, folder: RunFolder | None = None, engines: Engines | None = None) -> None:
        self.config = config
        self.settings: Settings = make_settings(config.runtime)
        self._folder = folder
        self._reward: Reward = reward_named(packaged_name(config.agent, config.algorithm))
        memo = Memo()
        engines = engines or open_engines(self.settings)
        self.engines = replace(
            engines,
            agents=replace(engines.agents, answerer=_SharedAnswerer(engines.agents.answerer, memo)),
            retriever=_SharedRetriever(engines.retriever, memo),
        )
        self._scores = Memo()
        self._slots = asyncio.Semaphore(self.settings.concurrency)
        self._pool: deque[float] = deque(maxlen=_SHUFFLED)
        self._random = random.Random(config.seed)  # noqa: S311  a control's draw, no secret
        self._count = 0

    async def ask(self, question: str, agents: Agents, **settings: Any) -> Trace:
        """Answer a question with the run's retriever and sandbox. A failure is in the trace.

        Args:
            question: the user's question.
            agents: the agents, one of them with a given reply.
            settings: settings in place of the run's.
        """
        engines = replace(self.engines, agents=agents)
        return await answer_question(question, engines, replace(self.settings, **settings))

    @cached_property
    def _held(self) -> frozenset[str]:
        """The questions of the evaluation's set, which shares none with the training's."""
        path = self.config.eval_data
        return frozenset(row.question for row in read_rows(Path(path))) if path else frozenset()

    def row(self, extra_info: Mapping[str, Any]) -> TrainRow:
        """The row in `extra_info`, of the split `eval` if it is one of the evaluation's set, whatever it says itself.

        Raises `DataError` where it is no row.
        """
        row = row_of(extra_info)
        return replace(row, split="eval") if row.question in self._held else row

    async def numbers(self, extra_info: Mapping[str, Any], completion: str) -> dict[str, float]:
        """Return verl's numbers for a completion.

        Args:
            extra_info: the row, with verl's `global_steps`.
            completion: the agent's reply.

        Raises:
            DataError: `extra_info` holds no row.
        """
        row = self.row(extra_info)
        # Two sets may both count from 0; no question is in both.
        key = (row.split, row.index, row.question, completion)
        score = await self._scores.get(key, lambda: self.score(row, completion))
        if score.error in OUTSIDE:  # it may be well again when the same is asked next
            self._scores.forget(key)
        return self.told(score, row, extra_info.get("global_steps"))

    async def score(self, row: TrainRow, completion: str) -> Score:
        """Score a completion; errors are in the score.

        Args:
            row: the question.
            completion: the agent's reply.
        """
        async with self._slots:
            return await self.guarded(self._reward(row, completion, self))

    async def guarded(self, work: Awaitable[Score]) -> Score:
        """Await a score within the deadline; what it raises becomes its error."""
        began = time.perf_counter()
        limit = None if self.settings.deadline is None else self.settings.deadline + _BEYOND_DEADLINE
        try:
            async with asyncio.timeout(limit):
                score = await work
        except TimeoutError:
            score = Score(error="timeout", detail=f"no score in time (deadline: {self.settings.deadline} s)")
        except BadOutputError as error:
            score = Score(error="bad_form", detail=str(error))
        except (ServiceError, SandboxError) as error:
            score = Score(error="service", detail=str(error))
        except Exception as error:  # one fault of ours must not end a run of days: it is counted, and shown
            logger.exception("a completion could not be scored")
            score = Score(error="crash", detail=f"{type(error).__name__}: {error}")
        return replace(score, seconds=time.perf_counter() - began)

    def told(self, score: Score, row: TrainRow, weights: int | None) -> dict[str, float]:
        """Record a score and return verl's numbers.

        With `shuffle_rewards`, the reward of a training row is drawn from recent rewards; its parts stay as they are.

        Args:
            score: the score of a completion.
            row: its question.
            weights: number of steps that made the policy's weights.
        """
        self.keep(score, row, weights)
        if not self.config.shuffle_rewards or row.split != "train":
            return score.numbers()
        self._pool.append(score.score)
        return {**score.numbers(), "score": self._random.choice(self._pool)}

    def keep(self, score: Score, row: TrainRow, weights: int | None) -> None:
        """Record a score in the run folder, and its trace for one of `trace_every`.

        Args:
            score: the score of a completion.
            row: its question.
            weights: number of steps that made the policy's weights.
        """
        if self._folder is None:
            return
        self._count += 1
        note(self._folder.path, score, {name: getattr(row, name) for name in _NAMED}, weights)
        if score.trace is not None and self.config.trace_every and self._count % self.config.trace_every == 0:
            _append(self._folder.traces, to_json(score.trace))

    async def aclose(self) -> None:
        await self.engines.aclose()


def note(run: Path | str, score: Score, row: Mapping[str, Any], weights: int | None) -> None:
    """Log one score in the run folder, for `pyrag_rl.verl.watch` and `pyrag_rl.report`.

    Args:
        run: the run folder.
        score: the score of a completion.
        row: its row; of `TrainRow` the fields in `_NAMED`.
        weights: number of steps that made the policy's weights.
    """
    import msgspec

    named = {"step": weights, **{name: row.get(name) for name in _NAMED}}
    said = {"reason": score.error, "detail": score.detail}
    _append(RunFolder(Path(run)).scores, msgspec.json.encode({**named, **said, **score.numbers()}))


def _append(folder: Path, line: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{os.getpid()}.jsonl").open("ab") as file:
            file.write(line + b"\n")
    except OSError:  # a full disk, say: the score is right all the same
        logger.exception("a score could not be kept")
