"""High-score sample selection (OPERA, equation 11): a pre-scored candidate takes one slot of each group, in verl.

verl starts `n` agent loops for a question. The one of `SLOT` asks no model: it returns the candidate's tokens, and verl
goes on with them as with any other completion. It is scored by the same reward function, so the group's mean and
deviation count it; its log-probabilities are those that verl's trainer computes under the current policy, the
candidate's author being unknown. What the config calls `injected` is the response mask:

    no_gradient   all 0: the candidate moves the others' advantages, and nothing is learnt from its own tokens
    gradient      all 1: it is learnt from like a completion of the policy's own

No log-probabilities of the rollout are kept, of no member: the candidate has none. A candidate longer than a response
may be, or in an evaluation, is not used; the policy fills its slot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput

from pyrag_rl.data.rows import row_of
from pyrag_rl.mapgrpo.prescored import Candidate, best_of
from pyrag_rl.verl.formed_loop import FormedAgentLoop

SLOT = 0  # verl's session of a group, counted from 0


class PrescoredAgentLoop(FormedAgentLoop):
    """`run` is the run folder, whose config names the file of candidates."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = self.config
        self._learns = config.injected == "gradient"
        self._best = best_of(Path(config.prescored), config.least_score) if config.prescored else {}

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> AgentLoopOutput:
        """Return the pre-scored candidate in its slot of a training group, else a completion of the policy.

        Args:
            sampling_params: verl's, for the rollout server.
            fields: the row and verl's position of it.
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
        said = self.tokenizer(candidate.completion, add_special_tokens=False)["input_ids"]
        tokens = [*said, self.tokenizer.eos_token_id]
        if len(tokens) > self.response_length:
            return None
        prompt = await self.ct_build_initial_tokens(list(fields["raw_prompt"]))
        merged, mask, _ = await self.ct_merge_assistant_token(prompt, tokens, [], None)
        start = len(merged.token_ids) - len(mask)
        weights = int(fields["global_steps"]) - 1  # of the policy that the group comes from
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
