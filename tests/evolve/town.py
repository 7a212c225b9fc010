"""A model server whose agents can be taught, and questions that they answer only then.

comparisons   right when a conclude agent decides, which the orchestrator lets it do in one sample of a group, and
              always once experience says so
bridges       right when the answer generator is told the RULE
odd ones      right when the answer generator is told what spoils all others
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.server.conftest import ModelServer, role_in

INSIGHT = "For comparisons, let a conclude agent decide between the answers."
RULE = "Name the person who is asked for, not the town."
HARMFUL = "Always answer with the first word of the first document."
_NUMBER = re.compile(r"number (\d+)")


def question(kind: str, number: int) -> dict[str, Any]:
    texts = {
        "comparison": f"Which town is larger, East or West of number {number}?",
        "bridge": f"Who is the mayor of the town of number {number}?",
        "odd": f"What does the oddity of number {number} say?",
    }
    return {"id": f"{kind}{number}", "question": texts[kind], "answers": [answer(kind, number)], "type": kind}


def answer(kind: str, number: str | int) -> str:
    return {"comparison": f"Westville {number}", "bridge": f"Mayor Holm {number}", "odd": f"nonsense {number}"}[kind]


def write(path: Path, *asked: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in asked))
    return path


@dataclass
class Town(ModelServer):
    """`tasks` counts what was asked, by role or the coach's task; `slow` is how long a reply takes, in seconds."""

    tasks: Counter[str] = field(default_factory=Counter)
    slow: float = 0.0

    async def chat(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self.slow)
        return await super().chat(request)

    def reply(self, body: dict[str, Any]) -> str:
        system, user = (
            next(m["content"] for m in body["messages"] if m["role"] == role) for role in ("system", "user")
        )
        role = role_in(body)
        if role == "orchestrator":
            said: dict[str, Any] = _orchestrated(system, user, body.get("seed", 0))
        elif role == "coach":
            task, said = _coached(user)
            role = f"coach: {task}"
        else:
            said = _judged(_answered(role, system, user))
        self.tasks[role] += 1
        return json.dumps(said)


def _kind(text: str) -> str:
    return "comparison" if "larger" in text else "bridge" if "mayor" in text else "odd"


def _orchestrated(system: str, user: str, seed: int) -> dict[str, Any]:
    asked = user.rpartition("Question: ")[2].split("\n")[0]
    profile = {"type": "comparison" if _kind(asked) == "comparison" else "bridge", "difficulty": "easy", "asks": "name"}
    if "Before anything is planned" in system:
        return profile
    agents = [
        {"id": "docs", "agent": "retriever", "input": asked, "depends_on": []},
        {"id": "found", "agent": "answer_generator", "input": asked, "depends_on": ["docs"]},
    ]
    if _kind(asked) == "comparison" and (INSIGHT in user or seed == 2):
        agents.append({"id": "end", "agent": "conclude", "input": asked, "depends_on": ["found"]})
    return {**profile, "rationale": "", "agents": agents}


def _answered(role: str, system: str, user: str) -> str:
    found = _NUMBER.search(user.rpartition("Question: ")[2] or user) or _NUMBER.search(user)
    number = found[1] if found else "0"
    kind = _kind(user.rpartition("Question: ")[2] or user)
    if role == "conclude":
        return answer("comparison", number)
    if HARMFUL in system:
        return answer("odd", number)
    if kind == "bridge":
        return answer("bridge", number) if RULE in system else "Little Hamlet"
    return "Eastville" if kind == "comparison" else "Little Hamlet"


def _judged(text: str) -> dict[str, Any]:
    said = {"analysis": "Doc [1] says so.", "decision": "YES", "answer": text, "confidence": 0.9}
    return {**said, "documents": [1], "missing": ""}


def _coached(user: str) -> tuple[str, dict[str, Any]]:
    rule = HARMFUL if "oddity" in user.rpartition("What happened lately")[2] else RULE
    helpful = "recognise and correct" in user
    tasks: dict[str, tuple[str, dict[str, Any]]] = {
        "Several topologies": ("reflect", {"analysis": "", "insights": [INSIGHT]}),
        "A new insight": ("settle", {"operation": "KEEP", "entries": [], "insight": ""}),
        "main cause": ("blame", {"analysis": "", "agents": ["answer_generator"]}),
        "Compare what helped": ("distil", {"analysis": "", "rules": [rule], "principles": []}),
        "Write additional rules": ("vary", {"rules": [rule if helpful else "Reply in a calm tone."]}),
    }
    return next(reply for mark, reply in tasks.items() if mark in user)
