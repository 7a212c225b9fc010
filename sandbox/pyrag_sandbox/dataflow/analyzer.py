"""Effects of a program's parts: the names they read and bind, the objects they may mutate, and their purity.

The analysis is static, conservative and by name. It trusts that values are plain (strings, numbers, lists, dicts, sets,
tuples, `Text`, `Record`): a program that defines a class with a body runs without any concurrency. Calls of anything
unknown to this package and to the caller are `unsure`, as are calls of nested functions. Types and control flow are not
considered.
"""

from __future__ import annotations

import ast
from collections import Counter, deque

from pyrag_sandbox.dataflow.effects import Effects, EffectVisitor
from pyrag_sandbox.dataflow.syntax import (
    COMPREHENSIONS,
    FunctionNode,
    body_of,
    bound_names,
    deleted_names,
    dotted,
    fresh_names,
    harmless_class,
    hides_lookups,
    in_comprehension_targets,
    lazy_display,
    names_bound,
    own_nodes,
    parameters,
    spelled_names,
)
from pyrag_sandbox.dataflow.trees import Kinds, by_kind, walk
from pyrag_sandbox.dataflow.vocabulary import (
    EXCEPTIONS,
    FACTORIES,
    FACTORIES_IMPORTED,
    LAZY,
    MODULE_FUNCTIONS,
    MODULES,
    PURE_BUILTINS,
    PURE_MODULES,
)

_NO_EFFECTS = Effects()
_ASYNCHRONOUS = {ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith}


class Analyzer:
    """Analyzer of the effects of a module's nodes. Function summaries are computed once, to a fixed point."""

    def __init__(
        self,
        tree: ast.Module,
        primitives: frozenset[str],
        pure: frozenset[str],
        errors: frozenset[str] = frozenset(),
    ) -> None:
        everything = by_kind(walk(tree))
        own = by_kind(own_nodes(tree.body))
        declared = [name for node in everything.get(ast.Global, ()) for name in node.names]
        self.globals_declared = frozenset(declared)
        self.bound = Counter(names_bound(own))
        self.bound.update(declared)
        self.deleted = deleted_names(everything)
        self.primitives = frozenset(p for p in primitives if not self.bound[p])
        self.origins = self._origins(own)
        self.pure = pure | errors
        self.exceptions = EXCEPTIONS | errors
        self.functions = self._functions(own)
        self.cannot_reorder = bool(_ASYNCHRONOUS & everything.keys()) or not all(
            harmless_class(node, self.exceptions) for node in everything.get(ast.ClassDef, ())
        )
        self.has_comprehensions = bool(COMPREHENSIONS & everything.keys())
        self.reading_mutates = any("defaultdict" in name for name in spelled_names(everything))
        self.summaries: dict[str, Effects] = {name: Effects() for name in self.functions}
        self._scopes: dict[FunctionNode, tuple[frozenset[str], frozenset[str]]] = {}
        self._known: dict[ast.AST, Effects] = {}
        self._summarize()
        self.cannot_reorder = self.cannot_reorder or hides_lookups(everything) or not self._factories_known(everything)

    def _factories_known(self, everything: Kinds) -> bool:
        """Return True if all `defaultdict`s of the program only create new values for missing keys."""
        calls = [c for c in everything.get(ast.Call, ()) if dotted(c.func).rpartition(".")[2] == "defaultdict"]
        names = [n for n in everything.get(ast.Name, ()) if n.id == "defaultdict"]
        attributes = [n for n in everything.get(ast.Attribute, ()) if n.attr in ("defaultdict", "default_factory")]
        renamed = any(n.name == "defaultdict" and n.asname for n in everything.get(ast.alias, ()))
        if renamed or len(calls) != len(names) + len(attributes):
            return False
        return all(map(self._factory_known, calls))

    def _factory_known(self, call: ast.Call) -> bool:
        factory = call.args[0] if call.args else ast.Constant(None)
        if isinstance(factory, ast.Constant):
            return True
        if isinstance(factory, ast.Name) and factory.id not in self.functions:
            known = FACTORIES_IMPORTED if factory.id in self.origins else FACTORIES
            return self.is_offered(factory.id) and self.origins.get(factory.id, factory.id) in known
        if not isinstance(factory, (ast.Name, ast.Lambda)):
            return False
        effects = self.effects_within(factory, frozenset())
        return effects.pure and not effects.calls and not any(map(self._is_variable, effects.reads))

    def _is_variable(self, name: str) -> bool:
        return not (self.is_offered(name) or name in self.functions)

    def changed(self, statement: ast.AST) -> None:
        """Discard the cached effects of a statement that was changed in place."""
        for node in walk(statement):
            self._known.pop(node, None)

    def effects(self, node: ast.AST) -> Effects:
        """Return the effects of a node in the module's own scope. The result is cached and must not be changed."""
        cached = self._known.get(node)
        if cached is None:
            constant = node.__class__ is ast.Constant
            cached = self._known[node] = _NO_EFFECTS if constant else self._visited(EffectVisitor(self), node)
        return cached

    def effects_within(self, node: ast.AST, scope: frozenset[str], fresh: frozenset[str] = frozenset()) -> Effects:
        """Return the effects of a node inside a function or comprehension. They are not cached.

        Args:
            node: The node.
            scope: Local names; reading and binding them is not an effect.
            fresh: Names in `scope` that only ever hold containers created there; changing these is not an effect
                either.
        """
        return self._visited(EffectVisitor(self, scope, fresh, remembers=False), node)

    def _visited(self, visitor: EffectVisitor, node: ast.AST) -> Effects:
        visitor.visit(node)
        effects = visitor.effects
        if effects.unsure:
            effects.binds |= self.globals_declared
            effects.mutates |= effects.reads
            effects.deep = True
        return effects

    def calls_primitive(self, node: ast.AST) -> bool:
        """Return True if a node is a direct call of a primitive."""
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.primitives

    def known(self, call: ast.Call, scope: frozenset[str]) -> str:
        """Return the plain name of a called expression, or an empty text if it cannot be determined.

        Args:
            call: The call; names bound by imports are resolved (`sqrt` is `math.sqrt`).
            scope: Local names, which hide known ones.
        """
        name = dotted(call.func)
        head = name.split(".")[0]
        if not name or head in scope:
            return ""
        if head in self.origins:
            name = self.origins[head] + name[len(head) :]
        elif self.bound[head]:
            return ""
        if "." in name and name.split(".")[0] not in MODULES and name not in self.pure:
            return ""
        return name

    def is_pure_function(self, name: str) -> bool:
        """Return True if a known function neither mutates nor keeps its arguments."""
        last = name.rpartition(".")[2]
        trusted = name in MODULE_FUNCTIONS or ("." in name and name.split(".")[0] in PURE_MODULES)
        return name in self.pure or last in LAZY or name in PURE_BUILTINS or trusted

    def is_offered(self, name: str) -> bool:
        """Return True if a name is a builtin or is imported, rather than defined by the program."""
        return name in self.origins or not (self.bound[name] or name.startswith("%"))

    def _origins(self, own: Kinds) -> dict[str, str]:
        origins = {}
        for kind in (ast.Import, ast.ImportFrom):
            for node in own.get(kind, ()):
                prefix = f"{node.module}." if kind is ast.ImportFrom and node.module else ""
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    if self.bound[name] == 1:
                        origins[name] = prefix + alias.name
        return origins

    def _functions(self, own: Kinds) -> dict[str, FunctionNode]:
        functions: dict[str, FunctionNode] = {}
        for node in own.get(ast.FunctionDef, ()):
            if not node.decorator_list and self.bound[node.name] == 1:
                functions[node.name] = node
        for node in own.get(ast.Assign, ()):
            if isinstance(node.value, ast.Lambda) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name) and self.bound[target.id] == 1:
                    functions[target.id] = node.value
        return functions

    def _summarize(self) -> None:
        users = self._users()
        todo = deque(self.functions)
        waiting = set(todo)
        while todo:
            name = todo.popleft()
            waiting.discard(name)
            summary = self.summarize(self.functions[name])
            if summary != self.summaries[name]:
                self.summaries[name] = summary
                again = users[name] - waiting
                waiting |= again
                todo.extend(sorted(again))

    def _users(self) -> dict[str, set[str]]:
        """Return, for each function, the functions that mention it."""
        users: dict[str, set[str]] = {name: set() for name in self.functions}
        for name, function in self.functions.items():
            for node in walk(function):
                if isinstance(node, ast.Name) and node.id in users:
                    users[node.id].add(name)
        return users

    def summarize(self, function: FunctionNode) -> Effects:
        """Return the effects of a call of the function, without evaluating its arguments."""
        body = body_of(function)
        scope, fresh = self.scope_of(function)
        effects = Effects()
        for statement in body:
            effects.merge(self.effects_within(statement, scope, fresh))
        if isinstance(function, ast.Lambda) and lazy_display(function.body):
            effects.lazy = True
        return effects

    def scope_of(self, function: FunctionNode) -> tuple[frozenset[str], frozenset[str]]:
        """Return the local names of a function, and those that only hold containers created there."""
        scope = self._scopes.get(function)
        if scope is None:
            scope = self._scopes[function] = self._scope(function)
        return scope

    def _scope(self, function: FunctionNode) -> tuple[frozenset[str], frozenset[str]]:
        body = body_of(function)
        own = list(own_nodes(body))
        elsewhere = in_comprehension_targets(own)
        inner = {name for node in own if node not in elsewhere for name in bound_names(node)}
        inner.update(parameters(function.args))
        declared = {n for node in own if isinstance(node, ast.Global) for n in node.names}
        return frozenset(inner - declared), fresh_names(own, frozenset(parameters(function.args)))
