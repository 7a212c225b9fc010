"""Base of the agents of methods: a prompt with a schema, a parser, and a bounded number of further tries.

Left out: what a reply means (`parsing_*`), and what an agent that stays out of form comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pyrag.agents.context_window import ContextWindow
from pyrag.agents.conversation import Conversation
from pyrag.agents.prompts import Prompts
from pyrag.agents.schemas import Schema, asks_for
from pyrag.llm.context import CountTokens, about_tokens
from pyrag.llm.protocol import ChatModel, Sampling

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PromptedAgent:
    """A model with its prompts, and the loop that asks again after a reply out of form."""

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()

    def talk(
        self,
        template: str,
        values: Mapping[str, str],
        schema: Schema,
        system: str = "",
        optional: Collection[str] = (),
    ) -> Conversation:
        """Begin a conversation.

        Args:
            template: Name of the prompt template.
            values: Texts for its placeholders.
            schema: JSON schema of the replies; enforced only if the prompt asks for its form.
            system: Name of the template whose system message is used instead of its own.
            optional: Names among `values` that the template may leave out.
        """
        own, user = self.prompts.render_method(template, values, optional)
        said = self.prompts.notice(f"{system}.system") if system else own
        request = "\n".join(values.values())
        enforced = schema if asks_for(schema, said + user) else None
        return Conversation(self.model, replace(self.sampling, schema=enforced), said, user, request=request)

    async def asked(self, talk: Conversation, parse: Callable[[str], T], retry: str, retries: int) -> T:
        """Return the value of the first reply in form.

        Args:
            talk: The conversation.
            parse: Reads a reply; raises `BadOutputError` with its fault.
            retry: Name of the template that tells the model the fault.
            retries: Most further replies.

        Raises:
            BadOutputError: No reply was in form; the message is the last one's fault.
        """
        return await talk.asked(
            parse, lambda _, problem: self.prompts.render_method(retry, {"reason": problem})[1], retries
        )


@dataclass(frozen=True, slots=True)
class PromptedEngine:
    """Parts of agents over a chat model; `context_tokens` is the model's window, if known."""

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()
    context_tokens: int | None = None
    count_tokens: CountTokens = about_tokens

    def context_window(self, agent: str, prompt: Callable[[], str]) -> ContextWindow:
        """Return a `ContextWindow` for the passages of an agent.

        Args:
            agent: Its name in messages.
            prompt: Returns its prompt without passages and query.
        """
        return ContextWindow(
            agent, self.model, self.context_tokens, prompt, self.sampling.max_tokens, self.count_tokens
        )

    def context_window_of(self, agent: str, system: str, user: str) -> ContextWindow:
        """Return the same for an agent of that name with a prompt of the folder `methods`.

        Args:
            agent: Its name in messages.
            system: Name of the template with its system message.
            user: Name of the template with its user message.
        """
        return self.context_window(
            agent, lambda: self.prompts.notice(f"{system}.system") + self.prompts.notice(f"{user}.user")
        )
