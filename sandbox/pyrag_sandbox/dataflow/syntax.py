"""Properties of syntax trees that need no knowledge of the program: bound names, values that are surely numbers."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from pyrag_sandbox.dataflow.trees import Kinds, children, walk
from pyrag_sandbox.dataflow.vocabulary import FRESH, METHODS

FunctionNode = ast.FunctionDef | ast.Lambda
SCOPES = {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef}  # nodes with their own scope
COMPREHENSIONS = {ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp}
_BINDING = {*(SCOPES - {ast.Lambda}), ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.alias}


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield all nodes below `body` except in the bodies of nested functions. Comprehension targets are included."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack.extend(node.args.defaults)
            stack.extend(d for d in node.args.kw_defaults if d)
        elif not isinstance(node, ast.ClassDef):
            stack += children(node)


def in_comprehension_targets(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Return the nodes in targets of comprehensions, whose names are invisible outside."""
    return {n for c in nodes if isinstance(c, ast.comprehension) for n in walk(c.target)}


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that this node itself binds (not its children)."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        yield from filter(None, [node.name])
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".")[0]


def is_look(statement: ast.stmt) -> bool:
    """Return True for `xs.append` used as a statement, which only needs the object's type."""
    node = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS


def target_names(target: ast.AST) -> list[str]:
    """Return the names that an assignment target binds."""
    if isinstance(target, ast.Name):
        return [target.id] if isinstance(target.ctx, ast.Store) else []
    return [name for child in children(target) for name in target_names(child)]


def loads(node: ast.AST) -> set[str]:
    """Return the names read from outside, excluding those that a comprehension or lambda binds itself."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    if isinstance(node, ast.Lambda):
        inner = loads(node.body) - set(parameters(node.args))
        return inner.union(*(loads(default) for default in node.args.defaults))
    names: set[str] = set().union(*map(loads, children(node)))
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        names -= {name for g in node.generators for name in target_names(g.target)}
        names |= loads(node.generators[0].iter)
    return names


def parameters(args: ast.arguments) -> list[str]:
    """Return the names of a function's parameters."""
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [a.arg for a in (*named, args.vararg, args.kwarg) if a]


def body_of(function: FunctionNode) -> list[ast.AST]:
    """Return the statements of a function, or the expression of a lambda."""
    return [function.body] if isinstance(function, ast.Lambda) else list(function.body)


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` for a chain of attributes on a name, otherwise an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def root(node: ast.AST) -> ast.AST:
    """Return the expression at the start of a chain of attributes and subscripts."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node


def harmless_class(node: ast.ClassDef, exceptions: frozenset[str]) -> bool:
    """Return True for an exception class without a body.

    Args:
        node: The class.
        exceptions: Names of exception classes that it may derive from.
    """
    plain = all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in node.body
    )
    bases = all(isinstance(b, ast.Name) and b.id in exceptions for b in node.bases)
    return plain and bases and not node.keywords and not node.decorator_list


def names_bound(nodes: Kinds) -> list[str]:
    """Return the names that any of these nodes binds."""
    names = [node.id for node in nodes.get(ast.Name, ()) if node.ctx.__class__ is not ast.Load]
    for kind in _BINDING & nodes.keys():
        names += [name for node in nodes[kind] for name in bound_names(node)]
    return names


def spelled_names(nodes: Kinds) -> set[str]:
    """Return all names in a program, including attributes and imported names."""
    names = {node.id for node in nodes.get(ast.Name, ())}
    names.update(node.attr for node in nodes.get(ast.Attribute, ()))
    names.update(node.name for node in nodes.get(ast.alias, ()))
    return names


def hides_lookups(nodes: Kinds) -> bool:
    """Return True if `getattr` may look up a name that the program's text does not contain as an attribute."""
    calls = [c for c in nodes.get(ast.Call, ()) if isinstance(c.func, ast.Name) and c.func.id == "getattr"]
    names = [n for n in nodes.get(ast.Name, ()) if n.id == "getattr"]
    return len(calls) != len(names) or not all(map(_is_plain_lookup, calls))


def _is_plain_lookup(call: ast.Call) -> bool:
    name = call.args[1] if len(call.args) > 1 else None
    return isinstance(name, ast.Constant) and name.value not in ("defaultdict", "default_factory")


def has_shared_defaults(function: FunctionNode) -> bool:
    """Return True if calls of a function may share an object that lives as long as the function."""
    return not all(is_atomic(d) for d in (*function.args.defaults, *filter(None, function.args.kw_defaults)))


def deleted_names(nodes: Kinds) -> frozenset[str]:
    """Return the names that a program deletes, including the names of caught exceptions."""
    dropped = {node.id for node in nodes.get(ast.Name, ()) if node.ctx.__class__ is ast.Del}
    return frozenset(dropped | {node.name for node in nodes.get(ast.ExceptHandler, ()) if node.name})


def is_atomic(node: ast.AST) -> bool:
    """Return True for an expression that certainly is a string, number, boolean or None."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return is_atomic(node.left) or is_atomic(node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) or is_atomic(node.operand)
    return isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare))


def is_number(node: ast.AST) -> bool:
    """Return True for an expression that certainly is a number."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("len", "int", "float")
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def lazy_display(node: ast.AST) -> bool:
    """Return True for a generator expression."""
    return isinstance(node, ast.GeneratorExp)


def _makesfresh(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in FRESH
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("split", "splitlines")
    displays = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)
    return isinstance(node, displays) or is_atomic(node)


def fresh_names(own: list[ast.AST], params: frozenset[str]) -> frozenset[str]:
    """Return the local names that only ever hold containers created in the same call (or atoms).

    Args:
        own: The function's nodes, without nested functions.
        params: The function's parameters, which are never fresh.
    """
    bindings = Counter(name for node in own for name in bound_names(node))
    for node in own:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if _makesfresh(node.value):
                bindings[node.targets[0].id] -= 1
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is None or _makesfresh(node.value):
                bindings[node.target.id] -= 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            bindings[node.target.id] -= 1
    return frozenset(name for name, count in bindings.items() if count == 0 and name not in params)


def catches_only(exceptions: frozenset[str], handler: ast.ExceptHandler) -> bool:
    """Return True if a handler names no other exceptions than these.

    Args:
        exceptions: Names of exception classes.
        handler: The handler; one without a type catches more.
    """
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return all(isinstance(k, ast.Name) and k.id in exceptions for k in kinds)
