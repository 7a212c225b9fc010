"""Scheduler that runs a `dataflow.Plan` with greenlets: primitives of independent units are in flight at the same time.

    execution = run(plan, compile_unit=..., namespace=..., primitives=..., transport=..., emit=...)

There are no threads. A primitive sends its call through the transport and switches to the hub, which runs other tasks
that are ready, or blocks in `transport.receive()` if there are none. The observable behaviour equals a sequential run:

* Units that ran ahead of an error are undone: names are restored, output and calls dropped, and calls in flight
  cancelled by `transport.cancel` (late replies are ignored). The reported error is the first in program order.
* Output goes to `emit` in program order: immediately for the next unit in sequence, later for units that run ahead.
* `Execution.calls` is in program order. Ids count from 0 in order of dispatch, including dropped calls.

A `BaseException` that is not an `Exception` (a refusal, a limit) is terminal: the run ends at once, and no more code of
the program runs, not even to unwind. Its suspended greenlets are kept in `Execution.abandoned`, to be dropped with the
process. `loop_scheduler.run` lists what the caller (the worker) provides.

Tracebacks hold scheduler frames and, for statements within `if`, `for` and so on, several frames of the program at
module level; `program_frames` reduces them to the frames of a sequential run.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from greenlet import GreenletExit, getcurrent  # type: ignore[import-untyped] # it ships no types

from pyrag_sandbox.dataflow.provenance import Provenance
from pyrag_sandbox.dataflow.units import ROOT, Block, Plan, Unit
from pyrag_sandbox.worker.tasks import Atoms, Green, Printed, Scope, Task, calls_so_far
from pyrag_sandbox.worker.transport import Execution, Transport

WINDOW = 64  # maximum elements or iterations under way in one comprehension or loop
MAX_ITEMS = 1_000  # maximum length of a list whose items are reported one by one
HELPERS = ("%block", "%write", "%each", "%list", "%set", "%dict", "%lazy")


class Scheduler:
    """Scheduler of the units of a plan."""

    def __init__(
        self,
        plan: Plan,
        compile_unit: Callable[[ast.Module], CodeType],
        transport: Transport,
        emit: Callable[[str], None],
        concurrent: bool,
        atoms: tuple[type, ...],
        filename: str,
        max_calls: int,
    ) -> None:
        self.plan = plan
        self.compile_unit = compile_unit
        self.code: dict[int, CodeType] = {}  # code of units, by identity
        self.transport = transport
        self.emit = emit
        self.concurrent = concurrent
        self.window = WINDOW if concurrent else 1
        self.is_atom = Atoms(atoms)
        self.books = Provenance(plan, self.is_atom)
        self.filename = filename
        self.max_calls = max_calls
        self.ready: deque[tuple[Green, Any]] = deque()
        self.waiting: dict[int, Green] = {}
        self.suspended: set[Green] = set()
        self.terminal: BaseException | None = None

    # -- the hub

    def run(self, namespace: dict[str, Any], primitives: Iterable[str]) -> Execution:
        """Run the whole plan.

        Args:
            namespace: Globals of the program, changed in place.
            primitives: Names of functions that wait for the host.
        """
        self._equip(namespace, primitives)
        self.hub = getcurrent()
        root = Task(None, ROOT, Scope(namespace), turn=True)
        self.spawn(root, lambda: self.block(root, self.plan.root))
        try:
            while not root.done and self.terminal is None:
                self._step()
            self._flush(root)
        finally:
            for name in [n for n in namespace if n.startswith("%")]:
                del namespace[name]
        provenance = {n: self.books.closure(ids) for n, ids in root.scope.origins.items() if n in namespace}
        elements = {
            name: tuple(map(self.books.closure, items))
            for name, items in root.scope.elements.items()
            if name in namespace and len(items) <= MAX_ITEMS
        }
        return Execution(self.terminal or root.error, provenance, calls_so_far(root), tuple(self.suspended), elements)

    def _equip(self, namespace: dict[str, Any], primitives: Iterable[str]) -> None:
        for name in primitives:
            namespace[name] = self._primitive(name)
        namespace.update(zip(HELPERS, self.helpers(), strict=False))

    def helpers(self) -> tuple[Any, ...]:
        """Return the functions behind the names in `HELPERS`."""
        return self._run_block, self.write

    def _step(self) -> None:
        if self.ready:
            green, reply = self.ready.popleft()
        else:
            call_id, reply = self.transport.receive()
            waiter = self.waiting.pop(call_id, None)
            if waiter is None:
                return
            green = waiter
        if isinstance(reply, BaseException):
            green.throw(reply)
        else:
            green.switch(reply)

    def spawn(self, task: Task, body: Callable[[], None]) -> None:
        """Schedule a task in its own greenlet.

        Args:
            task: A new task, which becomes a child of its parent.
            body: Work of the task; an `Exception` becomes the task's `error`.
        """
        green = Green(lambda _: self._perform(task, body), self.hub)
        green.task = task
        task.green = green
        self.suspended.add(green)
        if task.parent is not None:
            task.parent.children.append(task)
        self.ready.append((green, None))

    def _perform(self, task: Task, body: Callable[[], None]) -> None:
        try:
            try:
                body()
            finally:
                if self.terminal is None:
                    self._kill_all(task.children)
        except GreenletExit:
            task.killed = True
        except Exception as error:
            task.error = error
        except BaseException as error:
            self.terminal = error
        task.done = True
        if task.green is not None:
            self.suspended.discard(task.green)
        if task.parent is not None:
            self._wake(task.parent)

    def here(self) -> Task:
        """Return the task that is running."""
        green: Green = getcurrent()
        return green.task

    def park(self, task: Task) -> None:
        """Suspend a task until it is woken."""
        task.parked = True
        try:
            self.hub.switch()
        finally:
            task.parked = False

    def _wake(self, task: Task) -> None:
        if task.parked and task.green is not None:
            task.parked = False
            self.ready.append((task.green, None))

    def let_go(self, task: Task) -> None:
        """Let a task whose turn has come continue, including parts of it that wait for this."""
        task.turn = True
        self._settle_down(task)
        self._enliven(task)

    @staticmethod
    def _settle_down(task: Task) -> None:
        if task.undo is not None:
            task.scope.ahead.subtract(task.unit.binds)
            task.undo = None

    def _enliven(self, task: Task) -> None:
        self._wake(task)
        for child in task.children:
            if child.turn:
                self._enliven(child)

    def _kill_all(self, tasks: list[Task]) -> None:
        for task in reversed(tasks):
            self.kill(task)
        tasks.clear()

    def kill(self, task: Task) -> None:
        """End a task and undo its effects."""
        task.killed = True
        if task.waits_for is not None:
            self.waiting.pop(task.waits_for, None)
            self.transport.cancel(task.waits_for)
            task.waits_for = None
        green = task.green
        if green is not None and not task.done:
            self.ready = deque(entry for entry in self.ready if entry[0] is not green)
            green.parent = getcurrent()
            green.throw(GreenletExit)
            self.suspended.discard(green)
        if task.undo is not None:
            for name in task.unit.binds:
                task.scope.take(name, task.undo)
            self._settle_down(task)

    # -- calls and output

    def _primitive(self, name: str) -> Callable[..., Any]:
        def primitive(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, args, kwargs)

        primitive.__name__ = primitive.__qualname__ = name
        return primitive

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        task = self.here()
        if task.killed:
            raise GreenletExit
        if len(self.books.depends) >= self.max_calls:
            self._at_limit(task)
        call_id = len(self.books.depends)
        origins = tuple(sorted(task.origins_of(task.unit.reads) | task.inherited | task.own))
        self.transport.send(call_id, name, args, kwargs, self._line(), origins)
        self.books.depends.append(origins)
        task.log.append(call_id)
        task.waits_for = call_id
        self.waiting[call_id] = getcurrent()
        try:
            return self.hub.switch()
        finally:
            task.waits_for = None
            task.own.add(call_id)
            task.last_call = call_id

    def _at_limit(self, task: Task) -> None:
        """Wait until only calls that count remain, and end the program if the limit on calls is reached."""
        while not task.live:
            self.park(task)
        calls = calls_so_far(task)
        if len(calls) >= self.max_calls:
            self.transport.exhausted(calls)

    def _line(self) -> int:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self.filename:
            if frame.f_back is None:
                return 0
            frame = frame.f_back
        return frame.f_lineno

    def write(self, text: str) -> None:
        """Record output of the running task, and emit it if it is next in sequence."""
        task = self.here()
        task.log.append(Printed(text))
        if task.live:
            self._flush(task)

    def _flush(self, task: Task) -> None:
        if task.parent is not None:
            self._flush(task.parent)
        while task.flushed < len(task.log):
            entry = task.log[task.flushed]
            task.flushed += 1
            if isinstance(entry, Printed) and not entry.emitted:
                entry.emitted = True
                self.emit(entry.text)

    # -- blocks of units

    def _run_block(self, number: int) -> None:
        owner = self.here()
        origins = owner.origins_of(owner.unit.header) | owner.own
        self.books.taint(owner.scope, owner.unit.own_binds, origins)
        before, owner.context = owner.context, owner.context | origins
        try:
            self.block(owner, self.plan.blocks[number])
        finally:
            owner.context = before

    def block(self, owner: Task, block: Block) -> None:
        """Run units, each as early as possible; return when all are joined.

        Args:
            owner: Task that waits for them.
            block: Units in program order.
        """
        tasks: list[Task | None] = [None] * len(block.units)
        first = 0
        try:
            while (first := self._advance(owner, block.units, tasks, first)) < len(tasks):
                self.park(owner)
        except BaseException:
            if self.terminal is None:
                self._kill_all([t for t in tasks if t is not None and t in owner.children])
                owner.children.clear()
            raise

    def _advance(self, owner: Task, units: tuple[Unit, ...], tasks: list[Task | None], first: int) -> int:
        """Start all units that may start, join finished units in order, and return the number of joined units."""
        for index in range(first, len(units)):
            task = tasks[index]
            if task is None and self._may_start(owner, units[index], tasks, first, index):
                task = tasks[index] = self._start(owner, units[index], turn=index == first)
            if index == first and task is not None:
                if not task.turn:
                    self.let_go(task)
                if task.done:
                    self.join(owner, task)
                    first += 1
            if task is not None and task.done and task.error is not None:
                break
            if not self.concurrent and index >= first:
                break
        return first

    def _may_start(self, owner: Task, unit: Unit, tasks: list[Task | None], first: int, index: int) -> bool:
        if index == first:
            return unit.early or owner.live or (unit.pure and owner.turn)
        if not unit.early or not self.concurrent:
            return False
        for earlier in unit.after:
            if not _succeeded(tasks[earlier]):
                return False
        for earlier, names in unit.unless_atoms:
            if not _succeeded(tasks[earlier]) and not all(self.is_atom(owner.scope.names.get(n)) for n in names):
                return False
        return True

    def _start(self, owner: Task, unit: Unit, *, turn: bool) -> Task:
        task = Task(owner, unit, owner.scope, context=owner.context, ahead=owner.ahead and unit.early, turn=turn)
        if not turn:
            task.undo = owner.scope.part(unit.binds)
            owner.scope.ahead.update(unit.binds)
        if unit.calls:
            self.spawn(task, lambda: self._execute(task))
        else:
            self._inline(owner, task)
        return task

    def _inline(self, owner: Task, task: Task) -> None:
        """Run a unit without calls in place, since it never waits."""
        self.transport.flush()  # the unit may take a long time
        green: Green = getcurrent()
        owner.children.append(task)
        green.task = task
        try:
            self._execute(task)
        except Exception as error:
            task.error = error
        finally:
            green.task = owner
        task.done = True

    def join(self, owner: Task, task: Task) -> None:
        """Transfer a finished task's log to its owner, and raise its error.

        Args:
            owner: Parent of the task.
            task: The finished task.
        """
        owner.children.remove(task)
        owner.log += task.log
        owner.flushed += task.flushed if owner.flushed == len(owner.log) - len(task.log) else 0
        if len(self.books.depends) > self.max_calls and owner.live:
            self._check_limit(owner)
        if task.error is not None:
            raise task.error

    def _check_limit(self, task: Task) -> None:
        """End the program if calls made ahead of their turn exceed the limit, now that they count."""
        calls = calls_so_far(task)
        if len(calls) > self.max_calls:
            self.transport.exhausted(calls[: self.max_calls])

    def _execute(self, task: Task) -> None:
        before = task.origins_of(task.unit.header)
        try:
            code = self.code.get(id(task.unit))
            if code is None:
                code = self.code[id(task.unit)] = self.compile_unit(task.unit.tree)
            exec(code, task.scope.names)  # noqa: S102 - running the program is the purpose of this function
        finally:
            self.books.settle(task, before)


def _succeeded(task: Task | None) -> bool:
    return task is not None and task.done and task.error is None
