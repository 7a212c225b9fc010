"""Types allowed for a tool's parameters and result: their checks, and their form in prompts.

Values cross the sandbox's border as plain data: `None`, `bool`, `int`, `float`, `str`, `list` and `dict` with text
keys. The other types are converted to and from such data: tuples become lists, dataclasses and TypedDicts become dicts,
and dates become ISO text.
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
        where: The parameter or result that has the annotation, for the message.

    Raises:
        ConfigError: The type, or a type inside it, is not supported.
    """
    for part in _parts(annotation, set()):
        if not _is_supported(part):
            shown = getattr(part, "__name__", None) or str(part)
            raise ConfigError(f"{where} has the type {shown}, which no program can pass: use {_OFFERED}")
        arguments = typing.get_args(part)
        if (part is dict or typing.get_origin(part) is dict) and arguments and arguments[0] not in (str, Any):
            raise ConfigError(f"{where} is a dict with keys that are not text: use dict[str, …]")
    try:
        msgspec.convert(None, annotation)
    except msgspec.ValidationError:
        pass
    except (TypeError, NameError) as error:  # such as a union whose members cannot be told apart in data
        raise ConfigError(f"{where}: {error}") from error


def _is_supported(annotation: Any) -> bool:
    origin = typing.get_origin(annotation)
    if annotation in (Any, None) or origin in (typing.Union, types.UnionType, Literal, Annotated, *_CONTAINERS):
        return True
    known = (*_PLAIN, *_DATES, *_CONTAINERS)
    return isinstance(annotation, type) and (annotation in known or _fields(annotation) is not None)


def _parts(annotation: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield a type and the types inside it."""
    yield annotation
    if typing.get_origin(annotation) is Literal:
        return
    if typing.get_origin(annotation) is Annotated:
        inner: tuple[Any, ...] = typing.get_args(annotation)[:1]
    else:
        inner = tuple(argument for argument in typing.get_args(annotation) if argument is not ...)
    if isinstance(annotation, type) and annotation not in seen:
        seen.add(annotation)
        inner += tuple((_fields(annotation) or {}).values())
    for part in inner:
        yield from _parts(part, seen)


def _fields(kind: type) -> dict[str, Any] | None:
    """Return the types of the fields of a dataclass or TypedDict, by name; None for any other type."""
    if kind is Passage:
        return {}
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {attribute.name: hints[attribute.name] for attribute in dataclasses.fields(kind)}
    return typing.get_type_hints(kind) if typing.is_typeddict(kind) else None


def type_text(annotation: Any) -> str:
    """Return a type as text for a signature in a prompt."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(type_text, arguments))
    if origin in _CONTAINERS:
        parts = ", ".join("..." if argument is ... else type_text(argument) for argument in arguments)
        return f"{origin.__name__}[{parts}]"
    if annotation is Passage:
        return "Document"
    return _PLAIN.get(annotation) or ("str" if annotation in _DATES else str(annotation.__name__))


def notes_on_types(annotations: list[Any]) -> list[str]:
    """Return a line about each type that needs explanation, without repetition."""
    lines: dict[str, None] = {}
    for annotation in annotations:
        for part in _parts(annotation, set()):
            if part is Passage:
                lines["Document: as retrieve() returns it; pass it to answer()"] = None
            elif part in _DATES:
                lines[f"{part.__name__}: {_DATES[part]}"] = None
            elif isinstance(part, type) and (fields := _fields(part)):
                held = ", ".join(f'"{name}": {type_text(kind)}' for name, kind in fields.items())
                lines[f"{part.__name__}: a dict {{{held}}}"] = None
    return list(lines)


def is_passages(annotation: Any) -> bool:
    """Return True for `list[Passage]`, the type of results that become documents in the program."""
    return typing.get_origin(annotation) is list and typing.get_args(annotation) == (Passage,)
