"""Transcript of a trajectory for a coach: queries and replies of agents, short enough that many fit into a prompt.

Texts are JSON strings, so that no reply or passage can be mistaken for a line of the transcript.
"""

from __future__ import annotations

import json

from pyrag.evolve.trajectories import Trajectory
from pyrag.methods.hera.topology import PRIMITIVE_OF
from pyrag.trace.model import Step, shorten

_AGENT_OF = {primitive: agent for agent, primitive in PRIMITIVE_OF.items()}
_MAX_TEXT = 200  # characters of a text
_TITLES = 5  # number of passages whose titles are shown
_MAX_STEPS = 30


def transcript(trajectory: Trajectory) -> str:
    trace, question = trajectory.trace, trajectory.question
    steps = [step for step in trace.steps if step.primitive in _AGENT_OF]
    lines = [f"Question: {_text(question.question)}", *(_step(trajectory, step) for step in steps[:_MAX_STEPS])]
    if len(steps) > _MAX_STEPS:
        lines.append(f"… and {len(steps) - _MAX_STEPS} more")
    if trace.error:
        lines.append(f"It ended with an error: {_text(trace.error.message)}")
    right = " or ".join(map(_text, question.answers[:3])) or "that there is none"
    lines.append(f"Answer: {_text(trace.answer.text)}. The right answer: {right}.")
    lines.append(f"F1 {trajectory.f1:.2f}, {trajectory.tokens} tokens")
    return "\n".join(lines)


def _step(trajectory: Trajectory, step: Step) -> str:
    mode = (
        f" from the passages of {_titles(trajectory, step)}" if step.passages and step.primitive != "retrieve" else ""
    )
    return f"- {_AGENT_OF[step.primitive]} was asked {_text(step.query)}{mode} and said {_reply_of(trajectory, step)}"


def _reply_of(trajectory: Trajectory, step: Step) -> str:
    if step.error:
        return f"nothing, for an error: {_text(step.error)}"
    if step.answer:
        return _text(step.answer.text)
    return _text(step.output) if step.output else _titles(trajectory, step)


def _titles(trajectory: Trajectory, step: Step) -> str:
    known = trajectory.trace.passages
    titles = [_text(known[key].title or known[key].text) for key in step.passages[:_TITLES] if key in known]
    more = len(step.passages) - len(titles)
    return ", ".join(titles) + (f" and {more} more" if more else "") if step.passages else "nothing"


def _text(text: str) -> str:
    return json.dumps(shorten(text, _MAX_TEXT), ensure_ascii=False)
