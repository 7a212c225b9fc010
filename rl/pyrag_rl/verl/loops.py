"""Agent loops for verl: a turn in the agent's form, a pre-scored candidate, and a program with its repairs.

The configuration determines the loop for a rollout (`pyrag_rl.verl.overrides.agent_loop`). `run` is the run folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

from pyrag.errors import BadOutputError
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag_rl.config import saved_config
from pyrag_rl.data.rows import TrainRow, row_of
from pyrag_rl.folder import RunFolder
from pyrag_rl.mapgrpo.prescored import Candidate, best_of
from pyrag_rl.prompting import agents_over
from pyrag_rl.rewards.environment import RewardEnvironment, environment_of
from pyrag_rl.rewards.pyrag_agents import GivenDecomposition, of_trace, program_fault
from pyrag_rl.rewards.score import Score
from pyrag_rl.rewards.services import Deadline
from pyrag_rl.verl.forms import form_of, has_form, held_to

SLOT = 0  # slot of a pre-scored candidate: verl's session in a group, counted from 0
_SAMPLING = Sampling()
_MIN_ROOM = 8  # minimum tokens for a further turn


class FormedAgentLoop(SingleTurnAgentLoop):  # type: ignore[misc,unused-ignore]
    """Agent loop with one turn, whose completion must match the form that the agent requests."""

    def __init__(self, *args: Any, run: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.config = saved_config(RunFolder(Path(run)).config)

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> AgentLoopOutput:
        """Generate one turn, in the agent's form if it has one.

        Args:
            sampling_params: Sampling parameters of verl for the rollout server.
            fields: The row, and its position in verl.
        """
        if has_form(self.config):
            form = await form_of(row_of(fields["extra_info"]), self.config)
            sampling_params = held_to(form, sampling_params)
        return await super().run(sampling_params, **fields)


class PrescoredAgentLoop(FormedAgentLoop):
    """High-score sample selection (OPERA, equation 11): a pre-scored candidate takes one slot of each group.

    verl starts `n` agent loops for a question. The loop of `SLOT` calls no model: it returns the candidate's tokens,
    which verl then treats like any other completion. The candidate is scored by the same reward function, so it counts
    in the mean and the deviation of its group. verl's trainer computes its log-probabilities under the current policy,
    because the candidate's author is unknown. The setting `injected` determines the response mask:

        no_gradient   all 0: the candidate changes the others' advantages, but its own tokens are not learnt
        gradient      all 1: the candidate is learnt like a completion of the policy

    The rollout's log-probabilities are dropped for the whole group, because the candidate has none. A candidate is not
    used in an evaluation, or if it is longer than a response may be; the policy then fills its slot.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = self.config
        self._learns = config.injected == "gradient"
        self._best = best_of(Path(config.prescored), config.least_score) if config.prescored else {}

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> AgentLoopOutput:
        """Return the pre-scored candidate in its slot of a training group, and otherwise a completion of the policy.

        Args:
            sampling_params: Sampling parameters of verl for the rollout server.
            fields: The row, and its position in verl.
        """
        chosen = self._chosen(fields)
        made = await self._injected(chosen, fields) if chosen else None
        if made is None:
            made = await super().run(sampling_params, **fields)
            made.response_logprobs = None
        return made

    def _chosen(self, fields: dict[str, Any]) -> Candidate | None:
        row = row_of(fields["extra_info"])
        if fields.get("session_id") != SLOT or row.split != "train":
            return None
        return self._best.get((row.source, row.id))

    async def _injected(self, candidate: Candidate, fields: dict[str, Any]) -> AgentLoopOutput | None:
        tokens_of_text = self.tokenizer(candidate.completion, add_special_tokens=False)["input_ids"]
        tokens = [*tokens_of_text, self.tokenizer.eos_token_id]
        if len(tokens) > self.response_length:
            return None
        prompt = await self.ct_build_initial_tokens(list(fields["raw_prompt"]))
        merged, mask, _ = await self.ct_merge_assistant_token(prompt, tokens, [], None)
        start = len(merged.token_ids) - len(mask)
        weights = int(fields["global_steps"]) - 1  # version of the policy that the group comes from
        return AgentLoopOutput(
            prompt_ids=list(merged.token_ids[:start]),
            response_ids=list(merged.token_ids[start:])[: self.response_length],
            response_mask=(mask if self._learns else [0] * len(mask))[: self.response_length],
            num_turns=2,
            metrics={},
            extra_fields={
                "global_steps": weights,
                "min_global_steps": weights,
                "max_global_steps": weights,
                "turn_scores": [],
                "tool_rewards": [],
            },
        )


class PolicyChat:
    """Chat model over verl's rollout server, which collects the tokens of the whole conversation.

    `mask` and `log_probs` cover everything after the prompt. After `turns` replies, or if there is no room for another
    reply, it raises `BadOutputError`. With `formed`, replies must match the form that the agent requests, if any. The
    `deadline` is paused while the policy writes.
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
        deadline: Deadline | None = None,
    ) -> None:
        self.tokens: list[int] = []
        self.mask: list[int] = []
        self.log_probs: list[float] = []
        self.fields: dict[str, Any] = {}
        self.replies: list[str] = []
        self._loop, self._sampling, self._turns, self._formed = loop, sampling, turns, formed
        self._talk = [dict(message) for message in prompt]
        self._request = uuid4().hex
        self._deadline = deadline or Deadline(None)

    @property
    def room(self) -> int:
        """Number of tokens that the response still has room for."""
        return int(self._loop.rollout_config.response_length) - len(self.mask)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        """Return the policy's next turn.

        Args:
            messages: The conversation; the last message is new to the policy.
            sampling: Sampling of the agent's request, whose form is used if `formed`.
        """
        with self._deadline.paused():
            if not self.replies:
                self.tokens = list(await self._loop.ct_build_initial_tokens(self._talk))
            else:
                await self._hear(messages[-1].content)
            text = await self._speak(sampling)
        self._talk.append({"role": "assistant", "content": text})
        self.replies.append(text)
        return Reply(text)

    async def aclose(self) -> None:
        return None

    async def _hear(self, text: str) -> None:
        """Add a message to the conversation. Raises `BadOutputError` if no turns or no room are left for a reply."""
        if len(self.replies) >= self._turns:
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


class SpokenPolicy:
    """Policy for another try of a question, which repeats the existing replies before it writes new ones."""

    name = PolicyChat.name

    def __init__(self, policy: PolicyChat) -> None:
        self._policy = policy
        self._spoken = list(policy.replies)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = _SAMPLING) -> Reply:
        """Return the policy's next turn.

        Args:
            messages: The conversation; the last message is new to the policy.
            sampling: Sampling of the agent's request.
        """
        return Reply(self._spoken.pop(0)) if self._spoken else await self._policy.complete(messages, sampling)

    async def aclose(self) -> None:
        return None


class ProgramAgentLoop(AgentLoopBase):  # type: ignore[misc,unused-ignore]
    """Agent loop of a program and its repairs: the runtime requests a program, runs it, and requests a repair.

    The policy is the runtime's chat model: `PolicyChat` turns the Plan agent's requests into tokens for verl's rollout
    server. What counts as a failure, and how the model is told about it, is therefore the same as at run time. The
    conversation grows turn by turn in a single sequence. Only the policy's own tokens are learnt (mask 1); tracebacks
    are not (mask 0). Unlike at run time, where a repair starts a new conversation, the policy still sees its first
    program.
    """

    def __init__(self, *args: Any, run: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._run = run

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> AgentLoopOutput:
        """Generate a program and its repairs, and score them.

        Args:
            sampling_params: Sampling parameters of verl for the rollout server.
            fields: The row and its prompt.

        Raises:
            OutsideFailureError: Scoring failed on every try, for a reason outside the program.
        """
        environment = environment_of(self._run)
        row = environment.row(fields["extra_info"])
        config = environment.config
        formed, deadline = config.constrained and config.rollout == "vllm", Deadline(environment.settings.deadline)
        policy = PolicyChat(
            self, fields["raw_prompt"], sampling_params, 1 + config.repairs, formed=formed, deadline=deadline
        )
        score = await environment.retried(
            lambda: environment.guarded(self._answered(row, policy, environment), deadline)
        )
        if not policy.replies:  # the runtime failed before its first request, but verl needs a response
            await policy.complete(())
        report = environment.report(score, row, policy.fields.get("global_steps"))
        length, limit = len(policy.mask), int(self.rollout_config.response_length)
        start = len(policy.tokens) - length
        return AgentLoopOutput(
            prompt_ids=policy.tokens[:start],
            response_ids=policy.tokens[start:][:limit],
            response_mask=policy.mask[:limit],
            response_logprobs=policy.log_probs[:limit] or None,
            reward_score=report["score"],
            num_turns=2 * len(policy.replies),
            metrics={},
            extra_fields={**policy.fields, "reward_extra_info": report, "turn_scores": [], "tool_rewards": []},
        )

    async def _answered(self, row: TrainRow, policy: PolicyChat, environment: RewardEnvironment) -> Score:
        planner = agents_over(SpokenPolicy(policy), environment.settings.prompts).planner
        agents = replace(environment.engines.agents, planner=planner, decomposer=GivenDecomposition(row.sub_queries))
        # `run` sets the deadline of the whole rollout; the time in which the policy writes does not count.
        trace = await environment.ask(
            row.question, agents, own=("plan", "repair"), deadline=None, repairs=environment.config.repairs
        )
        score = of_trace(trace, row, environment.config)
        fault = program_fault(policy.replies[-1]) if policy.replies and score.error == "no_program" else ""
        return replace(score, error=fault or score.error)
