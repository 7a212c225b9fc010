"""Cause of a refused request, if the server names it: a field, a role, or a limit that is too large.

Wordings differ between servers. A refusal is parsed in three steps: the places that a server names explicitly (`param`
of OpenAI, `loc` of FastAPI), names of sent fields in its text, and phrases about roles. Numbers are taken from
sentences about windows and limits. Only the beginning of the body is parsed, which the error holds as its `detail`.

`pyrag.llm.clients.request_rules` decides how later requests are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pyrag.errors import PermanentServiceError

RoleRule = Literal["developer", "system", "alternate", "prefix", "last", "trailing"]

_STATUSES = (400, 404, 413, 415, 422, 429, 500, 501)
_ECHOES = frozenset(
    {"input", "body", "request", "ctx", "url", "traceback", "stack"}
)  # keys under which servers repeat requests
_PLACES = frozenset({"param", "parameter", "field", "loc"})
_MAX_DEPTH = 8

# Alternative names of a field that servers use, in lower case.
_ALIASES: dict[str, tuple[str, ...]] = {
    "max_tokens": ("max_new_tokens", "maxtokens", "maxtokencount", "maxoutputtokens", "max_output_tokens"),
    "top_p": ("topp", "top-p"),
    "stop": ("stop_sequences", "stopsequences", "stop sequences", "stop words", "stop tokens"),
    "seed": ("random_seed", "random seed"),
    "temperature": ("temperatur",),
    "response_format": (
        *("json_schema", "json schema", "response_schema", "responseschema", "response format", "guided_json"),
        *("structured output", "json mode", "json_object", "additionalproperties"),
    ),
    "structured_outputs": (
        "structured output",
        "guided_regex",
        "guided decoding",
        "guided_decoding",
        "regex",
        "json schema",
        "grammar",
        "xgrammar",
        "outlines",
    ),
    "stream_options": ("streamoptions", "stream options", "include_usage"),
    "continue_final_message": ("continue final message",),
    "add_generation_prompt": ("add generation prompt",),
    "reasoning_effort": ("reasoning effort", "reasoning.effort"),
    "chat_template_kwargs": ("enable_thinking", "chat template kwargs"),
}
_COMMON_WORDS = frozenset({"stop", "stream", "seed", "reasoning", "tools", "n", "user", "thinking"})

_DENIES = re.compile(
    r"not\b|n't\b|n’t\b|cannot|unsupport|unknown|unrecogni|unexpected|unavailable|invalid|illegal|only\b|must\b|should\b"
    r"|extra\b|deprecat|remove|disallow|forbid|prohibit|reject|refuse|exceed|too (?:large|big|high|low|small|many|long)"
    r"|greater|less\b|between|range|at most|maximum|minimum|expected|incompatib|conflict|mutually|instead|require"
    r"|disabled|no such|fail|wrong|bigger|higher|larger|unable|positive|[^\x00-\x7f]"
)
_UNNAMED = re.compile(
    r"extra (?:inputs?|fields?|properties)|unexpected (?:fields?|keys?|propert|keyword)|additional propert"
    r"|(?:unknown|unrecogni[sz]ed|unsupported|invalid|illegal) (?:request )?(?:arg|field|param|propert|key|option|name)"
    r"|(?:support|handle) the requested param|does(?:n't| not) support (?:the )?(?:requested )?param|参数"
)
# "Unknown name "a": … Unknown name "b"", "parameters: ['a', 'b']": every name in them is refused.
_LISTED = re.compile(r"unknown name \"([\w.]+)\"|\"?param(?:eter)?\"? ?: ?\"([\w.\[\]]+)\"")
_LISTS = re.compile(
    r"(?<!\bsupported )(?<!\ballowed )(?<!\bvalid )(?:parameters?|params|fields?|arguments?|properties|options?)"
    r"[^\[{:]{0,40}[:]? ?[\[{]([^\]}]{1,400})"
)
_EMPTY_WORDS = {
    *("bad", "request", "badrequest", "invalid", "invalid_request_error", "badrequesterror", "error", "http", "status"),
    *("unprocessable", "entity", "validation", "failed", "provider", "returned", "upstream", "code", "none", "null"),
}  # words of a refusal that names no cause
_STREAM_ONLY = re.compile(
    r"only supports? (?:the )?(?:stream|streaming)|stream=true|stream['\"`]? (?:must|should) be (?:set to )?true"
    r"|streaming is required|enable the stream param"
)
_NO_THINKING = re.compile(r"enable[_ ]thinking.{0,80}(?:false|stream)")

_SYSTEM_ROLE = re.compile(
    r"system (?:role|message|prompt|instruction)|(?:role|roles)[^.]{0,60}\bsystem\b"
    r"|\bsystem\b['\"`]? (?:is not|role|as)"
    r"|developer instruction|developer (?:role|message)|(?:variant|role|value):? ?['\"`](?:system|developer)"
    r"|input should be ['\"`]?(?:user|assistant)"
    r"|only (?:the )?['\"`]?user['\"`]?,? (?:and|or) ['\"`]?(?:assistant|model)"
    r"|['\"`](?:system|developer)['\"`] (?:is not|was not|does not)|first (?:message|role|turn)[^.]{0,40}\buser\b"
    r"|start with a? ?['\"`]?user|support ['\"`](?:system|developer)['\"`]|must be user|only user, assistant"
    r"|(?:supported|allowed|valid|permitted|invalid|unknown|unsupported|unexpected) (?:message )?roles?\b"
    r"|\brole\b['\"`]? (?:must|should) be|\brole\b[^.]{0,20} not (?:supported|allowed|valid)"
)
_DEVELOPER_INSTEAD = re.compile(r"use (?:the )?(?:role )?['\"`]?developer|['\"`]?developer['\"`]? (?:role )?instead")
_ALTERNATION = re.compile(
    r"alternat|consecutive (?:messages|user|assistant|roles?)|same role|roles? must be (?:different|interleaved)"
    r"|one after (?:the other|another)|user/assistant/user"
)
_LAST_ROLE = re.compile(
    r"last role|last message|final message|conversation must end|must end with (?:a |the )?user|prefill|pre-fill"
    r"|assistant messages? at the end|end(?:s|ing)? (?:in|with) an? assistant|last turn"
)
_TRAILING_SPACE = re.compile(r"trailing whitespace")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refused request: `places` are the causes that the server names, `words` its sentences in lower case."""

    status: int
    places: tuple[str, ...]
    words: str
    silent: bool = False  # its message is empty

    def fields(self, sent: Collection[str]) -> tuple[str, ...]:
        """Return the fields among `sent` that the server names as the cause; in prose, only the first of them."""
        named = tuple(dict.fromkeys(field for place in self.places for field in sent if _is_at(place, field)))
        if named or not _DENIES.search(self.words):
            return named
        places = {field: place for field in sent if (place := _place(self.words, field)) >= 0}
        return (min(places, key=places.__getitem__),) if places else ()

    @property
    def unnamed(self) -> bool:
        """True if the server rejects a field without naming it, or names no cause at all."""
        return bool(_UNNAMED.search(self.words)) or not {*re.findall(r"[^\W\d]+", self.words)} - _EMPTY_WORDS

    @property
    def stream_only(self) -> bool:
        """True if the server demands `stream: true`."""
        return bool(_STREAM_ONLY.search(self.words))

    @property
    def thinks_too_much(self) -> bool:
        """True if the server demands `enable_thinking: false`, as DashScope does outside streams."""
        return bool(_NO_THINKING.search(self.words))

    def role_rules(self) -> tuple[RoleRule, ...]:
        """Return the rules for messages that may have been broken, most likely first."""
        words = self.words
        if self.silent:
            return ("system",)  # vLLM sends an empty message if a chat template fails
        if not _DENIES.search(words):
            return ()
        rules: list[RoleRule] = []
        if _TRAILING_SPACE.search(words):
            rules.append("trailing")
        if _LAST_ROLE.search(words):
            rules += ["prefix", "last"] if "prefix" in words else ["last"]
        if _ALTERNATION.search(words):
            rules.append("alternate")
        if _SYSTEM_ROLE.search(words) or any(place.endswith("role") for place in self.places):
            rules += ["developer", "system"] if _DEVELOPER_INSTEAD.search(words) else ["system"]
        return tuple(rules)


def read_refusal(error: PermanentServiceError) -> Refusal | None:
    """Parse a refusal; return None if its status shows that changing the request would not help."""
    if error.status not in _STATUSES:
        return None
    try:
        value = json.loads(error.detail)
    except (ValueError, RecursionError):
        value = error.detail
    places: list[str] = []
    sentences = list(_strings(value, places))
    words = " ".join(sentences).replace("\\", "").lower()
    places += [label for groups in _LISTED.findall(words) for label in groups if label]
    places += [label for listed in _LISTS.findall(words) for label in re.findall(r"['\"`]([\w.]+)['\"`]", listed)]
    return Refusal(error.status, tuple(place.lower() for place in places), words, _is_silent(value))


def _is_silent(value: Any) -> bool:
    inner = value.get("error", value) if isinstance(value, dict) else None
    return isinstance(inner, dict) and inner.get("message") == ""


def _strings(value: Any, places: list[str], depth: int = 0) -> Iterator[str]:
    """Yield the sentences of an error body, without the parts that repeat the request.

    The fields that the body names are added to `places`.
    """
    if isinstance(value, str):
        yield value
    elif depth >= _MAX_DEPTH:
        return
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in _PLACES:
                places += _path(inner)
            elif key not in _ECHOES:
                yield from _strings(inner, places, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, places, depth + 1)


def _path(place: Any) -> list[str]:
    if isinstance(place, str):
        return [place]
    parts = [str(part) for part in place if part != "body"] if isinstance(place, list) else []
    return [".".join(parts)] if parts else []


def _is_at(place: str, field: str) -> bool:
    """Return True if a place is the field itself or a part of it: `response_format.type`, `body.stop.0`."""
    place = place.removeprefix("body.")
    head = re.split(r"[.\[]", place, maxsplit=1)[0]
    return head == field or head in _ALIASES.get(field, ())


def _place(words: str, field: str) -> int:
    """Return the position at which a field is first named, or -1."""
    names = (field, *_ALIASES.get(field, ()))
    if field in _COMMON_WORDS:  # an ordinary word counts only in quotes or beside "parameter"
        pattern = (
            rf"['\"`\[]{field}['\"`\]]|\b{field}:|: {field}\b|\b{field} (?:param|arg|field|option)|param\w* {field}\b"
        )
        named = re.search(pattern, words)
        names, first = names[1:], named.start() if named else -1
    else:
        first = -1
    places = [match.start() for name in names if (match := re.search(rf"(?<![a-z0-9_]){re.escape(name)}", words))]
    return min([*places, first] if first >= 0 else places, default=-1)


# Limits

_INTEGER = r"(?<![\w.-])(\d+)(?![\w-]|\.\d)"
_NAMES_LIMIT = re.compile(
    r"max[_ ]?(?:completion|new|output)?[_ ]?tokens|maximum tokens|maxoutputtokens|maxtokencount"
    r"|(?:completion|output|new) tokens|in the (?:completion|output)|for the completion|max_model_len"
)
_TOO_LARGE = re.compile(
    r"too (?:large|big|high|many)|exceed|less than|lower than|smaller|range|at most|maximum|greater than|larger than"
    r"|between|<=|>|\bup to\b|\blimit\b|取值|范围"
)
_EACH_REQUEST = re.compile(r"too large.{0,300}?limit (\d+), requested (\d+)")  # Groq and OpenAI, of tokens a minute
_OR_COMPLETION = re.compile(r"(?:messages|prompt|input)[^.]{0,20} or (?:the )?(?:completion|output)")
_IS_CONTEXT = re.compile(
    r"context|`?inputs`? tokens|prompt|input (?:length|tokens)|sequence length|model[ _]len|model length"
    r"|total tokens?|too many tokens|tokens? (?:count|overall)|tokens in the messages|in the messages"
)
_SUM = re.compile(r"\d \+ \d+ > " + _INTEGER)
_WINDOW = re.compile(
    r"(?:context|model|sequence|total|maximum)[ _](?:length|window|size|limit|len)\b[^\d.]{0,60}?" + _INTEGER
    + r"|(?:must be|be) <= ?" + _INTEGER + r"|> ?" + _INTEGER + r"|" + _INTEGER + r" (?:maximum )?context"
    r"|n_ctx\W{1,4}" + _INTEGER + r"|limit (?:of|is) " + _INTEGER
)  # fmt: skip
_PROMPT = re.compile(
    _INTEGER + r"[^\d.,;]{0,12}? (?:in|from|of) (?:the |your )?(?:messages|prompt|input|text)"
    r"|" + _INTEGER + r" `?(?:inputs?|prompt|message)`?(?: tokens|,| and)"
    r"|input length and [^:]{0,60}: " + _INTEGER
    + r"|(?:prompt|input|messages?)[^\d.]{0,40}? " + _INTEGER + r"(?: input)? tokens"
)  # fmt: skip
_ROUGH_FIGURES = re.compile(r"at least|about|approximately|more than|over ")
MIN_REPLY_TOKENS = 64  # minimum reply length worth asking for


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """Limits that a refusal states, in tokens; None for a number that it does not state.

    Attributes:
        reply: Maximum tokens of a reply.
        window: Maximum tokens of prompt and reply together.
        prompt: Tokens of the prompt, as counted by the server.
    """

    reply: int | None = None
    window: int | None = None
    prompt: int | None = None


def read_limits(refusal: Refusal, asked: int) -> TokenLimits | None:
    """Return the limits that a refusal states, or None if it has another reason.

    Args:
        refusal: The refusal.
        asked: `max_tokens` of the refused request.
    """
    words = re.sub(r"(?<=\d)[,_ ](?=\d{3}\b)", "", refusal.words)
    if each := _EACH_REQUEST.search(words):
        return TokenLimits(window=int(each[1]), prompt=max(int(each[2]) - asked, 1))
    if not (_NAMES_LIMIT.search(words) or _names(words, asked)) or not _TOO_LARGE.search(words):
        return TokenLimits() if _OR_COMPLETION.search(words) else None
    window = _first(_SUM, words) or _first(_WINDOW, words)
    if _IS_CONTEXT.search(words) and window:
        prompt = None if _ROUGH_FIGURES.search(words) else _first(_PROMPT, words) or _total(words, window, asked)
        return TokenLimits(window=window, prompt=prompt)
    if _OR_COMPLETION.search(words):
        return TokenLimits()
    smaller = [figure for figure in map(int, re.findall(_INTEGER, words)) if MIN_REPLY_TOKENS <= figure < asked]
    if not smaller:
        return None
    exclusive = "exclusive" in words or (re.search(r"(?:less|lower|smaller) than(?! or)", words) is not None)
    return TokenLimits(reply=max(smaller) - exclusive)


def _first(pattern: re.Pattern[str], words: str) -> int | None:
    limit = pattern.search(words)
    return int(next(group for group in limit.groups() if group)) if limit else None


def _names(words: str, number: int) -> bool:
    return re.search(rf"(?<![\w.]){number}(?![\w])", words) is not None


def _total(words: str, window: int, asked: int) -> int | None:
    """Return the prompt's tokens: the total that the server reports, minus the requested reply tokens."""
    sums = [figure for figure in map(int, re.findall(_INTEGER, words)) if figure > window and figure > asked]
    return sums[0] - asked if sums else None
