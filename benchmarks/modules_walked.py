"""Modules of pyrag that run for a question, a request, an update of an index or a reward, and calls between them.

    python -m benchmarks.modules_walked            # all walks, each in a process of its own
    python -m benchmarks.modules_walked ask        # one walk, with the modules by package

A walk counts the modules whose functions run, and the pairs of modules of which one calls the other. The first walk of
a process does not count, so that imports and caches play no part. What runs inside the sandbox's process is not seen.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any, Self

PACKAGES = ("pyrag", "pyrag_rl", "pyrag_sandbox", "pyrag_helpers")
QUESTION = "Who is older, Jed Hoyer or John William Henry II?"
PROGRAM = """```python
director = answer("Who directed The Seventh Seal?", retrieve("Who directed The Seventh Seal?"))
final_answer = answer(f"In which city was {director} born?", retrieve(f"In which city was {director} born?"))
```"""
KEY = "writer-0123456789"
Work = Callable[[], Awaitable[Any]]


class Watcher:
    """Modules whose functions run while it watches, and the pairs of modules that call each other."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.edges: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = _module_of(frame)
        if event != "call" or not name or not frame.f_code.co_flags & CO_OPTIMIZED or _is_import(frame):
            return  # only functions have the flag, not modules and bodies of classes
        self.modules.add(name)
        caller = _module_of(frame.f_back) if frame.f_back is not None else ""
        if caller and caller != name:
            self.edges.add((caller, name))

    def __enter__(self) -> Self:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def _module_of(frame: FrameType) -> str:
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.partition(".")[0] in PACKAGES else ""


def _is_import(frame: FrameType | None) -> bool:
    """Return True if a call is part of an import of pyrag's."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and _module_of(frame):
            return True
        frame = frame.f_back
    return False


@asynccontextmanager
async def question() -> AsyncIterator[Work]:
    """Yield the work of answering a question by `PyRAG.aask`."""
    from pyrag import PyRAG

    async with PyRAG() as rag:
        yield lambda: rag.aask(QUESTION)


@asynccontextmanager
async def ask() -> AsyncIterator[Work]:
    """Yield the work of `POST /v1/ask`."""
    from pyrag.server.config import ServerConfig

    async with _served(ServerConfig()) as post:
        yield lambda: post("/v1/ask", {"question": QUESTION})


@asynccontextmanager
async def update() -> AsyncIterator[Work]:
    """Yield the work of `POST /v1/documents`, which updates an index."""
    from pyrag.retrieval.index import update_index
    from pyrag.server.config import ServerConfig, read_keys

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notes").mkdir()
        (folder / "notes" / "mill.txt").write_text("The otter mill was built in 1872.", encoding="utf-8")
        (folder / "keys").write_text(f"{KEY} default +write\n", encoding="utf-8")
        update_index([folder / "notes"], folder / "index")
        numbers = iter(range(1_000))
        config = ServerConfig(indexes={"default": str(folder / "index")}, keys=read_keys(folder / "keys", {}))
        async with _served(config) as post:

            async def add() -> None:
                number = next(numbers)
                document = {"id": f"weir-{number}", "text": f"The heron weir number {number} was repaired."}
                await post("/v1/documents", {"documents": [document]})

            yield add


@asynccontextmanager
async def reward() -> AsyncIterator[Work]:
    """Yield the work of scoring a plan, as verl asks for it."""
    from pyrag_rl.config import load_config
    from pyrag_rl.data.rows import Document, TrainRow
    from pyrag_rl.rewards.environment import RewardEnvironment

    environment = RewardEnvironment(load_config("plan", runtime={"llm": "embedded", "retriever": None}))
    row = TrainRow(
        index=0, id="q", agent="plan", source="toy", question=QUESTION, answers=("Uppsala",), messages=(),
        sub_queries=("Who directed The Seventh Seal?", "In which city was that director born?"),
        documents=(Document(id="d", title="Bergman", text="Bergman was born in Uppsala."),),
    )  # fmt: skip
    try:
        yield lambda: environment.score(row, PROGRAM)
    finally:
        await environment.aclose()


@asynccontextmanager
async def _served(config: Any) -> AsyncIterator[Callable[[str, Any], Awaitable[None]]]:
    """Yield a function that posts to the application of a service in this process."""
    import msgspec

    from pyrag.server.app import create_app
    from pyrag.server.service import QuestionService
    from pyrag.settings import Settings

    app = create_app(QuestionService(Settings(), config))
    heads = {"host": "localhost", "content-type": "application/json", "authorization": f"Bearer {KEY}"}

    async def post(path: str, body: Any) -> None:
        arriving = [{"type": "http.request", "body": msgspec.json.encode(body), "more_body": False}]
        replies: list[Any] = []

        async def receive() -> dict[str, Any]:
            return arriving.pop() if arriving else await asyncio.Future()

        async def send(message: Any) -> None:
            replies.append(message)

        scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in heads.items()], "http_version": "1.1",
            "scheme": "http", "server": ("localhost", 80), "client": None, "root_path": "",
        }  # fmt: skip
        await app(scope, receive, send)
        if replies[0]["status"] != 200:
            raise RuntimeError(f"POST {path} was refused: {replies[1]['body']!r}")

    async with app.router.lifespan_context(app):
        yield post


WALKS: Mapping[str, Callable[[], Any]] = {"question": question, "ask": ask, "update": update, "reward": reward}


async def walk(name: str) -> Watcher:
    """Return what runs for a walk that happened once before."""
    with Watcher() as watcher:  # before any thread starts, each of which takes the profile along
        async with WALKS[name]() as work:
            await work()
            watcher.modules.clear()
            watcher.edges.clear()
            await work()
            modules, edges = set(watcher.modules), set(watcher.edges)
    watcher.modules, watcher.edges = modules, edges
    return watcher


def main(names: list[str]) -> None:
    """Print the counts of walks; for a single one, its modules too."""
    for name in names or WALKS:
        if len(names) != 1:
            subprocess.run([sys.executable, "-m", "benchmarks.modules_walked", name], check=True)
            continue
        watcher = asyncio.run(walk(name))
        print(f"{name}: {len(watcher.modules)} modules, {len(watcher.edges)} edges", flush=True)
        packages: dict[str, list[str]] = defaultdict(list)
        for module in sorted(watcher.modules):
            packages[".".join(module.split(".")[:2])].append(module)
        for package, modules in packages.items():
            print(f"  {package}: {len(modules)}")


if __name__ == "__main__":
    main(sys.argv[1:])
