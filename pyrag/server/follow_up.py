"""The Standalone Agent: the last question of a conversation becomes one that can be understood alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.conversation import Conversation
from pyrag.agents.prompts import load_prompts
from pyrag.errors import BadOutputError
from pyrag.llm.protocol import ChatModel, Message, Sampling
from pyrag.llm.spec import open_chat_model
from pyrag.runtime.engines import LOCAL_ENGINES, REPLAY, about_embedded, model_options
from pyrag.settings import Settings
from pyrag.trace.model import Usage

RETRIES = 1
MAX_TURNS = 20  # earlier messages that are shown, the last of them
MAX_TURN = 4000  # characters of each
_TEMPLATE = "standalone"
_FORM = re.compile(r"<question>(.*?)</question>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Standalone:
    """A question that can be understood alone, what it cost, and how it came about, for the trace."""

    question: str
    note: str
    usage: Usage = Usage()


class FollowUpAgent:
    """Rewrites follow-ups with the language model of the settings; without one, follow-ups stay as they are.

    Left out: engines that load a model into this process, which would hold it twice.
    """

    def __init__(self, settings: Settings) -> None:
        spec = settings.llm
        own = about_embedded(spec) or spec.startswith(REPLAY) or spec.partition(":")[0] in LOCAL_ENGINES
        self._model: ChatModel | None = None if own else open_chat_model(spec, model_options(settings))
        self._prompts = load_prompts(settings.prompts) if self._model else load_prompts()

    async def rewrite(self, earlier: Sequence[Message], question: str) -> Standalone:
        """Return the last question of a conversation as one of its own.

        Args:
            earlier: messages before the question, the oldest first.
            question: the last message.

        Raises:
            ServiceError: the model cannot be used.
        """
        if self._model is None:
            return Standalone(question, "earlier messages were not read: that needs a model server (--llm openai:…)")
        conversation = "\n".join(f"{one.role}: {one.content[:MAX_TURN]}" for one in earlier[-MAX_TURNS:])
        values = {"conversation": conversation, "question": question}
        system, user = self._prompts.render_method(_TEMPLATE, values)
        talk = Conversation(self._model, Sampling(), system, user, request="\n".join(values.values()))
        try:
            found = await talk.asked(_parse, lambda _, problem: self._prompts.retry(_TEMPLATE, problem), RETRIES)
        except BadOutputError as error:
            return Standalone(question, f"the follow-up was asked as it is: {error}", talk.usage)
        return Standalone(found, f"the follow-up was asked as: {found}", talk.usage)

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()


def _parse(text: str) -> str:
    found = _FORM.findall(text)
    question = " ".join(found[-1].split()) if found else ""
    if not question:
        raise BadOutputError("it holds no <question>…</question>")
    return question
