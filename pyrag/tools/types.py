"""The types that a tool's parameters and result may have, checked when the tool is made, and as a planner reads them.

Values cross the sandbox's border as plain data: `None`, `bool`, `int`, `float`, `str`, `list` and `dict` with text as
keys. The other types here are read from such data and written as such: tuples as lists, dataclasses and TypedDicts as
dicts, dates as ISO text.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from pyrag.errors import ConfigError
from pyrag.trace.model import Passage

_PLAIN = {None: "None", types.NoneType: "None", bool: "bool", int: "int", float: "float", str: "str", Any: "Any"}
_DATES = {dt.date: 'str (a date as "2024-12-31")', dt.datetime: 'str (a time as "2024-12-31T12:00:00")'}
_CONTAINERS = (list, tuple, dict)
_OFFERED = "str, int, float, bool, None, list, dict, tuple, Literal, date, datetime, a dataclass or a TypedDict"


def check_type(annotation: Any, where: str) -> None:
    """Refuse a type whose values cannot cross the sandbox's border.

    Args:
        annotation: The resolved annotation.
        where: The parameter or result that has it, for the message.

    Raises:
        ConfigError: The type, or one inside it, is not supported.
    """
    for one in _parts(annotation, set()):
        if not _is_supported(one):
            shown = getattr(one, "__name__", None) or str(one)
            raise ConfigError(f"{where} has the type {shown}, which no program can pass: use {_OFFERED}")
        arguments = typing.get_args(one)
        if (one is dict or typing.get_origin(one) is dict) and arguments and arguments[0] not in (str, Any):
            raise ConfigError(f"{where} is a dict with keys that are no text: use dict[str, …]")
    try:
        msgspec.convert(None, annotation)
    except msgspec.ValidationError:
        pass
    except (TypeError, NameError) as error:  # a union that data cannot tell apart
        raise ConfigError(f"{where}: {error}") from error


def _is_supported(one: Any) -> bool:
    origin = typing.get_origin(one)
    if one is Any or one is None or origin in (typing.Union, types.UnionType, Literal, Annotated, *_CONTAINERS):
        return True
    return isinstance(one, type) and (one in _PLAIN or one in _DATES or one in _CONTAINERS or _fields(one) is not None)


def _parts(annotation: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield a type and the types inside it."""
    yield annotation
    if typing.get_origin(annotation) is Literal:
        return
    if typing.get_origin(annotation) is Annotated:
        inner: tuple[Any, ...] = typing.get_args(annotation)[:1]
    else:
        inner = tuple(one for one in typing.get_args(annotation) if one is not ...)
    if isinstance(annotation, type) and annotation not in seen:
        seen.add(annotation)
        inner += tuple((_fields(annotation) or {}).values())
    for one in inner:
        yield from _parts(one, seen)


def _fields(kind: type) -> dict[str, Any] | None:
    """Return the types of the fields of a dataclass or TypedDict by name; None for any other type."""
    if kind is Passage:
        return {}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {one.name: hints[one.name] for one in dataclasses.fields(kind)}
    return typing.get_type_hints(kind) if typing.is_typeddict(kind) else None


def type_text(annotation: Any) -> str:
    """Return a type as it stands in a signature that a planner reads."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(type_text, arguments))
    if origin in _CONTAINERS:
        return f"{origin.__name__}[{', '.join('...' if one is ... else type_text(one) for one in arguments)}]"
    if annotation is Passage:
        return "Document"
    return _PLAIN.get(annotation) or ("str" if annotation in _DATES else str(annotation.__name__))


def notes_on_types(annotations: list[Any]) -> list[str]:
    """Return a line on each type among these that its name does not explain, each once."""
    lines: dict[str, None] = {}
    for annotation in annotations:
        for one in _parts(annotation, set()):
            if one is Passage:
                lines["Document: as retrieve() returns it; pass it to answer()"] = None
            elif one in _DATES:
                lines[f"{one.__name__}: {_DATES[one]}"] = None
            elif isinstance(one, type) and (fields := _fields(one)):
                held = ", ".join(f'"{name}": {type_text(kind)}' for name, kind in fields.items())
                lines[f"{one.__name__}: a dict {{{held}}}"] = None
    return list(lines)


def is_passages(annotation: Any) -> bool:
    """Return True for `list[Passage]`: results that become documents of the program."""
    return typing.get_origin(annotation) is list and typing.get_args(annotation) == (Passage,)
