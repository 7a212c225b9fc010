# ruff: noqa: N802 - methods are named after the kinds of nodes they take
"""`Effects` of running a piece of a program, and their collector. `analyzer` lists the assumptions of the analysis."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from pyrag_sandbox.dataflow.syntax import (
    FunctionNode,
    bound_names,
    catches_only,
    dotted,
    is_number,
    parameters,
    root,
    target_names,
)
from pyrag_sandbox.dataflow.trees import Visitor, walk
from pyrag_sandbox.dataflow.vocabulary import (
    CALLED,
    CONSUMING_METHODS,
    LAZY,
    MUTATING_METHODS,
    PURE_BUILTINS,
    READING_METHODS,
    SHARING_METHODS,
    STRING_METHODS,
    TAKING_ALL,
    TAKING_FIRST,
)

NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class Effects:
    """Effects of running a node. `reads`, `binds` and `mutates` are global names."""

    reads: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    mutates: set[str] = field(default_factory=set)
    calls: bool = False  # calls primitives
    ordered: bool = False  # must not run before everything earlier has succeeded
    unsure: bool = False  # may do anything to whatever it can reach
    lazy: bool = False  # a lazy iterator outlives the expression
    deep: bool = False  # mutates more than the very objects that the names in `mutates` are bound to

    @property
    def pure(self) -> bool:
        return not (self.mutates or self.ordered or self.unsure or self.lazy)

    def merge(self, other: Effects) -> None:
        """Add the effects of another node."""
        self.reads |= other.reads
        self.binds |= other.binds
        self.mutates |= other.mutates
        self.calls |= other.calls
        self.ordered |= other.ordered
        self.unsure |= other.unsure
        self.lazy |= other.lazy
        self.deep |= other.deep


class ProgramFacts(Protocol):
    """Part of `Analyzer` that `EffectVisitor` needs."""

    primitives: frozenset[str]
    pure: frozenset[str]
    exceptions: frozenset[str]
    bound: Counter[str]
    functions: dict[str, FunctionNode]
    summaries: dict[str, Effects]
    reading_mutates: bool

    def effects(self, node: ast.AST) -> Effects: ...
    def calls_primitive(self, node: ast.AST) -> bool: ...
    def known(self, call: ast.Call, scope: frozenset[str]) -> str:
        """Return the plain name of a called expression, or an empty text if it cannot be determined.

        Args:
            call: The call.
            scope: Local names, which hide known ones.
        """
        ...

    def is_pure_function(self, name: str) -> bool: ...
    def is_offered(self, name: str) -> bool: ...
    def scope_of(self, function: FunctionNode) -> tuple[frozenset[str], frozenset[str]]: ...


class EffectVisitor(Visitor):
    """Collector of the effects of one node within a scope of local names."""

    def __init__(
        self,
        analyzer: ProgramFacts,
        scope: frozenset[str] = NOTHING,
        fresh: frozenset[str] = NOTHING,
        *,
        remembers: bool = True,
    ) -> None:
        self.a = analyzer
        self.scope = scope
        self.fresh = fresh
        self.remembers = remembers  # whether to use the analyzer's cached effects of statements and calls inside
        self.effects = Effects()
        self.consumed: set[int] = set()

    # -- names

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self.scope:
            return
        if not isinstance(node.ctx, ast.Load):
            self.effects.binds.add(node.id)
            self.effects.ordered |= isinstance(node.ctx, ast.Del)
            return
        self.effects.reads.add(node.id)
        if node.id in self.a.summaries:
            self.effects.merge(self.a.summaries[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._mutate(node.value)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) or self.a.reading_mutates:
            self._mutate(node.value)
        self.visit(node.value)
        self.visit(node.slice)

    def _mutate(self, node: ast.AST) -> None:  # the object that `node` evaluates to is changed
        if isinstance(node, ast.Name):
            self._mutate_name(node.id)
            return
        base = root(node)
        self.effects.deep = True
        if isinstance(base, ast.Name) and base.id not in self.scope:
            self.effects.mutates.add(base.id)
        else:
            self.effects.unsure = True

    def _mutate_name(self, name: str) -> None:
        if name not in self.scope:
            self.effects.mutates.add(name)
        elif name not in self.fresh:
            self.effects.unsure = True

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.consumed.add(id(node.value))
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            self._mutate_name(node.target.id)
        else:
            inner = node.target.value
            if not (is_number(node.value) and isinstance(inner, ast.Name)):
                self._mutate(node.target)
        self.visit(node.target)

    # -- calls

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            self._call_name(node, node.func.id)
        elif isinstance(node.func, ast.Attribute):
            self._call_method(node, node.func)
        else:
            self.effects.unsure = True
            self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def _call_name(self, node: ast.Call, name: str) -> None:
        if name in self.scope:
            self.effects.unsure = True
            return
        self.visit(node.func)
        if name.startswith("%"):
            return  # inserted by the rewriting, which records the effects itself
        if name in self.a.primitives:
            self.effects.calls = True
        elif name not in self.a.functions:
            self._call_known(node, self.a.known(node, self.scope))

    def _call_known(self, node: ast.Call, name: str) -> None:
        last = name.rpartition(".")[2]
        if name == "next":
            self._call_next(node)
        elif not name or not self.a.is_pure_function(name) or not self._callbacks_known(node, last):
            self.effects.unsure = True
        if last in LAZY:
            self.effects.lazy |= id(node) not in self.consumed
        self._consume(node, last)

    def _consume(self, node: ast.Call, last: str) -> None:
        """Record the arguments whose iterators a call exhausts or passes on."""
        several = last in ("max", "min") and len(node.args) > 1  # the result is one of the arguments
        if last in TAKING_ALL:
            self.consumed.update(map(id, node.args))
        elif last in TAKING_FIRST and not several:
            self.consumed.update(map(id, node.args[:1]))

    def _call_next(self, node: ast.Call) -> None:
        if not (node.args and isinstance(node.args[0], ast.GeneratorExp)):
            self.effects.unsure = True

    def _call_method(self, node: ast.Call, func: ast.Attribute) -> None:
        name = self.a.known(node, self.scope)
        if name and not (func.attr in MUTATING_METHODS or name.count(".") == 0):
            self.visit(func.value)
            self._call_known(node, name)
            return
        if func.attr in CONSUMING_METHODS:
            self.consumed.update(map(id, node.args[:1] if func.attr == "fromkeys" else node.args))
        if func.attr in MUTATING_METHODS:
            self._mutate_by(func)
        elif func.attr not in STRING_METHODS and func.attr not in SHARING_METHODS:
            self.effects.unsure = True
        if func.attr in READING_METHODS:
            self._read_items(*node.args, *(keyword.value for keyword in node.keywords))
        if not self._callbacks_known(node, func.attr):
            self.effects.unsure = True
        self.visit(func.value)

    def _mutate_by(self, func: ast.Attribute) -> None:
        """Record a mutating method, called on its object or, through its type, on an argument: `list.append(xs, x)`."""
        base = root(func.value)
        if isinstance(base, ast.Name) and base.id not in self.scope and self.a.is_offered(base.id):
            self.effects.unsure = True
        else:
            self._mutate(func.value)

    def _read_items(self, *nodes: ast.AST) -> None:
        """Record that C code reads items of values. Reading may add a key to a `defaultdict`."""
        for node in nodes if self.a.reading_mutates else ():
            if not isinstance(node, (ast.Constant, ast.JoinedStr)):
                self._mutate(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Mod):
            self._read_items(node.right)
        self.visit_children(node)

    def _callbacks_known(self, node: ast.Call, last: str) -> bool:
        """Return True if all functions passed as arguments have known effects, which count where they are named."""
        positions, names = CALLED.get(last, ((), NOTHING))
        starred = bool(positions) and any(isinstance(argument, ast.Starred) for argument in node.args)
        if starred or any(keyword.arg is None for keyword in node.keywords):  # unpacked arguments may be anything
            return False
        if last == "iter" and len(node.args) < 2:
            return True
        called = [node.args[position] for position in positions if position < len(node.args)]
        called += [keyword.value for keyword in node.keywords if keyword.arg in names]
        return all(map(self._callable_known, called))

    def _callable_known(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Lambda, ast.Constant, ast.JoinedStr)):
            return True
        if isinstance(node, ast.Attribute):
            base = dotted(node).split(".")[0]
            types = base in PURE_BUILTINS and not self.a.bound[base] and base not in self.scope
            return types and node.attr in STRING_METHODS | SHARING_METHODS
        if not isinstance(node, ast.Name) or node.id in self.scope:
            return False
        if node.id in self.a.primitives:
            self.effects.calls = True
            return True
        if node.id in self.a.functions:
            return True
        return not self.a.bound[node.id] and (node.id in PURE_BUILTINS or node.id in self.a.pure)

    # -- scopes inside expressions

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(default)
        self._inside(parameters(node.args), [node.body])

    def _inside(self, names: Iterable[str], nodes: Iterable[ast.AST]) -> None:
        scope, fresh = self.scope, self.fresh
        self.scope = scope | set(names)
        self.fresh = fresh - set(names)
        for node in nodes:
            self.visit(node)
        self.scope, self.fresh = scope, fresh

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first, *rest = node.generators
        self.consumed.update(id(g.iter) for g in node.generators)
        self.visit(first.iter)
        names = [n for g in node.generators for n in target_names(g.target)]
        stores = [g.target for g in node.generators if not isinstance(g.target, ast.Name)]
        elements: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inner: list[ast.AST] = [*stores, *(g.iter for g in rest), *(c for g in node.generators for c in g.ifs)]
        walrus = [n for e in (*elements, *inner) for n in walk(e) if isinstance(n, ast.NamedExpr)]
        self._inside(names, [*inner, *elements])
        for named in walrus:
            self.visit(named.target)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self.effects.lazy |= id(node) not in self.consumed
        self._comprehension(node)

    visit_ListComp = visit_SetComp = visit_DictComp = _comprehension  # noqa: N815

    # -- where lazy iterators are used up

    def visit_Starred(self, node: ast.Starred) -> None:
        self.consumed.add(id(node.value))
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            self.consumed.add(id(node.value))
        for target in node.targets:
            self.visit(target)
        if self.remembers and self.a.calls_primitive(
            node.value
        ):  # the planner looks up the effects of such calls separately
            self.effects.merge(self.a.effects(node.value))
        else:
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_Compare(self, node: ast.Compare) -> None:
        self.consumed.update(map(id, node.comparators))
        self.visit_children(node)

    # -- statements

    def visit_For(self, node: ast.For) -> None:
        self.consumed.add(id(node.iter))
        self.visit(node.iter)
        self.visit(node.target)
        for statement in (*node.body, *node.orelse):
            if self.remembers:
                self.effects.merge(self.a.effects(statement))
            else:
                self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in self.scope:
            self.effects.binds.add(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(part)
        self.effects.unsure |= bool(node.decorator_list)
        if self.scope:
            inner, _ = self.a.scope_of(node)
            self._inside(inner, node.body)

    def visit_Try(self, node: ast.Try) -> None:
        caught = all(catches_only(self.a.exceptions, h) for h in node.handlers)
        self.effects.ordered |= bool(node.finalbody) or not caught
        for handler in node.handlers:
            if handler.name and handler.name not in self.scope:
                self.effects.binds.add(handler.name)
        self.visit_children(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if not (isinstance(raised, ast.Name) and raised.id in self.a.exceptions and not self.a.bound[raised.id]):
            self.effects.ordered = True
        self.visit_children(node)

    def visit_While(self, node: ast.While) -> None:
        # Never run early: it may not end, and an earlier error would have come first.
        self.effects.ordered = True
        self.visit_children(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.effects.ordered = True

    def _unsure(self, node: ast.AST) -> None:
        self.effects.unsure = True
        self.effects.binds.update(name for n in walk(node) for name in bound_names(n) if name not in self.scope)
        self.visit_children(node)

    def _generator(self, node: ast.AST) -> None:
        self.effects.lazy = True
        self._unsure(node)

    visit_ClassDef = visit_Match = visit_With = visit_TryStar = visit_Nonlocal = _unsure  # noqa: N815
    visit_Yield = visit_YieldFrom = visit_Await = _generator  # noqa: N815

    def visit_alias(self, node: ast.alias) -> None:
        self.effects.binds.update(bound_names(node))
