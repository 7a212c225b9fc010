"""Static part of parallel execution: splits a program into units and rewrites them.

    plan = plan(ast.parse(source), frozenset({"fetch", "ask"}), frozenset({"year"}))

A `Plan` is a tree of blocks; a `Block` is a list of `Unit`s in program order. A unit is one module-level statement (or
a temporary moved out of one), with the names it reads, binds and mutates, and the earlier units it has to wait for.
Only pure units may run before all earlier units have succeeded. `loop_scheduler.run` executes a plan.

    statements           one unit each; calls inside an expression become separate units (`hoisting`)
    name bound twice     each value gets its own name, which later statements read instead
    if, for, while, try  one unit; the statements inside form a block of their own, run by a call `%block(n)`
    independent loops    `%each(n, iterable)`: parallel iterations in namespaces of their own; mutations wait their turn
    comprehensions       `%list(lambda ...)` and so on

Functions run as they are written. A block never contains part of an `except`, `finally`, `with` or `match` body. The
analysis assumes that nested functions, and classes with a body, may do anything.

`pure_functions` are names in the namespace that neither mutate nor keep their arguments; they may be dotted
("math.sqrt"), and the modules in `vocabulary.MODULES` are trusted as a whole. The builtins in
`vocabulary.PURE_BUILTINS` that a program uses should exist in its namespace.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyrag_sandbox.dataflow.aliases import Aliases
from pyrag_sandbox.dataflow.analyzer import Analyzer
from pyrag_sandbox.dataflow.effects import NOTHING, Effects
from pyrag_sandbox.dataflow.hoisting import Gatherer, Hoister, has_comprehension
from pyrag_sandbox.dataflow.statements import (
    JUMPS,
    Substitute,
    expression_of,
    invoke,
    is_compound,
    jumps,
    plain_annotation,
)
from pyrag_sandbox.dataflow.syntax import is_look, target_names
from pyrag_sandbox.dataflow.trees import walk, walk_all
from pyrag_sandbox.dataflow.units import Block, Draft, Linker, Loop, Plan
from pyrag_sandbox.dataflow.value_sources import value_source_of

_Certain = Callable[[ast.stmt], set[str]]
_INSEPARABLE = {ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Delete, ast.Global, ast.Lambda}


@dataclass(slots=True)
class Step:
    """Statement that will become a unit."""

    statement: ast.stmt
    effects: Effects
    cannot_reorder: bool = False  # a lazy iterator may exist, which any step may consume
    waits_for_turn: bool = False  # waits until all earlier iterations have run it


def plan(
    tree: ast.Module,
    primitives: frozenset[str],
    pure_functions: frozenset[str] = frozenset(),
    errors: frozenset[str] = frozenset(),
) -> Plan:
    """Split a parsed program into a plan.

    Args:
        tree: The module; it is changed, and must not be used after this.
        primitives: Names of functions that wait for the host.
        pure_functions: Other names in the namespace that neither mutate nor keep their arguments.
        errors: Exception classes in the namespace, in addition to builtin ones.
    """
    names = _Names()
    planner = _Planner(Analyzer(tree, primitives, pure_functions, errors), names)
    for statement in tree.body:
        planner.aliases.add(statement)
    root = planner.block(tree.body, set(), {})
    return Plan(root, tuple(planner.blocks), planner.aliases.members())


class _Names:
    """Generator of names for temporaries."""

    def __init__(self) -> None:
        self.made: set[str] = set()

    def __call__(self) -> str:
        name = f"%{len(self.made) + 1}"
        self.made.add(name)
        return name


class _Planner:
    def __init__(self, analyzer: Analyzer, fresh_name: _Names) -> None:
        self.a = analyzer
        self.fresh_name = fresh_name
        self.aliases = Aliases(analyzer)
        self.blocks: list[Block] = []
        self.cannot_reorder = analyzer.cannot_reorder
        self.hoister = Hoister(analyzer, self.fresh_name)

    def block(self, body: Sequence[ast.stmt], bound: set[str], copies: dict[str, str]) -> Block:
        return self.link([self.finish(step, known, now) for step, known, now in self.lower(body, bound, copies)])

    def nested(self, body: Sequence[ast.stmt], bound: set[str], copies: dict[str, str]) -> int:
        self.blocks.append(self.block(body, bound, copies))
        return len(self.blocks) - 1

    # -- lowering: statements to simpler statements

    def lower(
        self, body: Sequence[ast.stmt], bound: set[str], copies: dict[str, str]
    ) -> list[tuple[Step, set[str], dict[str, str]]]:
        """Return each simple statement, with the names that are certainly bound before it and the copies then valid."""
        bound, copies = set(bound), dict(copies)
        lowered = []
        for original in body:
            statement = self.substitute(original, copies)
            for simple in self.split(statement, bound):
                effects = self.a.effects(simple)
                self.cannot_reorder |= effects.lazy
                self._share(simple, effects)
                lowered.append((Step(simple, effects, self.cannot_reorder), set(bound), dict(copies)))
                self._after(simple, effects, bound, copies)
        return lowered

    def _after(self, statement: ast.stmt, effects: Effects, bound: set[str], copies: dict[str, str]) -> None:
        for name in effects.binds:
            copies.pop(name, None)
        bound.update(self.certain(statement))
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return
        name, value = statement.targets[0].id, statement.value
        single = len(statement.targets) == 1 and isinstance(value, ast.Name) and value.id.startswith("%")
        if single and isinstance(value, ast.Name) and not name.startswith("%"):
            copies[name] = value.id

    def certain(self, statement: ast.stmt) -> set[str]:
        """Return the names that are certainly bound if the statement succeeds."""
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.AnnAssign) and statement.value):
            targets = [statement.target]
        names = {statement.name} if isinstance(statement, ast.FunctionDef) else set()
        if isinstance(statement, ast.If):
            names = self._certain_after(statement.body) & self._certain_after(statement.orelse)
        for target in targets:
            names.update(target_names(target))
        return names - self.a.deleted

    def _certain_after(self, body: list[ast.stmt]) -> set[str]:
        return {name for statement in body for name in self.certain(statement)}

    def split(self, statement: ast.stmt, bound: set[str]) -> list[ast.stmt]:
        """Return a statement preceded by the calls moved out of it."""
        if self.cannot_reorder:
            return [statement]
        statement = plain_annotation(statement)
        self.hoister.bound = bound
        self.hoister.statement = statement
        self.hoister.out = []
        slot = expression_of(statement)
        whole = self.a.effects(statement)
        if slot and whole.calls and self._may_split(statement):
            value = getattr(statement, slot)
            if value is not None and self.a.effects(value).calls:
                top = isinstance(statement, (ast.Assign, ast.Expr)) and whole.pure
                setattr(statement, slot, self.hoister.lift(value, top=top))
                if self.hoister.out:
                    self.a.changed(statement)
        return [*self.hoister.out, *self._versioned(statement)]

    def _may_split(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.AugAssign):
            return isinstance(statement.target, ast.Name) and self.hoister.inert(
                ast.Name(statement.target.id, ast.Load())
            )
        return True

    def _versioned(self, statement: ast.stmt) -> list[ast.stmt]:
        """Give the value in `items = fetch(q)` its own name if `items` is bound several times."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return [statement]
        target, value = statement.targets[0], statement.value
        if not isinstance(target, ast.Name) or isinstance(value, (ast.Name, ast.Constant, ast.Lambda)):
            return [statement]
        if self.a.bound[target.id] < 2 or target.id in self.a.deleted or not self.hoister.movable(value):
            return [statement]
        self.hoister.out, hoisted_before = [], self.hoister.out
        name = self.hoister.temp(value)
        self.aliases.union([target.id, name.id])
        statement.value = name
        made, self.hoister.out = self.hoister.out, hoisted_before
        return [*made, statement]

    def substitute(self, statement: ast.stmt, copies: dict[str, str]) -> ast.stmt:
        effects = self.a.effects(statement)
        if effects.lazy or copies.keys().isdisjoint(effects.reads):  # a lazy iterator reads names later
            return statement
        rebound = self._rebound(statement)
        live = {name: temp for name, temp in copies.items() if name not in rebound}
        changed: ast.stmt = Substitute(live).visit(statement)
        self.a.changed(changed)
        return changed

    def _rebound(self, statement: ast.stmt) -> set[str]:
        """Return the names that the statement may rebind before it has evaluated everything that reads them."""
        slot = expression_of(statement)
        if is_compound(statement) or not slot:
            return self.a.effects(statement).binds
        walrus = {n.target.id for n in walk(statement) if isinstance(n, ast.NamedExpr)}
        return walrus | self.a.effects(getattr(statement, slot)).binds

    # -- finishing: compound statements, gathers

    def finish(self, step: Step, bound: set[str], copies: dict[str, str]) -> Draft:
        statement, effects = step.statement, step.effects
        unsure = effects.unsure or step.cannot_reorder
        value_source = value_source_of(self.a, statement)
        compound = False
        if not unsure and effects.calls and is_compound(statement):
            statement = self.open(statement, effects, bound, copies)
            self.a.changed(statement)
            compound = True
        own = self.a.effects(statement) if compound else effects
        if self.a.has_comprehensions and not step.cannot_reorder and has_comprehension(statement):
            statement = Gatherer(self.a).visit(statement)
        if isinstance(step.statement, ast.Try):
            own = effects
        early = effects.pure and not step.waits_for_turn and not unsure
        return Draft(ast.Module([statement], []), effects, own, early, unsure, value_source, compound)

    def _share(self, statement: ast.stmt, effects: Effects) -> None:
        """Add temporaries to the alias classes."""
        made = self.fresh_name.made
        if not is_compound(statement) and not (made.isdisjoint(effects.binds) and made.isdisjoint(effects.reads)):
            self.aliases.add(statement)

    def open(self, statement: ast.stmt, effects: Effects, bound: set[str], copies: dict[str, str]) -> ast.stmt:
        """Turn the bodies of a compound statement into blocks."""
        inner = {k: v for k, v in copies.items() if k not in effects.binds}
        if isinstance(statement, ast.For):
            loop = self.each(statement, effects, bound, inner)
            if loop is not None:
                return loop
            known = bound | (set(target_names(statement.target)) - self.a.deleted)
            statement.body = self.closed(statement.body, known, inner)
        elif isinstance(statement, ast.If):
            statement.body = self.closed(statement.body, bound, inner)
            statement.orelse = self.closed(statement.orelse, bound, inner)
        elif isinstance(statement, (ast.While, ast.Try)):
            statement.body = self.closed(statement.body, bound, inner)
        return statement

    def closed(self, body: list[ast.stmt], bound: set[str], copies: dict[str, str]) -> list[ast.stmt]:
        """Return a body in which neighbouring statements without `break` or `continue` are combined into blocks."""
        statements: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in body:
            if jumps(statement):
                statements += [*self._run(run, bound, copies), statement]
                run = []
            else:
                run.append(statement)
        return statements + self._run(run, bound, copies)

    def _run(self, run: list[ast.stmt], bound: set[str], copies: dict[str, str]) -> list[ast.stmt]:
        if not any(self.a.effects(s).calls for s in run):
            return run
        number = self.nested(run, bound, copies)
        return [invoke("%block", [ast.Constant(number)], run[0])]

    # -- loops

    def each(self, loop: ast.For, effects: Effects, bound: set[str], copies: dict[str, str]) -> ast.stmt | None:
        """Return the loop as `%each(...)`, or None if its iterations depend on each other."""
        if loop.orelse or not self._separable(loop, effects):
            return None
        name = self.fresh_name()
        item = ast.copy_location(ast.Name(name, ast.Load()), loop.target)
        first = ast.copy_location(ast.Assign([loop.target], item), loop.target)
        lowered = self.lower([first, *map(copy.deepcopy, loop.body)], bound, copies)
        steps = [step for step, _, _ in lowered]
        apart = _tell_apart(steps, self.certain)
        relation = self.relation(loop, steps, name) if apart else None
        if relation is None:
            return None
        units = [self.finish(step, known, now) for step, known, now in lowered]
        self.blocks.append(Block(self.link(units).units, relation))
        return invoke("%each", [ast.Constant(len(self.blocks) - 1), loop.iter], loop)

    def _separable(self, loop: ast.For, effects: Effects) -> bool:
        kinds = set(map(type, walk_all(loop.body)))
        if not _INSEPARABLE.isdisjoint(kinds) or (not kinds.isdisjoint(JUMPS) and any(map(jumps, loop.body))):
            return False
        seen = {n for s in self.a.summaries.values() for n in s.reads | s.binds}
        return not (effects.unsure or effects.lazy or seen & effects.binds)

    def relation(self, loop: ast.For, steps: list[Step], item: str) -> Loop | None:
        in_turn = {n for s in steps if s.waits_for_turn for n in s.effects.binds}
        local = {n for s in steps if not s.waits_for_turn for n in s.effects.binds}
        ahead = [s for s in steps if not s.waits_for_turn and not is_look(s.statement)]
        read = {n for s in ahead for n in s.effects.reads} | self.a.effects(loop.iter).reads
        read = read - local - in_turn - {item}
        mutated = {n for s in steps for n in s.effects.mutates}
        classes = self.aliases.classes(mutated)
        clash = {n for n in read if self.aliases.find(n) in classes and (self.a.bound[n] or n.startswith("%"))}
        deep = any(s.effects.deep for s in steps) or bool(mutated & (local | {item}))
        if local & in_turn or (clash and deep):
            return None
        members = self.aliases.members()
        shared = NOTHING.union(*(members.get(n, {n}) for n in mutated)) - local - in_turn - {item}
        return Loop(
            item=item,
            local=frozenset(local),
            carried=frozenset(in_turn),
            shared=shared,
            read=frozenset(clash),
            mutated=frozenset(mutated) if clash else NOTHING,
        )

    # -- linking: which unit waits for which

    def link(self, drafts: list[Draft]) -> Block:
        linker = Linker(self.aliases)
        return Block(tuple(linker.add(index, draft) for index, draft in enumerate(drafts)))


def _tell_apart(steps: list[Step], certain: _Certain) -> bool:
    """Mark the steps that must wait for their iteration's turn; return False if this does not separate iterations."""
    for step in steps:
        step.waits_for_turn = not step.effects.pure
    bound = {n for s in steps for n in s.effects.binds}
    while True:
        names_in_turn = {n for s in steps if s.waits_for_turn for n in s.effects.binds}
        verdict = _mark_waiting(steps, bound, names_in_turn, certain)
        if verdict is not None:
            return verdict and any(s.effects.calls and not s.waits_for_turn for s in steps)


def _mark_waiting(steps: list[Step], bound: set[str], names_in_turn: set[str], certain: _Certain) -> bool | None:
    """Make one pass.

    Returns:
        None if a step was marked, else whether no waiting step needs a name that an earlier iteration may have bound.
    """
    written: set[str] = set()
    for step in steps:
        unwritten = (step.effects.reads & bound) - written
        if not step.waits_for_turn and (unwritten or (step.effects.reads | step.effects.binds) & names_in_turn):
            step.waits_for_turn = True
            return None
        if step.waits_for_turn and unwritten - names_in_turn:
            return False
        written |= certain(step.statement)
    return True
