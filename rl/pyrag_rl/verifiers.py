"""Environment for the package verifiers: one agent is the trainer's policy, the others are frozen. Needs `verifiers`.

    chosen = {"taskset": {"id": "pyrag-rl", "sets": ["mini-musique"]}, "agent": {"harness": {"role": "plan"}}}
    config = vf.resolve_env_config(chosen)
    environment = vf.load_environment(config)

A rollout is a whole question. The harness answers it in this process with pyrag's runtime. The trained agent sends its
requests to the endpoint of the rollout, where verifiers records each as a turn; the frozen agents do not use it. The
reward is the same as in `pyrag train`: weighted F1 and exact match, by the official script of the set. pyrag's complete
trace is in `trace.info`, so that a recorded rollout can be scored again. All questions are answered from the index or
retriever of the settings; sets with their own corpora are not supported.
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
from pyrag.runtime.role_agents import model_options
from pyrag.trace.codec import from_json, to_json
from pyrag.trace.model import Trace
from pyrag_rl.config import TrainConfig, load_config
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.prompting import agents_over
from pyrag_rl.rewards.environment import RewardEnvironment
from pyrag_rl.rewards.pyrag_agents import of_trace, reason_of
from pyrag_rl.rewards.score import OUTSIDE, Score

__all__ = ["PyRAGEnv", "PyRAGHarness", "PyRAGTaskset"]
_ID = "pyrag-rl"
_SAMPLING = Sampling()
_INFO = "pyrag"  # key of pyrag's trace in the rollout's trace
_EMBEDDED = {"llm": "embedded", "retriever": None}
_PARTS = {"answer": "answerer", "plan": "planner", "decompose": "decomposer"}


class RewardWeights(vf.TaskConfig):
    """Weights of the reward, which is `f1_weight` · F1 + `em_weight` · EM."""

    f1_weight: float = 0.7
    em_weight: float = 0.3


class QuestionData(vf.TaskData):
    """Question with its gold spellings. `source` is its set, which determines the scoring script."""

    answers: list[str]
    source: str


class QuestionTask(vf.Task[QuestionData, vf.State, RewardWeights]):
    """Question to answer."""

    @property
    def key(self) -> str:
        return f"{self.data.source}:{self.data.id}"

    @vf.reward
    async def answer_score(self, trace: Any) -> float:
        """Return the reward of `pyrag train`, from 0 to 1."""
        return self._score(trace).score

    @vf.metric
    async def answer_parts(self, trace: Any) -> dict[str, float]:
        """Return the parts of the reward, and the number of model calls of all agents."""
        score = self._score(trace)
        return {"em": score.em, "f1": score.f1, "calls": score.calls}

    def _score(self, trace: Any) -> Score:
        if _INFO not in trace.info:  # the rollout was stopped before there was an answer
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
    """Choice of questions.

    Attributes:
        data: Folder of question sets; None for the bundled sets.
        sets: Names of sets; empty for all sets in the folder.
        split: Either "train", for the training questions of a folder, or empty.
        limit: Maximum number of questions to sample per set.
        seed: Seed of the sample.
    """

    data: Path | None = None
    sets: list[str] = Field(default_factory=list)
    split: Literal["", "train"] = ""
    limit: int | None = None
    seed: int = 0
    task: RewardWeights = RewardWeights()


class PyRAGTaskset(vf.Taskset[QuestionTask, QuestionSets]):
    """The answerable questions of question sets."""

    def load(self) -> Iterator[QuestionTask]:
        config = self.config
        for name in config.sets or default_sets(config.data):
            chosen = open_set(name, config.data, split=config.split, limit=config.limit, seed=config.seed)
            for question in chosen.questions:
                if question.answers:
                    data = QuestionData(
                        id=question.id, prompt=asked(question), answers=list(question.answers), source=name
                    )
                    yield QuestionTask(data, config.task)


class RoleConfig(vf.HarnessConfig):
    """Trained agent, and the runtime around it.

    Attributes:
        role: Agent that the trainer's model plays.
        settings: Settings of pyrag for the frozen agents, retriever and limits, in addition to `pyrag train`'s own
            settings for the role. The frozen agents are embedded unless `llm`, `plan_llm`, … name others.
        repairs: Number of repair turns of a trained Plan agent; by default, only its first program counts.
    """

    role: Literal["answer", "plan", "decompose"] = "answer"
    settings: dict[str, Any] = Field(default_factory=dict)
    repairs: int = 0


class PyRAGHarness(vf.Harness[RoleConfig]):
    """Harness that answers a question in this process, with one agent played by the rollout's model."""

    EXECUTES_CODE = False  # programs run in pyrag's own sandbox
    NEEDS_CONTAINER = False

    def __init__(self, config: RoleConfig) -> None:
        super().__init__(config)
        runtime = {**_EMBEDDED, **config.settings}
        self._config = load_config(config.role, runtime=runtime, repairs=config.repairs)
        self._opened: RewardEnvironment | None = None

    @property
    def environment(self) -> RewardEnvironment:
        """Frozen agents, retriever and sandbox, opened by the first rollout."""
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
        """Answer the question of a rollout, and store pyrag's trace in the rollout's.

        Args:
            ctx: Context that names the model.
            trace: Trace of the rollout, in which verifiers records the model's turns.
            runtime: Box of the rollout, which stays empty.
            endpoint: Base URL of the rollout's model.
            secret: API key of the endpoint.
            mcp_urls: Tool servers. Questions have none.
            data: The question.

        Raises:
            vf.HarnessError: A frozen agent, the retriever or the sandbox cannot be used, for which the trained agent is
                not responsible.
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
        """Close the frozen agents, retriever and sandbox. The next rollout opens them again."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


class QuestionEnvConfig(vf.SingleAgentEnvConfig):
    """Configuration of one agent, in a box on this machine, because nothing runs in the box."""

    agent: vf.AgentConfig = vf.AgentConfig(harness=RoleConfig(id=_ID), runtime=vf.SubprocessConfig())


class PyRAGEnv(vf.SingleAgentEnv, vf.Env[QuestionEnvConfig]):
    """Environment with one question per rollout."""

    async def stop(self) -> None:
        """Close everything that the harness opened."""
        for harness in self._harnesses.values():
            if isinstance(harness, PyRAGHarness):
                await harness.aclose()


class LimitedTurns:
    """Chat model with a limited number of replies; further requests raise `BadOutputError`."""

    def __init__(self, model: ChatModel, turns: int) -> None:
        self.name = model.name
        self._model, self._turns = model, turns

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        """Return the model's reply, if a turn remains.

        Args:
            messages: The conversation.
            sampling: Sampling parameters.
        """
        if self._turns < 1:
            raise BadOutputError("the policy has no turn left")
        self._turns -= 1
        return await self._model.complete(messages, sampling)

    async def aclose(self) -> None:
        await self._model.aclose()
