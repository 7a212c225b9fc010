"""Scheduler of tasks that take turns: the iterations of a loop, the elements of a comprehension.

Each task runs ahead as far as allowed, and tasks finish in order.
"""

from __future__ import annotations

import ast
import gc
import itertools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, GeneratorType
from typing import Any

from pyrag_sandbox.dataflow.units import Loop, Plan
from pyrag_sandbox.worker.loop_independence import are_entangled
from pyrag_sandbox.worker.scheduler import Scheduler
from pyrag_sandbox.worker.tasks import Scope, Task
from pyrag_sandbox.worker.tracebacks import GATHERS
from pyrag_sandbox.worker.transport import Execution, Transport


def run(
    plan: Plan,
    *,
    compile_unit: Callable[[ast.Module], CodeType],
    namespace: dict[str, Any],
    primitives: Iterable[str],
    transport: Transport,
    emit: Callable[[str], None],
    concurrent: bool = True,
    atoms: tuple[type, ...] = (),
    filename: str = "<program>",
    max_calls: int = sys.maxsize,
) -> Execution:
    """Run a plan; `scheduler` describes the observable behaviour.

    Args:
        plan: Units of the program.
        compile_unit: Function that compiles one unit's module to code named `filename`, under the policy. It is called
            once for each unit that runs.
        namespace: Globals of the program, changed in place. The primitives are added, as are the helpers that rewritten
            code calls ("%block" ...); the helpers are removed again, together with the temporaries. During the run, the
            program's `print` must pass its text to "%write".
        primitives: Names of functions that wait for the host.
        transport: Connection to the host, with one reply per call that was not cancelled; replies share no mutable
            object. An error of `send` is raised at the call; an error of `receive` ends the run and is raised by `run`.
        emit: Function that receives output, in program order.
        concurrent: Whether units may run in parallel; False runs them one at a time.
        atoms: Additional types that are deeply immutable (Text, Record).
        filename: File name of the program's code, for tracebacks.
        max_calls: Maximum number of calls that count.
    """
    scheduler = LoopScheduler(plan, compile_unit, transport, emit, concurrent, atoms, filename, max_calls)
    return scheduler.run(namespace, primitives)


class LoopScheduler(Scheduler):
    """Scheduler of a whole program: units, and the iterations of loops and comprehensions."""

    def helpers(self) -> tuple[Any, ...]:
        """Return the functions behind the names in `HELPERS`."""
        return (*super().helpers(), self.each, self._list, self._set, self._dict, self._lazy)

    def _list(self, make: FunctionType, source: Iterable[Any], unpack: bool) -> list[Any]:
        gather = _Gather(self, _named(GATHERS["_list"], make), source, unpack)
        return [item for part in gather for item in part]

    def _set(self, make: FunctionType, source: Iterable[Any], unpack: bool) -> set[Any]:
        gather = _Gather(self, _named(GATHERS["_set"], make), source, unpack)
        return {item for part in gather for item in part}

    def _dict(self, make: FunctionType, source: Iterable[Any], unpack: bool) -> dict[Any, Any]:
        gather = _Gather(self, _named(GATHERS["_dict"], make), source, unpack)
        return {key: part[key] for part in gather for key in part}

    def _lazy(self, make: FunctionType, source: Iterable[Any], unpack: bool) -> Iterator[Any]:
        # As in a generator expression, iter() is called now and the elements start with the first item.
        gather = _Gather(self, _named("<genexpr>", make), source, unpack)
        return (item for part in gather for item in part)

    # -- loops

    def each(self, number: int, iterable: Iterable[Any]) -> None:
        """Run a loop (`%each`), with its iterations in parallel where possible.

        Args:
            number: Index of its block in the plan.
            iterable: Items of the loop. They are taken in advance if this runs no code and the iterations are
                independent.
        """
        owner = self.here()
        block = self.plan.blocks[number]
        loop = block.loop
        assert loop is not None
        ordered = are_entangled(self.is_atom, owner.scope.names, loop)
        origins = owner.origins_of(owner.unit.header) | owner.own
        quiet = is_quiet(iterable)
        began = Scope({})
        began.began(owner.scope, ahead=owner.ahead)

        def start(item: Any) -> Task:
            scope = Scope(dict(owner.scope.names), owner.scope, loop.shared, base_ahead=owner.ahead)
            scope.began(began, ahead=True)
            for name in loop.local:
                scope.forget(name)
            scope.names[loop.item] = item
            scope.origins[loop.item] = origins if quiet else origins | owner.own
            task = Task(owner, owner.unit, scope, context=owner.context | origins, ahead=not ordered)
            self.spawn(task, lambda: self.block(task, block))
            return task

        window = self.window if quiet and not ordered else 1
        for task in self.in_order(owner, iter(iterable), start, window, lambda task: self._refresh(task, loop)):
            self._copy_back(owner.scope, task.scope, loop)
            self.join(owner, task)

    def _refresh(self, task: Task, loop: Loop) -> None:
        """Let an iteration whose turn has come continue with the state at the end of the previous iteration."""
        if task.scope.base is not None:
            for name in loop.carried:
                task.scope.take(name, task.scope.base)

    def _copy_back(self, base: Scope, scope: Scope, loop: Loop) -> None:
        for name in loop.carried:
            base.take(name, scope)
        for name in loop.local:
            if name in scope.names and not name.startswith("%"):
                base.take(name, scope)
            elif name in base.names and name in scope.origins:  # left unbound, for a reason that depends on calls
                self.books.taint(base, [name], scope.origins[name])

    def in_order(
        self,
        owner: Task,
        source: Iterator[Any],
        start: Callable[[Any], Task],
        window: int,
        on_turn: Callable[[Task], None],
    ) -> Iterator[Task]:
        """Yield finished tasks for the items of `source` in order, while up to `window` of them run.

        Args:
            owner: Task that waits for them.
            source: The items.
            start: Function that creates and spawns the task for an item.
            window: Maximum number of unfinished tasks, at least 1.
            on_turn: Function called with each task after all tasks before it have been yielded.

        Raises:
            Exception: An error of `source` or `start`, after the tasks before it.
        """
        pending: deque[Task] = deque()
        failure: BaseException | None = None
        exhausted = False
        try:
            while True:
                while not exhausted and len(pending) < window:
                    try:
                        pending.append(start(next(source)))
                    except StopIteration:
                        exhausted = True
                    except Exception as error:
                        failure, exhausted = error, True
                if not pending:
                    break
                on_turn(pending[0])
                self.let_go(pending[0])
                while not pending[0].done:
                    self.park(owner)
                yield pending.popleft()
        finally:
            if self.terminal is None:
                for task in reversed(pending):
                    self.kill(task)
                    owner.children.remove(task)
        if failure is not None:
            raise failure


class _Gather:
    """Elements of a comprehension in order, each computed by a task."""

    def __init__(self, scheduler: LoopScheduler, make: Callable[..., Any], source: Iterable[Any], unpack: bool) -> None:
        self.scheduler = scheduler
        self.make = make
        self.source = iter(source)
        self.quiet = begins_quietly(source) if unpack else is_quiet(source)
        self.unpack = unpack

    def __iter__(self) -> Iterator[Any]:
        owner = self.scheduler.here()
        owner.gathered = None
        gathered: list[frozenset[int]] = []
        shared = owner.origins_of(owner.unit.reads)
        inherited = frozenset(owner.own) | owner.inherited

        def start(item: Any) -> Task:
            before = inherited if self.quiet else inherited | owner.own
            task = Task(owner, owner.unit, owner.scope, context=owner.context, inherited=before, ahead=owner.ahead)
            self.scheduler.spawn(task, lambda: self._make(task, item))
            return task

        window = self.scheduler.window if self.quiet else 1
        for task in self.scheduler.in_order(owner, self.source, start, window, lambda _: None):
            owner.own |= task.own
            self.scheduler.join(owner, task)
            gathered.append(shared | task.own if self.quiet else shared | owner.own)
            yield task.value
        owner.gathered = gathered

    def _make(self, task: Task, item: Any) -> None:
        task.value = self.make(*item) if self.unpack else self.make(item)


def _named(name: str, function: FunctionType) -> FunctionType:
    """Return a function that tracebacks name after the author's code instead of the lambda made from it."""
    function.__code__ = function.__code__.replace(co_name=name)
    return function


# -- iterables that run no code of the program: their items may be taken early

_CONTAINERS: tuple[Any, ...] = (
    *([], (), "", "é", b"", bytearray(), set(), frozenset(), {}, Counter(), OrderedDict(), defaultdict(), deque()),
    *({}.keys(), {}.values(), {}.items(), range(0), range(2**70)),
)
_BACKWARDS: tuple[Any, ...] = ([], {}, {}.keys(), {}.values(), {}.items(), range(0), range(2**70), deque())
_ITERATORS = frozenset(type(iter(example)) for example in _CONTAINERS)
_REVERSED = frozenset(type(reversed(example)) for example in _BACKWARDS)
_QUIET = frozenset(type(example) for example in _CONTAINERS) | _REVERSED
# Iterators that take items from others, which they hold in tuples.
_WRAPPERS: frozenset[type] = frozenset(
    {enumerate, zip, reversed, itertools.chain, itertools.islice, itertools.zip_longest, itertools.pairwise}
    | {itertools.product, itertools.combinations, itertools.permutations, itertools.repeat, itertools.cycle}
)
_TUPLES = frozenset({tuple, type(iter(()))})
_MAX_LEVELS = 6


def is_quiet(source: Iterable[Any]) -> bool:
    """Return True if taking items certainly runs no code of the program: no generator, no function called by `map`.

    A bare iterator is not quiet, since the program may continue to use its remaining items.
    """
    return type(source) in _QUIET or (type(source) in _WRAPPERS and not _runs_code(source, _MAX_LEVELS))


def begins_quietly(expression: object) -> bool:
    """Return True if a generator expression of ours that has not started yet has a quiet source."""
    assert isinstance(expression, GeneratorType)
    assert expression.gi_frame is not None
    head = expression.gi_frame.f_locals[".0"]
    return type(head) in _ITERATORS or is_quiet(head)


def _runs_code(source: object, levels: int) -> bool:
    for part in gc.get_referents(source):
        kind = type(part)
        if kind in _WRAPPERS or kind in _TUPLES:
            if levels == 0 or _runs_code(part, levels - 1):
                return True
        elif isinstance(part, Iterator) and kind not in _ITERATORS and kind not in _REVERSED:
            return True
    return False
