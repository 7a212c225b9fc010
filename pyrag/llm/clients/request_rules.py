"""Rules for requests to one server, learnt from its refusals.

`RequestRules` is immutable. It turns pyrag's request into one that the server accepts, and a refusal into additional
rules. A server that refuses nothing receives all requests unchanged. Refusals are parsed in
`pyrag.llm.clients.refusals`; support for schemas and patterns is handled in `pyrag.llm.schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pyrag.llm.clients.refusals import MIN_REPLY_TOKENS, Refusal, RoleRule, TokenLimits, read_limits
from pyrag.llm.context import about_tokens

Body = Mapping[str, Any]
LIMITS = ("max_tokens", "max_completion_tokens")
MAX_REFUSALS = 12  # maximum refusals of one request, each of which teaches another rule
_ESSENTIAL = frozenset({"model", "messages", "stream", "response_format", "structured_outputs"})
_KNOWN_EVERYWHERE = frozenset({*_ESSENTIAL, *LIMITS, "temperature", "top_p", "stop", "seed"}) - {"structured_outputs"}
_CONTINUES = ("continue_final_message", "add_generation_prompt")
_UNSAID = frozenset({*LIMITS, *_CONTINUES, "stream_options"})  # fields whose loss is not reported
_MIN_TEMPERATURE = 0.01  # for servers that refuse 0
_MIN_JUDGED = 64  # minimum tokens of a prompt; a shorter one consists mostly of the template around it
_MARGIN = 16  # tokens of a chat template around a prompt


@dataclass(frozen=True, slots=True)
class ReplyGuess:
    """Estimated limit on replies to prompts of at least a length, both in tokens. Shorter prompts may leave more."""

    reply: int
    prompt: int


@dataclass(frozen=True, slots=True)
class RequestRules:
    """Fields that one server refuses (`dropped`), and the form of messages and limits that it accepts instead."""

    dropped: frozenset[str] = frozenset()
    role_rules: frozenset[RoleRule] = frozenset()
    raised_temperature: bool = False
    streams: bool = False
    no_thinking: bool = False
    max_reply: int | None = None  # tokens
    window: int | None = None  # tokens
    overhead: int = _MARGIN  # tokens of a prompt beyond the estimate from its length; a success lowers it
    overhead_at: int = 0  # estimated tokens of the prompt with that overhead
    this_reply: int | None = None  # tokens; for one request only
    guess: ReplyGuess | None = None  # for a server that states no numbers

    def apply(self, body: Body) -> dict[str, Any]:
        """Return the request in the form that the server accepts."""
        if self is NO_RULES:
            return dict(body)
        sent = self._limited(dict(body))
        if self.raised_temperature and "temperature" in sent:
            sent["temperature"] = max(sent["temperature"], _MIN_TEMPERATURE)
        if self.no_thinking and not sent.get("stream"):
            sent["enable_thinking"] = False
        if self.streams:
            sent["stream"] = True
        if self.role_rules:
            sent["messages"] = _rewritten(sent["messages"], self.role_rules)
            if sent["messages"][-1:] and sent["messages"][-1]["role"] != "assistant":
                sent = {name: value for name, value in sent.items() if name not in _CONTINUES}
        return {name: value for name, value in sent.items() if name not in self.dropped} if self.dropped else sent

    def after(self, refusal: Refusal, body: Body, sent: Body) -> RequestRules | None:
        """Return these rules extended by those that a refusal teaches, or None if they would not change the request.

        Args:
            refusal: The refusal.
            body: The request as pyrag writes it.
            sent: The request as it was sent under these rules.
        """
        modes = [replace(self, no_thinking=True)] if refusal.thinks_too_much else []
        modes += [replace(self, streams=True)] if refusal.stream_only else []
        smaller = self._smaller(refusal, sent)
        lessons = (*modes, *smaller, *self._without(refusal, sent), *self._with_roles(refusal, sent))
        return next((rules for rules in lessons if rules.apply(body) != sent), None)

    def joined(self, other: RequestRules) -> RequestRules:
        """Return both sets of rules together, without the limit of a single request."""
        return RequestRules(
            self.dropped | other.dropped,
            self.role_rules | other.role_rules,
            self.raised_temperature or other.raised_temperature,
            self.streams or other.streams,
            self.no_thinking or other.no_thinking,
            min((size for size in (self.max_reply, other.max_reply) if size), default=None),
            min((size for size in (self.window, other.window) if size), default=None),
            *max((self.overhead, self.overhead_at), (other.overhead, other.overhead_at)),
            guess=other.guess or self.guess,
        )

    def after_success(self, body: Body, prompt_tokens: int) -> RequestRules:
        """Return these rules after a reply, with the overhead reduced to the server's count.

        Args:
            body: The request as pyrag writes it.
            prompt_tokens: Tokens of the prompt, as counted by the server; 0 if it does not count them.
        """
        if self.overhead == _MARGIN or not prompt_tokens or (estimated := _estimated(body)) < _MIN_JUDGED:
            return self
        return replace(self, overhead=max(_MARGIN, min(self.overhead, prompt_tokens - estimated)))

    def lost(self, before: RequestRules, body: Body) -> list[str]:
        """Return the fields that are newly omitted, except those that users do not set.

        Args:
            before: The former rules.
            body: The request as pyrag writes it.
        """
        return sorted((self.dropped - before.dropped - _UNSAID) & body.keys())

    def _limited(self, body: dict[str, Any]) -> dict[str, Any]:
        name = next((limit_name for limit_name in LIMITS if limit_name in body), None)
        if name is None:
            return body
        limit, other = body[name], next(limit_name for limit_name in LIMITS if limit_name != name)
        guess = self.guess.reply if self.guess is not None and _estimated(body) >= self.guess.prompt else None
        limit = min(
            limit, *(other_limit or limit for other_limit in (self.max_reply, self._room(body), self.this_reply, guess))
        )
        renamed = other if name in self.dropped and other not in self.dropped else name
        return {renamed if key == name else key: limit if key == name else value for key, value in body.items()}

    def _room(self, body: Body) -> int | None:
        """Return the number of tokens that a prompt leaves for its reply; None if the window is unknown.

        The overhead is scaled down for a prompt that is shorter than the one it was measured on, and never takes more
        than half of the room that the prompt's length leaves.
        """
        if self.window is None:
            return None
        estimated = _estimated(body)
        plain = self.window - estimated - _MARGIN
        share = min(1.0, estimated / self.overhead_at) if self.overhead_at else 1.0
        minimum = plain // 2 if estimated >= _MIN_JUDGED else 0
        return max(plain - int((self.overhead - _MARGIN) * share), minimum, MIN_REPLY_TOKENS)

    def _smaller(self, refusal: Refusal, sent: Body) -> list[RequestRules]:
        """Return rules with a limit that the server accepts, if it refused the limit and a reply is still useful."""
        asked = next((sent[name] for name in LIMITS if name in sent), None)
        limits = read_limits(refusal, asked) if asked else None
        if limits is None or asked is None:
            return []
        if limits.window:
            return self._within(limits, asked, sent)
        if limits.reply:
            return [replace(self, max_reply=limits.reply)] if limits.reply >= MIN_REPLY_TOKENS else []
        guess = ReplyGuess(asked // 4, _estimated(sent))  # one or two guesses suffice
        return [replace(self, guess=guess)] if guess.reply >= MIN_REPLY_TOKENS else []

    def _within(self, limits: TokenLimits, asked: int, sent: Body) -> list[RequestRules]:
        window, estimated = limits.window or 0, _estimated(sent)
        guess = estimated + self.overhead
        if limits.prompt and limits.prompt > window - MIN_REPLY_TOKENS:
            return []
        exact = window - limits.prompt - 1 if limits.prompt else asked
        rooms = (exact, min(window - guess, asked // 2))
        room = next((room for room in rooms if MIN_REPLY_TOKENS <= room < asked), 0)
        overhead = max(self.overhead, window - room - guess + self.overhead)
        at = estimated if overhead > self.overhead else self.overhead_at
        return [replace(self, window=window, overhead=overhead, overhead_at=at, this_reply=room)] if room else []

    def _without(self, refusal: Refusal, sent: Body) -> list[RequestRules]:
        named = refusal.fields(sent.keys() - {"model", "messages"})
        if not self.raised_temperature and "temperature" in named and _wants_more(refusal, sent):
            return [replace(self, raised_temperature=True)]
        if "temperature" in named and refusal.fields({"top_p"} & sent.keys()):
            named = ("top_p",)  # "cannot both be specified"
        if not named and self.dropped & {*LIMITS} and refusal.fields(LIMITS):
            named = LIMITS  # the other name is refused with the same words
        if not named and refusal.unnamed:
            named = tuple(sent.keys() - _KNOWN_EVERYWHERE)
        dropped = {*named} - _ESSENTIAL
        return [replace(self, dropped=self.dropped | dropped)] if dropped else []

    def _with_roles(self, refusal: Refusal, sent: Body) -> list[RequestRules]:
        # Templates without system messages also complain about roles that do not alternate.
        turns: RoleRule = "alternate" if _repeat(sent["messages"]) else "system"
        rules = (turns if rule == "alternate" else rule for rule in refusal.role_rules())
        return [replace(self, role_rules=self.role_rules | {rule}) for rule in rules]


NO_RULES = RequestRules()


def _estimated(body: Body) -> int:
    return sum(about_tokens(str(message["content"])) for message in body["messages"])


def _wants_more(refusal: Refusal, sent: Body) -> bool:
    return sent["temperature"] == 0 and any(
        word in refusal.words for word in ("positive", "greater than 0", "> 0", "(0,", "larger than 0", "bigger than 0")
    )


def _rewritten(messages: list[dict[str, Any]], rules: frozenset[RoleRule]) -> list[dict[str, Any]]:
    """Return messages rewritten by the rules for roles. Each rule counts as applied if it changes something."""
    messages = list(messages)
    prefilled = len(messages) > 1 and messages[-1]["role"] == "assistant"
    if prefilled and "last" in rules:
        messages[-1] = {**messages[-1], "role": "user"}
    elif prefilled and "prefix" in rules:
        messages[-1] = {**messages[-1], "prefix": True}
    if prefilled and "trailing" in rules:
        messages[-1] = {**messages[-1], "content": messages[-1]["content"].rstrip()}
    if "system" in rules:
        messages = [{**message, "role": "user"} if message["role"] == "system" else message for message in messages]
    elif "developer" in rules:
        messages = [
            {**message, "role": "developer"} if message["role"] == "system" else message for message in messages
        ]
    return _merged(messages) if rules & {"system", "alternate", "last"} else messages


def _repeat(messages: list[dict[str, Any]]) -> bool:
    return any(message["role"] == other["role"] for message, other in pairwise(messages))


def _merged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with consecutive messages of one role joined."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1] = {**merged[-1], "content": f"{merged[-1]['content']}\n\n{message['content']}"}
        else:
            merged.append(message)
    return merged
