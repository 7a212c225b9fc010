"""The Standalone Agent over a chat model: the last question of a conversation becomes one of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.conversation import Conversation
from pyrag.agents.prompts import Prompts
from pyrag.agents.protocol import Standalone
from pyrag.errors import BadOutputError
from pyrag.llm.protocol import ChatModel, Message, Sampling

RETRIES = 1
MAX_TURNS = 20  # earlier messages that are shown, the last of them
MAX_TURN = 4000  # characters of each
_TEMPLATE = "standalone"
_FORM = re.compile(r"<question>(.*?)</question>", re.DOTALL)


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
