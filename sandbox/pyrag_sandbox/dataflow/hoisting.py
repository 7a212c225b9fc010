# ruff: noqa: N802 - methods are named after the kinds of nodes they take
"""Rewriting of expressions: nested calls become temporaries, and comprehensions become gathers.

Both preserve the order of evaluation of a sequential run: if a call is moved out of its statement, everything that is
evaluated before it is moved out first. Names created here start with "%", which source code cannot contain.

    x = year(ask(a, fetch(a)))            %1 = fetch(a); %2 = ask(a, %1); x = year(%2)
    [ask(q) for q in qs if q]             %list(lambda q: [ask(q)] if q else (), qs, False)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyrag_sandbox.dataflow.analyzer import Analyzer
from pyrag_sandbox.dataflow.effects import NOTHING
from pyrag_sandbox.dataflow.syntax import COMPREHENSIONS, target_names
from pyrag_sandbox.dataflow.trees import Transformer, located, walk
from pyrag_sandbox.dataflow.vocabulary import FULLY_CONSUMING, PURE_BUILTINS, STRING_METHODS

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Slot(NamedTuple):
    """Child expression that is evaluated whenever its parent is."""

    child: ast.expr
    put: Callable[[ast.expr], None]
    movable: bool = True


def _field(node: ast.AST, name: str, *, movable: bool = True) -> Slot:
    return Slot(getattr(node, name), lambda new: setattr(node, name, new), movable)


def _items(items: list[ast.expr]) -> Iterator[Slot]:
    for index, item in enumerate(items):
        if isinstance(item, ast.Starred):
            yield _field(item, "value", movable=False)
        else:
            yield Slot(item, lambda new, i=index: items.__setitem__(i, new))  # type: ignore[misc]


def _dict_items(node: ast.Dict) -> Iterator[Slot]:
    keys: list[ast.expr | None] = node.keys
    for index, key in enumerate(keys):
        if key is not None:
            yield Slot(key, lambda new, i=index: keys.__setitem__(i, new))  # type: ignore[misc]
        value = node.values[index]
        put: Callable[[ast.expr], None] = lambda new, i=index: node.values.__setitem__(i, new)  # type: ignore[misc] # noqa: E731
        yield Slot(value, put, movable=key is not None)


def _call_slots(node: ast.Call) -> Iterator[Slot]:
    if isinstance(node.func, ast.Attribute):
        yield _field(node.func, "value")
        yield _field(node, "func", movable=False)
    else:
        yield _field(node, "func", movable=False)
    yield from _items(node.args)
    for keyword in node.keywords:
        yield _field(keyword, "value", movable=keyword.arg is not None)


def _format_slots(node: ast.JoinedStr) -> Iterator[Slot]:
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            yield _field(value, "value")


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Attribute: ("value",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.IfExp: ("test",),
}


def slots(node: ast.AST) -> list[Slot]:
    """Return the children that are evaluated unconditionally, in order of evaluation."""
    if isinstance(node, ast.Call):
        return list(_call_slots(node))
    if isinstance(node, ast.JoinedStr):
        return list(_format_slots(node))
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return list(_items(node.elts))
    if isinstance(node, ast.Dict):
        return list(_dict_items(node))
    if isinstance(node, ast.Compare):
        return [_field(node, "left"), next(_items(node.comparators))]
    if isinstance(node, ast.BoolOp):
        return [next(_items(node.values))]
    if isinstance(node, ast.Subscript):
        return [
            _field(node, "value"),
            _field(node, "slice", movable=not isinstance(node.slice, (ast.Slice, ast.Tuple))),
        ]
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return [_field(node.generators[0], "iter")]
    return [_field(node, name) for name in _FIELDS.get(type(node), ())]


class Hoister:
    """Rewriter that moves the calls of one statement into temporaries. `out` must run before the statement."""

    def __init__(self, analyzer: Analyzer, fresh_name: Callable[[], str]) -> None:
        self.a = analyzer
        self.fresh_name = fresh_name
        self.bound: set[str] = set()
        self.statement: ast.stmt = ast.Pass()
        self.out: list[ast.stmt] = []

    def temp(self, node: ast.expr) -> ast.Name:
        """Return a temporary that holds the value of an expression, assigned before the statement."""
        self.a.changed(self.statement)
        name = self.fresh_name()
        target = ast.copy_location(ast.Name(name, ast.Store()), node)
        self.out.append(ast.copy_location(ast.Assign([target], node), node))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def lift(self, node: ast.expr, *, top: bool = False) -> ast.expr:
        """Return an expression in which temporaries replace the hoistable calls, including the expression itself.

        Args:
            node: Expression of the statement, changed in place.
            top: Whether it is the statement's value, which is then kept in place.
        """
        hoistable = not top and self.hoistable(node)
        children = slots(node)
        last = max((i for i, s in enumerate(children) if self.contains(s.child)), default=-1)
        for index, slot in enumerate(children[: last + 1]):
            if not self._settle(node, slot, inside=self.contains(slot.child), before=index < last):
                break
        return self.temp(node) if hoistable else node

    def _settle(self, node: ast.expr, slot: Slot, *, inside: bool, before: bool) -> bool:
        """Lift within a child, and evaluate all of it first if more follows; False if nothing after it may move."""
        child = slot.child
        if isinstance(node, ast.Call) and child is node.func:
            return not before or self._check_callee(node)
        if inside:
            child = self.lift(child)
            slot.put(child)
        if not before:
            return True
        if isinstance(node, ast.JoinedStr):
            return self._format_first(node, child)
        if self.inert(child):
            return True
        if not slot.movable or not self.movable(child):
            return False
        slot.put(self.temp(child))
        return True

    def _format_first(self, node: ast.JoinedStr, child: ast.expr) -> bool:
        """Format an f-string's field before evaluating what follows, since formatting a value may raise."""
        part = next(v for v in node.values if isinstance(v, ast.FormattedValue) and v.value is child)
        if not self.movable(part):
            return False
        text = self.temp(ast.copy_location(ast.JoinedStr([part]), part))
        node.values[node.values.index(part)] = ast.copy_location(ast.FormattedValue(text, -1, None), part)
        return True

    def _check_callee(self, node: ast.Call) -> bool:
        """Look up the called attribute before evaluating the arguments, since the lookup may fail."""
        func = node.func
        if not isinstance(func, ast.Attribute):
            return self.inert(func)
        constant = isinstance(func.value, ast.Constant) and isinstance(func.value.value, str)
        if (constant and func.attr in STRING_METHODS) or self.a.known(node, NOTHING):
            return True
        if not self.inert(func.value):
            return False
        look = ast.Attribute(func.value, func.attr, ast.Load())
        self.out.append(ast.copy_location(ast.Expr(ast.copy_location(look, func)), func))
        return True

    def contains(self, node: ast.expr) -> bool:
        """Return True if an expression is hoistable or contains one that is."""
        return self.hoistable(node) or any(self.contains(s.child) for s in slots(node))

    def movable(self, node: ast.AST) -> bool:
        """Return True if an expression may be evaluated early."""
        effects = self.a.effects(node)
        return effects.pure and not effects.binds

    def hoistable(self, node: ast.expr) -> bool:
        """Return True for a pure expression that gets its own unit because it waits for primitives."""
        if isinstance(node, ast.Call):
            worth = self._calls_itself(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
            worth = gatherable(self.a, node)
        else:
            return False
        return worth and self.movable(node)

    def _calls_itself(self, node: ast.Call) -> bool:
        if isinstance(node.func, ast.Name) and node.func.id in self.a.summaries:
            return self.a.summaries[node.func.id].calls
        return self.a.calls_primitive(node) or consumes_generator(self.a, node)

    def inert(self, node: ast.AST) -> bool:
        """Return True if evaluating a node certainly succeeds and has no effect."""
        if not isinstance(node, ast.Name):
            return isinstance(node, ast.Constant)
        known = node.id in self.a.primitives or node.id in self.bound or node.id.startswith("%")
        return known or (not self.a.bound[node.id] and (node.id in PURE_BUILTINS or node.id in self.a.pure))


# -- comprehensions


def gatherable(a: Analyzer, node: Comprehension) -> bool:
    """Return True if the elements of a comprehension outside functions may be evaluated in parallel.

    Args:
        a: Analysis of the program.
        node: The comprehension.
    """
    first, *more = node.generators
    plain = all(isinstance(n, (ast.Name, ast.Tuple, ast.List)) for n in walk(first.target))
    names = target_names(first.target)
    if more or not plain or len(set(names)) != len(names):
        return False
    if any(isinstance(n, ast.NamedExpr) for n in walk(node)):
        return False  # it binds a name around it, which no lambda can
    values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    parts = [a.effects_within(part, frozenset(names)) for part in (*values, *first.ifs)]
    return all(p.pure and not p.binds for p in parts) and any(p.calls for p in parts)


def consumes_generator(a: Analyzer, node: ast.Call) -> bool:
    """Return True if a call consumes every element of its generator, as `sum(ask(q) for q in qs)` does.

    Args:
        a: Analysis of the program.
        node: The call.
    """
    if not node.args or not isinstance(node.args[0], ast.GeneratorExp):
        return False
    joins = (
        isinstance(node.func, ast.Attribute) and node.func.attr == "join" and isinstance(node.func.value, ast.Constant)
    )
    known = a.known(node, NOTHING).rpartition(".")[2] in FULLY_CONSUMING
    apart = a.effects(node).pure and not a.effects(node).binds  # `max` calls its key between the elements
    return (joins or known) and apart and gatherable(a, node.args[0])


def _conditional(parts: ast.expr, conditions: list[ast.expr]) -> ast.expr:
    if not conditions:
        return parts
    test = conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), conditions)
    return ast.IfExp(test, parts, ast.Tuple([], ast.Load()))


def _parts(node: Comprehension) -> tuple[str, ast.expr]:
    """Return one element in its own container, so that an error while storing it is raised by the element."""
    if isinstance(node, ast.DictComp):
        return "%dict", ast.Dict([node.key], [node.value])
    if isinstance(node, ast.SetComp):
        return "%set", ast.Set([node.elt])
    return ("%lazy" if isinstance(node, ast.GeneratorExp) else "%list"), ast.List([node.elt], ast.Load())


def _arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


def gather(node: Comprehension) -> ast.Call:
    """Return the call of a helper that evaluates a comprehension's elements in parallel."""
    builder, parts = _parts(node)
    (generator,) = node.generators
    names = target_names(generator.target)
    body = _conditional(parts, generator.ifs)
    source = generator.iter
    simple = isinstance(generator.target, ast.Name)
    if not simple:
        generator.ifs = []
        loads: list[ast.expr] = [ast.Name(n, ast.Load()) for n in names]
        source = ast.GeneratorExp(ast.Tuple(loads, ast.Load()), node.generators)
    call = ast.Call(
        ast.Name(builder, ast.Load()), [ast.Lambda(_arguments(names), body), source, ast.Constant(not simple)], []
    )
    return located(call, node)


def has_comprehension(node: ast.AST) -> bool:
    """Return True if a tree contains a comprehension."""
    return any(child.__class__ in COMPREHENSIONS for child in walk(node))


class Gatherer(Transformer):
    """Rewriter of the comprehensions of a tree, without those in functions and in other comprehensions."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.a = analyzer

    def _left_out(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_ClassDef = visit_Lambda = visit_GeneratorExp = _left_out  # noqa: N815

    def _comprehension(self, node: Comprehension) -> ast.AST:
        return gather(node) if gatherable(self.a, node) else node

    visit_ListComp = visit_SetComp = visit_DictComp = _comprehension  # noqa: N815

    def visit_Call(self, node: ast.Call) -> ast.AST:
        ready = consumes_generator(self.a, node)
        self.visit_children(node)
        if ready and isinstance(node.args[0], ast.GeneratorExp):
            node.args[0] = gather(node.args[0])
        return node
