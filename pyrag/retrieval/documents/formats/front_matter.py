"""Front matter of Markdown files: a mapping of YAML between two lines of `---` (or `...`), or TOML between `+++`.

A block that is not a mapping is treated as text, since slides and notes may begin with a rule. Only YAML's syntax tree
is used, so that numbers keep their form; aliases, tags and merged mappings are not supported.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pyrag.retrieval.documents.controls import without_controls
from pyrag.retrieval.filters.metadata import value_of_text

MAX_LINES = 200
_ENDS = {"---": ("---", "..."), "+++": ("+++",)}
_MAX_NESTED = 8
_SENTENCE = re.compile(r"(?:\S+\s+){4,}\S+[.!?]$")
_ASSIGNED = re.compile(r"^([\w-]+)\s*=\s*", re.MULTILINE)
_TEXTS = frozenset({"abstract", "description", "excerpt", "subtitle", "summary", "title"})


@dataclass(slots=True)
class FrontMatter:
    """Front matter of a text, and the rest of the text.

    Attributes:
        fields: Fields of the front matter.
        length: Length of the front matter in characters.
        lines: Lines after the front matter.
        remarks: Remarks on fields that were not read.
    """

    fields: dict[str, object]
    length: int
    lines: Iterator[str]
    remarks: list[str] = field(default_factory=list)


def split_front_matter(lines: Iterator[str]) -> FrontMatter:
    """Split a text into its front matter, which may be empty, and the rest."""
    first = next(lines, "")
    fence = first.rstrip()
    block = [first]
    for line in lines if fence in _ENDS else ():
        block.append(line)
        if line.rstrip() in _ENDS[fence]:
            remarks: list[str] = []
            fields = _fields(fence, block[1:-1], remarks)
            if fields is None:
                break
            return FrontMatter(fields, sum(map(len, block)), lines, remarks)
        if len(block) > MAX_LINES or (len(block) == 2 and not line.strip()):
            break  # a rule above text
    return FrontMatter({}, 0, chain(block, lines))


def _fields(fence: str, lines: Sequence[str], remarks: list[str]) -> dict[str, object] | None:
    """Return the fields of a block; None if it is text."""
    text = "".join(line.rstrip("\r\n") + "\n" for line in lines)
    if not text.strip():
        return {}
    return _yaml(text, remarks) if fence == "---" else _toml(text, remarks)


def _toml(text: str, remarks: list[str]) -> dict[str, object] | None:
    try:
        return {name: _dated(value) for name, value in tomllib.loads(text).items()}
    except (tomllib.TOMLDecodeError, RecursionError):
        return _line_fields(_ASSIGNED.sub(r"\1: ", text), remarks)


def _dated(value: object) -> object:
    """Convert a TOML date or time to ISO text."""
    return str(value.isoformat()) if hasattr(value, "isoformat") else value


def _yaml(text: str, remarks: list[str]) -> dict[str, object] | None:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return _line_fields(text, remarks)
    if not isinstance(node, yaml.MappingNode):
        return None if node is not None else {}
    fields = _TreeReader(remarks).mapping(node)
    is_sentence = len(fields) == 1 and all(
        name.lower() not in _TEXTS and isinstance(value, str) and _SENTENCE.fullmatch(value)
        for name, value in fields.items()
    )
    return None if is_sentence else fields


def _line_fields(text: str, remarks: list[str]) -> dict[str, object] | None:
    """Return the fields of a block of invalid YAML, read line by line; None if its first line is not a field.

    Args:
        text: The block.
        remarks: List to which remarks on lines that were not read are appended.
    """
    import yaml

    fields: dict[str, object] = {}
    for line in text.splitlines():
        name, mark, value = line.partition(": ") if ": " in line else line.rstrip().partition(":")
        plain = mark and re.fullmatch(r"[\w.-]+", name.strip()) and not line[0].isspace()
        if not plain and not fields:
            return None
        try:
            node = yaml.compose(value.strip(), Loader=yaml.SafeLoader) if plain else None
        except (yaml.YAMLError, RecursionError, ValueError):
            node = None
        if isinstance(node, yaml.ScalarNode):
            fields[name.strip()] = _TreeReader(remarks).value(node, 0)
        elif plain and value.strip() and value.strip()[0] not in "[{|>&*!\"'":
            fields[name.strip()] = value.strip()  # such as a title with a colon
        elif line.strip() and not line.lstrip().startswith("#"):
            remarks.append(f"a line of the front matter was not read, ({line.strip()[:60]!r})")
    return fields


class _TreeReader:
    """Reader of values from the tree of a YAML text."""

    def __init__(self, remarks: list[str]) -> None:
        self._remarks = remarks
        self._seen: set[int] = set()

    def mapping(self, node: Any, depth: int = 0) -> dict[str, object]:
        import yaml

        fields: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                self._left_out("a name that is not text")
            elif id(value) in self._seen:
                self._left_out(f"{key.value!r} refers to another one")  # which also stops exponential aliases
            else:
                fields[without_controls(str(key.value))] = self.value(value, depth + 1)
        return fields

    def value(self, node: Any, depth: int) -> object:
        import yaml

        if id(node) in self._seen or depth > _MAX_NESTED:
            self._left_out("nested too deeply, or a reference to another one")
            return None
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return _columns([self.value(item, depth + 1) for item in node.value])
        if node.style is None:
            return None if node.value in ("null", "Null", "NULL", "~") else value_of_text(node.value)
        return without_controls(str(node.value)).rstrip("\n")

    def _left_out(self, reason: str) -> None:
        self._remarks.append(f"a field of the front matter was not read ({reason})")


def _columns(items: list[object]) -> object:
    """Convert a list of mappings to lists by name if all mappings have the same names; otherwise return the list."""
    mappings = [item for item in items if isinstance(item, dict)]
    if not items or len(mappings) < len(items):
        return items
    return {name: [item.get(name) for item in mappings] for name in dict.fromkeys(name for m in mappings for name in m)}
