"""Names available to a program: builtins, modules and attributes. This module has only tables and facades, no checks.

The lists are explicit: names that later Python releases add are not available until they are added here.
"""

from __future__ import annotations

import builtins
import collections
import datetime as dt
import itertools
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from RestrictedPython.transformer import INSPECT_ATTRIBUTES


def words(text: str) -> tuple[str, ...]:
    """Return a table of names written in one line."""
    return tuple(text.split())


_FUNCTIONS = words(
    "abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float "
    "format frozenset hash hex int isinstance issubclass iter len list map max min next oct ord pow range "
    "repr reversed round set slice sorted str sum tuple zip property staticmethod classmethod Ellipsis "
    "NotImplemented"
)
_EXCEPTIONS = words(
    "ArithmeticError AssertionError AttributeError BaseException BufferError BytesWarning "
    "DeprecationWarning EOFError EnvironmentError Exception FloatingPointError FutureWarning "
    "GeneratorExit IOError ImportError ImportWarning IndentationError IndexError KeyError "
    "KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError "
    "OverflowError PendingDeprecationWarning PermissionError RecursionError ReferenceError RuntimeError "
    "RuntimeWarning StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError "
    "TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError "
    "UnicodeWarning UserWarning ValueError Warning ZeroDivisionError ConnectionError FileNotFoundError"
)
OFFERED_BUILTINS: Mapping[str, Any] = {name: getattr(builtins, name) for name in (*_FUNCTIONS, *_EXCEPTIONS)}

# Also forbidden as variable names: a program that assigns to these is malicious or confusing.
HARD_NAMES = frozenset(words("eval exec compile open globals locals vars setattr delattr super breakpoint memoryview"))
# Not available, but good names for variables ("type", "input"): refused unless the program binds them itself.
SOFT_NAMES = frozenset(
    words(
        "input dir type object help exit quit id aiter anext copyright credits license ExceptionGroup "
        "BaseExceptionGroup EncodingWarning PythonFinalizationError StopAsyncIteration ResourceWarning "
        "BlockingIOError ChildProcessError BrokenPipeError ConnectionAbortedError ConnectionRefusedError "
        "ConnectionResetError FileExistsError InterruptedError IsADirectoryError NotADirectoryError "
        "ProcessLookupError WindowsError"
    )
)

# Attributes that lead to frames, code, tracebacks, real modules or the class tree, on any object.
REFUSED_ATTRIBUTES = frozenset(INSPECT_ATTRIBUTES) | frozenset(
    words(
        "obj with_traceback mro throw tb_lasti tb_lineno f_lasti f_lineno f_trace_lines f_trace_opcodes "
        "gi_running gi_suspended gi_state cr_running cr_suspended cr_state ag_running ag_suspended ag_state "
        "co_argcount co_cellvars co_consts co_filename co_firstlineno co_flags co_freevars co_kwonlyargcount "
        "co_lines co_lnotab co_exceptiontable co_linetable co_name co_names co_nlocals co_positions "
        "co_posonlyargcount co_qualname co_stacksize co_varnames co_branches func_code func_globals "
        "func_closure func_defaults func_dict im_func im_self im_class get_field get_value vformat"
    )
)
# Attributes that are harmless on most objects, and checked when the program runs.
FORMAT_ATTRIBUTES = frozenset({"format", "format_map"})
CLOCK_ATTRIBUTES = frozenset({"now", "today", "utcnow"})
GUARDED_ATTRIBUTES = FORMAT_ATTRIBUTES | CLOCK_ATTRIBUTES

# Dunder methods that a class of a program may define.
ALLOWED_METHODS = frozenset(words("__init__ __contains__ __lt__ __le__ __eq__ __ne__ __gt__ __ge__"))
BUILTIN_BASES = frozenset(
    words(
        "bool bytearray bytes complex dict enumerate filter float frozenset int list map property range "
        "reversed set slice staticmethod classmethod str tuple zip"
    )
)

_NAMES: Mapping[str, tuple[Any, str]] = {
    "math": (math, " ".join(name for name in dir(math) if not name.startswith("_"))),
    "re": (
        re,
        "compile search match fullmatch split findall finditer sub subn escape Pattern Match error A ASCII I "
        "IGNORECASE M MULTILINE S DOTALL X VERBOSE U UNICODE NOFLAG",
    ),
    "datetime": (dt, "date datetime time timedelta timezone MINYEAR MAXYEAR UTC"),
    "json": (json, "loads JSONDecodeError"),
    "statistics": (
        statistics,
        "mean fmean geometric_mean harmonic_mean median median_low median_high median_grouped mode multimode stdev "
        "pstdev variance pvariance quantiles covariance correlation linear_regression StatisticsError",
    ),
    "itertools": (
        itertools,
        "accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile "
        "filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest",
    ),
    "collections": (collections, "Counter OrderedDict defaultdict deque namedtuple ChainMap"),
}
_TYPING = words(
    "Any Callable ClassVar DefaultDict Deque Dict Final FrozenSet Generator Iterable Iterator List "
    "Literal Mapping NamedTuple Optional Sequence Set Text Tuple Type TypedDict Union cast"
)


class Module:
    """Read-only stand-in for a module, with the listed members only."""

    __slots__ = ("_members", "_name", "_real", "_refuse")

    def __init__(
        self, name: str, members: Mapping[str, Any], real: frozenset[str], refuse: Callable[[str], NoReturn]
    ) -> None:
        self._name = name
        self._members = members
        self._real = real
        self._refuse = refuse

    def __getattr__(self, name: str) -> Any:
        if name in self._members:
            return self._members[name]
        if name in self._real:
            self._refuse(f"{self._name}.{name} is not offered; offered: {', '.join(self._members)}")
        raise AttributeError(f"module {self._name!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<module {self._name!r}>"

    def __dir__(self) -> Iterator[str]:
        return iter(self._members)


class _Placeholder:
    """Placeholder for a name of `typing`: annotations are dropped, so it only has to exist and to accept `[...]`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, item: Any) -> _Placeholder:
        return self

    def __repr__(self) -> str:
        return f"typing.{self._name}"


def _dumps(
    obj: Any,
    *,
    indent: int | None = None,
    sort_keys: bool = False,
    ensure_ascii: bool = True,
    default: Callable[[Any], Any] | None = None,
    separators: tuple[str, str] | None = None,
) -> str:
    """Return JSON like `json.dumps`, with support for Records and without the hooks that take classes."""

    def fallback(value: Any) -> Any:
        from pyrag_sandbox.worker.values import RecordValue

        if type(value) is RecordValue:
            return dict(value.items())
        if default is not None:
            return default(value)
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")

    return json.dumps(
        obj, indent=indent, sort_keys=sort_keys, ensure_ascii=ensure_ascii, default=fallback, separators=separators
    )


def _members(name: str) -> dict[str, Any]:
    module, names = _NAMES[name]
    members = {member: getattr(module, member) for member in names.split() if hasattr(module, member)}
    if name == "json":
        members["dumps"] = _dumps
    return members


OFFERED_MODULES: Mapping[str, Mapping[str, Any]] = {
    **{name: _members(name) for name in _NAMES},
    "typing": {name: _Placeholder(name) for name in _TYPING if name != "cast"} | {"cast": lambda kind, value: value},
}
_REAL: Mapping[str, frozenset[str]] = {
    **{name: frozenset(dir(module)) for name, (module, _) in _NAMES.items()},
    "typing": frozenset(dir(__import__("typing"))),
}


def facade(name: str, refuse: Callable[[str], NoReturn]) -> Module:
    """Return a read-only stand-in for a module.

    Args:
        name: A key of `OFFERED_MODULES`.
        refuse: Function that ends the program with a message if it uses a member that exists but is not available.
    """
    return Module(name, OFFERED_MODULES[name], _REAL[name], refuse)
