"""The replies of an OpenAI-compatible server, and what is read from them.

Only the text must be there. Every other field may be missing, null or of a wrong type: it is ignored, or counted as
unknown (`pyrag.llm.clients.usage`). Servers put the text into several places, and failures under status 200, as a whole
reply or as an event of a stream.

Imported with the first request only: it needs msgspec.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from pyrag._io.http.bodies import check_values
from pyrag._io.http.errors import ReplyFormError, ReportedError
from pyrag.llm.clients.usage import read_usage
from pyrag.llm.protocol import MAX_REPLY_CHARS, ModelInfo, Reply

_REASONING = (
    *("reasoning_content", "reasoning", "reasoning_text", "thinking", "thought", "thoughts"),
    *("reasoning_details", "thinking_blocks"),
)
_TEXTS = ("text", "content", "thinking", "summary", "value", "parts")  # of a part, the first that it has
_THINKING_PARTS = ("thinking", "reasoning", "reasoning.text", "thought", "redacted_thinking", "reasoning_content")
_FAILED = ("errors", "detail", "message", "msg", "errorMsg", "error_msg")
_MAX_DEPTH = 8
_MAX_LENIENT = 8 << 20  # bytes that Python's own parser is tried on
_MAX_COMMAS = 1_000_000  # numbers are small in JSON and large in memory
_EVENTS = (b"data:", b"event:", b": ")
_BOM = b"\xef\xbb\xbf"

# finish_reason as OpenAI words it, by what other servers call it.
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
    """Raises `msgspec.DecodeError` or `ValueError` where this is no chat completion, and no stream of one that a server
    sent under another content type."""
    if _is_stream(content):
        return _streamed(content)
    whole = _object(content)
    choice = _first(whole.get("choices")) or _of_another_api(whole)
    if choice is None:
        raise ReplyFormError("it has no choices")
    message = choice.get("message", choice.get("delta"))
    if message is None and not isinstance(choice.get("text"), str):
        raise ReplyFormError("its choice has no message")
    said = message if isinstance(message, dict) else {"content": message}
    usage, note = read_usage(whole.get("usage"))
    return Reply(
        _text(said) or _plain(choice.get("text")),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        finish_reason=_finish(choice) or "stop",
        note=note,
    )


def _is_stream(content: bytes) -> bool:
    return content.lstrip().startswith(_EVENTS)


def _streamed(content: bytes) -> Reply:
    written = _Written(lambda text: None)
    for line in content.splitlines():
        if line.startswith(b"data:") and not written.done:
            written.take_event(line[5:])
    return written.reply()


def _of_another_api(whole: Mapping[str, Any]) -> dict[str, Any] | None:
    """The reply of an API that a gateway did not translate: Ollama's own, TGI's, OpenAI's responses."""
    if isinstance(whole.get("message"), dict):
        return {"message": whole["message"], "finish_reason": whole.get("done_reason")}
    names = ("response", "generated_text", "output_text")
    text = next((whole[name] for name in names if isinstance(whole.get(name), str)), None)
    return None if text is None else {"text": text, "finish_reason": whole.get("done_reason")}


def check_failure(content: bytes) -> None:
    """Raise `ReportedError` for an error sent under status 200, as a whole reply or as an event of a stream.

    What cannot be read is left to the decoder.
    """
    try:
        check_values(content)
        if _is_stream(content):
            _streamed(content)
            return
        whole = _value(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return
    if isinstance(whole, list):  # Gemini
        whole = whole[0] if whole else None
    if isinstance(whole, dict) and (failure := _failure(whole)) is not None:
        raise ReportedError(_status(failure), content)


async def read_stream(events: AsyncIterator[bytes], on_text: Callable[[str], None]) -> Reply:
    """Return the reply whose pieces come as events.

    Args:
        events: The data of each event.
        on_text: Called with each piece of the text at once.

    Raises:
        ReportedError: The server reports a failure.
        ConnectionError: The stream ends before the reply does.
        ValueError: An event is no piece of a chat completion (`msgspec.DecodeError` is one).
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
    """A reply as far as its stream has come."""

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
            raise ReplyFormError("its choices are no list")
        self._usage = chunk.get("usage") or self._usage
        if (choice := _first(choices)) is None:
            return
        delta = choice.get("delta", choice.get("message"))
        said = delta if isinstance(delta, dict) else {"content": delta or choice.get("text")}
        self._reasoning.add(_reasoned(said))
        self.finish = _finish(choice) or self.finish
        self._show(_said(said))

    def _show(self, text: str) -> None:
        if text and (kept := self._texts.add(text)):
            self._on_text(kept)

    def reply(self) -> Reply:
        reasoning = self._reasoning.whole()
        if not self._texts.whole().strip() and reasoning:
            self._show(f"<think>{reasoning}")
        usage, note = read_usage(self._usage)
        finish = "length" if self._texts.full else self.finish or "stop"
        return Reply(self._texts.whole(), usage.prompt_tokens, usage.completion_tokens, finish_reason=finish, note=note)


class _Pieces:
    """Pieces of a text of at most `MAX_REPLY_CHARS`; what is beyond is dropped."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = MAX_REPLY_CHARS
        self.full = False

    def add(self, piece: str) -> str:
        """Keeps what there is room for, and returns it."""
        self.full = self.full or len(piece) > self._room
        kept = piece[: self._room]
        if kept:
            self._pieces.append(kept)
            self._room -= len(kept)
        return kept

    def whole(self) -> str:
        return "".join(self._pieces)


def decode_models(content: bytes) -> list[ModelInfo]:
    """The models of a list; entries without an id are passed over. Raises `ValueError` where this is no list."""
    whole = _value(content)
    listed = whole.get("data", whole.get("models")) if isinstance(whole, dict) else whole
    if not isinstance(listed, list):
        raise ReplyFormError("it has no list of models")
    entries = [one for one in listed if isinstance(one, dict) and isinstance(one.get("id"), str)]
    return [ModelInfo(one["id"], _parent(one), _window(one)) for one in entries]


def _parent(model: Mapping[str, Any]) -> str | None:
    parent = model.get("parent")  # vLLM, of an adapter
    return parent if isinstance(parent, str) else None


def _window(model: Mapping[str, Any]) -> int | None:
    """As vLLM and SGLang, OpenRouter, Groq, LM Studio and Mistral call it."""
    names = ("max_model_len", "context_length", "context_window", "max_context_length", "max_context_window")
    found = (model.get(name) for name in names)
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool) and one > 0), None)


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
    value = _value(content)
    if isinstance(value, list) and len(value) == 1:  # Gemini
        value = value[0]
    if not isinstance(value, dict):
        raise ReplyFormError("it is no JSON object")
    return value


def _first(choices: Any) -> dict[str, Any] | None:
    return next((one for one in choices if isinstance(one, dict)), None) if isinstance(choices, list) else None


# Texts


def _text(message: Mapping[str, Any]) -> str:
    """The content. A server that took all of a reply for reasoning left none: then the reasoning, marked as such."""
    said = _said(message)
    if said.strip():
        return said
    reasoning = _reasoned(message)
    return f"<think>{reasoning}" if reasoning.strip() else _called(message) or said


def _said(message: Mapping[str, Any]) -> str:
    """The content, or the words of a refusal."""
    return _plain(message.get("content")) or _plain(message.get("refusal"))


def _reasoned(message: Mapping[str, Any]) -> str:
    return next((text for name in _REASONING if (text := _plain(message.get(name), thinking=True))), "")


def _plain(value: Any, *, thinking: bool = False, depth: int = 0) -> str:
    """The text in a value: a string, parts, or an object around either; parts of thinking only where asked for."""
    if isinstance(value, str):
        return value
    if depth >= _MAX_DEPTH:
        return ""
    if isinstance(value, list):
        return "".join(_plain(one, thinking=thinking, depth=depth + 1) for one in value)
    if not isinstance(value, dict) or (not thinking and value.get("type") in _THINKING_PARTS):
        return ""
    names = (name for name in _TEXTS if value.get(name))
    return _plain(value.get(next(names, "")), thinking=thinking, depth=depth + 1)


def _called(message: Mapping[str, Any]) -> str:
    """The arguments of tool calls: a server with a tool parser takes a JSON reply for one."""
    calls = message.get("tool_calls")
    functions = [one.get("function") for one in calls if isinstance(one, dict)] if isinstance(calls, list) else []
    found = [one for one in (*functions, message.get("function_call")) if isinstance(one, dict)]
    given = (one.get("arguments") for one in found)
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in given if one)


def _finish(choice: Mapping[str, Any]) -> str:
    """The reason in OpenAI's words; empty where there is none yet."""
    reason = choice.get("finish_reason") or choice.get("stop_reason") or choice.get("done_reason")
    if not isinstance(reason, str) or not reason.strip():
        return "stop" if reason is not None and not isinstance(reason, str) else ""
    reason = reason.strip().lower()
    return _FINISHES.get(reason, reason)


# Failures


def _failure(whole: Mapping[str, Any]) -> Any:
    """The error that a reply or an event is; None where it is none."""
    choice = _first(whole.get("choices"))
    for one in (whole.get("error"), choice and choice.get("error")):
        if one:
            return one
    if whole.get("object") == "error":
        return whole
    return _of_a_gateway(whole) if whole.get("choices") is None and "usage" not in whole else None


def _of_a_gateway(whole: Mapping[str, Any]) -> Any:
    """An error without the name: `{"code": 500, "msg": …}`, `{"base_resp": {"status_code": …}}`, `{"detail": …}`."""
    base = whole.get("base_resp")
    if isinstance(base, dict) and base.get("status_code"):
        return {"code": base.get("status_code"), "message": base.get("status_msg")}
    if _of_another_api(whole):
        return None
    return whole if any(whole.get(name) for name in _FAILED) else None


def _status(failure: Any) -> int:
    """The status that an error would have had: its code, or what its type says; 500 where neither tells."""
    if not isinstance(failure, dict):
        return 500
    for name in ("code", "status", "status_code", "type"):
        found = _status_of(failure.get(name))
        if found:
            return found
    return 500


def _status_of(code: Any) -> int:
    if isinstance(code, str) and code.isdecimal() and len(code) < 6:
        code = int(code)
    if isinstance(code, int | float) and not isinstance(code, bool):
        return int(code) if 400 <= code < 600 else 0
    word = code.lower() if isinstance(code, str) else ""
    return next((status for part, status in _STATUSES.items() if part in word), 0)
