"""The writer over a chat model: free text from a method's prompt template, for methods that are no programs.

A text that its reader finds a fault with, and one that was cut off in thought or inside its answer, is asked for once
more. Left out: what the text means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from pyrag.agents.conversation import Conversation, usage_of
from pyrag.agents.prompts import Prompts
from pyrag.agents.protocol import FindFault, Written
from pyrag.agents.reply_room import asked_with_room, with_twice_the_room
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling


@dataclass(frozen=True, slots=True)
class LLMWriter:
    """Templates are those of the folder `methods` among the prompts. A `prefix` becomes an unfinished message of the
    assistant, which servers go on writing (vLLM, SGLang, Ollama); others reply with a message of their own."""

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()

    async def write(
        self,
        template: str,
        values: Mapping[str, str],
        stop: tuple[str, ...] = (),
        prefix: str = "",
        fault: FindFault | None = None,
    ) -> Written:
        """Return a text written after a template. Args: those of `Writer.write`."""
        system, user = self.prompts.render_method(template, values)
        if fault is not None and system and not prefix:
            talk = Conversation(self.model, replace(self.sampling, stop=stop), system, user)
            return await self._checked(talk, template, fault)
        said = (Message("system", system), Message("user", user), Message("assistant", prefix))
        messages = [message for message in said if message.content]

        async def ask(sampling: Sampling) -> Reply:
            return await self.model.complete(messages, sampling)

        replies: list[Reply] = []
        sampling = await asked_with_room(self.model, replace(self.sampling, stop=stop), ask, replies)
        await with_twice_the_room(sampling, ask, replies)
        last = replies[-1]
        usage = reduce(add, map(usage_of, replies))
        note = "; ".join(reply.note for reply in replies if reply.note)
        return Written(last.text, last.cut_off, usage=usage, raw=tuple(reply.text for reply in replies), note=note)

    async def _checked(self, talk: Conversation, template: str, fault: FindFault) -> Written:
        text = await talk.ask()
        if problem := fault(text) or talk.hanging:
            text = await talk.retry(self.prompts.retry(template, talk.blame(problem))) or text
        return Written(text, text not in talk.whole, usage=talk.usage, raw=talk.raw, note=talk.note)
