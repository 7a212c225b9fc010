"""A chat model that is never asked to keep to a JSON schema or pattern: `structured = false`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling, StreamingChatModel

DEFAULT_SAMPLING = Sampling()


class UnconstrainedChat:
    """Passes requests on without their schema and pattern; agents read the replies as plain text."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        return await self.model.complete(messages, replace(sampling, schema=None, pattern=None))

    async def aclose(self) -> None:
        await self.model.aclose()

    def __getattr__(self, name: str) -> Any:
        """Everything else that the model can do: `models`, `context_tokens`, and `stream`, where it has that."""
        found = getattr(self.model, name)
        return self._stream if name == "stream" else found

    async def _stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        free = replace(sampling, schema=None, pattern=None)
        reply: Reply = await cast(StreamingChatModel, self.model).stream(messages, free, on_text)
        return reply
