"""Sandboxes to run programs in, and primitives that answer at once."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrag_sandbox import Call, Limits, Outcome, Record, Sandbox, Text, bind

Runner = Callable[..., Awaitable[Outcome]]
SHORT = Limits(own_seconds=4.0, cpu_seconds=1.0)  # a busy machine may well leave a program waiting for a second


async def retrieve(call: Call) -> list[Record]:
    count = call.kwargs.get("topk", 2)
    return [Record({"title": f"t{number}", "text": f"{call.args[0]} {number}"}) for number in range(count)]


async def answer(call: Call) -> Text:
    return Text("Paris", {"confident": True, "source": {"page": 3}})


async def echo(call: Call) -> Any:
    return bind(call, ("value",), {})["value"]


PRIMITIVES = {"retrieve": retrieve, "answer": answer, "echo": echo}
BACKENDS = ["process", "policy only"]


def make_sandbox(kind: str) -> Sandbox:
    if kind == "process":
        return Sandbox(prefork=1)
    return Sandbox(require="policy", kernel=False, prefork=1)


@pytest.fixture(scope="session", autouse=True)
def sample_helpers() -> Iterator[None]:
    """Make `sample_helpers` a module that can be imported by its name, as a caller's module is."""
    sys.path.append(str(Path(__file__).parent))
    yield
    sys.path.remove(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[dict[str, Sandbox]]:
    made = {kind: make_sandbox(kind) for kind in BACKENDS}
    yield made
    for sandbox in made.values():
        sandbox.close()


def _runner(sandbox: Sandbox) -> Runner:
    async def run(source: str, primitives: Any = PRIMITIVES, **options: Any) -> Outcome:
        options.setdefault("limits", SHORT)
        options.setdefault("helpers", "sample_helpers")
        return await sandbox.run(source, primitives, **options)

    return run


@pytest.fixture
def run(sandboxes: dict[str, Sandbox]) -> Runner:
    """Run a program in the default backend, over `PRIMITIVES`."""
    return _runner(sandboxes["process"])


@pytest.fixture(params=BACKENDS)
def run_anywhere(request: pytest.FixtureRequest, sandboxes: dict[str, Sandbox]) -> Runner:
    """Run a program in each backend."""
    return _runner(sandboxes[request.param])
