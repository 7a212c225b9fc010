"""Protocol of chat models: one asynchronous method from messages to text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

CHAT_TEMPLATE = "chat_template_kwargs"
"""Extra field of requests that local engines support too."""

NORMAL_ENDINGS = frozenset({"", "stop", "tool_calls", "function_call"})

MAX_REPLY_CHARS = 1_000_000
"""Maximum characters of a reply; longer replies are cut."""


@dataclass(frozen=True, slots=True)
class Message:
    """Turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply of a model. Tokens are the server's counts (0 if it does not count them).

    A text longer than `MAX_REPLY_CHARS` is cut, and the reply counts as cut off. Half of a surrogate pair, which
    traces, files and servers refuse, becomes U+FFFD.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = "stop"  # "length": cut off at max_tokens, "content_filter": by a filter; others: by a fault
    cached: bool = False  # stored earlier, at no cost now
    note: str = ""  # warning about the server, sent once

    @property
    def cut_off(self) -> bool:
        """True if the reply did not end normally, so that its text may be incomplete."""
        return self.finish_reason not in NORMAL_ENDINGS

    def __post_init__(self) -> None:
        if len(self.text) > MAX_REPLY_CHARS:
            object.__setattr__(self, "text", self.text[:MAX_REPLY_CHARS])
            object.__setattr__(self, "finish_reason", "length")
        try:
            self.text.encode()
        except UnicodeEncodeError:
            whole = self.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            object.__setattr__(self, "text", whole)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Model in a server's list; `parent` is the base model of an adapter."""

    id: str
    parent: str | None = None
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of one reply.

    Attributes:
        temperature: Sampling temperature; 0 for the most likely reply.
        max_tokens: Number of tokens after which a reply is cut off.
        stop: Texts that end a reply and are not part of it.
        seed: Seed for repeatable samples, if the server supports seeds.
        schema: JSON schema of the reply, or None. Only some servers enforce it, so a prompt must also describe the
            form, and its parser must accept other forms.
        pattern: Regular expression of the reply, instead of a schema.
        extra: Additional fields of the request.
    """

    temperature: float = 0.0
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    seed: int | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    pattern: str | None = None
    extra: Mapping[str, Any] | None = field(default=None, hash=False)


class ChatModel(Protocol):
    """Language model.

        class Echo:
            name = "echo"

            async def complete(self, messages, sampling=Sampling()):
                return Reply(messages[-1].content)

            async def aclose(self):
                pass

        rag = PyRAG(Echo(), retriever)

    A model may also have `stream` (see `StreamingChatModel`), `offered` (see `ModelLister`) and `context_tokens`, an
    asynchronous method that returns the length of its window in tokens, or None.
    """

    @property
    def name(self) -> str:
        """Spec of the model without secrets, such as `openai:MODEL@http://host:port/v1`."""
        ...

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """Return one reply, after retries of transient faults.

        Args:
            messages: The conversation: an optional system message, then turns of user and assistant. If the last
                message is the assistant's, it is an unfinished reply that the model continues.
            sampling: Parameters of the reply.

        Raises:
            ContextLengthError: The messages are longer than the model's window.
            ServiceError: The model cannot be used.
        """
        ...

    async def aclose(self) -> None:
        """Release connections or memory."""
        ...


@runtime_checkable
class ModelLister(Protocol):
    """Client that can list the models of its server or engine."""

    async def offered(self) -> list[ModelInfo]:
        """Return the available models."""
        ...


class StreamingChatModel(ChatModel, Protocol):
    """Chat model that can show a reply while it is written.

    It may have an attribute `streaming`, which becomes False if its server turns out to be unable to stream.
    """

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        """Return one reply as `complete` does, and show its text while it is written. Cancelling stops the writing.

        Args:
            messages: The conversation, as for `complete`.
            sampling: Parameters of the reply.
            on_text: Called with each piece of the text, in order, in the caller's event loop. The pieces add up to
                `Reply.text`, except after a retry, whose text is not shown again.
        """
        ...
