"""Writer and Standalone Agent over a language model.

The Writer writes free text from a method's prompt template, for methods that are not programs. It asks once more for a
text with a fault, or one that was cut off while the model was thinking or inside its answer. The method parses the
text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from pyrag.agents.conversation import Conversation
from pyrag.agents.prompts import Prompts
from pyrag.agents.protocol import MAX_TURN, MAX_TURNS, FindFault, Standalone, Written
from pyrag.agents.reply_room import asked_with_room, with_twice_the_room
from pyrag.errors import BadOutputError, ContextLengthError
from pyrag.llm.context import CountTokens, about_tokens
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.llm.spending import usage_of

RETRIES = 1  # further replies of the Standalone Agent
_TEMPLATE = "standalone"
_MIN_SHOWN = 100  # minimum characters of a conversation and of a message worth showing
_SHRINK = 3  # if the prompt is too long, the shown part of a conversation is divided by this
_MARGIN = 64  # tokens of the chat template
_TRIMMED = "the Standalone agent read parts of {shown} of {all} messages: more would not fit into the model's window"
_FORM = re.compile(r"<question>(.*?)</question>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LLMWriter:
    """Writer that uses the templates in the prompts' folder `methods`.

    A `prefix` becomes an unfinished message of the assistant, which some servers continue (vLLM, SGLang, Ollama);
    others reply with a separate message.
    """

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
        """Return a text written from a template.

        Args:
            template: Name of the template.
            values: Texts for its placeholders.
            stop: Strings that end the text and are left out.
            prefix: Beginning of the text, which the model continues.
            fault: Returns the fault of a text, or an empty text. After a fault the model is asked once more.
        """
        system, user = self.prompts.render_method(template, values)
        if fault is not None and system and not prefix:
            talk = Conversation(self.model, replace(self.sampling, stop=stop), system, user)
            return await self._checked(talk, template, fault)
        prompt = (Message("system", system), Message("user", user), Message("assistant", prefix))
        messages = [message for message in prompt if message.content]

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
    """Standalone Agent: rephrases the last question of a conversation so that it stands on its own.

    If the conversation is longer than the model's window, only its end is shown.

    Attributes:
        context_tokens: The model's context window in tokens, if known.
        count_tokens: Returns the number of tokens of a text.
    """

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()
    context_tokens: int | None = None
    count_tokens: CountTokens = about_tokens

    async def standalone(self, earlier: Sequence[Message], question: str) -> Standalone:
        """Return a question that stands on its own, or the last question unchanged if no reply is well-formed.

        Args:
            earlier: Messages before the question, oldest first.
            question: The last message.
        """
        turns = _shown(earlier[-MAX_TURNS:], MAX_TURNS * MAX_TURN)
        characters, sampling = self._room(turns, question), self.sampling
        while characters >= _MIN_SHOWN:
            shown = _shown(turns, characters)
            note = "" if shown == turns else _TRIMMED.format(shown=len(shown), all=len(earlier))
            try:
                return await self._asked(shown, question, sampling, note)
            except ContextLengthError:
                characters = min(characters, sum(map(len, shown))) // _SHRINK
                sampling = replace(sampling, max_tokens=max(sampling.max_tokens // 2, min(256, sampling.max_tokens)))
        return Standalone(question, note="the follow-up was asked as it is: the model's window is too small for more")

    async def _asked(self, shown: Sequence[str], question: str, sampling: Sampling, trimmed: str) -> Standalone:
        """Return the reply about a conversation. Raises `ContextLengthError` if the window is too small."""
        values = {"conversation": "\n".join(shown), "question": question}
        system, user = self.prompts.render_method(_TEMPLATE, values)
        talk = Conversation(self.model, sampling, system, user, request="\n".join(values.values()))
        try:
            standalone = await talk.asked(_parse, lambda _, problem: self.prompts.retry(_TEMPLATE, problem), RETRIES)
        except BadOutputError as error:
            standalone, trimmed = question, f"the follow-up was asked as it is: {error}"
        return Standalone(standalone, usage=talk.usage, raw=talk.raw, note=talk.noted(trimmed))

    def _room(self, turns: Sequence[str], question: str) -> int:
        """Return the number of characters of a conversation that fit into the window, if its size is known."""
        everything = max(sum(map(len, turns)), _MIN_SHOWN)
        tokens = self.count_tokens("\n".join(turns))
        if self.context_tokens is None or not tokens:
            return everything
        prompt = "".join(self.prompts.render_method(_TEMPLATE, {"conversation": "", "question": question}))
        room = self.context_tokens - self.sampling.max_tokens - self.count_tokens(prompt) - _MARGIN
        return max(min(everything, everything * room // tokens), _MIN_SHOWN)


def _shown(turns: Sequence[Message] | Sequence[str], characters: int) -> list[str]:
    """Return the last messages of a conversation, each shortened to its share of the characters."""
    texts = [turn if isinstance(turn, str) else f"{turn.role}: {turn.content[:MAX_TURN]}" for turn in turns]
    if sum(map(len, texts)) <= characters:
        return texts
    shown: list[str] = []
    for text in reversed(texts):
        part = text[: min(characters, max(characters // 2, _MIN_SHOWN))]
        if len(part) < min(len(text), _MIN_SHOWN):
            break
        shown.append(part)
        characters -= len(part)
    return shown[::-1]


def _parse(text: str) -> str:
    questions = _FORM.findall(text)
    question = " ".join(questions[-1].split()) if questions else ""
    if not question:
        raise BadOutputError("it holds no <question>…</question>")
    return question
