"""An environment of verifiers: one agent is the trainer's policy, the others are frozen. Needs `verifiers`.

    chosen = {"taskset": {"id": "pyrag-rl", "sets": ["mini-musique"]}, "agent": {"harness": {"role": "plan"}}}
    config = vf.resolve_env_config(chosen)
    environment = vf.load_environment(config)

A rollout is a whole question. The harness answers it in this process with pyrag's runtime, whose trained agent asks its
model at the endpoint of the rollout, where verifiers records every request as a turn; the frozen agents ask nothing
there. The reward is that of `pyrag train`: weighted F1 and exact match by the official script of the set. The whole
trace of pyrag stands in `trace.info`, so that a recorded rollout can be scored again.
Left out: sets with corpora of their own; all questions are asked of the one index or retriever of the settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import verifiers.v1 as vf
from pydantic import Field

from pyrag.errors import BadOutputError
from pyrag.evaluation.datasets.suite import default_sets, open_set
from pyrag.evaluation.scoring import asked
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.llm.spec import open_chat_model
from pyrag.llm.wrappers import UnconstrainedChat
from pyrag.runtime.engines import model_options
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace
from pyrag_rl.config import TrainConfig, load_config
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.prompting import agents_over
from pyrag_rl.rewards.agents import of_trace, reason_of
from pyrag_rl.rewards.environment import RewardEnvironment
from pyrag_rl.rewards.score import OUTSIDE, Score

__all__ = ["PyRAGEnv", "PyRAGHarness", "PyRAGTaskset"]
_ID = "pyrag-rl"
_SAMPLING = Sampling()
_INFO = "pyrag"  # the place of pyrag's trace in the rollout's
_EMBEDDED = {"llm": "embedded", "retriever": None}
_PARTS = {"answer": "answerer", "plan": "planner", "decompose": "decomposer"}


class RewardWeights(vf.TaskConfig):
    """Weights of the reward: the score is `f1_weight` · F1 + `em_weight` · EM."""

    f1_weight: float = 0.7
    em_weight: float = 0.3


class QuestionData(vf.TaskData):
    """A question with its gold spellings. `source` is its set, which selects the scoring script."""

    answers: list[str]
    source: str


class QuestionTask(vf.Task[QuestionData, vf.State, RewardWeights]):
    """A question to answer."""

    @property
    def key(self) -> str:
        return f"{self.data.source}:{self.data.id}"

    @vf.reward
    async def answer_score(self, trace: Any) -> float:
        """The reward of `pyrag train`, from 0 to 1."""
        return self._score(trace).score

    @vf.metric
    async def answer_parts(self, trace: Any) -> dict[str, float]:
        """The parts of the reward, and the model calls of all agents."""
        score = self._score(trace)
        return {"em": score.em, "f1": score.f1, "calls": score.calls}

    def _score(self, trace: Any) -> Score:
        if _INFO not in trace.info:  # the rollout was stopped before it had an answer
            return Score()
        answered = from_json(json.dumps(trace.info[_INFO]))
        if getattr(trace.agent.config.harness, "role", None) in answered.fallbacks:
            return Score(error="bad_form")
        data, weights = self.data, self.config
        row = TrainRow(
            index=0, id=data.id, agent="answer", source=data.source, question=data.prompt,
            answers=tuple(data.answers), messages=(),
        )  # fmt: skip
        config = TrainConfig(agent="answer", f1_weight=weights.f1_weight, em_weight=weights.em_weight)
        return of_trace(answered, row, config)


class QuestionSets(vf.TasksetConfig):
    """Names of question sets.

    Attributes:
        data: folder of sets; without one, the sets that are bundled.
        sets: names of sets; all of the folder's if empty.
        split: "train" for the training questions of a folder.
        limit: questions of each set, a sample.
        seed: of the sample.
    """

    data: Path | None = None
    sets: list[str] = Field(default_factory=list)
    split: Literal["", "train"] = ""
    limit: int | None = None
    seed: int = 0
    task: RewardWeights = RewardWeights()


class PyRAGTaskset(vf.Taskset[QuestionTask, QuestionSets]):
    """The answerable questions of sets."""

    def load(self) -> Iterator[QuestionTask]:
        config = self.config
        for name in config.sets or default_sets(config.data):
            chosen = open_set(name, config.data, split=config.split, limit=config.limit, seed=config.seed)
            for one in chosen.questions:
                if one.answers:
                    data = QuestionData(id=one.id, prompt=asked(one), answers=list(one.answers), source=name)
                    yield QuestionTask(data, config.task)


class RoleConfig(vf.HarnessConfig):
    """The trained agent, and the runtime around it.

    Attributes:
        role: the agent that the trainer's model plays.
        settings: settings of pyrag, for the frozen agents, retriever and limits, over those that `pyrag train` has for
            the role. The frozen agents are embedded unless `llm`, `plan_llm`, … name others.
        repairs: turns that the trained Plan agent has after its first program; by default that program alone counts.
    """

    role: Literal["answer", "plan", "decompose"] = "answer"
    settings: dict[str, Any] = Field(default_factory=dict)
    repairs: int = 0


class PyRAGHarness(vf.Harness[RoleConfig]):
    """Answers a question in this process, one agent played by the model of the rollout."""

    EXECUTES_CODE = False  # programs run in pyrag's own sandbox
    NEEDS_CONTAINER = False

    def __init__(self, config: RoleConfig) -> None:
        super().__init__(config)
        runtime = {**_EMBEDDED, **config.settings}
        self._config = load_config(config.role, runtime=runtime, repairs=config.repairs)
        self._opened: RewardEnvironment | None = None

    @property
    def environment(self) -> RewardEnvironment:
        """The frozen agents, retriever and sandbox, opened by the first rollout."""
        if self._opened is None:
            self._opened = RewardEnvironment(self._config)
        return self._opened

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: QuestionData,
    ) -> Any:
        """Answer the question of a rollout and keep pyrag's trace in the rollout's.

        Args:
            ctx: names the model.
            trace: the rollout, where verifiers records the model's turns.
            runtime: a box that stays empty.
            endpoint: base URL of the model, which belongs to the rollout.
            secret: its key.
            mcp_urls: tool servers, of which a question has none.
            data: the question.

        Raises:
            vf.HarnessError: a frozen agent, the retriever or the sandbox cannot be used, which says nothing about the
                trained agent.
        """
        spec, key = f"openai:{ctx.model}@{endpoint}", {"PYRAG_API_KEY": secret}
        settings = self.environment.settings
        model = open_chat_model(spec, model_options(settings), environ=key)
        model = model if settings.structured else UnconstrainedChat(model)
        try:
            answered = await self._ask(data.prompt_text, model)
        finally:
            await model.aclose()
        trace.info[_INFO] = json.loads(to_json(answered))
        if reason_of(answered) in OUTSIDE and answered.error is not None:
            raise vf.HarnessError(answered.error.message)
        return vf.ProgramResult(0, answered.answer.text, "")

    async def _ask(self, question: str, model: ChatModel) -> Trace:
        role, settings = self.config.role, self.environment.settings
        policy = model if role == "answer" else LimitedTurns(model, 1 + self.config.repairs)
        trained = getattr(agents_over(policy, settings.prompts), _PARTS[role])
        agents = replace(self.environment.engines.agents, **{_PARTS[role]: trained})
        repairs = self.config.repairs if role == "plan" else settings.repairs
        return await self.environment.ask(question, agents, repairs=repairs, stream=False)  # a trainer cannot stream

    async def aclose(self) -> None:
        """Close the frozen agents, retriever and sandbox; the next rollout opens them again."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


class QuestionEnvConfig(vf.SingleAgentEnvConfig):
    """One agent, in a box of this machine, as nothing runs in it."""

    agent: vf.AgentConfig = vf.AgentConfig(harness=RoleConfig(id=_ID), runtime=vf.SubprocessConfig())


class PyRAGEnv(vf.SingleAgentEnv, vf.Env[QuestionEnvConfig]):
    """One question a rollout."""

    async def stop(self) -> None:
        """Close what the harness opened."""
        for harness in self._harnesses.values():
            if isinstance(harness, PyRAGHarness):
                await harness.aclose()


class LimitedTurns:
    """A chat model that replies so many times and then raises `BadOutputError`, as if it had nothing else to offer."""

    def __init__(self, model: ChatModel, turns: int) -> None:
        self.name = model.name
        self._model, self._turns = model, turns

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        """Return the model's reply if a turn is left. Args: those of `ChatModel.complete`."""
        if self._turns < 1:
            raise BadOutputError("the policy has no turn left")
        self._turns -= 1
        return await self._model.complete(messages, sampling)

    async def aclose(self) -> None:
        await self._model.aclose()
