"""Static flow analysis: whether a call with effects may depend on a passage, by its arguments or by control flow.

The analysis is conservative. Variables are tracked by name over the whole program, and functions that are defined once
at the top level are analysed too. Once a program's control flow depends on passages, it does so until the program's
end, even after a branch is complete. Anything that cannot be analysed counts as dependent.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from pyrag.episode.flow.expressions import FlowFacts, Unit
from pyrag.episode.flow.shape import Cause, Shape, mentions

_MAX_PASSES = 20  # passes over a program; more are needed only by very long chains of names
_HIDDEN = Cause(1, "begins a program that is too intricate to follow")


@dataclass(frozen=True, slots=True)
class EffectSite:
    """Call of a primitive with effects in a program.

    Attributes:
        name: Name of the primitive.
        first: First line of the call, from 1.
        last: Last line of the call.
        dependence: Why the call may depend on passages; None if it certainly does not.
    """

    name: str
    first: int
    last: int
    dependence: Dependence | None


@dataclass(frozen=True, slots=True)
class Dependence:
    """Reason why a call with effects may depend on passages.

    Attributes:
        arguments: Names or numbers of the arguments that may depend on passages.
        cause: Place from which the program's control flow may depend on passages; None if only arguments do.
    """

    arguments: tuple[str, ...] = ()
    cause: Cause | None = None


def dependence(
    source: str, sources: frozenset[str], effects: frozenset[str], name: str, line: int
) -> Dependence | None:
    """Return why a call may depend on passages; None if it certainly does not.

    Args:
        source: Source code of the program.
        sources: Names of primitives whose results depend on passages.
        effects: Names of primitives with effects.
        name: Name of the called primitive.
        line: Line of the call.
    """
    here = [site for site in effect_sites(source, sources, effects) if _is_at(site, name, line)]
    if not here:
        return Dependence(cause=Cause(line, "makes a call that cannot be followed"))
    return next((site.dependence for site in here if site.dependence is not None), None)


def _is_at(site: EffectSite, name: str, line: int) -> bool:
    return site.name == name and site.first <= line <= site.last


@lru_cache(maxsize=64)
def effect_sites(source: str, sources: frozenset[str], effects: frozenset[str]) -> tuple[EffectSite, ...]:
    """Return the calls of primitives with effects; empty for a program that cannot be parsed.

    Args:
        source: Source code of the program.
        sources: Names of primitives whose results depend on passages.
        effects: Names of primitives with effects.
    """
    try:
        return tuple(_FlowAnalysis(Shape(ast.parse(source), sources, effects)).sites())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


class _FlowAnalysis:
    """Analysis of one program, in passes until nothing changes."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.facts = shape, FlowFacts()
        self._course: Cause | None = None  # why it depends on passages whether the current statement runs
        self._helper = ""
        self._in_try = False

    def sites(self) -> Iterator[EffectSite]:
        """Yield the calls with effects."""
        hidden = self.shape.unfollowed or (None if self._settled() else _HIDDEN)
        for node in ast.walk(self.shape.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.shape.effects:
                arguments, cause = self.facts.arguments.get(node, ()), hidden or self.facts.branches.get(node)
                reason = Dependence(arguments, cause) if arguments or cause else None
                yield EffectSite(node.func.id, node.lineno, node.end_lineno or node.lineno, reason)

    def _settled(self) -> bool:
        for _ in range(_MAX_PASSES):
            before, facts = self.facts.size, self.facts
            facts.sensitive = self.shape.helpers_that_mention(facts.names | self.shape.sources | self.shape.effects)
            self._begin("", None, in_try=False)
            self._block(self.shape.tree.body)
            for name, helper in self.shape.helpers.items():
                self._begin(name, self.facts.entered.get(name), in_try=name in self.facts.in_try)
                self._block(helper.body)
                if self._course is not None:
                    self.facts.leaves.setdefault(name, self._course)
            if self.facts.size == before:
                return True
        return False

    def _begin(self, helper: str, course: Cause | None, *, in_try: bool) -> None:
        self._helper, self._course, self._in_try = helper, course, in_try

    @contextmanager
    def _unit(self) -> Iterator[Unit]:
        """Evaluate the expressions of one statement, then mark control flow as dependent if they risk it."""
        unit = Unit(self.shape, self.facts, in_try=self._in_try)
        yield unit
        self._course = self._course or unit.risk
        if self._course is not None:
            for call in unit.effects:
                self.facts.branches.setdefault(call, self._course)
            for name in unit.called:
                self.facts.entered.setdefault(name, self._course)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If(test=test, body=body, orelse=other):
                self._test(test)
                self._branches(body, other)
            case ast.While(test=test, body=body, orelse=other):
                self._test(test)
                self._loop(body, test)
                self._block(other)
            case ast.For(target=target, iter=items, body=body, orelse=other):
                with self._unit() as unit:
                    if tainted := unit.value(items):
                        unit.branches(items)
                    unit.target(target, tainted=tainted)
                self._loop(body)
                self._block(other)
            case ast.Try():
                self._try(node)
            case ast.With():
                self._with(node)
            case ast.Match():
                self._match(node)
            case ast.FunctionDef() | ast.ClassDef():
                self._definition(node)
            case _:
                self._simple(node)

    def _simple(self, node: ast.stmt) -> None:
        with self._unit() as unit:
            match node:
                case ast.Assign(targets=targets, value=value):
                    self._assign(unit, targets, value)
                case ast.AnnAssign(target=target, value=value):
                    tainted = value is not None and unit.value(value)
                    unit.target(target, tainted=tainted)
                case ast.Return(value=value):
                    if value is not None and unit.value(value) and self._helper:
                        self.facts.returns.add(self._helper)
                case ast.Expr(value=value):
                    unit.value(value)
                case _:  # AugAssign, Delete, Assert, Raise: each operation on a value counts
                    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
                    names = [part for part in parts if isinstance(part, ast.Name)]
                    if unit.any(parts):
                        unit.computes(node)
                        for name in names:
                            unit.bind(name.id, tainted=True)

    def _assign(self, unit: Unit, targets: list[ast.expr], value: ast.expr) -> None:
        for target in targets:
            for part, item in _pairs(target, value):
                unit.target(part, tainted=unit.value(item))

    def _test(self, test: ast.expr) -> None:
        with self._unit() as unit:
            if unit.value(test):
                unit.branches(test)

    def _branches(self, *blocks: Sequence[ast.stmt]) -> None:
        """Visit alternatives, each starting from the same control-flow state."""
        before, after = self._course, self._course
        for block in blocks:
            self._course = before
            self._block(block)
            after = after or self._course
        self._course = after

    def _loop(self, body: Sequence[ast.stmt], test: ast.expr | None = None) -> None:
        """Visit the body of a loop, twice if control flow depends on passages from its second round on."""
        before = self._course
        for _ in range(2):
            self._block(body)
            if test is not None:
                self._test(test)
            if self._course is before:
                break

    def _try(self, node: ast.Try) -> None:
        """Visit a `try`: a failure in its body because of passages changes the control flow of everything after it."""
        outside, self._in_try = self._in_try, True
        self._block(node.body)
        for handler in node.handlers:
            if handler.type is not None:
                self._test(handler.type)
            self._block(handler.body)
        self._block(node.orelse)
        self._block(node.finalbody)
        self._in_try = outside

    def _with(self, node: ast.With) -> None:
        with self._unit() as unit:
            for item in node.items:
                tainted = unit.value(item.context_expr)
                if tainted:
                    unit.computes(item.context_expr)
                if item.optional_vars is not None:
                    unit.target(item.optional_vars, tainted=tainted)
        outside, self._in_try = self._in_try, True
        self._block(node.body)
        self._in_try = outside

    def _match(self, node: ast.Match) -> None:
        with self._unit() as unit:
            if tainted := unit.value(node.subject):
                unit.branches(node.subject)
            for case in node.cases:
                for part in ast.walk(case.pattern):
                    if isinstance(part, ast.expr) and unit.value(part):
                        unit.computes(part)
                    for name in filter(None, (getattr(part, "name", None), getattr(part, "rest", None))):
                        unit.bind(name, tainted=tainted)
        before, after = self._course, self._course
        for case in node.cases:
            self._course = before
            if case.guard is not None:
                self._test(case.guard)
            self._block(case.body)
            after = before = self._course or after
        self._course = after

    def _definition(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        """Evaluate a definition. The body of a helper is visited separately; any other body must be harmless."""
        with self._unit() as unit:
            if isinstance(node, ast.FunctionDef) and self.shape.helpers.get(node.name) is node:
                defaults = (*node.args.defaults, *node.args.kw_defaults)
                if unit.any(defaults):
                    unit.computes(node.args)
            elif mentions(node, self.facts.names | self.shape.sources | self.facts.sensitive):
                unit.take_risk(node, f"defines {node.name}, which cannot be followed")


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Pair targets and values of an assignment between two tuples or lists; otherwise return the whole assignment."""
    if not (isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)):
        return [(target, value)]
    parts = [*target.elts, *value.elts]
    if len(target.elts) != len(value.elts) or any(isinstance(part, ast.Starred) for part in parts):
        return [(target, value)]
    return list(zip(target.elts, value.elts, strict=True))
