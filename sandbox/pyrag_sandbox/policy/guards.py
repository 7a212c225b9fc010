"""Policy at run time: the program's namespace, and the guards that its bytecode calls.

To refuse something, a guard calls `host.refuse`, which ends the program immediately (the worker reports and exits), so
that no `except` in the program can catch it.
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

_IMPORTED_BY_C = frozenset({"_strptime", "time", "_pylong", "warnings"})  # imported by datetime, and by long integers
_NONE_HASH = 0xFCA86420  # the value since Python 3.12
WRITABLE = frozenset({list, dict, defaultdict, Counter, OrderedDict, deque, ChainMap})


class Host(Protocol):
    """Interface that guards need from the runner of a program."""

    def refuse(self, message: str, line: int | None = None) -> NoReturn:
        """End the program as blocked.

        Args:
            message: The problem, for the program's author.
            line: Line of the program, from 1; None if unknown.
        """
        ...

    def caught(self, error: BaseException) -> None: ...


def program_line() -> int | None:
    """Return the line of the program that is currently running, for use in a guard."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != FILENAME:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def _loaded(name: str, *_: Any) -> Any:
    """Return an imported module to C code that imports on a program's behalf. (Programs cannot write `__import__`.)"""
    if name not in _IMPORTED_BY_C or name not in sys.modules:
        raise ImportError(f"No module named {name!r}")
    return sys.modules[name]


def print_function(namespace: dict[str, Any]) -> Callable[..., None]:
    """Return a `print` that passes its text to the scheduler, which collects it in program order."""

    def print(*values: Any, sep: str | None = " ", end: str | None = "\n", flush: bool = False) -> None:  # noqa: A001
        text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
        text.encode()  # lone surrogates fail here, at the print
        namespace["%write"](text)

    return print


class Guards:
    """Guard functions of one program. They can be created before the program is known, to save time."""

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
        """Return the program's globals.

        Callable names are in `__builtins__`; the program's own names are added later.
        """
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
        """Return the globals of plain Python, for a worker that relies only on its kernel wall."""
        self._host = host
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": "__main__", "_caught_": self.caught}
        namespace["print"] = print_function(namespace)
        return namespace

    def _refuse(self, message: str) -> NoReturn:
        self._host.refuse(message, program_line())

    def stub(self, name: str) -> Callable[..., NoReturn]:
        """Return a function that refuses the use of a builtin."""

        def stub(*args: Any, **kwargs: Any) -> NoReturn:
            self._refuse(builtin_problem(name))

        return stub

    # Attributes

    def attribute(self, obj: Any, name: str) -> Any:
        """Return an attribute whose use depends on the object, or refuse it.

        Args:
            obj: The object.
            name: One of `GUARDED_ATTRIBUTES`.

        Raises:
            AttributeError: The object has no such attribute.
        """
        if name in FORMAT_ATTRIBUTES and _is_text(obj):
            return self._formatting(obj, name)
        if name in CLOCK_ATTRIBUTES and _is_date(obj):
            self._refuse(f"{name}() is not available: programs have no clock; write the date out")
        return getattr(obj, name)

    def getattr(self, obj: Any, name: Any, *default: Any) -> Any:
        """Return an attribute like the builtin, with the same refusals as for an attribute written with a dot.

        Args:
            obj: The object.
            name: A `str` or a `Text`.
            *default: At most one value, for an object without the attribute.

        Raises:
            AttributeError: The attribute does not exist, and there is no default.
            TypeError: The name is not a text, or there are two defaults.
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
        """Return True if the object has the attribute; forbidden names are refused.

        Args:
            obj: The object.
            name: A `str` or a `Text`.
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
        """Return the object if the program may set or delete its items and attributes."""
        kind = type(obj)
        own_class = isinstance(obj, type) and obj in self._own_classes
        if not own_class and kind not in WRITABLE and kind not in self._own_classes:
            self._refuse(f"a value of type {kind.__name__} cannot be changed: build a new list or dict instead")
        return obj

    def metaclass(self, name: str, bases: tuple[Any, ...], members: dict[str, Any], **keywords: Any) -> type:
        """Create a class of the program and record it; refuse bases other than its own classes and exceptions.

        Args:
            name: Name of the class.
            bases: Base classes.
            members: Namespace of the class; a `__repr__` without an address is added if there is none.
            **keywords: Ignored; the policy refuses them in the source.
        """
        for base in bases:
            own = isinstance(base, type) and base in self._own_classes
            if not own and not (isinstance(base, type) and issubclass(base, BaseException)):
                self._refuse("a class may derive from its own classes and from exceptions only")
        if not any(issubclass(base, BaseException) for base in bases):
            members.setdefault("__repr__", lambda self: f"<{name} object>")  # the default shows an address
        kind = type(name, bases, members)
        self._own_classes.add(kind)
        return kind

    # Exceptions and imports

    def caught(self) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            self._host.caught(error)

    def import_(self, module: str, member: str | None = None) -> Any:
        """Return the object that an import statement binds.

        Args:
            module: A key of `OFFERED_MODULES`.
            member: Name to import from it; None for the module's stand-in.
        """
        stand_in = self._facades[module]
        return stand_in if member is None else getattr(stand_in, member)


def stable_hash(value: Any, /) -> int:
    """Return `hash(value)`, or a hash of the type's name instead of an address-based one; the same in any process."""
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
    """Return True for `value is None`, which includes a value that was not found."""
    return value is None or type(value) is AbsentValue


def contained(item: Any, container: Any) -> bool:
    """Return `item in container`, comparing an item that was not found with each member of sets and dicts.

    Args:
        item: Any value; one that was not found is compared with each member.
        container: Any container; if it is a `Text`, an item that was not found raises its own error.
    """
    if type(item) is AbsentValue:
        if isinstance(container, (set, frozenset, dict)):
            return any(item == member for member in container)
        if isinstance(container, TextValue):
            return item in [container]  # compares them, which raises
    return item in container


def _is_text(obj: Any) -> bool:
    return isinstance(obj, str) or (isinstance(obj, type) and issubclass(obj, str))


def _is_date(obj: Any) -> bool:
    return isinstance(obj, dt.date) or (isinstance(obj, type) and issubclass(obj, dt.date))


class _Formatter(string.Formatter):
    """Formatter like `str.format` whose fields access attributes through the guard."""

    def __init__(self, guarded: Callable[..., Any]) -> None:
        self._guarded = guarded
        self._next = 0

    def vformat(self, format_string: str, args: Any, kwargs: Any) -> str:
        self._next = 0
        return super().vformat(format_string, args, kwargs)

    def parse(self, format_string: str) -> Iterator[Any]:
        """Number the unnamed fields, since `string.Formatter` does not support `{.name}` and `{[0]}`."""
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

    parts: tuple[Any, Any] = formatter_field_name_split(field_name)
    return parts
