"""Parser for the replies of OpenAI-compatible servers.

Only the text is required. Any other field may be missing, null or of the wrong type; it is then ignored, or treated as
unknown (`pyrag.llm.clients.usage`). Servers put the text into several places, and report failures under status 200, as
a complete reply or as an event of a stream.

Imported with the first request, since it needs msgspec.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from pyrag._io.http.errors import ReplyFormError, ReportedError
from pyrag.llm.clients.usage import read_usage
from pyrag.llm.protocol import MAX_REPLY_CHARS, ModelInfo, Reply

_REASONING = (
    *("reasoning_content", "reasoning", "reasoning_text", "thinking", "thought", "thoughts"),
    *("reasoning_details", "thinking_blocks"),
)
_TEXTS = ("text", "content", "thinking", "summary", "value", "parts")  # keys of a part's text, in order of preference
_THINKING_PARTS = ("thinking", "reasoning", "reasoning.text", "thought", "redacted_thinking", "reasoning_content")
_FAILED = ("errors", "detail", "message", "msg", "errorMsg", "error_msg")
_MAX_DEPTH = 8
_MAX_LENIENT = 8 << 20  # maximum bytes of a reply that Python's own parser tries
_MAX_COMMAS = 1_000_000  # numbers are small in JSON and large in memory
_EVENTS = (b"data:", b"event:", b": ")
_BOM = b"\xef\xbb\xbf"

# OpenAI's finish_reason, by the names that other servers use.
_FINISHES: Mapping[str, str] = {
    **dict.fromkeys(
        ("max_tokens", "max_output_tokens", "max_new_tokens", "model_length", "max_length", "token_limit", "truncated"),
        "length",
    ),
    **dict.fromkeys(("length_limit", "model_context_window_exceeded", "incomplete", "max_token"), "length"),
    **dict.fromkeys(
        ("safety", "recitation", "blocklist", "prohibited_content", "spii", "content_filtered", "sensitive"),
        "content_filter",
    ),
    **dict.fromkeys(("guardrail_intervened", "blocked"), "content_filter"),
    **dict.fromkeys(("eos", "eos_token", "stop_sequence", "end_turn", "stop_token", "completed"), "stop"),
    **dict.fromkeys(("end", "finish", "finished", "complete", "done", "success", "normal", "eos_found"), "stop"),
    **dict.fromkeys(("tool_use", "tool_call", "tool", "function"), "tool_calls"),
    **dict.fromkeys(("refusal", "content-filter", "filtered", "moderation"), "content_filter"),
}
_STATUSES: Mapping[str, int] = {
    "invalid_request": 400,
    "context_length": 400,
    "bad_request": 400,
    "badrequest": 400,
    "invalid_argument": 400,
    "unsupported": 400,
    "content_filter": 400,
    "authentication": 401,
    "unauthorized": 401,
    "api_key": 401,
    "insufficient": 402,
    "billing": 402,
    "permission": 403,
    "forbidden": 403,
    "not_found": 404,
    "notfound": 404,
    "timeout": 408,
    "rate_limit": 429,
    "too_many_requests": 429,
    "overloaded": 503,
    "unavailable": 503,
}


def decode_reply(content: bytes) -> Reply:
    """Parse a chat completion, or a stream that a server sent with a different content type.

    Raises:
        ReportedError: The server reports a failure, as a complete reply or as an event of the stream.
        ValueError: The content is not a chat completion (`msgspec.DecodeError` is a ValueError).
    """
    if _is_stream(content):
        return _streamed(content)
    value = _value(content)
    if type(value) is dict and (usual := _usual_reply(value)) is not None:
        return usual
    first = value[0] if isinstance(value, list) and value else value  # Gemini
    if isinstance(first, dict) and (failure := _failure(first)) is not None:
        raise ReportedError(_status(failure), content)
    whole = _as_object(value)
    choice = _first(whole.get("choices")) or _of_another_api(whole)
    if choice is None:
        raise ReplyFormError("it has no choices")
    message = choice.get("message", choice.get("delta"))
    if message is None and not isinstance(choice.get("text"), str):
        raise ReplyFormError("its choice has no message")
    fields = message if isinstance(message, dict) else {"content": message}
    usage, note = read_usage(whole.get("usage"))
    return Reply(
        _text(fields) or _plain(choice.get("text")),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        finish_reason=_finish(choice) or "stop",
        note=note,
    )


def _usual_reply(whole: dict[str, Any]) -> Reply | None:
    """Parse a chat completion in the usual form; return None for any other form."""
    choices = whole.get("choices")
    choice = choices[0] if type(choices) is list and choices else None
    if type(choice) is not dict or choice.get("error") or whole.get("error") or whole.get("object") == "error":
        return None
    message = choice.get("message")
    content = message.get("content") if type(message) is dict else None
    if type(content) is not str or not content.strip():
        return None
    usage, note = read_usage(whole.get("usage"))
    finish = _finish(choice) or "stop"
    return Reply(content, usage.prompt_tokens, usage.completion_tokens, finish_reason=finish, note=note)


def _is_stream(content: bytes) -> bool:
    return content.lstrip().startswith(_EVENTS)


def _streamed(content: bytes) -> Reply:
    written = _Written(lambda text: None)
    for line in content.splitlines():
        if line.startswith(b"data:") and not written.done:
            written.take_event(line[5:])
    return written.reply()


def _of_another_api(whole: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the choice in an untranslated reply of another API: Ollama's own, TGI's, or OpenAI's responses."""
    if isinstance(whole.get("message"), dict):
        return {"message": whole["message"], "finish_reason": whole.get("done_reason")}
    names = ("response", "generated_text", "output_text")
    text = next((whole[name] for name in names if isinstance(whole.get(name), str)), None)
    return None if text is None else {"text": text, "finish_reason": whole.get("done_reason")}


async def read_stream(events: AsyncIterator[bytes], on_text: Callable[[str], None]) -> Reply:
    """Assemble the reply whose pieces arrive as events.

    Args:
        events: Data of each event.
        on_text: Called immediately with each piece of the text.

    Raises:
        ReportedError: The server reports a failure.
        ConnectionError: The stream ends before the reply does.
        ValueError: An event is not a piece of a chat completion (`msgspec.DecodeError` is a ValueError).
    """
    written = _Written(on_text)
    async for data in events:
        written.take_event(data)
        if written.done:
            break
    if not written.done and not written.finish:
        raise ConnectionError("the stream ended before the reply did")
    return written.reply()


class _Written:
    """Reply whose stream is still being read."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._texts, self._reasoning = _Pieces(), _Pieces()
        self.finish = ""
        self.done = False
        self._usage: Any = None

    def take_event(self, data: bytes) -> None:
        data = data.strip()
        self.done = data == b"[DONE]"
        if data and not self.done:
            self._take(_object(data), data)

    def _take(self, chunk: Mapping[str, Any], data: bytes) -> None:
        choices = chunk.get("choices")
        if (failure := _failure(chunk)) is not None:
            raise ReportedError(_status(failure), data)
        if choices is not None and not isinstance(choices, list):
            raise ReplyFormError("its choices are not a list")
        self._usage = chunk.get("usage") or self._usage
        if (choice := _first(choices)) is None:
            return
        delta = choice.get("delta", choice.get("message"))
        fields = delta if isinstance(delta, dict) else {"content": delta or choice.get("text")}
        self._reasoning.add(_reasoned(fields))
        self.finish = _finish(choice) or self.finish
        self._show(_content(fields))

    def _show(self, text: str) -> None:
        if text and (shown := self._texts.add(text)):
            self._on_text(shown)

    def reply(self) -> Reply:
        reasoning = self._reasoning.whole()
        if not self._texts.whole().strip() and reasoning:
            self._show(f"<think>{reasoning}")
        usage, note = read_usage(self._usage)
        finish = "length" if self._texts.full else self.finish or "stop"
        return Reply(self._texts.whole(), usage.prompt_tokens, usage.completion_tokens, finish_reason=finish, note=note)


class _Pieces:
    """Pieces of a text of at most `MAX_REPLY_CHARS`; further text is dropped."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = MAX_REPLY_CHARS
        self.full = False

    def add(self, piece: str) -> str:
        """Add a piece, if there is room, and return the part that was added."""
        self.full = self.full or len(piece) > self._room
        part = piece[: self._room]
        if part:
            self._pieces.append(part)
            self._room -= len(part)
        return part

    def whole(self) -> str:
        return "".join(self._pieces)


def decode_models(content: bytes) -> list[ModelInfo]:
    """Return the models of a list, without entries that have no id. Raises `ValueError` if it is not a list."""
    whole = _value(content)
    listed = whole.get("data", whole.get("models")) if isinstance(whole, dict) else whole
    if not isinstance(listed, list):
        raise ReplyFormError("it has no list of models")
    entries = [item for item in listed if isinstance(item, dict) and isinstance(item.get("id"), str)]
    return [ModelInfo(entry["id"], _parent(entry), _window(entry)) for entry in entries]


def _parent(model: Mapping[str, Any]) -> str | None:
    parent = model.get("parent")  # vLLM, of an adapter
    return parent if isinstance(parent, str) else None


def _window(model: Mapping[str, Any]) -> int | None:
    """Return the context window, from the field that vLLM and SGLang, OpenRouter, Groq, LM Studio or Mistral use."""
    names = ("max_model_len", "context_length", "context_window", "max_context_length", "max_context_window")
    sizes = (model.get(name) for name in names)
    return next((size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0), None)


# JSON


def _value(content: bytes) -> Any:
    content = content.removeprefix(_BOM)
    if content.count(b",") > _MAX_COMMAS:
        raise ReplyFormError("it holds too many values")
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if len(content) > _MAX_LENIENT:
            raise
        try:  # NaN, raw line breaks in strings, half of a surrogate pair
            return json.loads(content.decode("utf-8", "replace"), strict=False, parse_int=_integer)
        except (ValueError, RecursionError):
            pass
        raise


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float("inf")


def _object(content: bytes) -> dict[str, Any]:
    return _as_object(_value(content))


def _as_object(value: Any) -> dict[str, Any]:
    if isinstance(value, list) and len(value) == 1:  # Gemini
        value = value[0]
    if not isinstance(value, dict):
        raise ReplyFormError("it is not a JSON object")
    return value


def _first(choices: Any) -> dict[str, Any] | None:
    return next((choice for choice in choices if isinstance(choice, dict)), None) if isinstance(choices, list) else None


# Texts


def _text(message: Mapping[str, Any]) -> str:
    """Return the content of a message; if there is none, its reasoning, marked as such."""
    content = _content(message)
    if content.strip():
        return content
    reasoning = _reasoned(message)
    return f"<think>{reasoning}" if reasoning.strip() else _called(message) or content


def _content(message: Mapping[str, Any]) -> str:
    """Return the content, or the text of a refusal."""
    return _plain(message.get("content")) or _plain(message.get("refusal"))


def _reasoned(message: Mapping[str, Any]) -> str:
    return next((text for name in _REASONING if (text := _plain(message.get(name), thinking=True))), "")


def _plain(value: Any, *, thinking: bool = False, depth: int = 0) -> str:
    """Return the text of a value: a string, parts, or an object around either; thinking only if requested."""
    if isinstance(value, str):
        return value
    if depth >= _MAX_DEPTH:
        return ""
    if isinstance(value, list):
        return "".join(_plain(item, thinking=thinking, depth=depth + 1) for item in value)
    if not isinstance(value, dict) or (not thinking and value.get("type") in _THINKING_PARTS):
        return ""
    names = (name for name in _TEXTS if value.get(name))
    return _plain(value.get(next(names, "")), thinking=thinking, depth=depth + 1)


def _called(message: Mapping[str, Any]) -> str:
    """Return the arguments of tool calls. A server with a tool parser may turn a JSON reply into tool calls."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    called = [function for function in (*functions, message.get("function_call")) if isinstance(function, dict)]
    texts = (function.get("arguments") for function in called)
    return "\n".join(
        arguments if isinstance(arguments, str) else json.dumps(arguments) for arguments in texts if arguments
    )


def _finish(choice: Mapping[str, Any]) -> str:
    """Return the finish reason in OpenAI's terms; empty if there is none yet."""
    reason = choice.get("finish_reason") or choice.get("stop_reason") or choice.get("done_reason")
    if not isinstance(reason, str) or not reason.strip():
        return "stop" if reason is not None and not isinstance(reason, str) else ""
    reason = reason.strip().lower()
    return _FINISHES.get(reason, reason)


# Failures


def _failure(whole: Mapping[str, Any]) -> Any:
    """Return the error that a reply or an event reports, or None."""
    choice = _first(whole.get("choices"))
    for failure in (whole.get("error"), choice and choice.get("error")):
        if failure:
            return failure
    if whole.get("object") == "error":
        return whole
    return _of_a_gateway(whole) if whole.get("choices") is None and "usage" not in whole else None


def _of_a_gateway(whole: Mapping[str, Any]) -> Any:
    """Return an error in another field: `{"code": 500, "msg": …}`, `{"base_resp": {…}}`, `{"detail": …}`."""
    base = whole.get("base_resp")
    if isinstance(base, dict) and base.get("status_code"):
        return {"code": base.get("status_code"), "message": base.get("status_msg")}
    if _of_another_api(whole):
        return None
    return whole if any(whole.get(name) for name in _FAILED) else None


def _status(failure: Any) -> int:
    """Return the status of a reported error, from its code or its type; 500 if neither is known."""
    if not isinstance(failure, dict):
        return 500
    for name in ("code", "status", "status_code", "type"):
        status = _status_of(failure.get(name))
        if status:
            return status
    return 500


def _status_of(code: Any) -> int:
    if isinstance(code, str) and code.isdecimal() and len(code) < 6:
        code = int(code)
    if isinstance(code, int | float) and not isinstance(code, bool):
        return int(code) if 400 <= code < 600 else 0
    word = code.lower() if isinstance(code, str) else ""
    return next((status for part, status in _STATUSES.items() if part in word), 0)
