"""Replies of agents, written from results in the agent's own form, so that its own parser can read them.

They are used for supervised sets, and for candidates from traces, which keep an agent's decisions but not its wording.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pyrag.agents.goals.goal import Goal
from pyrag.agents.prompts import load_prompts
from pyrag.methods.opera.agents import written_goal
from pyrag.trace.model import Answer, Attempt

_THINKING = re.compile(r"\A<redacted_thinking>.*?</redacted_thinking>\n", re.DOTALL)
_SUB_QUERIES = re.compile(r"\A```json\n.*?\n```\n\n(?=```python\n)", re.DOTALL)
THINKING = ("<redacted_thinking>", "</redacted_thinking>")  # tags of the answer prompts


def answer_reply(answer: Answer, rationale: str) -> str:
    """Return an Answer agent's reply.

    Args:
        answer: The answer.
        rationale: Reasoning behind the answer, which is put on one line.
    """
    return f"{THINKING[0]}{_line(rationale)}{THINKING[1]}\n<answer>{answer.text}</answer>"


def judgement_reply(attempt: Attempt) -> str:
    """Return a judgement for an attempt that has an answer. Documents are numbered as in the attempt's prompt."""
    answer = attempt.answer
    assert answer is not None
    numbers = [place for place, key in enumerate(attempt.passages, start=1) if key in answer.citations]
    return _json(
        {
            "analysis": _line(attempt.rationale),
            "decision": "YES" if answer.known else "NO",
            "answer": answer.text if answer.known else "",
            "confidence": answer.confidence if answer.confidence is not None else float(answer.known),
            "documents": numbers,
            "missing": "" if answer.known else _line(attempt.missing),
        }
    )


def rewrite_reply(attempt: Attempt) -> str:
    return _json({"strategy": _line(attempt.strategy), "query": attempt.query, "keywords": list(attempt.keywords)})


def program_reply(source: str) -> str:
    return f"```python\n{source.strip()}\n```"


def joint_reply(source: str, sub_queries: Sequence[str]) -> str:
    """Return the Plan agent's reply in joint mode.

    Args:
        source: The program.
        sub_queries: Sub-queries of the question.
    """
    return f"```json\n{sub_queries_reply(sub_queries)}\n```\n\n{program_reply(source)}"


def fitted(reply: str, prompts: str | None) -> str:
    """Return a reply without parts that the prompts do not ask for: thinking, and sub-queries before a program.

    Args:
        reply: A reply in the form of the default prompts.
        prompts: The runtime's setting: a folder of prompts, a packaged set, or None.
    """
    asked = load_prompts(prompts)
    if THINKING[0] not in asked.render("answer.evidence.system"):
        reply = _THINKING.sub("", reply)
    return reply if "```json" in asked.render("joint.system") else _SUB_QUERIES.sub("", reply)


def sub_queries_reply(sub_queries: Sequence[str]) -> str:
    return _json({"sub_queries": list(sub_queries)})


def goals_reply(goals: Sequence[Goal], rationale: str) -> str:
    """Return an OPERA plan.

    Args:
        goals: Goals in order.
        rationale: Reasoning behind the plan, which is put on one line.
    """
    listed = [{**written_goal(goal), "search": bool(goal.search)} for goal in goals]
    return _json({"rationale": _line(rationale), "goals": listed})


def _line(text: str) -> str:
    return " ".join(text.split())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
