"""The protocol of chat models: one asynchronous method from messages to text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

CHAT_TEMPLATE = "chat_template_kwargs"
"""The extra field that engines without a server know as well."""

NORMAL_ENDINGS = frozenset({"", "stop", "tool_calls", "function_call"})

MAX_REPLY_CHARS = 1_000_000
"""Characters of a reply; longer ones are cut before they are read."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's text. Tokens are as the server counts them (0 where it does not say).

    A text longer than `MAX_REPLY_CHARS` is cut, and its reply counts as cut off. Half of a surrogate pair, which no
    trace, file or server takes, becomes U+FFFD.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = "stop"  # "length": cut off at max_tokens, "content_filter": by a filter; others: by a fault
    cached: bool = False  # paid for before
    note: str = ""  # a warning about the server, given once

    @property
    def cut_off(self) -> bool:
        """True where the text may lack its end: after every ending but the normal ones."""
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
    """A model as its server lists it; `parent` is the model that an adapter belongs to."""

    id: str
    parent: str | None = None
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of one reply.

    Attributes:
        temperature: 0 for the likeliest reply.
        max_tokens: the length at which a reply is cut off.
        stop: texts that end a reply and are not part of it.
        seed: for repeatable samples, if the server knows seeds.
        schema: a JSON schema for the reply, or None. Only some servers enforce it: a prompt must state the form too,
            and its parser must take replies of other forms.
        pattern: a regular expression for the reply, in place of a schema.
        extra: further fields of the request, for the server.
    """

    temperature: float = 0.0
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    seed: int | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    pattern: str | None = None
    extra: Mapping[str, Any] | None = field(default=None, hash=False)


class ChatModel(Protocol):
    """A language model.

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
        """The spec of the model without secrets, such as `openai:MODEL@http://host:port/v1`."""
        ...

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """Return one reply, after retries of transient faults.

        Args:
            messages: The conversation: a system message or none, then turns of user and assistant. A last message of
                the assistant is an unfinished reply that the model continues.
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
    """A client that can list the models of its server or engine."""

    async def offered(self) -> list[ModelInfo]:
        """Return the models on offer."""
        ...


class StreamingChatModel(ChatModel, Protocol):
    """A chat model that can show a reply while it is being written.

    It may have an attribute `streaming`, which is False once its server was found unable to stream.
    """

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        """Return one reply as `complete` does, and show its text while it is written; cancelling ends the writing.

        Args:
            messages: As for `complete`.
            sampling: As for `complete`.
            on_text: Called with each piece of the text, in order, in the caller's event loop. The pieces make up
                `Reply.text`, except after a retry, whose text is not shown again.
        """
        ...
