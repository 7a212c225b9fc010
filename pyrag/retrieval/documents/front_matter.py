"""Front matter of Markdown files: the fields between two lines of `---` (the common part of YAML) or `+++` (TOML).

Of YAML are read: `key: value`, lists in brackets or of lines with a dash, and fields one level further in
(`author.name`). Values that go on over several lines and everything else are passed over.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from itertools import chain

from pyrag.retrieval.filters.metadata import value_of_text

MAX_LINES = 200
_FENCES = ("---", "+++")
_ENTRY = re.compile(r"(?P<indent>[ \t]*)(?P<name>[^\s:#\-\[\]{}\"'][^:#\[\]{}]*?)\s*:(?:\s+(?P<value>.*))?$")
_ITEM = re.compile(r"[ \t]*-\s+(?P<value>.*)$")
_ASSIGNED = re.compile(r"^([\w-]+)\s*=")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'")
_PIECE = re.compile(rf"\s*(?:{_QUOTED.pattern}|[^,\"'\s][^,]*)")


def split_front_matter(lines: Iterator[str]) -> tuple[int, dict[str, object], Iterator[str]]:
    """Return the length of the front matter, its fields and the lines after it; one without an end counts as text."""
    first = next(lines, "")
    fence = first.rstrip()
    held = [first]
    if fence in _FENCES:
        for line in lines:
            held.append(line)
            if line.rstrip() == fence:
                fields = _toml(held[1:-1]) if fence == "+++" else _yaml(held[1:-1])
                return sum(map(len, held)), fields, lines
            if len(held) > MAX_LINES:
                break
    return 0, {}, chain(held, lines)


def _toml(lines: Sequence[str]) -> dict[str, object]:
    try:
        return {name: _dated(value) for name, value in tomllib.loads("".join(lines)).items()}
    except (tomllib.TOMLDecodeError, RecursionError):
        return _yaml([_ASSIGNED.sub(r"\1:", line) for line in lines])


def _dated(value: object) -> object:
    """Return a date or time of TOML as ISO text."""
    return str(value.isoformat()) if hasattr(value, "isoformat") else value


def _yaml(lines: Sequence[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    parent = ""
    for line in lines:
        if (item := _ITEM.match(line.rstrip())) and parent:
            found[parent] = [*(held if isinstance(held := found.get(parent), list) else []), _scalar(item["value"])]
        elif entry := _ENTRY.match(line.rstrip()):
            inner = bool(entry["indent"]) and parent
            name = f"{parent}.{entry['name']}" if inner else entry["name"]
            value = (entry["value"] or "").strip()
            parent = parent if inner else name if not _COMMENT.sub("", value).strip() else ""
            if value and value[0] not in "|>&*!{":
                found[name] = _list(value) if value.startswith("[") else _scalar(value)
    return found


def _list(value: str) -> list[object]:
    inner = value[1:].rpartition("]")[0]
    return [_scalar(piece[0]) for piece in _PIECE.finditer(inner) if piece[0].strip()]


def _scalar(value: str) -> object:
    value = value.strip()
    if quoted := _QUOTED.match(value):
        text = quoted[0][1:-1]
        return text.replace("''", "'") if value[0] == "'" else re.sub(r"\\(.)", r"\1", text)
    bare = _COMMENT.sub("", value).strip()
    return None if bare in ("null", "~") else value_of_text(bare)
