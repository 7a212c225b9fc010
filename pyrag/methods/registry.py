"""Methods: named ways from a question to an answer, all over the same episode.

A method is a module with a function `answer(episode, settings) -> Result`. It decides who writes the program and what
happens when it fails; running, recovery, budget and recording are the episode's. To add one, name its module in
`MODULES` and in `pyrag._io.plugins`, or from another package under the entry points of the group `pyrag.methods`:

    [project.entry-points."pyrag.methods"]
    my-method = "my_package.my_method"

A method with `VARIANTS` is asked for as NAME or NAME:VARIANT (`search-agent:research`); it finds the variant in
`settings.method`. One with `RECOVERY` tries that at an unknown step, where the settings leave it to the method, and
not `boost`. One with `WRITES` has a language model write text of its own. One with `CALLS_TOOLS` runs programs of the
Plan agent, which may call tools (`pyrag.tools`). One with `view(trace)` shows its traces its own way
(`pyrag.trace.view`). One with `open_shared(settings)` keeps what that returns between questions, as `episode.shared`,
until the engines close it.
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
    """Return the names of pyrag's methods, then of those that other packages add."""
    return (*MODULES, *plugins.names("methods"))


def get_method(name: str) -> Method:
    """The method of that name. Raises `ConfigError` with the nearest known one."""
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
    """The variants of a method, its default first; most have none."""
    return tuple(getattr(_module(name), "VARIANTS", ()))


def recovery_of(name: str) -> Recovery:
    """Return the recovery that a method tries at an unknown step, where the settings leave that to it."""
    return cast(Recovery, getattr(_module(name.partition(":")[0]), "RECOVERY", "boost"))


def writes(name: str) -> bool:
    """Return True if a method has a language model write text of its own."""
    return bool(getattr(_module(name.partition(":")[0]), "WRITES", False))


def calls_tools(name: str) -> bool:
    """Return True if a method runs programs of the Plan agent, which may call the caller's own functions."""
    return bool(getattr(_module(name.partition(":")[0]), "CALLS_TOOLS", False))


def open_shared(settings: Settings) -> Any:
    """Return what the settings' method keeps open between questions, to be closed by its `close()`; None if nothing."""
    base = settings.method.partition(":")[0]
    opened = getattr(_module(base), "open_shared", None) if base in method_names() else None
    return None if opened is None else opened(settings)


def view_of(trace: Trace) -> Sequence[ViewItem]:
    """Return a trace as its method shows it; empty where it has no view of its own."""
    base = trace.method.partition(":")[0]
    shown = getattr(_module(base), "view", None) if base in method_names() else None
    return () if shown is None else cast("Sequence[ViewItem]", shown(trace))


def check_writer(name: str, *, can_write: bool) -> None:
    """Refuse a method that an engine cannot run.

    Args:
        name: The method.
        can_write: Whether the engine writes free text.

    Raises:
        ConfigError: the method needs a language model, and the engine has none.
    """
    base = name.partition(":")[0]
    if writes(base) and not can_write:
        raise ConfigError(f"method {base} needs a language model: pass --llm openai:MODEL@http://host:port/v1")


def _module(name: str) -> ModuleType:
    """Return the module of a known method. Raises `ConfigError` where another package's cannot be used."""
    if name in MODULES:
        return importlib.import_module(f"pyrag.methods.{MODULES[name]}")
    module = plugins.load("methods", name)
    if not callable(getattr(module, "answer", None)):
        package = plugins.package_of_part("methods", name)
        raise ConfigError(f"the method {name} of {package} has no function answer(episode, settings)")
    return cast(ModuleType, module)
