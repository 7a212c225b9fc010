"""verl's agent loop for the Plan agent with repairs: the runtime asks for a program, runs it, and asks again.

The policy is the runtime's chat model here: `PolicyChat` turns what the Plan agent asks into tokens for verl's rollout
server. So what counts as a failure, and how a model is told of it, is what it is at run time. The conversation grows
turn by turn in one sequence; only what the policy wrote is learnt from (mask 1), tracebacks are not (mask 0).

Against run time, where a repair begins a conversation of its own, the policy still sees its first program above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from pyrag.errors import BadOutputError
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag_rl.data.rows import TrainRow
from pyrag_rl.prompting import agents_over
from pyrag_rl.rewards.agents import GivenDecomposition, of_trace, program_fault
from pyrag_rl.rewards.environment import RewardEnvironment, environment_of
from pyrag_rl.rewards.score import Score
from pyrag_rl.verl.forms import held_to

_SAMPLING = Sampling()
_MIN_ROOM = 8  # tokens; a turn with less is not worth asking for


class PolicyChat:
    """A chat model over verl's rollout server; keeps the tokens of the whole conversation.

    `mask` and `log_probs` are those of everything after the prompt. After `turns` replies, or without room for another,
    it raises `BadOutputError`, like a model that has nothing else to offer. With `formed`, replies keep to the form
    that the agent asks for, where it asks for one.
    """

    name = "policy"

    def __init__(
        self,
        loop: AgentLoopBase,
        prompt: Sequence[Mapping[str, str]],
        sampling: Mapping[str, Any],
        turns: int,
        *,
        formed: bool = False,
    ) -> None:
        self.tokens: list[int] = []
        self.mask: list[int] = []
        self.log_probs: list[float] = []
        self.fields: dict[str, Any] = {}
        self.said: list[str] = []
        self._loop, self._sampling, self._turns, self._formed = loop, sampling, turns, formed
        self._talk = [dict(message) for message in prompt]
        self._request = uuid4().hex

    @property
    def room(self) -> int:
        """Tokens that the response may still take."""
        return int(self._loop.rollout_config.response_length) - len(self.mask)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        """Return the policy's next turn.

        Args:
            messages: the conversation; the last message is what the policy is told.
            sampling: the agent's request, whose form is kept if `formed`.
        """
        if not self.said:
            self.tokens = list(await self._loop.ct_build_initial_tokens(self._talk))
        else:
            await self._hear(messages[-1].content)
        text = await self._speak(sampling)
        self._talk.append({"role": "assistant", "content": text})
        self.said.append(text)
        return Reply(text)

    async def aclose(self) -> None:
        return None

    async def _hear(self, text: str) -> None:
        """Adds what the policy is told, if a reply to it is wanted and has room."""
        if len(self.said) >= self._turns:
            raise BadOutputError("the policy has no turn left")
        longer = [*self._talk, {"role": "user", "content": text}]
        merged, mask, log_probs = await self._loop.ct_merge_context_msg(
            self._talk, longer, self.tokens, self.mask, self.log_probs
        )
        if len(mask) + _MIN_ROOM > self._loop.rollout_config.response_length:
            raise BadOutputError("the policy has no room left for another turn")
        self._talk, self.tokens, self.mask, self.log_probs = longer, list(merged.token_ids), mask, log_probs

    async def _speak(self, sampling: Sampling) -> str:
        params = {**self._sampling, "max_tokens": self.room}
        out = await self._loop.server_manager.generate(
            request_id=self._request,
            prompt_ids=self.tokens,
            sampling_params=held_to(sampling, params) if self._formed else params,
        )
        first = self.fields.get("min_global_steps", out.extra_fields.get("min_global_steps"))
        self.fields = {**out.extra_fields, "min_global_steps": first}
        merged, self.mask, self.log_probs = await self._loop.ct_merge_assistant_token(
            self.tokens, out.token_ids, self.mask, self.log_probs, assistant_logprobs=out.log_probs
        )
        self.tokens = list(merged.token_ids)
        return str(self._loop.tokenizer.decode(out.token_ids, skip_special_tokens=True))


class ProgramAgentLoop(AgentLoopBase):  # type: ignore[misc,unused-ignore]
    """`run` is the run folder, whose config says how many repairs there are."""

    def __init__(self, *args: Any, run: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._run = run

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> AgentLoopOutput:
        """Roll out a program and its repairs, and score them.

        Args:
            sampling_params: verl's, for the rollout server.
            fields: the row and its prompt.
        """
        environment = environment_of(self._run)
        row = environment.row(fields["extra_info"])
        turns, formed = (
            1 + environment.config.repairs,
            environment.config.constrained and environment.config.rollout == "vllm",
        )
        policy = PolicyChat(self, fields["raw_prompt"], sampling_params, turns, formed=formed)
        score = await environment.guarded(self._answered(row, policy, environment))
        if not policy.said:  # the runtime failed before it asked: verl needs a response all the same
            await policy.complete(())
        told = environment.told(score, row, policy.fields.get("global_steps"))
        length, most = len(policy.mask), int(self.rollout_config.response_length)
        start = len(policy.tokens) - length
        return AgentLoopOutput(
            prompt_ids=policy.tokens[:start],
            response_ids=policy.tokens[start:][:most],
            response_mask=policy.mask[:most],
            response_logprobs=policy.log_probs[:most] or None,
            reward_score=told["score"],
            num_turns=2 * len(policy.said),
            metrics={},
            extra_fields={**policy.fields, "reward_extra_info": told, "turn_scores": [], "tool_rewards": []},
        )

    async def _answered(self, row: TrainRow, policy: PolicyChat, environment: RewardEnvironment) -> Score:
        planner = agents_over(policy, environment.settings.prompts).planner
        agents = replace(environment.engines.agents, planner=planner, decomposer=GivenDecomposition(row.sub_queries))
        trace = await environment.ask(row.question, agents, repairs=environment.config.repairs)
        score = of_trace(trace, row, environment.config)
        fault = program_fault(policy.said[-1]) if policy.said and score.error == "no_program" else ""
        return replace(score, error=fault or score.error)
