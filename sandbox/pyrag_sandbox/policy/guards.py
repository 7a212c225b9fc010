"""The policy's part at run time: the program's namespace, and the guards its bytecode calls.

A guard that refuses calls `host.refuse`, which ends the program there and then (the worker reports and exits), so no
`except` of the program can swallow it.
"""

from __future__ import annotations

import builtins
import datetime as dt
import string
import sys
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, NoReturn, Protocol

from pyrag_sandbox.helpers import NO_HELPERS, Helpers
from pyrag_sandbox.policy.offered import (
    CLOCK_ATTRIBUTES,
    FORMAT_ATTRIBUTES,
    GUARDED_ATTRIBUTES,
    OFFERED_BUILTINS,
    OFFERED_MODULES,
    SOFT_NAMES,
    facade,
)
from pyrag_sandbox.policy.policy import FILENAME
from pyrag_sandbox.policy.rules import attribute_problem, builtin_problem
from pyrag_sandbox.worker.values import AbsentValue, TextValue

_IMPORTED_BY_C = frozenset({"_strptime", "time", "_pylong", "warnings"})  # by datetime, and by long integers
_NONE_HASH = 0xFCA86420  # as of Python 3.12
WRITABLE = frozenset({list, dict, defaultdict, Counter, OrderedDict, deque, ChainMap})


class Host(Protocol):
    """The interface that guards need of the runner of a program."""

    def refuse(self, message: str, line: int | None = None) -> NoReturn:
        """End the program as blocked.

        Args:
            message: the problem, for the program's author.
            line: line of the program, from 1; None if unknown.
        """
        ...

    def caught(self, error: BaseException) -> None: ...


def program_line() -> int | None:
    """The line of the program that is running, seen from a guard."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != FILENAME:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def _loaded(name: str, *_: Any) -> Any:
    """For C code that imports on a program's behalf; no program can spell `__import__`."""
    if name not in _IMPORTED_BY_C or name not in sys.modules:
        raise ImportError(f"No module named {name!r}")
    return sys.modules[name]


def print_function(namespace: dict[str, Any]) -> Callable[..., None]:
    """`print`, whose text goes where the scheduler collects it in program order."""

    def print(*values: Any, sep: str | None = " ", end: str | None = "\n", flush: bool = False) -> None:  # noqa: A001
        text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
        text.encode()  # lone surrogates fail here, at the print
        namespace["%write"](text)

    return print


class Guards:
    """The guard functions of one program. They can be made before there is a program: that is most of the work."""

    _host: Host

    def __init__(self, helpers: Helpers = NO_HELPERS) -> None:
        self.helpers = helpers
        self._own_classes: set[type] = set()
        self._formatter = _Formatter(self.getattr)
        self._facades = {name: facade(name, self._refuse) for name in OFFERED_MODULES}
        self._offered = {
            **{name: self.stub(name) for name in SOFT_NAMES},
            **OFFERED_BUILTINS,
            "getattr": self.getattr,
            "hasattr": self.hasattr,
            "hash": stable_hash,
            **helpers.functions,
            **helpers.errors,
            "__build_class__": builtins.__build_class__,
            "__import__": _loaded,
        }

    def namespace(self, host: Host) -> dict[str, Any]:
        """The program's globals. What it may call is in their `__builtins__`; its own names join later."""
        self._host = host
        namespace = {
            "__builtins__": self._offered,
            "__name__": "program",
            "__metaclass__": self.metaclass,
            "_getattr_": self.attribute,
            "_write_": self.write,
            "_caught_": self.caught,
            "_import_": self.import_,
            "_in_": contained,
            "_none_": is_none,
        }
        self._offered["print"] = print_function(namespace)
        return namespace

    def open_namespace(self, host: Host) -> dict[str, Any]:
        """Plain Python, for the worker that trusts its kernel wall alone."""
        self._host = host
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": "__main__", "_caught_": self.caught}
        namespace["print"] = print_function(namespace)
        return namespace

    def _refuse(self, message: str) -> NoReturn:
        self._host.refuse(message, program_line())

    def stub(self, name: str) -> Callable[..., NoReturn]:
        def stub(*args: Any, **kwargs: Any) -> NoReturn:
            self._refuse(builtin_problem(name))

        return stub

    # Attributes

    def attribute(self, obj: Any, name: str) -> Any:
        """Return an attribute whose use depends on the object, or refuse it.

        Args:
            obj: the object.
            name: one of `GUARDED_ATTRIBUTES`.

        Raises:
            AttributeError: the object has none of that name.
        """
        if name in FORMAT_ATTRIBUTES and _is_text(obj):
            return self._formatting(obj, name)
        if name in CLOCK_ATTRIBUTES and _is_date(obj):
            self._refuse(f"{name}() is not available: programs have no clock; write the date out")
        return getattr(obj, name)

    def getattr(self, obj: Any, name: Any, *default: Any) -> Any:
        """Return an attribute as the builtin does, or refuse it as if it were written with a dot.

        Args:
            obj: the object.
            name: a `str`, or a `Text`.
            *default: at most one value, for an object without the attribute.

        Raises:
            AttributeError: there is neither attribute nor default.
            TypeError: the name is no text, or there are two defaults.
        """
        if type(name) is not str:
            if not isinstance(name, TextValue):
                raise TypeError("attribute name must be string")
            name = str.__str__(name)
        problem = attribute_problem(name)
        if problem:
            self._refuse(problem)
        if len(default) > 1:
            raise TypeError(f"getattr expected at most 3 arguments, got {2 + len(default)}")
        try:
            return self.attribute(obj, name) if name in GUARDED_ATTRIBUTES else getattr(obj, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    def hasattr(self, obj: Any, name: Any) -> bool:
        """Return whether there is such an attribute; ask for a forbidden one and the program is refused.

        Args:
            obj: the object.
            name: a `str`, or a `Text`.
        """
        missing = object()
        return self.getattr(obj, name, missing) is not missing

    def _formatting(self, obj: Any, name: str) -> Callable[..., str]:
        def format(template: str, /, *args: Any, **kwargs: Any) -> str:  # noqa: A001
            return self._formatter.vformat(template, args, kwargs)

        def format_map(template: str, mapping: Mapping[str, Any], /) -> str:
            return self._formatter.vformat(template, (), mapping)

        function: Callable[..., str] = format if name == "format" else format_map
        if isinstance(obj, type):
            return function
        return lambda *args, **kwargs: function(obj, *args, **kwargs)

    # Stores

    def write(self, obj: Any) -> Any:
        """`obj`, if the program may set or delete its items and attributes."""
        kind = type(obj)
        own_class = isinstance(obj, type) and obj in self._own_classes
        if not own_class and kind not in WRITABLE and kind not in self._own_classes:
            self._refuse(f"a value of type {kind.__name__} cannot be changed: build a new list or dict instead")
        return obj

    def metaclass(self, name: str, bases: tuple[Any, ...], members: dict[str, Any], **keywords: Any) -> type:
        """Make a class of the program and note it as its own; refuse other bases than own classes and exceptions.

        Args:
            name: the class's name.
            bases: the base classes.
            members: the class's namespace; a `__repr__` without an address joins it if there is none.
            **keywords: ignored; the policy refuses them in the source.
        """
        for base in bases:
            own = isinstance(base, type) and base in self._own_classes
            if not own and not (isinstance(base, type) and issubclass(base, BaseException)):
                self._refuse("a class may derive from its own classes and from exceptions only")
        if not any(issubclass(base, BaseException) for base in bases):
            members.setdefault("__repr__", lambda self: f"<{name} object>")  # the usual one tells an address
        kind = type(name, bases, members)
        self._own_classes.add(kind)
        return kind

    # Exceptions and imports

    def caught(self) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            self._host.caught(error)

    def import_(self, module: str, member: str | None = None) -> Any:
        """Return what an import statement binds.

        Args:
            module: a key of `OFFERED_MODULES`.
            member: the name to take from it; None for the module's stand-in.
        """
        found = self._facades[module]
        return found if member is None else getattr(found, member)


def stable_hash(value: Any, /) -> int:
    """Return `hash(value)`, the same in any process: where it would be an address, that of the type's name."""
    if value is None:
        return _NONE_HASH
    if type(value) is tuple and any(item is None for item in value):
        return hash(tuple(_NONE_HASH if item is None else item for item in value))
    kind: Any = type(value)
    by_address = kind.__hash__ is object.__hash__ or callable(value)
    if by_address or (kind is float and value != value):
        return hash(kind.__name__)
    return hash(value)


def is_none(value: Any) -> bool:
    """`value is None`, of which a value that was not found is one case."""
    return value is None or type(value) is AbsentValue


def contained(item: Any, container: Any) -> bool:
    """Return `item in container`. Sets and dicts find things by their hash; a value that was not found has only one.

    Args:
        item: any value; one that was not found is compared with each member.
        container: any container; if a `Text`, an item that was not found raises its own error.
    """
    if type(item) is AbsentValue:
        if isinstance(container, (set, frozenset, dict)):
            return any(item == member for member in container)
        if isinstance(container, TextValue):
            return item in [container]  # which is to compare them, and raises
    return item in container


def _is_text(obj: Any) -> bool:
    return isinstance(obj, str) or (isinstance(obj, type) and issubclass(obj, str))


def _is_date(obj: Any) -> bool:
    return isinstance(obj, dt.date) or (isinstance(obj, type) and issubclass(obj, dt.date))


class _Formatter(string.Formatter):
    """`str.format` whose fields walk attributes through the guard."""

    def __init__(self, guarded: Callable[..., Any]) -> None:
        self._guarded = guarded
        self._next = 0

    def vformat(self, format_string: str, args: Any, kwargs: Any) -> str:
        self._next = 0
        return super().vformat(format_string, args, kwargs)

    def parse(self, format_string: str) -> Iterator[Any]:
        """Number the unnamed fields here: `string.Formatter` does not know `{.name}` and `{[0]}`."""
        for literal, field, spec, conversion in super().parse(format_string):
            name = field
            if field is not None and field[:1] in ("", ".", "["):
                name = f"{self._next}{field}"
                self._next += 1
            yield literal, name, spec, conversion

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        first, rest = _split(field_name)
        obj = self.get_value(first, args, kwargs)
        for is_attribute, part in rest:
            obj = self._guarded(obj, part) if is_attribute else obj[part]
        return obj, first


def _split(field_name: str) -> tuple[Any, Any]:
    from _string import formatter_field_name_split  # type: ignore[import-not-found]

    found: tuple[Any, Any] = formatter_field_name_split(field_name)
    return found
