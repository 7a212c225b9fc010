"""Replies in the form of the papers' releases, for rows whose prompts ask for that form (prompt set `paper`)."""

from __future__ import annotations

import json
import re
from typing import Any

_PLACEHOLDER = re.compile(r"\[[^\[\]]+ from step (\d+)\]")
_JOINT = re.compile(r"\A```json\n(.*?)\n```(?=\n\n```python\n)", re.DOTALL)


def in_asked_form(reply: str, prompt: str) -> str:
    """Return a reply in the form of the releases if its prompt asks for that form.

    Args:
        reply: A reply in the form of the default prompts.
        prompt: All messages of the row, whose field names and tags show the form.

    Returns:
        The reply; unchanged if the prompt asks for the default form.
    """
    joint = _JOINT.match(reply)
    value = _object(joint[1] if joint else reply)
    if value is None:
        return reply
    if joint:
        sub_queries = _rewritten(value, prompt)
        return reply if sub_queries is None else f"```json\n{sub_queries}\n```{reply[joint.end() :]}"
    return _rewritten(value, prompt) or reply


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _rewritten(value: dict[str, Any], prompt: str) -> str | None:
    if "sub_queries" in value and '"sub_queries"' not in prompt:
        return _json(value["sub_queries"])
    if "goals" in value and "<subquestion>" in prompt:
        return _plan(value)
    if "decision" in value and '"status"' in prompt and '"decision"' not in prompt:
        known = value["decision"] == "YES"
        analysis = " ".join(dict.fromkeys(filter(None, (value["analysis"], value["missing"]))))
        return _json({"status": "yes" if known else "no", "answer": value["answer"], "analysis": analysis})
    if "strategy" in value and '"rewritten_query"' in prompt:
        form = {"rewritten_query": value["query"], "strategy": value["strategy"], "keywords": value["keywords"]}
        return _json(form)
    return None


def _plan(value: dict[str, Any]) -> str:
    questions = (_PLACEHOLDER.sub(r"[Answer\1]", goal["goal"]) for goal in value["goals"])
    listed = "\n".join(f"<subquestion>{question}</subquestion>" for question in questions)
    return f"<reasoning>\n{value['rationale']}\n</reasoning>\n<subquestions>\n{listed}\n</subquestions>"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
