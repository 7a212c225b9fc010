"""Static half of running a program's independent parts side by side: cuts it into units and rewrites them.

    plan = plan(ast.parse(source), frozenset({"fetch", "ask"}), frozenset({"year"}))

A `Plan` is a tree of blocks; a `Block` is a list of `Unit`s in program order. A unit is one module-level statement
(or a temporary taken out of one) with what it reads, binds and mutates, and the earlier units it has to wait for. Only
a pure unit may run before everything earlier has succeeded. `loop_scheduler.run` executes a plan.

    statements           one unit each; calls inside an expression move out into units of their own (`hoisting`)
    name bound twice     each value gets a name of its own, which later statements read instead
    if, for, while, try  one unit; the statements inside form a block of their own, run by a call `%block(n)`
    independent loops    `%each(n, iterable)`: iterations side by side, each in its own namespace; what mutates waits
                         for the iteration's turn
    comprehensions       `%list(lambda ...)` and so on

Left out: functions run as they are written, a block never spans an `except`, `finally`, `with` or `match` body, nested
functions and classes with a body are taken for anything.
`pure_functions` are names the namespace offers that neither mutate nor keep their arguments; dotted names
("math.sqrt") are fine, and the modules in `vocabulary.MODULES` are trusted as a whole. The builtins in
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
from pyrag_sandbox.dataflow.shapes import shape_of
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

_Certain = Callable[[ast.stmt], set[str]]
_INSEPARABLE = {ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Delete, ast.Global, ast.Lambda}


@dataclass(slots=True)
class Step:
    """A statement on its way to becoming a unit."""

    statement: ast.stmt
    effects: Effects
    poisoned: bool = False  # a lazy iterator is about: anything may consume it
    late: bool = False


def plan(
    tree: ast.Module,
    primitives: frozenset[str],
    pure_functions: frozenset[str] = frozenset(),
    errors: frozenset[str] = frozenset(),
) -> Plan:
    """Cut a parsed program into a plan.

    Args:
        tree: the module; it is changed and must not be used afterwards.
        primitives: names of functions that wait for the host.
        pure_functions: other names of the namespace that neither mutate nor keep their arguments.
        errors: exception classes of the namespace besides the builtin ones.
    """
    names = _Names()
    planner = _Planner(Analyzer(tree, primitives, pure_functions, errors), names)
    for statement in tree.body:
        planner.aliases.add(statement)
    root = planner.block(tree.body, set(), {})
    return Plan(root, tuple(planner.blocks), planner.aliases.members())


class _Names:
    """Names for temporaries."""

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
        self.poisoned = analyzer.hopeless
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
        """Each simple statement with the names certainly bound before it and the copies in force."""
        bound, copies = set(bound), dict(copies)
        found = []
        for original in body:
            statement = self.substitute(original, copies)
            for simple in self.split(statement, bound):
                effects = self.a.effects(simple)
                self.poisoned |= effects.lazy
                self._share(simple, effects)
                found.append((Step(simple, effects, self.poisoned), set(bound), dict(copies)))
                self._after(simple, effects, bound, copies)
        return found

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
        """Names bound for good once the statement has succeeded."""
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.AnnAssign) and statement.value):
            targets = [statement.target]
        names = {statement.name} if isinstance(statement, ast.FunctionDef) else set()
        for target in targets:
            names.update(target_names(target))
        return names - self.a.deleted

    def split(self, statement: ast.stmt, bound: set[str]) -> list[ast.stmt]:
        """A statement with its calls taken out before it."""
        if self.poisoned:
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
        """`items = fetch(q)` of a name bound several times: the value gets a name that is bound once."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return [statement]
        target, value = statement.targets[0], statement.value
        if not isinstance(target, ast.Name) or isinstance(value, (ast.Name, ast.Constant, ast.Lambda)):
            return [statement]
        if self.a.bound[target.id] < 2 or target.id in self.a.deleted or not self.hoister.movable(value):
            return [statement]
        self.hoister.out, kept = [], self.hoister.out
        name = self.hoister.temp(value)
        self.aliases.union([target.id, name.id])
        statement.value = name
        made, self.hoister.out = self.hoister.out, kept
        return [*made, statement]

    def substitute(self, statement: ast.stmt, copies: dict[str, str]) -> ast.stmt:
        effects = self.a.effects(statement)
        if effects.lazy or copies.keys().isdisjoint(effects.reads):  # a lazy iterator reads names when it is asked
            return statement
        rebound = self._rebound(statement)
        live = {name: temp for name, temp in copies.items() if name not in rebound}
        changed: ast.stmt = Substitute(live).visit(statement)
        self.a.changed(changed)
        return changed

    def _rebound(self, statement: ast.stmt) -> set[str]:
        """Names that may be bound anew before all that reads them within the statement has been evaluated."""
        slot = expression_of(statement)
        if is_compound(statement) or not slot:
            return self.a.effects(statement).binds
        walrus = {n.target.id for n in walk(statement) if isinstance(n, ast.NamedExpr)}
        return walrus | self.a.effects(getattr(statement, slot)).binds

    # -- finishing: compound statements, gathers

    def finish(self, step: Step, bound: set[str], copies: dict[str, str]) -> Draft:
        statement, effects = step.statement, step.effects
        unsure = effects.unsure or step.poisoned
        shape = shape_of(self.a, statement)
        compound = False
        if not unsure and effects.calls and is_compound(statement):
            statement = self.open(statement, effects, bound, copies)
            self.a.changed(statement)
            compound = True
        own = self.a.effects(statement) if compound else effects
        if self.a.has_comprehensions and not step.poisoned and has_comprehension(statement):
            statement = Gatherer(self.a).visit(statement)
        if isinstance(step.statement, ast.Try):
            own = effects
        early = effects.pure and not step.late and not unsure
        return Draft(ast.Module([statement], []), effects, own, early, unsure, shape, compound)

    def _share(self, statement: ast.stmt, effects: Effects) -> None:
        """Temporaries take part in the alias classes as well."""
        made = self.fresh_name.made
        if not is_compound(statement) and not (made.isdisjoint(effects.binds) and made.isdisjoint(effects.reads)):
            self.aliases.add(statement)

    def open(self, statement: ast.stmt, effects: Effects, bound: set[str], copies: dict[str, str]) -> ast.stmt:
        """Turn bodies into blocks."""
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
        """A body with its runs of statements that need no `break` or `continue` as blocks."""
        found: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in body:
            if jumps(statement):
                found += [*self._run(run, bound, copies), statement]
                run = []
            else:
                run.append(statement)
        return found + self._run(run, bound, copies)

    def _run(self, run: list[ast.stmt], bound: set[str], copies: dict[str, str]) -> list[ast.stmt]:
        if not any(self.a.effects(s).calls for s in run):
            return run
        number = self.nested(run, bound, copies)
        return [invoke("%block", [ast.Constant(number)], run[0])]

    # -- loops

    def each(self, loop: ast.For, effects: Effects, bound: set[str], copies: dict[str, str]) -> ast.stmt | None:
        """The loop as `%each(...)`, if its iterations can be told apart. None: they cannot."""
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
        late = {n for s in steps if s.late for n in s.effects.binds}
        local = {n for s in steps if not s.late for n in s.effects.binds}
        ahead = [s for s in steps if not s.late and not is_look(s.statement)]
        read = {n for s in ahead for n in s.effects.reads} | self.a.effects(loop.iter).reads
        read = read - local - late - {item}
        mutated = {n for s in steps for n in s.effects.mutates}
        classes = self.aliases.classes(mutated)
        clash = {n for n in read if self.aliases.find(n) in classes and (self.a.bound[n] or n.startswith("%"))}
        deep = any(s.effects.deep for s in steps) or bool(mutated & (local | {item}))
        if local & late or (clash and deep):
            return None
        members = self.aliases.members()
        shared = NOTHING.union(*(members.get(n, {n}) for n in mutated)) - local - late - {item}
        return Loop(
            item=item,
            local=frozenset(local),
            carried=frozenset(late),
            shared=shared,
            read=frozenset(clash),
            mutated=frozenset(mutated) if clash else NOTHING,
        )

    # -- linking: which unit waits for which

    def link(self, drafts: list[Draft]) -> Block:
        linker = Linker(self.aliases)
        return Block(tuple(linker.add(index, draft) for index, draft in enumerate(drafts)))


def _tell_apart(steps: list[Step], certain: _Certain) -> bool:
    """Mark the steps that have to wait for their iteration's turn. False: even that does not separate iterations."""
    for step in steps:
        step.late = not step.effects.pure
    bound = {n for s in steps for n in s.effects.binds}
    while True:
        late_names = {n for s in steps if s.late for n in s.effects.binds}
        verdict = _mark_late(steps, bound, late_names, certain)
        if verdict is not None:
            return verdict and any(s.effects.calls and not s.late for s in steps)


def _mark_late(steps: list[Step], bound: set[str], late_names: set[str], certain: _Certain) -> bool | None:
    """One pass: None if a step became late, else whether no late step needs an earlier iteration's own names."""
    written: set[str] = set()
    for step in steps:
        unwritten = (step.effects.reads & bound) - written
        if not step.late and (unwritten or (step.effects.reads | step.effects.binds) & late_names):
            step.late = True
            return None
        if step.late and unwritten - late_names:
            return False
        written |= certain(step.statement)
    return True


# -- shapes: where the value of a simple assignment comes from, for provenance
