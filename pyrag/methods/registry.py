"""Registry of methods: named ways from a question to an answer, all over the same episode.

A method is a module with a function `answer(episode, settings) -> Result`. It decides who writes the program and
what happens if it fails; the episode provides running, recovery, budget and recording. To add a method, name its
module in `MODULES` and in `pyrag._io.plugins`, or in another package under the entry points of the group
`pyrag.methods`:

    [project.entry-points."pyrag.methods"]
    my-method = "my_package.my_method"

Optional attributes of the module:

    VARIANTS            names; the method is selected as NAME or NAME:VARIANT, and finds it in `settings.method`
    RECOVERY            recovery of unknown steps if the settings leave it to the method; default `boost`
    WRITES              True if a language model writes text of its own
    CALLS_TOOLS         True if the method runs programs of the Plan agent, which may call tools (`pyrag.tools`)
    view(trace)         the method's own view of its traces (`pyrag.trace.view`)
    open_shared(settings)   state between questions, available as `episode.shared` until the engines close it
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol, cast

from pyrag._io import plugins
from pyrag.episode.episode import Episode
from pyrag.episode.recovery import Recovery
from pyrag.errors import ConfigError
from pyrag.methods.program_result import Result
from pyrag.settings import Settings
from pyrag.trace.model import Trace
from pyrag.trace.view import ViewItem


class Method(Protocol):
    """Function that answers a question."""

    async def __call__(self, episode: Episode, settings: Settings) -> Result: ...


MODULES = {
    "adaptive": "baselines.adaptive",
    "cot": "baselines.cot",
    "decompose-only": "pyrag.decompose_only",
    "direct": "baselines.direct",
    "hera": "hera.method",
    "ircot": "baselines.ircot",
    "iter-retgen": "baselines.iter_retgen",
    "opera": "opera.method",
    "plan-only": "pyrag.plan_only",
    "pyrag": "pyrag.method",
    "search-agent": "search_agent",
    "self-ask": "baselines.self_ask",
    "vanilla": "baselines.vanilla",
}


def method_names() -> tuple[str, ...]:
    """Return the names of pyrag's methods, then those that other packages add."""
    return (*MODULES, *plugins.names("methods"))


def get_method(name: str) -> Method:
    """Return the method of a name. Raises `ConfigError` that names the nearest known method."""
    from pyrag.errors import nearest

    base, colon, variant = name.partition(":")
    if base not in method_names():
        if owners := [owner for owner in MODULES if base in variants_of(owner)]:
            raise ConfigError(f"there is no method {base!r}: did you mean {f'{owners[0]}:{base}'!r}?")
        raise ConfigError(f"there is no method {base!r}{nearest(base, method_names())}")
    if colon and variant not in variants_of(base):
        known = nearest(variant, variants_of(base)) if variants_of(base) else ": it has none"
        raise ConfigError(f"the method {base} has no variant {variant!r}{known}")
    return cast(Method, _module(base).answer)


def variants_of(name: str) -> tuple[str, ...]:
    """Return the variants of a method, default first; most methods have no variants."""
    return tuple(getattr(_module(name), "VARIANTS", ()))


def recovery_of(name: str) -> Recovery:
    """Return the recovery of unknown steps that a method uses if the settings leave it to the method."""
    return cast(Recovery, getattr(_module(name.partition(":")[0]), "RECOVERY", "boost"))


def writes(name: str) -> bool:
    """Return True if a method has a language model write text of its own."""
    return bool(getattr(_module(name.partition(":")[0]), "WRITES", False))


def calls_tools(name: str) -> bool:
    """Return True if a method runs programs of the Plan agent, which may call the caller's own functions."""
    return bool(getattr(_module(name.partition(":")[0]), "CALLS_TOOLS", False))


def open_shared(settings: Settings) -> Any:
    """Return the state that the settings' method keeps between questions, or None. Its `close()` ends it."""
    base = settings.method.partition(":")[0]
    opened = getattr(_module(base), "open_shared", None) if base in method_names() else None
    return None if opened is None else opened(settings)


def view_of(trace: Trace) -> Sequence[ViewItem]:
    """Return a trace in its method's own view; empty if the method has none."""
    base = trace.method.partition(":")[0]
    shown = getattr(_module(base), "view", None) if base in method_names() else None
    return () if shown is None else cast("Sequence[ViewItem]", shown(trace))


def check_writer(name: str, *, can_write: bool) -> None:
    """Check that an engine can run a method.

    Args:
        name: Name of the method.
        can_write: Whether the engine writes free text.

    Raises:
        ConfigError: The method needs a language model, and the engine has none.
    """
    base = name.partition(":")[0]
    if writes(base) and not can_write:
        raise ConfigError(f"method {base} needs a language model: pass --llm openai:MODEL@http://host:port/v1")


def _module(name: str) -> ModuleType:
    """Return the module of a known method. Raises `ConfigError` if another package's module cannot be used."""
    if name in MODULES:
        return importlib.import_module(f"pyrag.methods.{MODULES[name]}")
    module = plugins.load("methods", name)
    if not callable(getattr(module, "answer", None)):
        package = plugins.package_of_part("methods", name)
        raise ConfigError(f"the method {name} of {package} has no function answer(episode, settings)")
    return cast(ModuleType, module)
