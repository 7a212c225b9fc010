"""Registry of methods: named ways from a question to an answer, all based on the same episode.

A method is an object of `pyrag.methods.method.Method`. It decides who writes the program and what happens if it fails;
the episode provides running, recovery, budget and recording. Another package registers its method, as pyrag does for
OPERA and HERA, under the entry points of the group `pyrag.methods`:

    [project.entry-points."pyrag.methods"]
    my-method = "my_package.my_method:METHOD"
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from pyrag._io import plugins
from pyrag.errors import ConfigError
from pyrag.methods.agent_counts import AgentCounts, count_agents
from pyrag.methods.method import Method
from pyrag.settings import Settings
from pyrag.trace.model import Trace
from pyrag.trace.view import ViewItem

MODULES = {
    "adaptive": "baselines.adaptive",
    "cot": "baselines.cot",
    "decompose-only": "pyrag.decompose_only",
    "direct": "baselines.direct",
    "ircot": "baselines.ircot",
    "iter-retgen": "baselines.iter_retgen",
    "plan-only": "pyrag.plan_only",
    "pyrag": "pyrag.method",
    "search-agent": "search_agent",
    "self-ask": "baselines.self_ask",
    "vanilla": "baselines.vanilla",
}


def method_names() -> tuple[str, ...]:
    """Return the names of pyrag's methods, followed by the names from other packages."""
    return (*sorted(plugins.OWN["methods"]), *plugins.names("methods"))


def get_method(name: str) -> Method:
    """Return a method by name. Raises `ConfigError` with the nearest known name if there is none."""
    from pyrag.errors import nearest

    base, colon, variant = name.partition(":")
    if base not in method_names():
        if owners := [owner for owner in plugins.OWN["methods"] if base in variants_of(owner)]:
            raise ConfigError(f"there is no method {base!r}: did you mean {f'{owners[0]}:{base}'!r}?")
        raise ConfigError(f"there is no method {base!r}{nearest(base, method_names())}")
    if colon and variant not in variants_of(base):
        known = nearest(variant, variants_of(base)) if variants_of(base) else ": it has none"
        raise ConfigError(f"the method {base} has no variant {variant!r}{known}")
    return _method(base)


def variants_of(name: str) -> tuple[str, ...]:
    """Return the variants of a method, default first; most methods have no variants."""
    return _method(name).variants


def writes(name: str) -> bool:
    """Return True if a method needs a language model to write free text."""
    return _method(name.partition(":")[0]).needs_writer


def calls_tools(name: str) -> bool:
    """Return True if a method runs programs of the Plan agent, which may call the caller's own functions."""
    return _method(name.partition(":")[0]).calls_tools


def open_shared(settings: Settings) -> Any:
    """Return the state that the settings' method keeps between questions, or None. Call its `close()` at the end."""
    base = settings.method.partition(":")[0]
    opened = _method(base).open_shared if base in method_names() else None
    return None if opened is None else opened(settings)


def view_of(trace: Trace) -> Sequence[ViewItem]:
    """Return a trace in its method's own view; empty if the method has none."""
    base = trace.method.partition(":")[0]
    shown = _method(base).view if base in method_names() else None
    return () if shown is None else shown(trace)


def counts_of(trace: Trace) -> AgentCounts:
    """Return the counts of a trace's agents, computed by its method."""
    base = trace.method.partition(":")[0]
    count = _method(base).count if base in method_names() else None
    return (count or count_agents)(trace)


def reading_primitives(trace: Trace) -> frozenset[str]:
    """Return the names of a trace's primitives that read passages without searching."""
    base = trace.method.partition(":")[0]
    return _method(base).reading_primitives if base in method_names() else frozenset()


def check_writer(method: Method, *, can_write: bool) -> None:
    """Check that an engine can run a method.

    Args:
        method: The method.
        can_write: Whether the engine writes free text.

    Raises:
        ConfigError: The method needs a language model, and the engine has none.
    """
    if method.needs_writer and not can_write:
        raise ConfigError(f"method {method.name} needs a language model: pass --llm openai:MODEL@http://host:port/v1")


def _method(name: str) -> Method:
    """Return a known method. Raises `ConfigError` if it belongs to another package and cannot be used."""
    if name in MODULES:
        method = importlib.import_module(f"pyrag.methods.{MODULES[name]}").METHOD
    else:
        method = plugins.load("methods", name)
    if not isinstance(method, Method):
        package = plugins.package_of_part("methods", name)
        raise ConfigError(
            f"the method {name} of {package} is not a Method: its entry point must name an object made by "
            "pyrag.extend.Method(name=…, answer=…)"
        )
    return method
