"""Methods: named ways from a question to an answer, all over the same episode.

A method is one module of this folder with a function `answer(episode, settings) -> Answered`. It decides who writes
the program and what happens when it fails; running, recovery, budget and recording are the episode's. To add one,
add its module: the registry is the folder. Modules with a leading underscore are no methods but shared by some.

A method with `VARIANTS` is asked for as NAME or NAME:VARIANT (`search-agent:research`); it finds the variant in
`settings.method`. One with `RECOVERY` tries that at an unknown step, where the settings leave it to the method, and
not `boost`. One with `WRITES` has a language model write text of its own.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Protocol, cast

from pyrag.config import Settings
from pyrag.episode import Episode
from pyrag.errors import ConfigError
from pyrag.methods.base import Result
from pyrag.recovery import Recovery


class Method(Protocol):
    async def __call__(self, episode: Episode, settings: Settings) -> Result: ...


@cache
def method_names() -> tuple[str, ...]:
    names = (info.name for info in pkgutil.iter_modules(__path__))
    return tuple(sorted(name.replace("_", "-") for name in names if name != "base" and not name.startswith("_")))


def get_method(name: str) -> Method:
    """The method of that name. Raises `ConfigError` with the nearest known one."""
    from pyrag.config import nearest

    base, colon, variant = name.partition(":")
    if base not in method_names():
        raise ConfigError(f"there is no method {base!r}{nearest(base, method_names())}")
    if colon and variant not in variants_of(base):
        known = nearest(variant, variants_of(base)) if variants_of(base) else ": it has none"
        raise ConfigError(f"the method {base} has no variant {variant!r}{known}")
    return cast(Method, _module(base).answer)


def variants_of(name: str) -> tuple[str, ...]:
    """The variants of a method, its default first; most have none."""
    return tuple(getattr(_module(name), "VARIANTS", ()))


def recovery_of(name: str) -> Recovery:
    """What a method tries at an unknown step where the settings leave that to it."""
    return cast(Recovery, getattr(_module(name.partition(":")[0]), "RECOVERY", "boost"))


def check_writer(name: str, *, can_write: bool) -> None:
    """Raises `ConfigError` where a method needs a language model and the engine has none."""
    base = name.partition(":")[0]
    if getattr(_module(base), "WRITES", False) and not can_write:
        raise ConfigError(f"method {base} needs a language model: pass --llm openai:MODEL@http://host:port/v1")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
