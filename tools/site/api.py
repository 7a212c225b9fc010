"""Reference of the public packages, generated from `__all__`, signatures and docstrings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from tools.site.tables import docstring, prose

PUBLIC = ("pyrag", "pyrag.extend", "pyrag.trace", "pyrag.testing", "pyrag_sandbox")
_HEAD = """\
# Python API

The names in `__all__` of the public packages. Everything else may change in any version.
"""


class _Verbatim(str):
    """Text of an annotation, which `inspect.signature` shows without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def api_page() -> str:
    """Return the reference of all public packages."""
    places: dict[int, str] = {}
    return "\n".join([_HEAD, *(part for package in PUBLIC for part in _package(package, places))])


def _package(package: str, places: dict[int, str]) -> Iterator[str]:
    module = importlib.import_module(package)
    yield f"## {package}\n\n{prose(_without_code(module.__doc__ or ''))}"
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        place = f"{package}.{name}"
        if (first := places.setdefault(id(value), place)) != place:
            yield f"### {place}\n\nThe same as `{first}`.\n"
        else:
            yield from _described(place, value)


def _without_code(text: str) -> str:
    """Return the prose of a module's docstring: its first paragraph and the text after an example."""
    first, *others = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join([first, *(part for part in others if part[:1].isupper())])


def _described(place: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        shown = "" if getattr(value, "_is_protocol", False) else signature(value, value.__name__)
        yield f"### {place}\n\n{_block(f'class {shown or value.__name__}')}\n{docstring(value)}"
        for name, member in members(value):
            yield from _member(f"{value.__name__}.{name}", name, member)
    elif inspect.isroutine(value):
        yield f"### {place}\n\n{_block(signature(value, value.__name__))}\n{docstring(value)}"
    else:
        yield f"### {place}\n\n{_block(_expression(value))}"


def _expression(value: Any) -> str:
    """Return a type alias or constant as it would be written in code, without module names."""
    if isinstance(value, tuple):
        return "\n".join(f"{getattr(item, '__name__', item)}" for item in value)
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", str(value))


def _member(heading: str, name: str, member: Any) -> Iterator[str]:
    function = _function_of(member)
    if isinstance(member, property):
        returned = inspect.signature(function).return_annotation
        yield f"#### {heading}\n\n{_block(f'{name}: {returned}')}\n{docstring(function)}"
    else:
        yield f"#### {heading}\n\n{_block(signature(function, name))}\n{docstring(function)}"


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, including those inherited from classes of pyrag."""
    seen: set[str] = set()
    for base in owner.__mro__:
        if base.__module__.split(".")[0] not in ("pyrag", "pyrag_sandbox"):
            continue
        for name, value in vars(base).items():
            is_member = inspect.isfunction(_function_of(value)) or isinstance(value, property)
            if is_member and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, value


def _function_of(value: Any) -> Any:
    return value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def signature(function: Callable[..., Any], name: str) -> str:
    """Return a call's signature with annotations as written in the source.

    Args:
        function: A function or a class.
        name: Name to show.
    """
    try:
        whole = inspect.signature(function)
    except (TypeError, ValueError):  # builtins, and classes without a constructor of their own
        return name
    parameters = [
        parameter.replace(annotation=_verbatim(parameter.annotation), default=_short(parameter.default))
        for parameter in whole.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    returned = inspect.Signature.empty if inspect.isclass(function) else _verbatim(whole.return_annotation)
    shown = whole.replace(parameters=parameters, return_annotation=returned)
    words = "async def " if inspect.iscoroutinefunction(function) else ""
    text = f"{words}{name}{shown}"
    if len(text) <= 100 or not parameters:
        return text
    keyword = [f"    {parameter}," for parameter in _with_star(parameters)]
    end = f" -> {shown.return_annotation}" if shown.return_annotation is not inspect.Signature.empty else ""
    return "\n".join([f"{words}{name}(", *keyword, f"){end}"])


def _with_star(parameters: list[inspect.Parameter]) -> Iterator[object]:
    """Yield parameters, with a star before keyword-only ones."""
    starred = False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        yield parameter


def _short(default: Any) -> Any:
    """Return a default, or the name of its class if the object would be too long to show."""
    return _Verbatim(f"{type(default).__name__}()") if dataclasses.is_dataclass(default) else default


def _verbatim(annotation: Any) -> Any:
    return _Verbatim(annotation) if isinstance(annotation, str) else annotation


def _block(text: str) -> str:
    return f"```python\n{text}\n```\n"
