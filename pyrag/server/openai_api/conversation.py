"""Messages of OpenAI's requests, and the options of them that are honoured, ignored or refused.

The last user message is the question; those before it make it a follow-up. System messages, sampling options and tools
that need not be called are ignored. What would change the form of the reply is refused.
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
MAX_TURNS = 40  # messages of a conversation that are kept, the last of them
_TEXTS = ("text", "input_text", "output_text")
_IGNORED_ITEMS = ("reasoning",)  # outputs of earlier responses that clients send back
_SPEAKERS = ("user", "assistant")
_SILENT = ("system", "developer")


_Word = Annotated[str, Meta(max_length=MAX_NAME)]


class ContentPart(msgspec.Struct):
    """A part of a message; only texts are read."""

    type: Annotated[_Word, Meta(examples=["text"])]
    text: str = ""


class ChatMessage(msgspec.Struct, kw_only=True):
    """A message of a conversation, or an item of a response's input."""

    type: _Word = "message"
    role: _Word = ""
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """The texts of the content."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type in _TEXTS and part.text)
        return self.content or ""


def question_in(messages: Sequence[ChatMessage], param: str) -> tuple[str, tuple[Message, ...]]:
    """Return the last message, which is the question, and the last `MAX_TURNS` before it.

    Args:
        messages: of the request.
        param: field of the request that holds them.

    Raises:
        ApiError: there is no question, or a message holds something else than text.
    """
    spoken: list[Message] = []
    for one in messages:
        if one.type in _IGNORED_ITEMS or one.role in _SILENT:
            continue
        _check_readable(one, param)
        if one.text.strip():
            spoken.append(Message("user" if one.role == "user" else "assistant", one.text))
    if not spoken or spoken[-1].role != "user":
        message = "the last message must be a user's text: it is the question"
        raise ApiError(400, "no_question", message, param=param)
    return spoken[-1].content, tuple(spoken[:-1][-MAX_TURNS:])


def _check_readable(one: ChatMessage, param: str) -> None:
    if one.type != "message":
        raise ApiError(400, "unsupported_value", f"{one.type[:80]!r} items cannot be read: send messages", param=param)
    if one.role not in _SPEAKERS:
        message = f"messages of the role {one.role[:80]!r} cannot be read: send those of user and assistant"
        raise ApiError(400, "unsupported_value", message, param=param)
    for part in one.content if isinstance(one.content, list) else ():
        if part.type not in (*_TEXTS, "refusal"):
            message = f"{part.type[:80]!r} parts cannot be read, only texts: describe in words what the question needs"
            raise ApiError(400, "unsupported_value", message, param=param)


def refuse(param: str, value: object, *usual: object) -> None:
    """Raise `ApiError` for an option that would change the form of the reply.

    Args:
        param: name of the option.
        value: of the request.
        usual: values that change nothing, besides null.
    """
    if value is not None and value not in usual:
        raise ApiError(400, "unsupported_parameter", f"{param} is not supported here: leave it out", param=param)


def index_of_model(service: QuestionService, model: str, access: Access) -> ServedIndex:
    """Return the index that a model's name stands for.

    Args:
        service: has the indexes.
        model: `pyrag`, or `pyrag` with a slash and the name of an index.
        access: what the caller may use.

    Raises:
        ApiError: there is no such model, or it is not the caller's.
    """
    if model not in models_of(service, access):
        message = f"there is no model {model[:80]!r}: GET /v1/models lists them"
        raise ApiError(404, "model_not_found", message, param="model")
    return service.index(model.partition("/")[2] or None, access)


def models_of(service: QuestionService, access: Access) -> list[str]:
    """Return the names of the models that a caller may use.

    Args:
        service: has the indexes.
        access: what the caller may use.
    """
    names = service.allowed(access)
    return [MODEL, *(f"{MODEL}/{name}" for name in names)] if names else []
