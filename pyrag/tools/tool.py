"""Tools: typed functions of the user that programs can call by name.

The function runs in the host with all rights of the process; the program that calls it is hostile input. The tool's
name, signature and docstring go into the Plan agent's prompt. `pyrag.tools.calls` makes the calls.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import sys
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Generic, ParamSpec, TypeVar, overload

from pyrag.errors import ConfigError
from pyrag.tools.allowed_types import check_type, notes_on_types, type_text
from pyrag.trace.model import Passage

P = ParamSpec("P")
R = TypeVar("R")

TIMEOUT = 30.0
MAX_NAME = 40  # characters
MAX_DESCRIPTION = 6_000  # characters of a tool's description in the prompt; the rest is cut off
MAX_DESCRIPTIONS = 30_000  # characters of all descriptions together
_OFFERED = ("retrieve", "answer", "final_answer", "math", "re", "datetime", "json", "statistics", "itertools")
_RESERVED = frozenset((*_OFFERED, "collections", "typing", *dir(builtins)))
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class ToolError(Exception):
    """Error that a tool raises to tell the program's author what was wrong. The message is shown unchanged.

    A tool with effects raises it before changing anything: the call then counts as not made.
    """


@dataclass(frozen=True, slots=True)
class Sourced(Generic[R]):
    """A tool's result with the passages it was taken from. An answer that depends on the result cites them."""

    value: R
    sources: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Tool(Generic[P, R]):
    """Function with a description for programs. Calling the tool calls the function.

    Attributes:
        function: Synchronous or asynchronous function. Synchronous functions run in threads, several calls at a time.
        name: Name that programs use to call the tool.
        description: Text for the Plan agent; the docstring if empty.
        effects: Whether the function changes something, or returns different results for the same call. Its calls
            then run one at a time, in the program's order, and are never answered from the memo.
        timeout: Time limit of a call, in seconds.
        repeatable: Whether a program that repairs another may call a tool with effects again, even with other
            arguments. If not, the question stops there.

    Raises:
        ConfigError: The name is already in use, or programs cannot call a function with this signature.
    """

    function: Callable[P, R]
    name: str = ""
    description: str = ""
    effects: bool = False
    timeout: float = TIMEOUT
    repeatable: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigError(f"a tool is a function, not {self.function!r}")
        object.__setattr__(self, "name", self.name or getattr(self.function, "__name__", ""))
        check_name(self.name)
        if not self.timeout > 0:
            raise ConfigError(f"the timeout of the tool {self.name} must be above 0 seconds, not {self.timeout}")
        if self.repeatable and not self.effects:
            raise ConfigError(f"the tool {self.name} sets repeatable but has no effects: leave repeatable out")
        text = self.description or inspect.getdoc(self.function) or ""
        object.__setattr__(self, "description", inspect.cleandoc(text))
        _check_signature(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a decorated function by name, because pickle cannot find the undecorated function."""
        module, name = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        if getattr(sys.modules.get(module), name, None) is self:
            return _tool_named, (module, name)
        return type(self), tuple(getattr(self, attribute.name) for attribute in fields(self))


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    effects: bool = False,
    timeout: float = TIMEOUT,
    repeatable: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    effects: bool = False,
    timeout: float = TIMEOUT,
    repeatable: bool = False,
) -> Any:
    """Make a function a tool, with options. A plain function can be used as a tool without this decorator.

        @tool(timeout=5)
        def population(city: str) -> int: ...

    Args:
        function: The function, if the decorator is used without parentheses.
        name: Name that programs use to call the tool; the function's own name if empty.
        description: Text for the Plan agent; the docstring if empty.
        effects: Whether the function changes something, or returns different results for the same call. Its calls
            are then never answered from the memo, and run in the program's order.
        timeout: Time limit of a call, in seconds.
        repeatable: Whether a program that repairs another may call a tool with effects again.

    Raises:
        ConfigError: The name is already in use, or programs cannot call a function with this signature.
    """

    def made(target: Callable[P, R]) -> Tool[P, R]:
        return Tool(target, name, description, effects, timeout, repeatable)

    return made if function is None else made(function)


def as_tools(functions: Iterable[Callable[..., Any]]) -> tuple[Tool[..., Any], ...]:
    """Convert functions to tools. Existing tools are kept.

    Args:
        functions: Typed functions, or tools made with `tool`.

    Raises:
        ConfigError: A function cannot be a tool, or two tools have the same name.
    """
    if callable(functions) or isinstance(functions, str):
        raise ConfigError(f"tools is a list of functions, not {functions!r}: write tools=[…]")
    tools = tuple(candidate if isinstance(candidate, Tool) else Tool(candidate) for candidate in functions)
    names = [made.name for made in tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two tools have the name {twice!r}: give one of them another with tool(name=…)")
    return tools


def signature_of(function: Callable[..., Any], name: str) -> tuple[inspect.Signature, dict[str, Any]]:
    """Return a function's signature, and its resolved annotations by parameter (`return` for the result).

    Args:
        function: Any callable.
        name: Name of the tool, for messages.

    Raises:
        ConfigError: The signature cannot be read, or an annotation cannot be resolved.
    """
    target: Any = function
    while isinstance(target, functools.partial):
        target = target.func
    if not (inspect.isroutine(target) or isinstance(target, type)):
        target = type(target).__call__
    try:
        return inspect.signature(function), typing.get_type_hints(target, include_extras=True)
    except Exception as error:  # annotations are code, which may raise anything
        cure = "annotate it with types that Python can evaluate"
        raise ConfigError(f"the signature of the tool {name} cannot be read ({error}): {cure}") from error


def describe(tools: Iterable[Tool[..., Any]]) -> str:
    """Return the description of tools for the Plan agent's prompt: signature, docstring, and the types they use.

    Raises:
        ConfigError: The descriptions are too long in total.
    """
    text = "\n".join(_described(tool) for tool in tools)
    if len(text) > MAX_DESCRIPTIONS:
        raise ConfigError(
            f"the descriptions of the tools have {len(text):,} characters, and at most {MAX_DESCRIPTIONS:,} go into "
            "the prompt: pass fewer tools, or shorten their docstrings"
        )
    return text


def _described(tool: Tool[..., Any]) -> str:
    signature, hints = signature_of(tool.function, tool.name)
    parameters = ", ".join(_parameter(parameter, hints) for parameter in signature.parameters.values())
    kinds = [hints[name] for name in (*signature.parameters, "return")]
    head = f"- {tool.name}({parameters}) -> {type_text(_unsourced(hints['return']))}"
    lines = [*tool.description.splitlines(), *notes_on_types([_unsourced(kind) for kind in kinds])]
    text = "\n".join((head, *(f"  {line}".rstrip() for line in lines)))
    return text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 1]}…"


def _parameter(parameter: inspect.Parameter, hints: dict[str, Any]) -> str:
    text = f"{parameter.name}: {type_text(hints[parameter.name])}"
    return text if parameter.default is inspect.Parameter.empty else f"{text} = {parameter.default!r}"


def returned_type(tool: Tool[..., Any]) -> Any:
    """Return the type of the value that programs receive."""
    return _unsourced(signature_of(tool.function, tool.name)[1]["return"])


def names_passages(tool: Tool[..., Any]) -> bool:
    """Return True if the tool's declared result is passages, or a value with its passages."""
    todo = [signature_of(tool.function, tool.name)[1]["return"]]
    while todo:
        annotation = todo.pop()
        if annotation is Passage or typing.get_origin(annotation) is Sourced:
            return True
        todo += typing.get_args(annotation)
    return False


def _unsourced(annotation: Any) -> Any:
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is Sourced else annotation


def check_name(name: str) -> None:
    """Refuse a name that programs cannot call, or that already has a meaning in programs.

    Raises:
        ConfigError: The name is not an identifier, is too long or is already in use.
    """
    from pyrag_helpers import ERRORS, HELPERS

    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or name.startswith("_"):
        raise ConfigError(f"programs cannot call a tool named {name!r}: give it a plain name with tool(name=…)")
    if len(name) > MAX_NAME:
        raise ConfigError(f"the tool's name {name!r} is longer than {MAX_NAME} characters: shorten it")
    if name in _RESERVED or name in HELPERS or name in ERRORS:
        raise ConfigError(f"the name {name!r} has a meaning in programs already: rename the tool with tool(name=…)")


def _check_signature(tool: Tool[..., Any]) -> None:
    signature, hints = signature_of(tool.function, tool.name)
    for parameter in signature.parameters.values():
        where = f"the parameter {parameter.name!r} of the tool {tool.name}"
        if parameter.kind in _VARIABLE:
            raise ConfigError(f"{where} takes any number of arguments: programs need each by name")
        if parameter.name not in hints:
            raise ConfigError(f"{where} has no type: annotate it, as in {parameter.name}: str")
        check_type(hints[parameter.name], where)
    if "return" not in hints:
        raise ConfigError(f"the tool {tool.name} does not say what it returns: annotate it, as in -> list[str]")
    check_type(_unsourced(hints["return"]), f"the result of the tool {tool.name}")


def _tool_named(module: str, name: str) -> Any:
    __import__(module)
    return getattr(sys.modules[module], name)
