"""Messages in OpenAI's requests, and the handling of their options.

The last user message is the question; if there are earlier messages, it is a follow-up. System messages, sampling
options and optional tools are ignored. Options that would change the form of the reply are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from pyrag.llm.protocol import Message
from pyrag.server.bodies import MAX_NAME
from pyrag.server.config import Access
from pyrag.server.errors import ApiError
from pyrag.server.service import QuestionService, ServedIndex

MODEL = "pyrag"
MAX_MESSAGES = 1000
MAX_TURNS = 40  # number of messages of a conversation that are kept, counted from the last
_TEXTS = ("text", "input_text", "output_text")
_IGNORED_ITEMS = ("reasoning",)  # outputs of earlier responses that clients send back
_SPEAKERS = ("user", "assistant")
_SILENT = ("system", "developer")


_Word = Annotated[str, Meta(max_length=MAX_NAME)]


class ContentPart(msgspec.Struct):
    """Part of a message. Only parts with text are read."""

    type: Annotated[_Word, Meta(examples=["text"])]
    text: str | None = ""


class ChatMessage(msgspec.Struct, kw_only=True):
    """Message of a conversation, or item of a response's input."""

    type: _Word | None = "message"
    role: _Word | None = ""
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """The texts in the content."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type in _TEXTS and part.text)
        return self.content or ""


def question_in(messages: Sequence[ChatMessage], param: str) -> tuple[str, tuple[Message, ...]]:
    """Return the last message, which is the question, and up to `MAX_TURNS` messages before it.

    Args:
        messages: Messages of the request.
        param: Field of the request that holds them.

    Raises:
        ApiError: There is no question, or a message has content other than text.
    """
    spoken: list[Message] = []
    for message in messages:
        if message.type in _IGNORED_ITEMS or message.role in _SILENT:
            continue
        _check_readable(message, param)
        if message.text.strip():
            spoken.append(Message("user" if message.role == "user" else "assistant", message.text))
    if not spoken or spoken[-1].role != "user":
        sentence = "the last message must be a user's text: it is the question"
        raise ApiError(400, "no_question", sentence, param=param)
    return spoken[-1].content, tuple(spoken[:-1][-MAX_TURNS:])


def _check_readable(message: ChatMessage, param: str) -> None:
    kind, role = message.type or "message", message.role or ""
    if kind != "message":
        raise ApiError(400, "unsupported_value", f"{kind[:80]!r} items cannot be read: send messages", param=param)
    if role not in _SPEAKERS:
        sentence = f"messages of the role {role[:80]!r} cannot be read: send those of user and assistant"
        raise ApiError(400, "unsupported_value", sentence, param=param)
    for part in message.content if isinstance(message.content, list) else ():
        if part.type not in (*_TEXTS, "refusal"):
            sentence = f"{part.type[:80]!r} parts cannot be read, only texts: describe in words what the question needs"
            raise ApiError(400, "unsupported_value", sentence, param=param)


def refuse(param: str, value: object, *usual: object) -> None:
    """Raise `ApiError` for an option that would change the form of the reply.

    Args:
        param: Name of the option.
        value: Value in the request.
        usual: Values that change nothing, in addition to null and objects with only null fields.
    """
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if item is not None}
    if value is not None and value not in usual:
        raise ApiError(400, "unsupported_parameter", f"{param} is not supported here: leave it out", param=param)


def index_of_model(service: QuestionService, model: str, access: Access) -> ServedIndex:
    """Return the index that a model's name stands for.

    Args:
        service: Service that has the indexes.
        model: `pyrag`, or `pyrag/` and the name of an index.
        access: Rights of the caller.

    Raises:
        ApiError: The model does not exist, or the caller may not use it.
    """
    if model not in models_of(service, access):
        message = f"there is no model {model[:80]!r}: GET /v1/models lists them"
        raise ApiError(404, "model_not_found", message, param="model")
    return service.index(model.partition("/")[2] or None, access)


def models_of(service: QuestionService, access: Access) -> list[str]:
    """Return the names of the models that a caller may use.

    Args:
        service: Service that has the indexes.
        access: Rights of the caller.
    """
    names = service.allowed(access)
    return [MODEL, *(f"{MODEL}/{name}" for name in names)] if names else []
