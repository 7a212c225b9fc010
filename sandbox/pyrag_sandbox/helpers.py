"""Helpers: functions of the caller that programs may call inside the worker, without a message to the host.

The caller names a module. The zygote imports it before it forks its first worker, and uses two names from it:

    HELPERS = {"double": double}             # functions, by the name that programs use
    ERRORS = {"NotFoundError": NotFoundError}    # exceptions that programs may name; optional

The functions run inside both walls, as part of the program. They must be pure (the same result for the same arguments,
no state), because calls are reordered around them, and they must be safe to call with any argument. The module runs
before the walls are up, so it must be trusted, and should only import modules that load quickly.

An installed package may name its module in the entry point group `pyrag_sandbox.helpers`. `HELPERS` of this module
holds the functions of all such modules, for callers outside a sandbox; accessing it imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any


@dataclass(frozen=True, slots=True)
class Helpers:
    """Functions and exceptions that a program finds among its builtins.

    Attributes:
        functions: Pure functions by name.
        errors: Exception classes by name.
    """

    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    errors: Mapping[str, type[Exception]] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Names of the functions."""
        return frozenset(self.functions)


NO_HELPERS = Helpers()
GROUP = "pyrag_sandbox.helpers"  # of entry points


def load_helpers(module: str) -> Helpers:
    """Import a module of helpers.

    Args:
        module: Importable name; empty for no helpers.

    Returns:
        The module's helpers and errors.

    Raises:
        ValueError: The module lacks `HELPERS`, or one of its objects cannot be called, raised or named in a program.
    """
    if not module:
        return NO_HELPERS
    loaded = import_module(module)
    functions, errors = getattr(loaded, "HELPERS", None), getattr(loaded, "ERRORS", {})
    if not isinstance(functions, Mapping) or not isinstance(errors, Mapping):
        raise ValueError(f"the module {module!r} offers no helpers: define HELPERS, a dict of functions by name")
    for name, value in (*functions.items(), *errors.items()):
        if not str(name).isidentifier() or str(name).startswith("_") or not callable(value):
            raise ValueError(f"the helper {name!r} of {module!r} is not a function with a name that programs can use")
    for name, value in errors.items():
        if not (isinstance(value, type) and issubclass(value, Exception)):
            raise ValueError(f"the error {name!r} of {module!r} is not a subclass of Exception")
    return Helpers(dict(functions), dict(errors))


def __getattr__(name: str) -> Any:
    if name != "HELPERS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    functions: dict[str, Callable[..., Any]] = {}
    for entry in entry_points(group=GROUP):
        functions |= load_helpers(entry.value).functions
    return functions
