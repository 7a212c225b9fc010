"""The Writer and the Standalone Agent over a chat model.

The Writer writes free text after a method's prompt template, for methods that are no programs. A text that its reader
finds a fault with, and one that was cut off in thought or inside its answer, is asked for once more. Left out: what the
text means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from pyrag.agents.conversation import Conversation, usage_of
from pyrag.agents.prompts import Prompts
from pyrag.agents.protocol import MAX_TURN, MAX_TURNS, FindFault, Standalone, Written
from pyrag.agents.reply_room import asked_with_room, with_twice_the_room
from pyrag.errors import BadOutputError
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling

RETRIES = 1  # of a question of its own
_TEMPLATE = "standalone"
_FORM = re.compile(r"<question>(.*?)</question>", re.DOTALL)


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


@dataclass(frozen=True, slots=True)
class LLMFollowUp:
    """Standalone Agent: a conversation and its last question → a question of its own."""

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()

    async def standalone(self, earlier: Sequence[Message], question: str) -> Standalone:
        """Return a question of its own; the last question as it is where no reply is in form. Args: those of
        `FollowUpAgent.standalone`."""
        conversation = "\n".join(f"{one.role}: {one.content[:MAX_TURN]}" for one in earlier[-MAX_TURNS:])
        values = {"conversation": conversation, "question": question}
        system, user = self.prompts.render_method(_TEMPLATE, values)
        talk = Conversation(self.model, self.sampling, system, user, request="\n".join(values.values()))
        try:
            found = await talk.asked(_parse, lambda _, problem: self.prompts.retry(_TEMPLATE, problem), RETRIES)
        except BadOutputError as error:
            note = f"the follow-up was asked as it is: {error}"
            return Standalone(question, usage=talk.usage, raw=talk.raw, note=talk.noted(note))
        return Standalone(found, usage=talk.usage, raw=talk.raw, note=talk.note)


def _parse(text: str) -> str:
    found = _FORM.findall(text)
    question = " ".join(found[-1].split()) if found else ""
    if not question:
        raise BadOutputError("it holds no <question>…</question>")
    return question
