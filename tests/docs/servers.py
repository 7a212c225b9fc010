"""One server on loopback in place of those that the documents name: a model with a script, and a search."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pyrag.llm.clients.scripted import role_of
from pyrag.llm.protocol import Message

PROGRAMS = {
    "people live in Alpha": 'final_answer = population("Alpha") - population("Gamma")',
    "orders came in 2024": """rows = sql("SELECT count(*) AS orders FROM orders WHERE day LIKE '2024%'")
final_answer = str(rows[0]["orders"])""",
}
DEFAULT = """docs = retrieve("When was Jed Hoyer born?")
final_answer = answer("When was Jed Hoyer born?", docs)"""
GOALS = '{"goals": [{"id": 1, "goal": "When was Jed Hoyer born?", "type": "DATE", "needs": []}]}'
JUDGEMENT = (
    '{"decision": "YES", "answer": "7 December 1973", "confidence": 0.9, "analysis": "Document 1.", "missing": ""}'
)
TOPOLOGY = '{"agents": [{"id": 1, "agent": "retriever"}, {"id": 2, "agent": "answer generator", "needs": [1]}]}'
DOCUMENT = {
    "id": "1",
    "title": "Jed Hoyer",
    "text": "Jed Hoyer was born on December 7, 1973.",
    "contents": '"Jed Hoyer"',
}
MODELS = ("MODEL", "planner", "answer")


def reply_to(messages: list[dict[str, str]]) -> str:
    """Return what a good model would reply to one of the agents' prompts."""
    prompt = "\n".join(message["content"] for message in messages)
    role = role_of([Message(**message) for message in messages])
    if role == "plan" and "sub-goal" in prompt.lower():
        return GOALS
    if role in ("plan", "adaptive"):
        program = next((source for words, source in PROGRAMS.items() if words in prompt), DEFAULT)
        return f"```python\n{program}\n```"
    if role == "decompose":
        return '["When was Jed Hoyer born?"]'
    if role == "orchestrator":
        return TOPOLOGY
    return JUDGEMENT if '"decision"' in prompt else "<think>Document 1.</think>\n<answer>7 December 1973</answer> [1]"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/retrieve":
            found = [{"document": DOCUMENT, "score": 1.0}] if body.get("return_scores") else [DOCUMENT]
            self._send({"result": [found for _ in body["queries"]]})
            return
        message = {"role": "assistant", "content": reply_to(body["messages"])}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        named = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"]}
        self._send({**named, "choices": [choice], "usage": usage})

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _send(self, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving() -> Iterator[str]:
    """The server's address while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
