"""Tools opened from specs, as used in `--tools` and the setting `tools`.

    MODULE:NAME          a function of a Python module, or a list of functions
    sql:FILE             `sql(query)` over a database, which is read-only
    table:FOLDER         `table(name)` over the CSV and TSV files in a folder
    NAME                 tools of an installed package (entry points of the group `pyrag.tools`)
    NAME=SPEC            the same tool under another name

Opening `MODULE:NAME` imports the module, which runs its code.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrag._io import plugins
from pyrag._io.specs import parse_named_spec
from pyrag.errors import ConfigError
from pyrag.tools.tool import Tool, as_tools

_FORMS = "MODULE:FUNCTION, sql:FILE or table:FOLDER"


def open_tools(specs: Iterable[str]) -> tuple[Tool[..., Any], ...]:
    """Return the tools that specs name.

    Args:
        specs: Specs, each of which may stand for several tools.

    Raises:
        ConfigError: A spec stands for nothing, or for something that cannot be a tool.
        DataError: A file or folder cannot be read.
    """
    return as_tools(tool for spec in specs for tool in open_tool(spec))


def open_tool(spec: str) -> tuple[Tool[..., Any], ...]:
    """Return the tools for a spec, usually one. Raises the same errors as `open_tools`."""
    name, (scheme, rest) = parse_named_spec(spec)
    if not rest and scheme.rpartition("=")[2] in plugins.names("tools"):
        return _added(scheme)
    if not rest:
        raise ConfigError(f"{spec!r} names no tool: write {_FORMS}")
    opened = _SCHEMES[scheme](rest) if scheme in _SCHEMES else _of_module(scheme, rest)
    if name and len(opened) > 1:
        raise ConfigError(
            f"{scheme}:{rest} names {len(opened)} tools, which cannot all be called {name!r}: name one of them"
        )
    return tuple(replace(tool, name=name) for tool in opened) if name else opened


def _added(spec: str) -> tuple[Tool[..., Any], ...]:
    """Return the tools that an installed package adds; if the spec is `OTHER=NAME`, under the other name."""
    other, _, name = spec.rpartition("=")
    loaded = plugins.load("tools", name)
    opened = as_tools(loaded if isinstance(loaded, list | tuple) else [loaded])
    if other and len(opened) > 1:
        raise ConfigError(
            f"{name} names {len(opened)} tools, which cannot all be called {other!r}: name only that tool"
        )
    return tuple(replace(tool, name=other) for tool in opened) if other else opened


def _of_module(module: str, name: str) -> tuple[Tool[..., Any], ...]:
    if module.endswith(".py") or "/" in module:
        raise ConfigError(f"{module!r} is a file: name its module, as in --tools {Path(module).stem}:{name}")
    try:
        value: Any = _imported(module)
    except Exception as error:  # whatever the module's code raises
        raise ConfigError(
            f"cannot import {module!r} for --tools {module}:{name} ({type(error).__name__}: {error})"
        ) from error
    for part in name.split("."):
        if not hasattr(value, part):
            raise ConfigError(f"the module {module} has no {name!r}: check --tools {module}:{name}")
        value = getattr(value, part)
    return as_tools(value if isinstance(value, list | tuple) else [value])


def _imported(module: str) -> Any:
    """Import a module. The current folder is searched too, because users store their tools there."""
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        return importlib.import_module(module)
    finally:
        if added:
            sys.path.remove(here)


def _sql(place: str) -> tuple[Tool[..., Any], ...]:
    from pyrag.tools.sql import sql_tool

    return (sql_tool(place),)


def _table(place: str) -> tuple[Tool[..., Any], ...]:
    from pyrag.tools.table import table_tool

    return (table_tool(place),)


_SCHEMES: dict[str, Callable[[str], tuple[Tool[..., Any], ...]]] = {"sql": _sql, "table": _table}
