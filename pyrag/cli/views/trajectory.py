"""A question's course as OPERA's paper shows it (its table 5): one block an agent's action, in plain lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from pyrag.cli.views.words import shorten
from pyrag.trace.model import Passage, Trace
from pyrag.trace.trajectory import Action, Role, actions

_ROLES: dict[Role, str] = {"plan": "Plan Agent", "analysis": "Analysis-Answer Agent", "rewrite": "Rewrite Agent"}
_SHOWN = 2  # passages of an analysis


def trajectory_view(trace: Trace) -> Group:
    done = actions(trace)
    blocks = [
        Group(Text(_title(number, action), style="bold cyan"), Padding(_lines(action, trace), (0, 0, 0, 2)))
        for number, action in enumerate(done, start=1)
    ]
    return Group(*blocks, Text(_metrics(done, trace.usage.seconds), style="dim"))


def _metrics(done: Sequence[Action], seconds: float) -> str:
    """As in the paper; its success is the share of analyses that decide YES."""
    roles = Counter(action.role for action in done)
    counts = ", ".join(f"{_ROLES[role].removesuffix(' Agent')} {roles[role]}" for role in _ROLES)
    sure = sum(action.decision == "YES" for action in done) / max(roles["analysis"], 1)
    return f"Actions: {len(done)} ({counts}) · success {100 * sure:.0f} % · {seconds:.1f} s"


def _title(number: int, action: Action) -> str:
    goal = f" · goal {action.goal.step}" if action.goal else ""
    return f"Step {number}: {_ROLES[action.role]}{goal}"


def _lines(action: Action, trace: Trace) -> Text:
    text = Text()
    for name, said in _rows(action, trace):
        text.append(f"{name:<10} ", style="dim")
        text.append(said.replace("\n", "\n" + " " * 11) + "\n")
    text.rstrip()
    return text


def _rows(action: Action, trace: Trace) -> Iterator[tuple[str, str]]:
    if action.role == "plan":
        yield "Plan", action.output.strip()
        yield from _said("Rationale", action.rationale)
        yield from _said("Outcome", "" if action.outcome == "ran" else action.outcome)
        return
    if action.role == "rewrite":
        yield "Failed", action.input
        yield from _said("Strategy", action.rationale)
        yield "Rewritten", action.output + ("" if action.outcome else " (tried before)")
        yield from _said("Keywords", ", ".join(action.keywords))
        return
    yield "Query", action.input
    for number, one in enumerate(action.evidence[:_SHOWN], start=1):
        yield "Evidence" if number == 1 else "", f"{number}. {_shown(trace.passages.get(one))}"
    yield from _said("Analysis", action.rationale)
    sure = "" if action.confidence is None else f" (confidence {action.confidence:.2f})"
    missing = f": {action.output}" if action.output else ""
    yield "Decision", f"YES → {action.output}{sure}" if action.decision == "YES" else f"NO{missing}"
    yield from _said("Resolved", action.outcome)


def _said(name: str, text: str) -> Iterator[tuple[str, str]]:
    if text:
        yield name, text


def _shown(passage: Passage | None) -> str:
    return "" if passage is None else shorten(f"{passage.title}: {passage.text}" if passage.title else passage.text)
