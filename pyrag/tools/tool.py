"""A tool: a typed function of the caller's that programs may call by name.

The function runs in the host with all rights of the process; the program that calls it is hostile input. Its name,
signature and docstring go into the Plan agent's prompt. Left out: how it is called (`pyrag.tools.calls`).
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
from pyrag.tools.types import check_type, notes_on_types, type_text
from pyrag.trace.model import Passage

P = ParamSpec("P")
R = TypeVar("R")

TIMEOUT = 30.0
MAX_NAME = 40  # characters
MAX_DESCRIPTION = 6_000  # characters of one tool in the prompt; what is longer is cut
MAX_DESCRIPTIONS = 30_000  # of all tools together
_OFFERED = ("retrieve", "answer", "final_answer", "math", "re", "datetime", "json", "statistics", "itertools")
_TAKEN = frozenset((*_OFFERED, "collections", "typing", *dir(builtins)))
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class ToolError(Exception):
    """Error that a tool raises to tell the program's author what is wrong. Its message is shown unchanged.

    A tool with effects raises it before it has changed anything: the call counts as one that did not happen.
    """


@dataclass(frozen=True, slots=True)
class Sourced(Generic[R]):
    """A tool's result with the passages that it was taken from. An answer that depends on the result cites them."""

    value: R
    sources: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Tool(Generic[P, R]):
    """A function with what programs must know of it. Calling it calls the function.

    Attributes:
        function: Synchronous or asynchronous. Synchronous functions run in threads, several calls at a time.
        name: The name that programs call it by.
        description: Text for the Plan agent; the docstring if empty.
        effects: The function changes something, or its result differs from call to call. Its calls then run one after
            another, in the order of the program, and none is answered from the memo.
        timeout: Seconds that one call may take.
        repeatable: A tool with effects may be called again by a program that repairs another, with other arguments
            too. Otherwise the question stops there.

    Raises:
        ConfigError: The name is taken, or the signature cannot be offered to programs.
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
            raise ConfigError(f"the tool {self.name} is repeatable without effects: that is what every such tool is")
        text = self.description or inspect.getdoc(self.function) or ""
        object.__setattr__(self, "description", inspect.cleandoc(text))
        _check_signature(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a decorated function by its name: the function itself cannot be found under it."""
        module, name = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        if getattr(sys.modules.get(module), name, None) is self:
            return _found, (module, name)
        return type(self), tuple(getattr(self, one.name) for one in fields(self))


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
    """Make a function a tool, with options where it needs any. A plain function is a tool without.

        @tool(timeout=5)
        def population(city: str) -> int: ...

    Args:
        function: The function, where the decorator stands without parentheses.
        name: The name that programs call it by; the function's own if empty.
        description: Text for the Plan agent; the docstring if empty.
        effects: The function changes something, or its result differs from call to call: no call is answered from the
            memo, and calls keep the order of the program.
        timeout: Seconds that one call may take.
        repeatable: With `effects`: a program that repairs another may call the function again, whatever has happened.

    Raises:
        ConfigError: The name is taken, or the signature cannot be offered to programs.
    """

    def made(one: Callable[P, R]) -> Tool[P, R]:
        return Tool(one, name, description, effects, timeout, repeatable)

    return made if function is None else made(function)


def as_tools(functions: Iterable[Callable[..., Any]]) -> tuple[Tool[..., Any], ...]:
    """Return functions and tools as tools.

    Args:
        functions: Typed functions, or what `tool` made of them.

    Raises:
        ConfigError: One of them cannot be a tool, or two have one name.
    """
    if callable(functions) or isinstance(functions, str):
        raise ConfigError(f"tools is a list of functions, not {functions!r}: write tools=[…]")
    tools = tuple(one if isinstance(one, Tool) else Tool(one) for one in functions)
    names = [one.name for one in tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"two tools have the name {twice!r}: give one of them another with tool(name=…)")
    return tools


def signature_of(function: Callable[..., Any], name: str) -> tuple[inspect.Signature, dict[str, Any]]:
    """Return a function's signature, and its resolved annotations by parameter (`return` is the result's).

    Args:
        function: Any callable.
        name: The tool's name, for messages.

    Raises:
        ConfigError: There is no signature to be read, or an annotation cannot be resolved.
    """
    target: Any = function
    while isinstance(target, functools.partial):
        target = target.func
    if not (inspect.isroutine(target) or isinstance(target, type)):
        target = type(target).__call__
    try:
        return inspect.signature(function), typing.get_type_hints(target, include_extras=True)
    except Exception as error:  # annotations are code, which may raise anything
        raise ConfigError(f"the signature of the tool {name} cannot be read ({error}): annotate it plainly") from error


def describe(tools: Iterable[Tool[..., Any]]) -> str:
    """Return the functions as the Plan agent's prompt lists them: signature, docstring, and the types in use.

    Raises:
        ConfigError: The descriptions are too long together.
    """
    text = "\n".join(_described(one) for one in tools)
    if len(text) > MAX_DESCRIPTIONS:
        raise ConfigError(
            f"the descriptions of the tools have {len(text):,} characters, and at most {MAX_DESCRIPTIONS:,} go into "
            "the prompt: pass fewer tools, or shorten their docstrings"
        )
    return text


def _described(one: Tool[..., Any]) -> str:
    signature, hints = signature_of(one.function, one.name)
    parameters = ", ".join(_parameter(parameter, hints) for parameter in signature.parameters.values())
    kinds = [hints[name] for name in (*signature.parameters, "return")]
    head = f"- {one.name}({parameters}) -> {type_text(_unsourced(hints['return']))}"
    lines = [*one.description.splitlines(), *notes_on_types([_unsourced(kind) for kind in kinds])]
    text = "\n".join((head, *(f"  {line}".rstrip() for line in lines)))
    return text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 1]}…"


def _parameter(parameter: inspect.Parameter, hints: dict[str, Any]) -> str:
    text = f"{parameter.name}: {type_text(hints[parameter.name])}"
    return text if parameter.default is inspect.Parameter.empty else f"{text} = {parameter.default!r}"


def returned_type(one: Tool[..., Any]) -> Any:
    """Return the type of the value that programs get."""
    return _unsourced(signature_of(one.function, one.name)[1]["return"])


def _unsourced(annotation: Any) -> Any:
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is Sourced else annotation


def check_name(name: str) -> None:
    """Refuse a name that programs cannot call, or that means something else to them.

    Raises:
        ConfigError: The name is no identifier, is too long or is taken.
    """
    from pyrag_helpers import ERRORS, HELPERS

    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or name.startswith("_"):
        raise ConfigError(f"programs cannot call a tool named {name!r}: give it a plain name with tool(name=…)")
    if len(name) > MAX_NAME:
        raise ConfigError(f"the tool's name {name!r} is longer than {MAX_NAME} characters: shorten it")
    if name in _TAKEN or name in HELPERS or name in ERRORS:
        raise ConfigError(f"the name {name!r} has a meaning in programs already: rename the tool with tool(name=…)")


def _check_signature(one: Tool[..., Any]) -> None:
    signature, hints = signature_of(one.function, one.name)
    for parameter in signature.parameters.values():
        where = f"the parameter {parameter.name!r} of the tool {one.name}"
        if parameter.kind in _VARIABLE:
            raise ConfigError(f"{where} takes any number of arguments: programs need each by name")
        if parameter.name not in hints:
            raise ConfigError(f"{where} has no type: annotate it, as in {parameter.name}: str")
        check_type(hints[parameter.name], where)
    if "return" not in hints:
        raise ConfigError(f"the tool {one.name} does not say what it returns: annotate it, as in -> list[str]")
    check_type(_unsourced(hints["return"]), f"the result of the tool {one.name}")


def _found(module: str, name: str) -> Any:
    __import__(module)
    return getattr(sys.modules[module], name)
