"""A scripted team for HERA: replies by agent, and topologies as an orchestrator writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrag.llm.clients.scripted import ScriptedChat, role_of
from pyrag.llm.protocol import Message
from pyrag.trace.model import Trace
from tests.methods.opera.conftest import case

__all__ = ["case"]

Say = str | Sequence[str] | Callable[[str], str]


def agent(id_: str, kind_of_agent: str, text: str = "", *depends_on: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "agent": kind_of_agent, "input": text, "depends_on": list(depends_on), **more}


def topology(type_: str, *agents: dict[str, Any], asks: str = "", difficulty: str = "medium") -> str:
    return json.dumps({"type": type_, "difficulty": difficulty, "asks": asks, "rationale": "because", "agents": agents})


def kept(*documents: int) -> str:
    return json.dumps({"analysis": "these say it", "documents": documents})


def verdict(decision: str, **more: str) -> str:
    return json.dumps({"analysis": "as read", "decision": decision, **more})


def team(replies: Mapping[str, Say]) -> ScriptedChat:
    """A model that replies by role: with a text for good, with texts in turn, or with what a function makes of what the
    agent was asked."""
    waiting = {role: iter(said) for role, said in replies.items() if not isinstance(said, str) and not callable(said)}

    def reply(messages: Sequence[Message]) -> str:
        role = role_of(messages)
        said = replies[role]
        if isinstance(said, str):
            return said
        return said(messages[-1].content) if callable(said) else next(waiting[role])

    return ScriptedChat(reply)


def done_by(trace: Trace) -> list[str]:
    """The agents' primitives of the last program, in its order."""
    return [step.primitive for step in trace.steps if step.round == len(trace.programs) - 1]
