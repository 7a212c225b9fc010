"""Rules that are visible in a program's source, each with a message that tells its author what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from pyrag_sandbox.dataflow.trees import CHILD_FIELDS, children, walk
from pyrag_sandbox.policy.offered import (
    ALLOWED_METHODS,
    BUILTIN_BASES,
    HARD_NAMES,
    OFFERED_MODULES,
    REFUSED_ATTRIBUTES,
    SOFT_NAMES,
    words,
)


class Refused(Exception):  # noqa: N818 - a verdict, not an error
    """Verdict on a program that breaks a rule."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


_INSTEAD = {
    "eval": "use int(), float() or json.loads() to read values",
    "exec": "write the statements directly",
    "compile": "write the statements directly, or use re.compile for patterns",
    "open": "there are no files; get text from the program's functions and inputs",
    "input": "there is nobody to ask; use the program's functions and inputs",
    "type": "use isinstance(value, kind)",
    "dir": "use the attributes you know, or hasattr(value, name)",
    "vars": "keep the values in a dict",
    "globals": "keep the values in a dict",
    "locals": "keep the values in a dict",
    "setattr": "write obj.name = value, or keep the values in a dict",
    "delattr": "keep the values in a dict",
    "super": "use functions and dicts, or give the class its own __init__",
    "exit": "let the program run to its end",
    "quit": "let the program run to its end",
    "object": "write the class without a base",
    "id": "compare values with == or is",
}
_NODES = {
    "AsyncFunctionDef": "async functions are not available: write an ordinary def, and call functions without await",
    "AsyncFor": "async for is not available: use for",
    "AsyncWith": "async with is not available",
    "Await": "await is not available: functions return their result directly",
    "TryStar": "except* is not available: use except",
    "TypeAlias": "type aliases are not available: leave them out",
    "TypeVar": "type parameters are not available: leave them out",
    "ParamSpec": "type parameters are not available: leave them out",
    "TypeVarTuple": "type parameters are not available: leave them out",
    "MatchClass": "class patterns with attributes are not available: use isinstance and if",
    "MatchValue": "patterns cannot name attributes: use if value == obj.name",
}
_ALLOWED_NODES = frozenset(
    getattr(ast, name)
    for name in words(
        "Module Expr Assign AugAssign AnnAssign Delete Pass Import ImportFrom alias If For While Break "
        "Continue Try ExceptHandler Raise Assert With withitem FunctionDef ClassDef Lambda arguments arg "
        "Return Yield YieldFrom Global Nonlocal Match match_case MatchValue MatchSingleton MatchSequence "
        "MatchMapping MatchClass MatchStar MatchAs MatchOr Name Attribute Subscript Slice Starred Constant "
        "JoinedStr FormattedValue List Tuple Set Dict ListComp SetComp DictComp GeneratorExp comprehension "
        "BoolOp BinOp UnaryOp Compare Call keyword IfExp NamedExpr Load Store Del And Or Add Sub Mult MatMult "
        "Div Mod Pow LShift RShift BitOr BitXor BitAnd FloorDiv Invert Not UAdd USub Eq NotEq Lt LtE Gt GtE "
        "Is IsNot In NotIn"
    )
)


def node_problem(node: ast.AST) -> str:
    """Return the message for a kind of syntax that is not available."""
    kind = type(node).__name__
    return _NODES.get(kind, f"{kind} is not available in programs")


def identifier_problem(name: str) -> str | None:
    """Return the reason why a name is forbidden, or None."""
    if name.startswith("_") and name != "_":
        plain = name.strip("_") or "value"
        return f"names that start with an underscore are not available: write {plain!r} instead of {name!r}"
    return None


def attribute_problem(name: str) -> str | None:
    """Return the reason why an attribute is forbidden, or None."""
    if name.startswith("_"):
        return f"attributes that start with an underscore are not available: {name!r}"
    if name in REFUSED_ATTRIBUTES:
        return f"attribute {name!r} is not available: it leads to the interpreter's internals"
    return None


def builtin_problem(name: str) -> str:
    """Return the message for a builtin that is not available."""
    hint = _INSTEAD.get(name)
    return f"{name} is not available" + (f": {hint}" if hint else "")


def check_program(tree: ast.Module, *, primitives: frozenset[str] | set[str], max_nodes: int, max_depth: int) -> None:
    """Raise `Refused` for the first line that breaks a rule. Also drop annotations and fold `__name__`.

    Args:
        tree: The parsed program, which is changed.
        primitives: Names that the program may call but not rebind.
        max_nodes: Maximum number of syntax nodes.
        max_depth: Maximum nesting of syntax nodes.
    """
    nodes = _measured(tree, max_nodes, max_depth)
    _Check(nodes, primitives).run()


def _measured(tree: ast.Module, max_nodes: int, max_depth: int) -> list[Any]:
    """Return all nodes, level by level, without recursion, since the tree may be deeper than Python can recurse."""
    nodes: list[Any] = []
    level: list[Any] = [tree]
    depth = 0
    while level:
        if depth > max_depth:
            problem = f"nested deeper than {max_depth} levels: split the expression over several statements"
            raise Refused(problem, _line(level))
        if len(nodes) + len(level) > max_nodes:
            problem = f"longer than {max_nodes} syntax nodes: write a shorter program"
            raise Refused(problem, _line(level[max_nodes - len(nodes) :]))
        nodes += level
        for node in level:
            normalise = _NORMALISE.get(node.__class__)
            if normalise is not None:
                normalise(node)
        level = [child for node in level if CHILD_FIELDS[node.__class__] for child in children(node)]
        depth += 1
    return nodes


def _line(nodes: list[Any]) -> int | None:
    """Return the line of the first of these nodes that has a line."""
    return next((node.lineno for node in nodes if hasattr(node, "lineno")), None)


def _fold_main(node: ast.Compare) -> None:
    if isinstance(node.left, ast.Name) and node.left.id == "__name__":
        node.left = ast.copy_location(ast.Constant("__main__"), node.left)


def _drop_object(node: ast.ClassDef) -> None:
    node.bases = [base for base in node.bases if not (isinstance(base, ast.Name) and base.id == "object")]


_NORMALISE: dict[type[ast.AST], Callable[[Any], None]] = {ast.Compare: _fold_main, ast.ClassDef: _drop_object}


# Functions that return the name a node binds, if any.
_BINDS: dict[type[ast.AST], Callable[[Any], str | None]] = {
    ast.Name: lambda node: None if node.ctx.__class__ is ast.Load else node.id,
    ast.arg: lambda node: node.arg,
    ast.FunctionDef: lambda node: node.name,
    ast.ClassDef: lambda node: node.name,
    ast.ExceptHandler: lambda node: node.name,
    ast.MatchAs: lambda node: node.name,
    ast.MatchStar: lambda node: node.name,
    ast.MatchMapping: lambda node: node.rest,
    ast.alias: lambda node: node.asname or node.name,
}


def _bindings(nodes: list[Any]) -> list[tuple[str, Any]]:
    bindings = []
    for node in nodes:
        binds = _BINDS.get(node.__class__)
        name = binds(node) if binds is not None else None
        if name is not None:
            bindings.append((name, node))
    return bindings


class _Check:
    """Pass over the nodes of one program."""

    def __init__(self, nodes: list[Any], primitives: frozenset[str] | set[str]) -> None:
        self.nodes = nodes
        self.kinds = {node.__class__ for node in nodes}
        self.primitives = primitives
        self.bindings = _bindings(nodes)
        self.bound = {name for name, _ in self.bindings}
        self.methods = {id(item) for node in self._of({ast.ClassDef}) for item in node.body}
        self.annotations = [annotation for node in self._of(_ANNOTATED) for annotation in _annotations(node)]
        self.in_annotation = {id(part) for annotation in self.annotations for part in _type_names(annotation)}
        self.problems: list[tuple[int, str]] = []
        self.line = 1

    def _of(self, kinds: set[type[ast.AST]]) -> list[Any]:
        return [] if kinds.isdisjoint(self.kinds) else [node for node in self.nodes if node.__class__ in kinds]

    def run(self) -> None:
        if not self.kinds <= _ALLOWED_NODES:
            self.kinds_allowed()
        for name, node in self.bindings:
            self.line = node.lineno if hasattr(node, "lineno") else self.line
            self.binding(name, node)
        for node in self.nodes:
            rule = _RULES.get(node.__class__)
            if rule is not None:
                self.line = getattr(node, "lineno", self.line)
                rule(self, node)
        if self.problems:
            line, message = min(self.problems, key=lambda pair: pair[0])
            raise Refused(message, line)
        if self.annotations:
            for node in self.nodes:
                _drop_annotations(node)

    def kinds_allowed(self) -> None:
        for node in self.nodes:
            self.line = getattr(node, "lineno", self.line)
            if node.__class__ not in _ALLOWED_NODES:
                self.refuse(node_problem(node))

    def refuse(self, problem: str | None) -> None:
        if problem:
            self.problems.append((self.line, problem))

    def binding(self, name: str, node: ast.AST) -> None:
        if name in self.primitives:
            self.refuse(f"{name!r} is a given function and cannot be reused as a name: choose another one")
        elif name in HARD_NAMES:
            self.refuse(f"{name!r} cannot be used as a name: choose another one")
        elif not isinstance(node, (ast.Name, ast.alias, ast.FunctionDef)):
            self.refuse(identifier_problem(name))

    def name(self, node: ast.Name) -> None:
        self.refuse(identifier_problem(node.id))
        if not isinstance(node.ctx, ast.Load) or id(node) in self.in_annotation:
            return
        if node.id in HARD_NAMES or (node.id in SOFT_NAMES and node.id not in self.bound):
            self.refuse(builtin_problem(node.id))

    def attribute(self, node: ast.Attribute) -> None:
        self.refuse(attribute_problem(node.attr))

    def function(self, node: ast.FunctionDef) -> None:
        if not node.name.startswith("_") or node.name == "_":
            return
        if id(node) not in self.methods:
            self.refuse(identifier_problem(node.name))
        elif node.name not in ALLOWED_METHODS:
            self.refuse(f"method {node.name!r} is not available: give it a plain name and call that")

    def class_(self, node: ast.ClassDef) -> None:
        if node.keywords:
            self.refuse("classes take no keywords such as metaclass: leave them out")
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in BUILTIN_BASES:
                self.refuse(f"a class cannot derive from {base.id}: keep the value in an attribute")
            elif isinstance(base, ast.Starred):
                self.refuse("bases of a class must be written out")

    def import_(self, node: ast.Import) -> None:
        for alias in node.names:
            self.refuse(_import_problem(alias.name))
            self.refuse(identifier_problem(alias.asname or alias.name))
        self.refuse(_lazy_problem(node))

    def import_from(self, node: ast.ImportFrom) -> None:
        if node.module == "__future__":
            return
        module = "." * node.level + (node.module or "")
        problem = _import_problem(module) or _lazy_problem(node)
        self.refuse(problem)
        if problem:
            return
        offered = OFFERED_MODULES[module]
        for alias in node.names:
            if alias.name not in offered:
                self.refuse(f"{module}.{alias.name} is not offered; offered: {', '.join(offered)}")
            self.refuse(identifier_problem(alias.asname or alias.name))

    def names(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self.refuse(identifier_problem(name))

    def keyword(self, node: ast.keyword) -> None:
        if node.arg is not None:
            self.refuse(identifier_problem(node.arg))

    def match_class(self, node: ast.MatchClass) -> None:
        if node.kwd_attrs:
            self.refuse(node_problem(node))

    def match_value(self, node: ast.MatchValue) -> None:
        if isinstance(node.value, ast.Attribute):
            self.refuse(attribute_problem(node.value.attr) or node_problem(node))

    def comprehension(self, node: ast.comprehension) -> None:
        if node.is_async:
            self.line = node.target.lineno
            self.refuse(_NODES["AsyncFor"])


_RULES: dict[type[ast.AST], Callable[[_Check, Any], None]] = {
    ast.Name: _Check.name,
    ast.Attribute: _Check.attribute,
    ast.FunctionDef: _Check.function,
    ast.ClassDef: _Check.class_,
    ast.Import: _Check.import_,
    ast.ImportFrom: _Check.import_from,
    ast.Global: _Check.names,
    ast.Nonlocal: _Check.names,
    ast.keyword: _Check.keyword,
    ast.MatchClass: _Check.match_class,
    ast.MatchValue: _Check.match_value,
    ast.comprehension: _Check.comprehension,
}


_ANNOTATED: set[type[ast.AST]] = {ast.arg, ast.AnnAssign, ast.FunctionDef}


def _import_problem(module: str) -> str | None:
    if module in OFFERED_MODULES:
        return None
    return f"import of {module!r} is not available; offered modules: {', '.join(OFFERED_MODULES)}"


def _lazy_problem(node: ast.AST) -> str | None:
    return "lazy imports are not available: write a plain import" if getattr(node, "is_lazy", 0) else None


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
        yield node.annotation
    elif isinstance(node, ast.FunctionDef) and node.returns is not None:
        yield node.returns


def _type_names(annotation: ast.expr) -> Iterator[ast.AST]:
    """Yield bare names in an annotation (`object`, `type`). They are dropped, so harmless unless called."""
    if not any(isinstance(part, (ast.Call, ast.NamedExpr, ast.Lambda)) for part in walk(annotation)):
        yield from walk(annotation)


def _drop_annotations(node: ast.AST) -> None:
    if isinstance(node, ast.FunctionDef):
        node.returns = None
    elif isinstance(node, ast.arg):
        node.annotation = None
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and any(isinstance(item, ast.AnnAssign) for item in block):
            setattr(node, field, [_plain(item) for item in block])


def _plain(statement: ast.stmt) -> ast.stmt:
    if not isinstance(statement, ast.AnnAssign):
        return statement
    if statement.value is None:
        return ast.copy_location(ast.Pass(), statement)
    assign = ast.Assign(targets=[statement.target], value=statement.value)
    return ast.copy_location(assign, statement)
