"""Base of methods' agents: a prompt with a schema, a parser and a bounded number of retries."""

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
    """Model with its prompts. It is asked again after a malformed reply."""

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
        """Start a conversation.

        Args:
            template: Name of the prompt template.
            values: Values of its placeholders.
            schema: JSON schema of the replies; enforced only if the prompt asks for this form.
            system: Name of the template whose system message replaces the template's own.
            optional: Names among `values` that the template may leave out.
        """
        own, user = self.prompts.render_method(template, values, optional)
        system_message = self.prompts.notice(f"{system}.system") if system else own
        request = "\n".join(values.values())
        enforced = schema if asks_for(schema, system_message + user) else None
        return Conversation(self.model, replace(self.sampling, schema=enforced), system_message, user, request=request)

    async def asked(self, talk: Conversation, parse: Callable[[str], T], retry: str, retries: int) -> T:
        """Return the value of the first well-formed reply.

        Args:
            talk: The conversation.
            parse: Parses a reply; raises `BadOutputError` with its fault.
            retry: Name of the template that tells the model the fault.
            retries: Maximum number of further replies.

        Raises:
            BadOutputError: No reply was well-formed; the message is the last reply's fault.
        """
        return await talk.asked(
            parse, lambda _, problem: self.prompts.render_method(retry, {"reason": problem})[1], retries
        )


@dataclass(frozen=True, slots=True)
class PromptedEngine:
    """Parts from which agents over a language model are built.

    Attributes:
        context_tokens: The model's context window in tokens, if known.
        count_tokens: Returns the number of tokens of a text.
    """

    model: ChatModel
    prompts: Prompts
    sampling: Sampling = Sampling()
    context_tokens: int | None = None
    count_tokens: CountTokens = about_tokens

    def context_window(self, agent: str, prompt: Callable[[], str]) -> ContextWindow:
        """Return a `ContextWindow` for the passages of an agent.

        Args:
            agent: Name of the agent in messages.
            prompt: Returns the agent's prompt without passages and query.
        """
        return ContextWindow(
            agent, self.model, self.context_tokens, prompt, self.sampling.max_tokens, self.count_tokens
        )

    def context_window_of(self, agent: str, system: str, user: str) -> ContextWindow:
        """Return a `ContextWindow` for an agent whose prompts are in the folder `methods`.

        Args:
            agent: Name of the agent in messages.
            system: Name of the template with the system message.
            user: Name of the template with the user message.
        """
        return self.context_window(
            agent, lambda: self.prompts.notice(f"{system}.system") + self.prompts.notice(f"{user}.user")
        )
