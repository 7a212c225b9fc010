"""The sandbox's contract: plain data that crosses its border.

A *program* is untrusted Python source. It runs over *primitives*: asynchronous functions of the host, which the
program calls like ordinary functions. The result is an `Outcome`.

    outcome = await sandbox.run(source, {"forecast": forecast})

Errors and their causes:

    Outcome.status == "error"      the program is wrong: `Outcome.error` is for its author
    Outcome.status == "blocked"    the program uses something forbidden: `Outcome.error` is for its author
    Outcome.status == "killed"     a limit ended the program: `Outcome.reason` names it
    PrimitiveError                 raised by a primitive: becomes an exception inside the program
    any other exception of a primitive: ends the program, and `run` raises it unchanged (the *host* is wrong)
    SandboxError                   the sandbox itself could not work
    WorkerLostError                its processes ended: running the program again may work
    Outcome.reason == "lost"       the program's worker ended: running it again may work
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["ok", "error", "blocked", "killed"]
Reason = Literal["", "cpu", "wall", "deadline", "memory", "output", "calls", "crash", "syscall", "lost"]


class SandboxError(Exception):
    """Error of the sandbox itself (no worker, missing kernel layer), not of the program."""


class WorkerLostError(SandboxError):
    """Error for a worker factory that ended while one of its workers ran a program. The program may be run again."""


class PrimitiveError(Exception):
    """Error that a primitive raises to become an exception at the call, inside the program, which may catch it.

    Args:
        message: Text of the exception.
        name: Type of the exception in the program: the name of a builtin exception (`ValueError`), or a new name,
            which becomes a subclass of `Exception`.
    """

    def __init__(self, message: str, name: str = "ValueError") -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Absent:
    """Properties of a `Text` that stands for a value that was not found.

    The text is falsy, is equal to `None`, to the empty text and to each of `spellings`, and contains each of `parts`
    but not parts of its own text. Methods that change case or white space, or return pieces of it, return it unchanged.
    Ordering it, converting it to a number, or comparing it with another `Text` raises the error named `error` with
    `message`.
    """

    spellings: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    error: str = "ValueError"
    message: str = "this value was not found: test it before it is used"


@dataclass(frozen=True, slots=True)
class Text:
    """String with read-only attributes. In the program it *is* a `str`, with `fields` as attributes.

    A Text that a program passes back to a primitive, or leaves in a variable, arrives as the same object that the
    host returned; derived strings (slices, f-strings) arrive as plain `str`. With `absent` it stands for a value
    that was not found.
    """

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    absent: Absent | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """Immutable object with `fields` as attributes *and* items (`doc.title`, `doc["title"]`, `doc.get("title")`).

    `str(record)` is the value of the field `str_field`. It survives slicing, sorting and concatenation of the lists
    that hold it, and arrives in the host as the same object that was returned.
    """

    fields: Mapping[str, Any]
    str_field: str = "text"


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a primitive. `depends_on` holds the ids of earlier calls whose results its arguments depend on."""

    id: int  # in order of dispatch, which may differ from program order, the order of `Outcome.calls`
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    line: int  # 1-based line of the program
    depends_on: tuple[int, ...] = ()


Primitive = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program. The defaults are generous for ordinary programs."""

    own_seconds: float = 5.0  # wall time while no primitive is being served
    deadline: float | None = None  # seconds from the start, primitives included
    cpu_seconds: float = 5.0
    memory_mb: int = 256  # on top of the bare worker
    output_bytes: int = 64 * 1024
    calls: int = 100
    source_bytes: int = 64 * 1024
    nodes: int = 20_000
    depth: int = 60
    value_bytes: int = 1024 * 1024  # one value that crosses the border
    frame_bytes: int = 4 * 1024 * 1024  # one message between worker and host


@dataclass(frozen=True, slots=True)
class ProgramError:
    """Error of a program, with everything that its author needs to repair it. It never contains a path of the host."""

    type: str  # "NameError"
    message: str
    line: int | None
    source_line: str = ""
    traceback: str = ""  # the usual Python form, with only the program's own frames, file "<program>"


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that a run used.

    Attributes:
        own_seconds: Wall time, excluding time in which primitives were being served.
        seconds: Wall time of the whole run.
        cpu_seconds: CPU time of the worker.
        calls: Number of calls of primitives.
        output_bytes: Size of the printed text.
    """

    own_seconds: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    calls: int = 0
    output_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run. The same program with the same primitive results has the same outcome, apart from usage.

    Attributes:
        value: Value of the result variable.
        has_value: False if the program never set the result variable.
        variables: The program's other top-level names with values that can cross the border.
        provenance: For each name, including the result variable, the ids (in `calls`) of every call that its value
            depends on, directly or through other calls.
        items: If the value is a list whose items were tracked individually, the ids of the calls behind each item; else
            empty.
        calls: Calls in the order of a sequential run, without calls that a sequential run would not have made.
    """

    status: Status
    reason: Reason = ""
    value: Any = None
    has_value: bool = False
    variables: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    items: tuple[tuple[int, ...], ...] = ()
    output: str = ""
    error: ProgramError | None = None
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
