"""Taint of expressions: which values depend on passages, and which operations on them may affect control flow.

Values that depend on passages may be *carried* without any influence on control flow: bound to names, put into lists,
dicts and f-strings, passed to helpers, printed, or passed to `answer` as `docs`. Any other operation on them (test,
index, call, compare, iterate, unpack, mutate) may fail or branch, and counts as a branch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyrag.episode.flow.shape import ANY_LIST, EVIDENCE, ITEMS, Cause, ListKind, Shape, mentions

_MAX_SHOWN = 80  # characters of an expression in a message
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_DEFERRED = (ast.Lambda, ast.GeneratorExp)


@dataclass(slots=True)
class FlowFacts:
    """Findings about a program so far; they only grow.

    Attributes:
        names: Variables that may hold values that depend on passages.
        returns: Helpers whose result may depend on passages.
        entered: Helpers that may be called when control flow depends on passages, with the cause.
        leaves: Helpers that may leave control flow dependent on passages, with the cause.
        in_try: Helpers that may be called inside a `try`.
        arguments: Calls of primitives with effects that have a dependent argument, with its name or number.
        branches: Calls of primitives with effects that are made when control flow depends on passages, with the cause.
        sensitive: Helpers whose code involves passages or effects.
    """

    names: set[str] = field(default_factory=set)
    returns: set[str] = field(default_factory=set)
    entered: dict[str, Cause] = field(default_factory=dict)
    leaves: dict[str, Cause] = field(default_factory=dict)
    in_try: set[str] = field(default_factory=set)
    arguments: dict[ast.Call, tuple[str, ...]] = field(default_factory=dict)
    branches: dict[ast.Call, Cause] = field(default_factory=dict)
    sensitive: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Number of facts."""
        return sum(
            map(len, (self.names, self.returns, self.entered, self.leaves, self.in_try, self.arguments, self.branches))
        )


class Unit:
    """Evaluation of the expressions of one statement, in any order.

    Attributes:
        risk: First operation that may make control flow depend on passages.
        effects: Calls of primitives with effects.
        called: Helpers that the statement calls.
    """

    def __init__(self, shape: Shape, facts: FlowFacts, *, in_try: bool) -> None:
        self.shape, self.facts, self._in_try = shape, facts, in_try
        self.risk: Cause | None = None
        self.effects: list[ast.Call] = []
        self.called: list[str] = []

    def take_risk(self, node: ast.AST, text: str) -> None:
        """Record an operation after which control flow depends on passages.

        Args:
            node: The operation.
            text: Clause that describes the operation.
        """
        if self.risk is None:
            self.risk = Cause(getattr(node, "lineno", 1), text)

    def computes(self, node: ast.AST) -> None:
        """Record an operation on a value that depends on passages."""
        self.take_risk(node, f"computes with retrieved text, which may fail: {_shown(node)}")

    def branches(self, node: ast.AST) -> None:
        """Record a test of a value that depends on passages, or a loop over it."""
        self.risk = Cause(getattr(node, "lineno", 1), f"branches on retrieved text: {_shown(node)}")

    def bind(self, name: str, *, tainted: bool) -> None:
        """Bind a variable.

        Args:
            name: Name of the variable.
            tainted: Whether its value depends on passages.
        """
        if tainted:
            self.facts.names.add(name)

    def any(self, nodes: Iterable[ast.expr | None]) -> bool:
        """Evaluate expressions, and return True if one of the values depends on passages."""
        values = [self.value(node) for node in nodes if node is not None]  # each, since each may be a risk
        return any(values)

    def value(self, node: ast.expr) -> bool:
        """Evaluate an expression, and return True if its value depends on passages."""
        match node:
            case ast.Constant():
                return False
            case ast.Name():
                return self._name(node)
            case ast.JoinedStr(values=items) | ast.List(elts=items) | ast.Tuple(elts=items):
                return self.any(items)
            case ast.FormattedValue(value=item, format_spec=spec):
                return self._strict(node, self.any((item, spec))) if spec else self.value(item)
            case ast.Dict(keys=keys, values=items):
                unpacked = [item for key, item in zip(keys, items, strict=True) if key is None]
                self._strict(node, self.any((*keys, *unpacked)))
                return self.any(items)
            case ast.NamedExpr(target=target, value=item):
                tainted = self.value(item)
                self.bind(target.id, tainted=tainted)
                return tainted
            case ast.IfExp(test=test, body=body, orelse=other):
                tainted = self._strict(test, self.value(test))
                return self.any((body, other)) or tainted
            case ast.Call():
                return self._call(node)
        return self._compound(node)

    def _compound(self, node: ast.expr) -> bool:
        if isinstance(node, _COMPREHENSIONS):
            return self._comprehension(node)
        if isinstance(node, _DEFERRED):
            names = self.facts.names | self.shape.sources | self.facts.sensitive
            return self._strict(node, mentions(node, names))
        tainted = self.any(part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return tainted if self.shape.is_list(node, ANY_LIST) else self._strict(node, tainted)

    def _strict(self, node: ast.AST, tainted: bool) -> bool:
        """Return whether operands depend on passages; if so, record the operation as a branch."""
        if tainted:
            self.computes(node)
        return tainted

    def _name(self, node: ast.Name) -> bool:
        shape, name = self.shape, node.id
        if name in shape.sources or name in self.facts.sensitive:
            return self._strict(node, True)  # the callee passes arguments that are not known here
        return name in self.facts.names

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> bool:
        for generator in node.generators:
            tainted = self._strict(generator.iter, self.value(generator.iter))
            self.target(generator.target, tainted=tainted)
            for test in generator.ifs:
                self._strict(test, self.value(test))
        if isinstance(node, ast.ListComp):
            return self.value(node.elt)
        if isinstance(node, ast.SetComp):
            return self._strict(node.elt, self.value(node.elt))
        self._strict(node.key, self.value(node.key))
        return self.value(node.value)

    def target(self, node: ast.expr, *, tainted: bool) -> None:
        """Bind a target to a value. Any target other than a name unpacks the value or mutates an object.

        Args:
            node: Target of an assignment or loop.
            tainted: Whether the value depends on passages.
        """
        if isinstance(node, ast.Name):
            self.bind(node.id, tainted=tainted)
            return
        if isinstance(node, ast.Tuple | ast.List | ast.Starred):
            for item in node.elts if isinstance(node, ast.Tuple | ast.List) else (node.value,):
                self.target(item, tainted=tainted)
        else:
            tainted = self.any(part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)) or tainted
        self._strict(node, tainted)

    # -- calls

    def _call(self, node: ast.Call) -> bool:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in self.shape.effects:
            return self._effect(node, name)
        if name in self.shape.sources:
            return self._source(node, name)
        if name in self.shape.helpers:
            return self._helper(node, self.shape.helpers[name])
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not self.shape.bound[name] and len(arguments) == len(node.args) and self._only_carries(name, node.args):
            return self.any(arguments) and name != "print"
        return self._strict(node, self.any((node.func, *arguments)))

    def _only_carries(self, name: str, arguments: list[ast.expr]) -> bool:
        """Return True for a call of a builtin that never fails, whatever the arguments hold."""
        if any(isinstance(item, ast.Starred) for item in arguments):
            return False
        if name == "len":
            return len(arguments) == 1 and self.shape.is_list(arguments[0], ANY_LIST)
        return name == "print" or (name in ("str", "is_known") and len(arguments) == 1)

    def _effect(self, node: ast.Call, name: str) -> bool:
        labelled = [(f"argument {number}", item) for number, item in enumerate(node.args, 1)]
        labelled += [(f"argument {keyword.arg or '**'}", keyword.value) for keyword in node.keywords]
        tainted = tuple(label for label, item in labelled if self.value(item))
        self.effects.append(node)
        if tainted:
            self.facts.arguments[node] = tainted
        if self._in_try and name in self.shape.sources:
            self.computes(node)
        return self._strict(node, bool(tainted)) or name in self.shape.sources

    def _source(self, node: ast.Call, name: str) -> bool:
        """Evaluate a call of a primitive. Its result depends on passages; it may fail by its arguments or in `try`."""
        arguments = [(str(number), item) for number, item in enumerate(node.args)]
        arguments += [(keyword.arg or "**", keyword.value) for keyword in node.keywords]
        places, kind = self._read_by(node, name)
        for place, item in arguments:
            tainted = self.value(item)
            if not (place in places and self.shape.is_list(item, kind)):
                self._strict(item, tainted)
        if self._in_try:
            self.take_risk(node, f"calls {name} inside a try, whose course depends on whether the call fails")
        return True

    def _read_by(self, node: ast.Call, name: str) -> tuple[tuple[str, ...], ListKind]:
        """Return the numbers and names of the arguments that a primitive reads without failing, and their kind of list.

        `each` may fail by what the documents say if its question has fields in braces, or if it asks for numbers,
        which may have different units.
        """
        if name == "answer" and not self.shape.bound[name]:
            return ("1", "docs"), EVIDENCE
        if name == "each" and not self.shape.bound[name]:
            named = {str(number): item for number, item in enumerate(node.args)}
            named |= {keyword.arg or "**": keyword.value for keyword in node.keywords}
            question, returns = named.get("1", named.get("question")), named.get("2", named.get("returns"))
            if _is_plain(question, "{") and (returns is None or _is_plain(returns, "number")):
                return ("0", "items"), ITEMS
        return (), ANY_LIST

    def _helper(self, node: ast.Call, helper: ast.FunctionDef) -> bool:
        name, parameters = helper.name, helper.args
        plain = [*parameters.posonlyargs, *parameters.args]
        rest = [item for item in (parameters.vararg, parameters.kwarg) if item is not None]
        everything = [*plain, *parameters.kwonlyargs, *rest]
        spread = any(isinstance(item, ast.Starred) for item in node.args)
        for number, item in enumerate(node.args):
            tainted = self.value(item)
            for parameter in everything if spread else plain[number : number + 1] or rest:
                self.bind(parameter.arg, tainted=tainted)
        for keyword in node.keywords:
            targets = [parameter for parameter in everything if parameter.arg == keyword.arg] or everything
            tainted = self.value(keyword.value)
            if keyword.arg is None:
                self._strict(keyword.value, tainted)
            for parameter in targets:
                self.bind(parameter.arg, tainted=tainted)
        self.called.append(name)
        if self._in_try:
            self.facts.in_try.add(name)
        if name in self.facts.leaves:
            cause = self.facts.leaves[name]
            self.take_risk(node, f"calls {name}, where {cause}")
        return name in self.facts.returns


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _is_plain(node: ast.expr | None, unwanted: str) -> bool:
    """Return True for a constant that does not contain a text.

    Args:
        node: The expression.
        unwanted: The text.
    """
    return isinstance(node, ast.Constant) and unwanted not in str(node.value)
