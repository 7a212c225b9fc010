"""Specs of several sources: `[NAME=]PLACE[#weight=2&deadline=1.5]`, for folders and URLs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyrag._io.redaction import without_secrets
from pyrag.errors import ConfigError

_OPTIONS = re.compile(r"(.+)#((?:\w+=[^#&=]*&?)+)", re.DOTALL)
_NAMED = re.compile(r"([\w-][\w.-]*)=(.+)", re.DOTALL)
_SCHEME = re.compile(r"\w+://|mcp\+")


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Spec of one of several sources.

    Attributes:
        name: Name in filters, ids and warnings.
        place: Index folder, URL or another spec of `open_retriever`.
        weight: Weight in the ranking, relative to the other sources.
        deadline: Seconds after which a search continues without the source; None for the search's time limit.
    """

    name: str
    place: str
    weight: float = 1.0
    deadline: float | None = None


def read_sources(texts: Iterable[str]) -> tuple[SourceSpec, ...]:
    """Return the sources that some texts name.

    Args:
        texts: Specs, each with an optional name before it and optional numbers after it.

    Raises:
        ConfigError: Two sources have the same name, or a number is not above 0.
    """
    sources: dict[str, SourceSpec] = {}
    for text in texts:
        source = read_source(text)
        if source.name in sources:
            raise ConfigError(
                f"two sources are named {source.name!r}: give each a name of its own, as in NAME={source.place}"
            )
        sources[source.name] = source
    return tuple(sources.values())


def read_source(text: str) -> SourceSpec:
    """Return the source that a text names. Raises `ConfigError` if a number is not above 0.

    Args:
        text: The spec.
    """
    numbers: dict[str, float] = {}
    name, place = "", text.strip()
    if not Path(place).exists():
        if match := _OPTIONS.fullmatch(place):
            place, numbers = match[1], dict(_number(pair, text) for pair in match[2].split("&"))
        if (match := _NAMED.fullmatch(place)) and not Path(place).exists():
            name, place = match[1], match[2]
    return SourceSpec(name or _name(place), place, numbers.get("weight", 1.0), numbers.get("deadline"))


def _number(pair: str, text: str) -> tuple[str, float]:
    key, _, value = pair.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if key not in ("weight", "deadline") or not 0 < number < math.inf:
        raise ConfigError(
            f"{without_secrets(text)}: {pair!r} is not a number above 0 of a source: write #weight=2 or #deadline=1.5"
        )
    return key, number


def _name(place: str) -> str:
    """Return a name for a place: the last part of a folder's path, or an address without scheme and secrets."""
    if not _SCHEME.match(place):
        parts = [part for part in Path(place).parts if part not in ("/", "..")]
        return next((part for part in reversed(parts) if not part.startswith(".")), place)
    return without_secrets(place).partition("://")[2].strip("/").removesuffix("/retrieve") or place
