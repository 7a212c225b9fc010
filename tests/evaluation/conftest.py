"""A question set of its own, a chat server that counts, and `pyrag bench` as a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ITEM = re.compile(r"What is the colour of stone (\d+)")


@dataclass
class ChatServer:
    """OpenAI-compatible; answers "colour N", a few wrongly. `asked` counts the requests of each stone."""

    delay: float = 0.0
    failing: set[int] = field(default_factory=set)
    asked: Counter[int] = field(default_factory=Counter)
    hang: tuple[int, int] | None = None  # the request of a stone, counted from 1, that gets no reply
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        stone = int(ITEM.findall(body["messages"][-1]["content"])[-1])
        self.asked[stone] += 1
        time.sleep(self.delay)
        if (stone, self.asked[stone]) == self.hang:
            self.released.wait(60)
        if stone in self.failing:
            return 400, {"error": {"message": "this stone is cursed"}}
        colour = "unknown" if stone % 7 == 0 else "grey" if stone % 5 == 0 else f"colour {stone}"
        message = {"role": "assistant", "content": f"Doc [1] says so. <answer>{colour}</answer>"}
        usage = {"prompt_tokens": 10 + stone, "completion_tokens": 2, "total_tokens": 12 + stone}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    state = ChatServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code, content = state.reply(body)
            payload = json.dumps(content).encode()
            try:
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)
            except ConnectionError:
                self.close_connection = True  # the client was killed

        def log_message(self, *args: object) -> None:
            """Silence."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A killed client resets its connections; that is what is tested."""

    server = Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield state
    state.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def stones(count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Questions and corpus."""
    numbers = range(1, count + 1)
    questions = [
        {
            "id": f"q{n}",
            "question": f"What is the colour of stone {n}?",
            "answers": [f"colour {n}"],
            "type": "odd" if n % 2 else "even",
            "hops": 1,
            "supporting": [f"p{n}"],
        }
        for n in numbers
    ]
    corpus = [{"id": f"p{n}", "title": f"Stone {n}", "text": f"Stone {n} has colour {n}."} for n in numbers]
    return questions, corpus


def write_set(folder: Path, count: int = 24, name: str = "stones") -> Path:
    """A `--data` folder with one set."""
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    for stem, rows in zip(("questions", "corpus"), stones(count), strict=True):
        (target / f"{stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from pyrag.cli.main import main; main()", "bench", *map(str, arguments)]


def environment() -> dict[str, str]:
    """Nothing of the user's settings, and the sources of this checkout."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYRAG_", "OPENAI_"))}
    paths = [str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}


def start(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command(*arguments), cwd=cwd, stdout=pipe, stderr=pipe, text=True, env=environment())


def bench(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=cwd, capture_output=True, text=True, check=False, timeout=120, env=environment()
    )


def timeless(summary: Any) -> Any:
    """A summary without what was measured in seconds."""
    if isinstance(summary, dict):
        return {key: timeless(value) for key, value in summary.items() if key != "timing"}
    return [timeless(one) for one in summary] if isinstance(summary, list) else summary
