"""Plan checks: mistakes of a program that no exception would show, found before it runs.

They go back to the planner like a compiler's errors. `fatal` ones cannot run to an answer. The others are opinions
(the paper calls the most frequent one under-decomposition, section 3.4): a planner hears of them once, then the
program runs as it is.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyrag.agents.parsing.answers import is_unknown
from pyrag.episode.decomposition_checks import decomposition_faults

RESULT = "final_answer"
_LETTERS = re.compile(r"[a-z]+")
_PERCENT = re.compile(r"%\(?\w*\)?[sdrf]")
_BRACES = re.compile(r"\{[^{}]*\}")
_SENTENCE = 4  # words that a text with a full stop has at least, to be a sentence without a known verb
_VERBS = frozenset((
    "is", "are", "was", "were", "be", "been", "has", "have", "had", "does", "did", "do", "became", "born", "died",
    "won", "wrote", "directed", "founded", "plays", "played", "lives", "lived", "located", "belongs", "came", "comes",
))  # fmt: skip
_NAME = re.compile(r"(?<!#)\b(?:[A-Z][\w'’.-]+|\d[\w.-]*)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding, worded for the planner that must mend it."""

    message: str
    line: int | None = None
    fatal: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def check_plan(
    source: str,
    sub_queries: Sequence[str],
    primitives: Sequence[str],
    helpers: Sequence[str],
    tools: Sequence[str] = (),
    question: str = "",
) -> list[Problem]:
    """Return all problems of a program, fatal ones first. A program that does not parse has none here: it fails to run.

    Args:
        source: The program.
        sub_queries: What it was written for.
        primitives: Names that it may call, beside the helpers.
        helpers: Functions that are there without an import.
        tools: The primitives among them that are tools: one call may settle several sub-queries.
        question: The question as it was asked, whose wording tells the fewest look-ups.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    facts = _Facts(tree, set(primitives))
    found = [
        *_undefined_names(facts, {*primitives, *helpers}),
        *_no_result(facts),
        *_decomposition(facts, sub_queries, tools, question),
        *_unused_results(facts),
        *_result_without_steps(facts),
        *_result_as_sentence(facts),
        *_missing_sub_queries(facts, sub_queries),
    ]
    return sorted(found, key=lambda problem: not problem.fatal)


class _Statement:
    """A statement with all that stands inside it, and the names that it binds."""

    def __init__(self, statement: ast.stmt) -> None:
        self.nodes = _walk(statement)
        self.bound = {node.id for node in self.nodes if isinstance(node, ast.Name) and type(node.ctx) is not ast.Load}
        self.bound |= {name for node in self.nodes if type(node) in _BINDING for name in _bound_names(node)}

    @cached_property
    def names(self) -> set[str]:
        return {node.id for node in self.nodes if isinstance(node, ast.Name)}

    @property
    def changed(self) -> set[str]:
        """The names that it binds, or whose values it may change in place."""
        return self.names if isinstance(self.nodes[0], ast.Expr) else self.bound


class _Facts:
    """Facts on a program that the checks need, gathered in one walk."""

    def __init__(self, tree: ast.Module, primitives: set[str]) -> None:
        self.tree = tree
        self.primitives = primitives
        self.statements = [_Statement(statement) for statement in tree.body]
        self.nodes = [node for statement in self.statements for node in statement.nodes]
        self.bound = {name for statement in self.statements for name in statement.bound}
        self.loads = [node for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self.calls = [
            node
            for node in self.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in primitives
        ]
        self.repeated = not _REPEATING.isdisjoint(map(type, self.nodes))

    def calls_of(self, name: str) -> list[ast.Call]:
        return [call for call in self.calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _walk(tree: ast.AST) -> list[ast.AST]:
    """The tree and all nodes in it, but contexts, at a third of the cost of `ast.walk`."""
    found = [tree]
    for node in found:
        if type(node) in _LEAVES:
            continue
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                found += [one for one in value if isinstance(one, ast.AST)]
            elif type(value) not in _BARE and isinstance(value, ast.AST):
                found.append(value)
    return found


_LEAVES = frozenset((ast.Name, ast.Constant))
_BARE = frozenset((str, int, type(None), ast.Load, ast.Store, ast.Del))
_REPEATING = frozenset((
    ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.FunctionDef, ast.Lambda
))  # fmt: skip
_BINDING = frozenset((
    ast.arg, ast.FunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping
))  # fmt: skip


def _bound_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.split(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            return


def _undefined_names(facts: _Facts, offered: set[str]) -> Iterator[Problem]:
    unknown = [node for node in facts.loads if node.id not in facts.bound and node.id not in offered]
    seen: set[str] = set()
    for node in sorted(unknown, key=lambda node: (node.lineno, node.col_offset)):
        if node.id not in seen and not hasattr(builtins, node.id):
            seen.add(node.id)
            yield Problem(f"NameError: name {node.id!r} is not defined", node.lineno, fatal=True)


def _no_result(facts: _Facts) -> Iterator[Problem]:
    if RESULT not in facts.bound:
        yield Problem(f"the program never sets {RESULT}: assign the answer to it at the end", fatal=True)


def _decomposition(facts: _Facts, sub_queries: Sequence[str], tools: Sequence[str], question: str) -> Iterator[Problem]:
    if any(map(facts.calls_of, tools)):
        return
    values = _assigned(facts.nodes)
    searches = facts.calls_of("retrieve")
    faults = decomposition_faults(searches, values, sub_queries, question, repeated=facts.repeated)
    yield from map(Problem, faults)


def _unused_results(facts: _Facts) -> Iterator[Problem]:
    """Answers that are bound to a name nobody reads."""
    read = {node.id for node in facts.loads}
    for node in facts.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="answer"))):
                if name not in read and name != RESULT:
                    yield Problem(f"the answer in {name!r} is never used: use it in a later step", node.lineno)


def _result_without_steps(facts: _Facts) -> Iterator[Problem]:
    """The result must depend on some primitive, followed through names regardless of control flow."""
    if not facts.calls or RESULT not in facts.bound:
        return
    # What a statement inside another one does, that one does too, but for changing values in place.
    inside = [node for one in facts.statements for node in one.nodes[1:] if isinstance(node, ast.Expr)]
    statements = [*facts.statements, *map(_Statement, inside)]
    reached = {RESULT}
    while True:
        names = {name for one in statements if one.changed & reached for name in one.names}
        if names & facts.primitives:
            return
        if names <= reached:
            break
        reached |= names
    yield Problem(f"{RESULT} does not depend on any answer() or retrieve(): compute it from the steps")


def _result_as_sentence(facts: _Facts) -> Iterator[Problem]:
    """The answer has the form that the question asks for where `answer()` makes it of the facts; a sentence that the
    program puts together has not. Short texts around a value ("12 years") and refusals are left alone."""
    found = next((value for value in _values_of(RESULT, facts.nodes) if is_sentence(_spelled_out(value))), None)
    if found is not None:
        yield Problem(
            f"{RESULT} is a sentence that the program puts together: end with {RESULT} = "
            'answer(f"Given: <facts>. Answer the question: <original question>"), or with the bare value',
            found.lineno,
        )


def _values_of(name: str, nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """The expressions that a name's value may come from, through other names and functions of the program."""
    values = _assigned(nodes)
    todo: list[ast.expr] = [ast.Name(name)]
    seen: set[str] = set()
    for value in todo:
        match value:
            case ast.Name(id=one) | ast.Call(func=ast.Name(id=one)) if one in values and one not in seen:
                seen.add(one)
                todo += values[one]
            case ast.IfExp(body=body, orelse=orelse):
                todo += [body, orelse]
            case ast.BoolOp(values=parts):
                todo += parts
            case _:
                yield value


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, list[ast.expr]]:
    """The values that each name is set to and each function returns."""
    values: dict[str, list[ast.expr]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values.setdefault(name, []).append(value)
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
            ):
                values.setdefault(name, []).append(value)
            case ast.FunctionDef(name=name):
                returned = [one.value for one in _walk(node) if isinstance(one, ast.Return)]
                values.setdefault(name, []).extend(value for value in returned if value is not None)
    return values


_FIELD = "\N{WHITE SQUARE}"  # stands for a value in a text


def _spelled_out(node: ast.expr) -> str:
    """The text that an expression puts together around values, a mark in place of each; empty for any other."""
    match node:
        case ast.JoinedStr(values=parts):
            return "".join(map(_part, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _part(left) + _part(right) if _spelled_out(left) + _spelled_out(right) else ""
        case ast.BinOp(left=ast.Constant(value=str(template)), op=ast.Mod()):
            return _PERCENT.sub(_FIELD, template)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(template)), attr="format")):
            return _BRACES.sub(_FIELD, template)
        case ast.Constant(value=str(text)):
            return text
    return ""


def _part(node: ast.expr) -> str:
    return _spelled_out(node) or _FIELD


def is_sentence(text: str) -> bool:
    """True for a text that is a sentence about the values marked in it, and no refusal."""
    if _FIELD not in text or is_unknown(text.replace(f"({_FIELD})", "").replace(_FIELD, "Alpha")):
        return False
    words = _LETTERS.findall(text.casefold())
    return not _VERBS.isdisjoint(words) or (len(words) >= _SENTENCE and text.rstrip().endswith((".", "!")))


def _missing_sub_queries(facts: _Facts, sub_queries: Sequence[str]) -> Iterator[Problem]:
    """Sub-queries none of whose names or numbers stand in any text of the program."""
    texts = " ".join(
        node.value for node in facts.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ).casefold()
    for query in sub_queries:
        names = names_in(query)
        if names and not any(name in texts for name in names):
            yield Problem(f"the sub-query {query!r} never appears in the program")


def names_in(query: str) -> list[str]:
    """Words of a query that are names or numbers, in lower case; its first word and references ("#1") say nothing."""
    return [name.casefold() for name in _NAME.findall(query)[0 if query[:1].islower() else 1 :]]
