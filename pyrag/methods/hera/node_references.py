"""Ids of a topology's agents as Python names, and references to agents, normalised to the form `{id}`.

Models also write `{director.answer}`, `[director]`, `${director}`, `{answer of director}` or the agent's number.
`topology_replies` checks which agents an agent may refer to.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrag.errors import BadOutputError
from pyrag.methods.hera.topology import PRIMITIVE_OF
from pyrag_helpers import HELPERS

REFERENCE = re.compile(r"\{(\w+)\}")
_RESERVED = frozenset((*dir(builtins), *PRIMITIVE_OF.values(), *HELPERS, *keyword.kwlist, "final_answer"))
_BRACKETED = re.compile(
    r"\$?(?:\{{1,2}(?P<curly>[^{}\n]{1,60})\}{1,2}|\[{1,2}(?P<square>[^\[\]{}\n]{1,60})\]{1,2}"
    r"|<(?P<angle>[^<>{}\[\]\n]{1,60})>)"
)
_MAX_NAME = 60
_OUTCOME = r"(?:answer|output|result|text|response|value)"
_SUFFIX = re.compile(rf"(?:[._'’]s?[\s_]?|\s){_OUTCOME}\Z", re.IGNORECASE)
_PREFIX = re.compile(rf"(?:the\s+)?{_OUTCOME}\s+(?:of|from|to|by)\s+(?:the\s+)?", re.IGNORECASE)
_QUESTION = frozenset(
    ("question", "query", "user_question", "original_question", "user_query", "user_input", "input", "user")
)
_NOTHING = frozenset(("", "none", "null", "n/a", "na", "-", "start", "root", "begin", *_QUESTION))


def node_name(value: Any, what: str) -> str:
    """Return an id as a Python name that hides no builtin, primitive, helper or keyword.

    Args:
        value: A number, or a text, of which the first 60 characters are used.
        what: Name of the field, for the error.

    Raises:
        BadOutputError: The value is neither a number nor a text, or is blank.
    """
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise BadOutputError(f"{what} must be a short name, not {repr(value)[:80]}")
    shown = str(value).strip()[:_MAX_NAME]
    letters = (char if char.isascii() or not char.isalnum() else f"u{ord(char):x}" for char in shown)
    name = re.sub(r"\W+", "_", "".join(letters), flags=re.ASCII)
    if not name[0].isalpha():  # programs may not bind names that start with "_"
        name = f"node_{name.lstrip('_')}"
    return f"{name}_" if name in _RESERVED else name


@dataclass(frozen=True, slots=True)
class NodeIds:
    """Names of the agents of a topology.

    `start` is the first agent's number in replies that number the agents; `aliases` maps other words to names.
    """

    names: tuple[str, ...]
    start: int = 1
    aliases: Mapping[str, str] = field(default_factory=dict)

    def find(self, value: Any) -> str | None:
        """Return the agent that an id, in any spelling, or a number refers to; None if there is no such agent."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        text = str(value).strip().strip("{}[]<>$ ")
        for spelling in (text, _SUFFIX.sub("", text), _PREFIX.sub("", text)):
            if spelling and (name := self._named(spelling)):
                return name
        return self._numbered(text) or self.aliases.get(node_name(text, "a reference").casefold() if text else "")

    def _named(self, text: str) -> str | None:
        name = node_name(text, "a reference").casefold()
        return next((candidate for candidate in self.names if candidate.casefold() == name), None)

    def _numbered(self, text: str) -> str | None:
        place = int(text) - self.start if text.isdecimal() and len(text) <= 3 else -1
        return self.names[place] if 0 <= place < len(self.names) else None


def is_nothing(value: Any) -> bool:
    """Return True if a dependency is not an agent but the question, the start, or an empty word."""
    if not isinstance(value, str):
        return value is None
    return value.strip().strip("{}[]").strip().casefold().replace(" ", "_") in _NOTHING


def referring(text: str, ids: NodeIds, question: str) -> str:
    """Return a text with every reference in the form `{id}`, and with the question in place of its name.

    Args:
        text: A text with references in any form. References to unknown agents are left unchanged.
        ids: Names of the topology's agents.
        question: Replacement for `{question}` and similar references.
    """

    def replaced(match: re.Match[str]) -> str:
        content = next(filter(None, match.groups())).strip()
        if name := ids.find(content if match["curly"] else content if not content.isdecimal() else ""):
            return f"{{{name}}}"
        is_question = match["curly"] and content.casefold().replace(" ", "_") in _QUESTION
        return question if is_question else match[0]

    return _BRACKETED.sub(replaced, text)


def with_braces(code: str, names: Sequence[str]) -> str:
    """Return an expression with agents' bare ids turned into references; unchanged if it cannot be parsed.

    Args:
        code: A Python expression. If it is not ASCII, it is returned unchanged.
        names: Ids of the agents.
    """
    try:
        tree = ast.parse(code, mode="eval") if code.isascii() else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    nodes = list(ast.walk(tree)) if tree else []
    braced = {id(node.elts[0]) for node in nodes if isinstance(node, ast.Set) and len(node.elts) == 1}
    bare = [node for node in nodes if isinstance(node, ast.Name) and node.id in names and id(node) not in braced]
    for node in sorted(bare, key=lambda node: -node.col_offset):
        code = f"{code[: node.col_offset]}{{{node.id}}}{code[node.end_col_offset :]}"
    return code


def start_of(dependencies: Sequence[Any], names: Sequence[str]) -> int:
    """Return the number of the first agent, judged by dependencies that are numbers: 0 if one of them is 0, else 1.

    Args:
        dependencies: All dependencies of the topology, as written.
        names: Ids of the agents. If one of them is `node_0`, 0 is a name rather than a number.
    """
    numbers = {str(item).strip() for item in dependencies if isinstance(item, str | int) and not isinstance(item, bool)}
    return 0 if "0" in numbers and "node_0" not in names else 1


def references(text: str) -> list[str]:
    return REFERENCE.findall(text)


def unbraced(text: str, words: Mapping[str, str]) -> str:
    """Return a text with some references replaced by words; empty if it has no other content.

    Args:
        text: A text with references as `{id}`.
        words: Replacements by id; other references are left unchanged.
    """
    rest = REFERENCE.sub(lambda match: "" if match[1] in words else match[0], text)
    if not re.search(r"\w", rest):
        return ""
    return " ".join(REFERENCE.sub(lambda match: words.get(match[1], match[0]), text).split())
