"""Warm-up of the zygote before it forks: all of a worker's work except the system calls, with the result discarded.

Forked workers then have warm caches and specialised bytecode.
"""

from __future__ import annotations

from typing import Any, NoReturn

from pyrag_sandbox.contract import Limits
from pyrag_sandbox.helpers import Helpers
from pyrag_sandbox.policy.guards import Guards
from pyrag_sandbox.wire import HEADER, pack_frame, unpack_body
from pyrag_sandbox.worker.execution import Finished, Job, Session, run_job

_MAX_BYTES = 64 * 1024
_PROGRAM = """
import re, math, json
items = ask("warm", n=2)
table = {}
for name in ["a", "b"]:
    reply = ask(f"{name} {items[0]}?")
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


class _WarmupSession(Session):
    """Session that replies to each call with the same text."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._waiting: list[int] = []

    def send_frame(self, message: dict[str, Any]) -> None:
        pack_frame(message, _MAX_BYTES)
        if message["op"] == "call":
            self._waiting.append(message["id"])

    def flush(self) -> None:
        pass

    def receive_frame(self) -> dict[str, Any]:
        number = self._waiting.pop(0)
        text = {"$T": [number, "warm", {"known": True}]}
        return unpack_body(pack_frame({"op": "value", "id": number, "value": text}, _MAX_BYTES)[HEADER.size :])

    def finish(self, message: dict[str, Any]) -> NoReturn:
        raise Finished


def warm_up(times: int, helpers: Helpers) -> None:
    """Run a program that takes the usual paths, from its source to the last message.

    Args:
        times: Number of runs.
        helpers: Functions that programs may call.
    """
    job = Job(_PROGRAM, ("ask",), Limits())
    for _ in range(times):
        session = _WarmupSession(job)
        message = run_job(job, session, Guards(helpers))
        if message["status"] != "ok":
            raise RuntimeError(f"the warm-up failed: {message['error']}")
        session.send_frame(message)
