"""What a chat model is: one asynchronous method from messages to text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

CHAT_TEMPLATE = "chat_template_kwargs"
"""The extra field that engines without a server know, too."""

MAX_REPLY_CHARS = 1_000_000
"""Characters of a reply; what is beyond is cut off before anything reads it."""


@dataclass(frozen=True, slots=True)
class Message:
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
    finish_reason: str = "stop"  # "length": cut off at max_tokens, "content_filter": cut off by a filter
    cached: bool = False  # it was paid for before
    note: str = ""  # what the user is to know about the server, said once

    @property
    def cut_off(self) -> bool:
        """True where the text may lack its end."""
        return self.finish_reason in ("length", "content_filter")

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
    """`extra` holds further fields of a request, which the server knows.

    `schema` is the JSON schema, `pattern` the regular expression, that a reply should keep to; one of them at most.
    Only some servers see to that: whoever asks must be able to read a reply that does not, and its prompt must say
    what it wants without their help."""

    temperature: float = 0.0
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    seed: int | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    pattern: str | None = None
    extra: Mapping[str, Any] | None = field(default=None, hash=False)


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """The spec it was made from, without secrets: `openai:MODEL@http://host:port/v1`."""
        ...

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Reply:
        """One reply. Raises `pyrag.errors.ServiceError`; retries what may pass before that."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class ModelLister(Protocol):
    """What knows which models there are: a client of a server, an engine of this machine."""

    async def offered(self) -> list[ModelInfo]: ...


class StreamingChatModel(ChatModel, Protocol):
    """One that can show a reply while it is being written. Not every chat model can: look for the method.

    One that finds out only from its server has an attribute `streaming`, False once replies come in one piece.
    """

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: Callable[[str], None]) -> Reply:
        """Like `complete`. `on_text` gets the pieces of the text, in order, in the caller's event loop; together they
        are `Reply.text`, unless the writing broke off and began again: of that, nothing is shown. Cancelling ends the
        writing."""
        ...
