"""The code of units: compiled when first run, and run in a namespace, under the names of the frames it belongs to."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any

from pyrag_sandbox.dataflow.units import Unit


class UnitCode:
    """`compile_unit` turns a unit's tree into code named `filename`."""

    def __init__(self, compile_unit: Callable[[ast.Module], CodeType], filename: str) -> None:
        self._compile = compile_unit
        self._filename = filename
        self._known: dict[int, CodeType] = {}

    def run(self, unit: Unit, names: dict[str, Any]) -> None:
        code = self._known.get(id(unit))
        if code is None:
            code = self._known[id(unit)] = self._compile(unit.tree).replace(co_name=unit.place.name)
        if unit.place.sites:
            self._from_sites(unit.place.sites, lambda: exec(code, names))  # noqa: S102 - likewise
        else:
            exec(code, names)  # noqa: S102 - running the program is what this is for

    def _from_sites(self, sites: tuple[tuple[int, str], ...], run: Callable[[], None]) -> None:
        """Run from within frames as of the calls that were inlined, for the traceback."""
        line, name = sites[0]
        if len(sites) > 1:
            inner = run
            run = lambda: self._from_sites(sites[1:], inner)  # noqa: E731
        code = compile("\n" * (line - 1) + "run()", self._filename, "exec", dont_inherit=True)
        exec(code.replace(co_name=name), {"run": run, "__builtins__": {}})  # noqa: S102 - a call of ours
