"""Chat model that replies from a script, for tests and for demonstrations without a model.

    ScriptedChat(["first reply", "second reply"])              in this order, for all agents
    ScriptedChat({"plan": ["…", "…"], "answer": ["…"]})        in order per role
    ScriptedChat({r"Who directed Alpha": "…"})                 by a pattern in the prompt, any number of times
    ScriptedChat(lambda messages: "…")                         computed

A role is the agent that the system message names: "You are the Plan Agent …" is `plan`. In a mapping, a key that is one
lower-case word is a role; any other key is a regular expression, searched in all messages. The entries of a list are
used in order, once each; a single string is used repeatedly.

A file (`scripted:FILE`) holds the same as JSON, or one entry per line as JSON Lines. An entry is a string, or an
object:

    {"reply": "…", "role": "plan", "match": "regex", "repeat": true, "finish_reason": "stop",
     "prompt_tokens": 0, "completion_tokens": 0}

Only `reply` is required. The reply is the first matching entry that has not been used up. If no entry matches,
`ReplayError` is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from pyrag._io.lines import lines_of
from pyrag.errors import DataError, ReplayError
from pyrag.llm.protocol import Message, Reply, Sampling

Script = Callable[[Sequence[Message]], "str | Reply"]

DEFAULT_SAMPLING = Sampling()
_ROLE = re.compile(r"\b(\w+) Agent\b")
_ROLE_KEY = re.compile(r"[a-z]+")


@dataclass(slots=True)
class _Entry:
    reply: str
    role: str = ""
    match: str = ""
    repeat: bool = False
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def fits(self, role: str, prompt: str) -> bool:
        return self.role in ("", role) and (not self.match or re.search(self.match, prompt) is not None)


class ScriptedChat:
    """Chat model that replies from a script; `calls` keeps the messages of every call, for assertions.

    Raises `DataError` if the script is malformed.
    """

    def __init__(
        self, replies: Iterable[str | Mapping[str, Any]] | Mapping[str, Any] | Script, *, name: str = "scripted"
    ) -> None:
        self.name = name
        self.calls: list[tuple[Message, ...]] = []
        self._script = replies if callable(replies) else None
        self._entries = [] if callable(replies) else _entries(replies, name)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return a model with the script of a `.json` or `.jsonl` file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise DataError(f"cannot read the script {path}: {reason}") from error
        return cls(_parsed(text, str(path)), name=f"scripted:{path}")

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        """Return the first reply that matches.

        Args:
            messages: The conversation.
            sampling: Ignored.

        Raises:
            ReplayError: No reply matches.
        """
        self.calls.append(tuple(messages))
        if self._script is not None:
            reply = self._script(messages)
            return reply if isinstance(reply, Reply) else Reply(reply)
        entry = self._next(messages)
        return Reply(entry.reply, entry.prompt_tokens, entry.completion_tokens, entry.finish_reason)

    async def aclose(self) -> None:
        """Do nothing."""

    def _next(self, messages: Sequence[Message]) -> _Entry:
        role, prompt = role_of(messages), "\n".join(message.content for message in messages)
        for entry in self._entries:
            if entry.fits(role, prompt):
                if not entry.repeat:
                    self._entries.remove(entry)
                return entry
        asked = " ".join(messages[-1].content.split())[-120:] if messages else ""
        who = f" for the {role} agent" if role else ""
        raise ReplayError(f"{self.name} has no reply left{who}, asked …{asked!r}: add one to the script")


def role_of(messages: Sequence[Message]) -> str:
    """Return the agent that the system message names, in lower case; empty if it names none."""
    system = next((message.content for message in messages if message.role == "system"), "")
    role = _ROLE.search(system)
    return role[1].lower() if role else ""


def _parsed(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    entries = []
    for number, line in enumerate(lines_of(text), start=1):
        if line.strip():
            try:
                entries.append(json.loads(line))
            except ValueError as error:
                raise DataError(f"{path} line {number} is not JSON ({error}): write one reply per line") from error
    return entries


def _entries(replies: Any, name: str) -> list[_Entry]:
    if isinstance(replies, Mapping) and "reply" not in replies:
        items = [pair for key, value in replies.items() for pair in _of_key(key, value)]
    elif isinstance(replies, Iterable) and not isinstance(replies, str | Mapping):
        items = list(replies)
    else:
        items = [replies]
    return [_entry(value, f"{name}, reply {number}") for number, value in enumerate(items, start=1)]


def _of_key(key: str, value: Any) -> list[Any]:
    chosen = {"role" if _ROLE_KEY.fullmatch(key) else "match": key}
    if isinstance(value, str):
        return [{"reply": value, "repeat": True, **chosen}]
    return [{**(reply if isinstance(reply, Mapping) else {"reply": reply}), **chosen} for reply in value]


def _entry(value: Any, where: str) -> _Entry:
    entry_fields = dict(value) if isinstance(value, Mapping) else {"reply": value}
    known = {field.name for field in fields(_Entry)}
    if unknown := sorted(entry_fields.keys() - known):
        raise DataError(f"{where}: unknown key {unknown[0]!r}: use {', '.join(sorted(known))}")
    entry = _Entry(**{"reply": None, **entry_fields})
    if not isinstance(entry.reply, str):
        raise DataError(f"{where}: a reply must be a string, not {entry.reply!r}")
    try:
        re.compile(entry.match)
    except (re.error, TypeError) as error:
        raise DataError(f"{where}: {entry.match!r} is not a regular expression ({error})") from error
    return entry
