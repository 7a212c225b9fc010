"""Ids of a topology's agents as Python names, and references to them in the one form `{id}`.

Models write `{director.answer}`, `[director]`, `${director}`, `{answer of director}` or the agent's number. Left out:
whether an agent may refer to another (`topology_replies`).
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
_TAKEN = frozenset((*dir(builtins), *PRIMITIVE_OF.values(), *HELPERS, *keyword.kwlist, "final_answer"))
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


def node_name(said: Any, what: str) -> str:
    """Return an id as a Python name that hides no builtin, primitive, helper or keyword.

    Args:
        said: A text, of which the first 60 characters count, or a number.
        what: Name of the field, for the error.

    Raises:
        BadOutputError: `said` is neither, or blank.
    """
    if isinstance(said, bool) or not isinstance(said, str | int) or not str(said).strip():
        raise BadOutputError(f"{what} must be a short name, not {repr(said)[:80]}")
    shown = str(said).strip()[:_MAX_NAME]
    letters = (char if char.isascii() or not char.isalnum() else f"u{ord(char):x}" for char in shown)
    name = re.sub(r"\W+", "_", "".join(letters), flags=re.ASCII)
    if not name[0].isalpha():  # programs may not bind names that begin with "_"
        name = f"node_{name.lstrip('_')}"
    return f"{name}_" if name in _TAKEN else name


@dataclass(frozen=True, slots=True)
class Ids:
    """Names of the agents of one topology.

    `start` is the number of the first where they are numbered; `aliases` are other words for one of them.
    """

    names: tuple[str, ...]
    start: int = 1
    aliases: Mapping[str, str] = field(default_factory=dict)

    def find(self, said: Any) -> str | None:
        """The agent that an id, in any spelling, or a number means."""
        if isinstance(said, bool) or not isinstance(said, str | int):
            return None
        text = str(said).strip().strip("{}[]<>$ ")
        for one in (text, _SUFFIX.sub("", text), _PREFIX.sub("", text)):
            if one and (name := self._named(one)):
                return name
        return self._numbered(text) or self.aliases.get(node_name(text, "a reference").casefold() if text else "")

    def _named(self, text: str) -> str | None:
        name = node_name(text, "a reference").casefold()
        return next((one for one in self.names if one.casefold() == name), None)

    def _numbered(self, text: str) -> str | None:
        place = int(text) - self.start if text.isdecimal() and len(text) <= 3 else -1
        return self.names[place] if 0 <= place < len(self.names) else None


def is_nothing(said: Any) -> bool:
    """True for a dependency that is none: the question, the start, or no word at all."""
    if not isinstance(said, str):
        return said is None
    return said.strip().strip("{}[]").strip().casefold().replace(" ", "_") in _NOTHING


def referring(text: str, ids: Ids, question: str) -> str:
    """Return a text with every reference as `{id}`, and the question in the place of its name.

    Args:
        text: A text with references in any form; those to no known agent stay as they are.
        ids: The agents of the topology.
        question: The text put for `{question}` and the like.
    """

    def found(one: re.Match[str]) -> str:
        content = next(filter(None, one.groups())).strip()
        if name := ids.find(content if one["curly"] else content if not content.isdecimal() else ""):
            return f"{{{name}}}"
        asked = one["curly"] and content.casefold().replace(" ", "_") in _QUESTION
        return question if asked else one[0]

    return _BRACKETED.sub(found, text)


def with_braces(code: str, names: Sequence[str]) -> str:
    """Return an expression with the bare ids of agents as references; unchanged where it does not parse.

    Args:
        code: A Python expression; one that is not ASCII stays unchanged.
        names: Ids of the agents.
    """
    try:
        tree = ast.parse(code, mode="eval") if code.isascii() else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    nodes = list(ast.walk(tree)) if tree else []
    braced = {id(node.elts[0]) for node in nodes if isinstance(node, ast.Set) and len(node.elts) == 1}
    bare = [one for one in nodes if isinstance(one, ast.Name) and one.id in names and id(one) not in braced]
    for one in sorted(bare, key=lambda one: -one.col_offset):
        code = f"{code[: one.col_offset]}{{{one.id}}}{code[one.end_col_offset :]}"
    return code


def start_of(said: Sequence[Any], names: Sequence[str]) -> int:
    """Return the number of the first agent in dependencies that are numbers: 0 where one of them is, else 1.

    Args:
        said: All dependencies of the topology, as written.
        names: Ids of the agents; an id `node_0` makes 0 a name.
    """
    numbers = {str(one).strip() for one in said if isinstance(one, str | int) and not isinstance(one, bool)}
    return 0 if "0" in numbers and "node_0" not in names else 1


def references(text: str) -> list[str]:
    return REFERENCE.findall(text)


def unbraced(text: str, words: Mapping[str, str]) -> str:
    """Return a text with words in the place of some references; empty where nothing else stood in it.

    Args:
        text: A text with references as `{id}`.
        words: Replacements by id; other references stay.
    """
    left = REFERENCE.sub(lambda found: "" if found[1] in words else found[0], text)
    if not re.search(r"\w", left):
        return ""
    return " ".join(REFERENCE.sub(lambda found: words.get(found[1], found[0]), text).split())
