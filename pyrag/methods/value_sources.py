"""Sources of each item in a program's final value, if it is a list or a dict."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.episode.plan_checks import RESULT
from pyrag.episode.program_run import ProgramRun
from pyrag.episode.program_values import CallResults, is_passage, plain
from pyrag.trace.plain import jsonable
from pyrag_helpers import HELPERS
from pyrag_sandbox import Outcome, Record, Text

MAX_ITEMS = 1_000
"""Maximum length of a list or dict whose items are traced one by one."""


@dataclass(frozen=True, slots=True)
class ItemSources:
    """Steps that an item was made from, and ids of the passages that it contains."""

    steps: tuple[int, ...]
    passages: tuple[str, ...] = ()


def item_sources(outcome: Outcome, program_run: ProgramRun, source: str) -> dict[str, ItemSources]:
    """Return the sources of each item in a program's final value.

    Answers and passages identify their own calls, and values from a row of `each` have the row's citations, even next
    to the item's name. For other derived items (a number, an f-string), the sources are the calls in the item's
    expression if the last statement lists the items, and otherwise all calls behind the whole value.

    Args:
        outcome: Outcome of the run, with a value.
        program_run: The run, which has ended.
        source: Source code of the program.

    Returns:
        Sources by item: the position in a list as text, or the key in a dict. Empty for other values, and for more than
        `MAX_ITEMS` items.
    """
    value = outcome.value
    if not isinstance(value, list | tuple | dict) or len(value) > MAX_ITEMS:
        return {}
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    exact = outcome.items if len(outcome.items) == len(pairs) else None
    written = {} if exact else _expressions(source, value)
    dependencies = {call.id: call.depends_on for call in outcome.calls}
    rows = _RowNames.of(outcome, program_run)
    plain_names = {*outcome.provenance, *program_run.episode.inputs, *HELPERS, *vars(builtins)}
    sources: dict[str, ItemSources] = {}
    for position, (key, item) in enumerate(pairs):
        leaves = list(_leaves(item))
        passages = tuple(passage for leaf in leaves for passage in _held(leaf, rows, program_run.results))
        if not passages and (row := rows.row_of(key if isinstance(value, dict) else None, item)) is not None:
            passages, calls = tuple(row.fields["citations"]), set[int]()
        elif exact is not None and not passages:
            calls = set(exact[position])
        elif leaves:
            own = [program_run.results.call_of(leaf) for leaf in leaves if isinstance(leaf, Text)]
            calls = _closure([call for call in own if call not in rows.calls], dependencies)
        else:
            calls = _calls_of_derived(outcome, plain_names, written.get(key))
        sources[item_key(key)] = ItemSources(tuple(program_run.step_ids(sorted(calls))), passages)
    return sources


def item_key(key: Any) -> str:
    """Return the name of an item: a dict's key in JSON form, or the position in a list."""
    return str(next(iter(jsonable({plain(key): None}))))


def _calls_of_derived(outcome: Outcome, plain_names: set[str], expression: ast.expr | None) -> set[int]:
    """Return the ids of the calls behind an item that is not itself an answer or passage.

    Args:
        outcome: Outcome of the run.
        plain_names: Names whose sources are known: variables, inputs, helpers and builtins.
        expression: Expression of the item in the source; None if it is unknown.
    """
    if expression is not None:
        names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
        # Other names are primitives, functions of the program and variables of comprehensions.
        if names <= plain_names:
            return {call for name in names for call in outcome.provenance.get(name, ())}
    return set(outcome.provenance.get(RESULT, ()))


@dataclass(frozen=True, slots=True)
class _RowNames:
    """Rows of `each`, by their items' names and documents. Names that several rows share are left out.

    Attributes:
        calls: Ids of the calls of `each`.
    """

    calls: frozenset[int]
    rows: Mapping[str, Record]

    @classmethod
    def of(cls, outcome: Outcome, program_run: ProgramRun) -> _RowNames:
        calls = frozenset(call.id for call in outcome.calls if call.name == "each")
        rows: dict[str, Record] = {}
        several: set[str] = set()
        for row in program_run.results.rows_of(calls) if calls else ():
            for name in {str(row.fields["item"]), str(row.fields.get("document") or row.fields["item"])}:
                several |= {name} & rows.keys()
                rows[name] = row
        return cls(calls, {name: row for name, row in rows.items() if name not in several})

    def row_of(self, key: Any, item: Any) -> Record | None:
        """Return the row that an item consists of (its name, document and value); None for other items.

        Args:
            key: Key of the item in a dict; None in a list.
            item: The item.
        """
        if not self.rows:
            return None
        parts = [*([] if key is None else [key]), *_scalars(plain(item))]
        named = {id(row): row for part in parts if isinstance(part, str) and (row := self.rows.get(part)) is not None}
        if len(named) != 1:
            return None
        (row,) = named.values()
        own = [row.fields["item"], row.fields.get("document"), *_scalars(plain(row.fields["value"]))]
        return row if all(part in own for part in parts) else None


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    else:
        yield value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, Text | Record):
        yield value


def _held(leaf: Text | Record, rows: _RowNames, results: CallResults) -> tuple[str, ...]:
    """Return the id of a passage, or the ids of the passages that a row of `each` or its value cites."""
    if isinstance(leaf, Text):
        return tuple(leaf.fields.get("citations", ())) if results.call_of(leaf) in rows.calls else ()
    return (str(leaf.fields["id"]),) if is_passage(leaf) else tuple(leaf.fields.get("citations", ()))


def _closure(calls: Sequence[int | None], dependencies: Mapping[int, Sequence[int]]) -> set[int]:
    """Return calls together with all calls that they depend on."""
    seen: set[int] = set()
    waiting = [call for call in calls if call is not None]
    while waiting:
        call = waiting.pop()
        if call not in seen:
            seen.add(call)
            waiting += dependencies.get(call, ())
    return seen


def _expressions(source: str, value: Any) -> Mapping[Any, ast.expr]:
    """Return the expression of each item if the program ends with a literal list or dict: `final_answer = {"a": …}`."""
    match ast.parse(source).body[-1]:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)) if name == RESULT:
            constant = [key.value for key in keys if isinstance(key, ast.Constant)]
            same = isinstance(value, dict) and len(constant) == len(keys) and constant == list(value)
            return dict(zip(constant, values, strict=True)) if same else {}
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=items) | ast.Tuple(elts=items)):
            plain_items = not any(isinstance(item, ast.Starred) for item in items)
            return dict(enumerate(items)) if name == RESULT and plain_items and len(items) == len(value) else {}
    return {}
