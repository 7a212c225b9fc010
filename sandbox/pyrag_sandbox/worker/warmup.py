"""Warm-up of the zygote before it forks: a worker's whole task over a real connection, with the result discarded.

What is forked then has its caches warm, and the code of all that it does is specialised.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any, NoReturn

from pyrag_sandbox.policy.guards import Guards
from pyrag_sandbox.wire import pack_frame
from pyrag_sandbox.worker.execution import Finished, Job, run_job
from pyrag_sandbox.worker.worker import PipeSession, Reader, job_frame, take_job, write_all

_MAX_BYTES = 64 * 1024
_PROGRAM = """
import re, math, json
docs = ask("warm", n=2)
table = {}
for name in ["a", "b"]:
    reply = ask(f"{name} {docs[0]}?")
    table[name] = table.get(name, 0) + len(reply)
    table[name] += 1
def best(rows):
    return sorted(rows, key=lambda row: rows[row])[0]
parts = [ask(part) for part in "x y".split() if part]
try:
    number = int("{}".format(best(table)))
except ValueError as problem:
    number = math.floor(0.5)
if number:
    print("no", number)
while number < 2:
    number += 1
final_answer = f"{best(table)} {re.sub('a', 'b', json.dumps(parts))}"
"""


class _WarmupSession(PipeSession):
    """A session whose host is this very process, and answers everything with the same text."""

    def __init__(self, job: Job, fd: int, reader: Reader, host: int) -> None:
        super().__init__(job, fd, reader)
        self._host = host
        self._waiting: list[int] = []

    def send_frame(self, message: dict[str, Any]) -> None:
        if message["op"] == "call":
            self._waiting.append(message["id"])
        super().send_frame(message)

    def receive_frame(self) -> dict[str, Any]:
        self.flush()
        with contextlib.suppress(BlockingIOError):
            os.read(self._host, _MAX_BYTES)
        number = self._waiting.pop(0)
        text = {"$T": [number, "warm", {"known": True}]}
        write_all(self._host, pack_frame({"op": "value", "id": number, "value": text}, _MAX_BYTES))
        return super().receive_frame()

    def finish(self, message: dict[str, Any]) -> NoReturn:
        raise Finished


def warm_up(times: int) -> None:
    """Run a program that takes the usual paths, from the job's frame to the last message."""
    for _ in range(times):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.setblocking(False)
            write_all(theirs.fileno(), job_frame(_PROGRAM, ["ask"]))
            reader = Reader(ours.fileno())
            job = take_job(reader)
            session = _WarmupSession(job, ours.fileno(), reader, theirs.fileno())
            message = run_job(job, session, Guards())
            if message["status"] != "ok":
                raise RuntimeError(f"the warm-up failed: {message['error']}")
            session.send_last(message)
