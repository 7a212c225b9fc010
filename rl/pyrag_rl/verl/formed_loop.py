"""verl's agent loop for completions of one turn, held to the form that the agent asks its server for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

from pyrag_rl.config import saved_config
from pyrag_rl.data.rows import row_of
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl.forms import form_of, has_form, held_to


class FormedAgentLoop(SingleTurnAgentLoop):  # type: ignore[misc,unused-ignore]
    """`run` is the run folder, whose config says which agent is trained."""

    def __init__(self, *args: Any, run: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.config = saved_config(RunFolder(Path(run)).config)

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> AgentLoopOutput:
        """Roll out one turn, held to the agent's form where it has one.

        Args:
            sampling_params: verl's, for the rollout server.
            fields: the row and verl's position of it.
        """
        if has_form(self.config):
            form = await form_of(row_of(fields["extra_info"]), self.config)
            sampling_params = held_to(form, sampling_params)
        return await super().run(sampling_params, **fields)
