"""Checks, before a program runs, for mistakes that cause no exception.

The planner is shown the problems like a compiler's errors. A program with a `fatal` problem cannot produce an answer.
All other problems are only suspected (the most frequent one, under-decomposition, is described in section 3.4 of the
paper): the planner is shown them once, and may return the program unchanged.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyrag.agents.parsing.answers import is_unknown
from pyrag.episode.corpus.exhaustive import READERS, corpus_faults
from pyrag.episode.decomposition_checks import decomposition_faults

RESULT = "final_answer"
_LETTERS = re.compile(r"[a-z]+")
_PERCENT = re.compile(r"%\(?\w*\)?[sdrf]")
_BRACES = re.compile(r"\{[^{}]*\}")
_SENTENCE = 4  # minimum words of a text with a full stop that counts as a sentence without a known verb
_VERBS = frozenset((
    "is", "are", "was", "were", "be", "been", "has", "have", "had", "does", "did", "do", "became", "born", "died",
    "won", "wrote", "directed", "founded", "plays", "played", "lives", "lived", "located", "belongs", "came", "comes",
))  # fmt: skip
_NAME = re.compile(r"(?<!#)\b(?:[A-Z][\w'’.-]+|\d[\w.-]*)")


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem of a program, worded for the planner that has to fix it."""

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
    """Return all problems of a program, fatal ones first.

    A program that does not parse has no problems here, since it fails when it runs.

    Args:
        source: Source code of the program.
        sub_queries: Sub-queries that the program was written for.
        primitives: Names that the program may call, without the helpers.
        helpers: Functions available without an import.
        tools: Primitives that are tools; a single call may cover several sub-queries.
        question: The original question, whose wording gives the minimum number of look-ups.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    facts = _PlanFacts(tree, set(primitives))
    problems = [
        *_undefined_names(facts, {*primitives, *helpers}),
        *_no_result(facts),
        *_whole_corpus(facts, question),
        *_decomposition(facts, sub_queries, tools, question),
        *_unused_results(facts),
        *_result_without_steps(facts),
        *_result_as_sentence(facts),
        *_missing_sub_queries(facts, sub_queries),
    ]
    return sorted(problems, key=lambda problem: not problem.fatal)


class _CheckedStatement:
    """Statement with all nodes inside it and the names that it binds."""

    def __init__(self, statement: ast.stmt) -> None:
        self.nodes = _walk(statement)
        self.bound = {node.id for node in self.nodes if isinstance(node, ast.Name) and type(node.ctx) is not ast.Load}
        self.bound |= {name for node in self.nodes if type(node) in _BINDING for name in _bound_names(node)}

    @cached_property
    def names(self) -> set[str]:
        return {node.id for node in self.nodes if isinstance(node, ast.Name)}

    @property
    def changed(self) -> set[str]:
        """Names that the statement binds, or whose values it may change in place."""
        return self.names if isinstance(self.nodes[0], ast.Expr) else self.bound


class _PlanFacts:
    """Facts about a program that the checks need, gathered in one walk."""

    def __init__(self, tree: ast.Module, primitives: set[str]) -> None:
        self.tree = tree
        self.primitives = primitives
        self.statements = [_CheckedStatement(statement) for statement in tree.body]
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
    """Return the tree and all nodes in it except contexts. This takes a third of the time of `ast.walk`."""
    nodes = [tree]
    for node in nodes:
        if type(node) in _LEAVES:
            continue
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                nodes += [child for child in value if isinstance(child, ast.AST)]
            elif type(value) not in _BARE and isinstance(value, ast.AST):
                nodes.append(value)
    return nodes


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


def _undefined_names(facts: _PlanFacts, offered: set[str]) -> Iterator[Problem]:
    unknown = [node for node in facts.loads if node.id not in facts.bound and node.id not in offered]
    seen: set[str] = set()
    for node in sorted(unknown, key=lambda node: (node.lineno, node.col_offset)):
        if node.id not in seen and not hasattr(builtins, node.id):
            seen.add(node.id)
            yield Problem(f"NameError: name {node.id!r} is not defined", node.lineno, fatal=True)


def _no_result(facts: _PlanFacts) -> Iterator[Problem]:
    if RESULT not in facts.bound:
        yield Problem(f"the program never sets {RESULT}: assign the answer to it at the end", fatal=True)


def _whole_corpus(facts: _PlanFacts, question: str) -> Iterator[Problem]:
    called = {call.func.id for call in facts.calls if isinstance(call.func, ast.Name)}
    yield from map(Problem, corpus_faults(question, called, facts.primitives))


def _decomposition(
    facts: _PlanFacts, sub_queries: Sequence[str], tools: Sequence[str], question: str
) -> Iterator[Problem]:
    if any(map(facts.calls_of, (*tools, *READERS & facts.primitives))):
        return
    values = _assigned(facts.nodes)
    searches = facts.calls_of("retrieve")
    faults = decomposition_faults(searches, values, sub_queries, question, repeated=facts.repeated)
    yield from map(Problem, faults)


def _unused_results(facts: _PlanFacts) -> Iterator[Problem]:
    """Yield a problem for each answer bound to a name that is never read."""
    read = {node.id for node in facts.loads}
    for node in facts.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="answer"))):
                if name not in read and name != RESULT:
                    yield Problem(f"the answer in {name!r} is never used: use it in a later step", node.lineno)


def _result_without_steps(facts: _PlanFacts) -> Iterator[Problem]:
    """Yield a problem if the result depends on no primitive, following names regardless of control flow."""
    if not facts.calls or RESULT not in facts.bound:
        return
    # An outer statement binds everything that inner ones bind, but does not count values they change in place.
    inside = [node for statement in facts.statements for node in statement.nodes[1:] if isinstance(node, ast.Expr)]
    statements = [*facts.statements, *map(_CheckedStatement, inside)]
    reached = {RESULT}
    while True:
        names = {name for statement in statements if statement.changed & reached for name in statement.names}
        if names & facts.primitives:
            return
        if names <= reached:
            break
        reached |= names
    yield Problem(f"{RESULT} does not depend on any answer() or retrieve(): compute it from the steps")


def _result_as_sentence(facts: _PlanFacts) -> Iterator[Problem]:
    """Yield a problem if the program composes its result as a sentence.

    The result should have the form that the question asks for, as `answer()` returns it. Short texts around a value
    ("12 years") and refusals are accepted.
    """
    sentence = next((value for value in _values_of(RESULT, facts.nodes) if is_sentence(_spelled_out(value))), None)
    if sentence is not None:
        yield Problem(
            f"{RESULT} is a sentence that the program puts together: end with {RESULT} = "
            'answer(f"Given: <facts>. Answer the question: <original question>"), or with the bare value',
            sentence.lineno,
        )


def _values_of(name: str, nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yield the expressions that a name's value may come from, including through other names and functions."""
    values = _assigned(nodes)
    todo: list[ast.expr] = [ast.Name(name)]
    seen: set[str] = set()
    for value in todo:
        match value:
            case ast.Name(id=source) | ast.Call(func=ast.Name(id=source)) if source in values and source not in seen:
                seen.add(source)
                todo += values[source]
            case ast.IfExp(body=body, orelse=orelse):
                todo += [body, orelse]
            case ast.BoolOp(values=parts):
                todo += parts
            case _:
                yield value


def _assigned(nodes: Sequence[ast.AST]) -> dict[str, list[ast.expr]]:
    """Return the expressions assigned to each name and returned by each function."""
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
                returned = [inner.value for inner in _walk(node) if isinstance(inner, ast.Return)]
                values.setdefault(name, []).extend(value for value in returned if value is not None)
    return values


_FIELD = "\N{WHITE SQUARE}"  # marks a value in a text


def _spelled_out(node: ast.expr) -> str:
    """Return the text that an expression builds, with a mark for each value; empty for other expressions."""
    match node:
        case ast.JoinedStr(values=parts):
            return "".join(map(_part, parts))
        case ast.BinOp(op=ast.Add()):
            return _sum_spelled_out(node)
        case ast.BinOp(left=ast.Constant(value=str(template)), op=ast.Mod()):
            return _PERCENT.sub(_FIELD, template)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(template)), attr="format")):
            return _BRACES.sub(_FIELD, template)
        case ast.Constant(value=str(text)):
            return text
    return ""


def _sum_spelled_out(node: ast.expr) -> str:
    """Return the text that a sum builds. A sum may have more terms than Python's stack has frames."""
    terms: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        terms.append(node.right)
        node = node.left
    text = _spelled_out(node)
    for term in reversed(terms):
        addition = _spelled_out(term)
        text = f"{text or _FIELD}{addition or _FIELD}" if text or addition else ""
    return text


def _part(node: ast.expr) -> str:
    return _spelled_out(node) or _FIELD


def is_sentence(text: str) -> bool:
    """Return True if a text is a sentence around the marked values, and not a refusal."""
    if _FIELD not in text or is_unknown(text.replace(f"({_FIELD})", "").replace(_FIELD, "Alpha")):
        return False
    words = _LETTERS.findall(text.casefold())
    return not _VERBS.isdisjoint(words) or (len(words) >= _SENTENCE and text.rstrip().endswith((".", "!")))


_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


def _missing_sub_queries(facts: _PlanFacts, sub_queries: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each sub-query whose names and numbers occur in no text of the program."""
    written = (node.value for node in facts.nodes if isinstance(node, ast.Constant))
    texts = " ".join(str(value) for value in written if isinstance(value, str | int | float)).casefold()
    texts = _THOUSANDS.sub("", texts)
    for query in sub_queries:
        names = names_in(_THOUSANDS.sub("", query))
        if names and not any(name.rstrip(".,;:!?") in texts for name in names):
            yield Problem(f"the sub-query {query!r} never appears in the program")


def names_in(query: str) -> list[str]:
    """Return the names and numbers in a query, in lower case, without its first word and references ("#1")."""
    return [name.casefold() for name in _NAME.findall(query)[0 if query[:1].islower() else 1 :]]
