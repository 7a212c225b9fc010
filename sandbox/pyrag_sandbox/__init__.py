"""Run untrusted Python programs over asynchronous functions of the host. Knows nothing of what the programs are for.

    async with Sandbox() as sandbox:
        outcome = await sandbox.run("final_answer = shout('hello')", {"shout": shout})

Two walls, each enough alone: a policy on the program's text (RestrictedPython) and a locked process. SECURITY.md says
what is promised. Nothing heavy is imported until it is used.
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
