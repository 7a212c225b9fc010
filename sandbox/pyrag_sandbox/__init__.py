"""Sandbox for untrusted Python programs that call asynchronous functions of the host.

    async with Sandbox() as sandbox:
        outcome = await sandbox.run("final_answer = shout('hello')", {"shout": shout})

There are two walls, each sufficient on its own: a policy on the program's text (RestrictedPython) and a locked process.

Covered: no files, environment variables, network, processes or threads for the program; limits on wall time, CPU,
memory, output and calls; a crash of the interpreter ends that program only; nothing survives a program; every frame
from the worker is validated.

Not covered: side channels and timing; the text that a program puts into a primitive's arguments, so treat the services
behind primitives as reachable by the program; whether its result is true; vulnerabilities of kernel and CPU; memory
limits on macOS.

Heavy modules are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrag_sandbox.contract import (
    Absent,
    Call,
    Limits,
    Outcome,
    Primitive,
    PrimitiveError,
    ProgramError,
    Record,
    SandboxError,
    Text,
    Usage,
    WorkerLostError,
)

if TYPE_CHECKING:
    from pyrag_sandbox.arguments import bind
    from pyrag_sandbox.host.sandbox import Sandbox
    from pyrag_sandbox.worker.kernel import capabilities

__all__ = [
    "Absent",
    "Call",
    "Limits",
    "Outcome",
    "Primitive",
    "PrimitiveError",
    "ProgramError",
    "Record",
    "Sandbox",
    "SandboxError",
    "Text",
    "Usage",
    "WorkerLostError",
    "bind",
    "capabilities",
]

_LAZY = {"Sandbox": "host.sandbox", "bind": "arguments", "capabilities": "worker.kernel"}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value
