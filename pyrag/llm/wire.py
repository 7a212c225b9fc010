"""The replies of an OpenAI-compatible server, and what is read from them. Unknown fields are ignored.

Imported with the first request only: it needs msgspec.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from pyrag.http_faults import ReportedError
from pyrag.llm.protocol import ModelInfo, Reply


class _Part(msgspec.Struct):
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None  # vLLM before 0.12, DeepSeek
    reasoning: str | None = None  # vLLM, OpenRouter
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _ChunkChoice(msgspec.Struct):
    delta: _Message | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class _Failure(msgspec.Struct):
    code: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_ChunkChoice] = []
    usage: _Usage | None = None
    error: _Failure | str | None = None


class _Model(msgspec.Struct):
    id: str
    parent: str | None = None  # vLLM, of an adapter
    max_model_len: int | None = None  # vLLM, SGLang
    context_length: int | None = None  # OpenRouter


class _Models(msgspec.Struct):
    data: list[_Model]


_completions = msgspec.json.Decoder(_Completion)
_chunks = msgspec.json.Decoder(_Chunk)
_models = msgspec.json.Decoder(_Models)


def decode_reply(content: bytes) -> Reply:
    """Raises `msgspec.DecodeError` or `ValueError` where this is no chat completion."""
    completion = _completions.decode(content)
    if not completion.choices:
        raise ValueError("it has no choices")
    choice, usage = completion.choices[0], completion.usage or _Usage()
    return Reply(
        _text(choice.message),
        prompt_tokens=usage.prompt_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
        finish_reason=choice.finish_reason or "stop",
    )


async def read_stream(events: AsyncIterator[bytes], on_text: Callable[[str], None]) -> Reply:
    """The reply whose pieces come as events; `on_text` gets each at once.

    Raises `ReportedError` where the server gives up, `ConnectionError` where the stream ends before the reply does, and
    `msgspec.DecodeError` where an event is no piece of a chat completion.
    """
    texts: list[str] = []
    reasoning: list[str] = []
    finish, usage = "", _Usage()
    async for data in events:
        if data == b"[DONE]":
            break
        chunk = _chunks.decode(data)
        if chunk.error is not None:
            code = chunk.error.code if isinstance(chunk.error, _Failure) else None
            raise ReportedError(code if isinstance(code, int) and code >= 400 else 500, data)
        usage = chunk.usage or usage
        for choice in chunk.choices[:1]:
            delta = choice.delta or _Message()
            reasoning.append(delta.reasoning_content or delta.reasoning or "")
            finish = choice.finish_reason or finish
            if text := _content(delta):
                texts.append(text)
                on_text(text)
    if not finish:
        raise ConnectionError("the stream ended before the reply did")
    if not "".join(texts).strip() and any(reasoning):
        texts.append(f"<think>{''.join(reasoning)}")
        on_text(texts[-1])
    return Reply("".join(texts), usage.prompt_tokens or 0, usage.completion_tokens or 0, finish)


def decode_models(content: bytes) -> list[ModelInfo]:
    found = _models.decode(content).data
    return [ModelInfo(model.id, model.parent, model.max_model_len or model.context_length) for model in found]


def _text(message: _Message) -> str:
    """The content. A server that took all of a reply for reasoning left none: then the reasoning, marked as such."""
    content = _content(message)
    reasoning = message.reasoning_content or message.reasoning or ""
    return content if content.strip() or not reasoning else f"<think>{reasoning}"


def _content(message: _Message) -> str:
    content = message.content or message.refusal or ""
    return content if isinstance(content, str) else "".join(part.text or "" for part in content)
