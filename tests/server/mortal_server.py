"""A model server in a process of its own, to be killed: it plays the agents and notes every reply that it began.

    python mortal_server.py PORT LOG SECONDS [RETRY_AFTER]

Each line of LOG is one request: when it came, when its reply was handed to the connection, and a digest of what was
asked. With RETRY_AFTER it says 503 for that many seconds after it started.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
import time
from pathlib import Path

from aiohttp import web

PROGRAM = """```python
docs = retrieve("Who is Jed Hoyer?")
job = answer("Who is Jed Hoyer, number {0}?", docs)
final_answer = answer(f"Given: {{job}}. Answer the question: Who is Jed Hoyer, number {0}?")
```"""


def reply(system: str, number: str) -> str:
    if "Decompose Agent" in system:
        return f'["Who is Jed Hoyer, number {number}?"]'
    if "Plan Agent" in system:
        return PROGRAM.format(number)
    return f"<answer>an executive {number}</answer>"


def application(log: str, seconds: float, retry_after: float) -> web.Application:
    born = time.time()

    async def chat(request: web.Request) -> web.StreamResponse:
        came, body = time.time(), await request.json()
        asked = body["messages"][-1]["content"]
        if came - born < retry_after:
            _note(log, came, "refused", asked)
            wait = str(round(retry_after))
            return web.json_response({"error": "starting"}, status=503, headers={"Retry-After": wait})
        await asyncio.sleep(seconds)
        number = re.findall(r"number (\d+)", asked)[-1]
        text = reply(body["messages"][0]["content"], number)
        response = await _write(request, text, stream=bool(body.get("stream")))
        _note(log, came, "answered", body["messages"][0]["content"][:40] + asked)
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def _write(request: web.Request, text: str, *, stream: bool) -> web.StreamResponse:
    if not stream:
        response = web.json_response({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
        await response.prepare(request)
        await response.write_eof()
        return response
    streamed = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await streamed.prepare(request)
    for line in text.splitlines(keepends=True):
        await streamed.write(_event({"delta": {"content": line}}))
        await asyncio.sleep(0.01)
    await streamed.write(_event({"delta": {}, "finish_reason": "stop"}) + b"data: [DONE]\n\n")
    await streamed.write_eof()
    return streamed


def _event(choice: dict[str, object]) -> bytes:
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def _note(log: str, came: float, what: str, asked: str) -> None:
    digest = hashlib.sha256(asked.encode()).hexdigest()  # a long line could be cut in two by the kill
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(json.dumps([came, what, digest]) + "\n")


if __name__ == "__main__":
    port, log, seconds, *more = sys.argv[1:]
    web.run_app(
        application(log, float(seconds), float(more[0]) if more else 0.0),
        host="127.0.0.1",
        port=int(port),
        print=None,
        access_log=None,
        reuse_address=True,
    )
