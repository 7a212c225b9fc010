"""Counts of what a method's agents did for a question, taken from its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyrag.trace.model import UNPLANNED, Step, Trace


@dataclass(frozen=True, slots=True)
class AgentCounts:
    """Counts of one question.

    Attributes:
        requests: Number of requests by role: "plan", "analysis", "rewrite", or another role of the method.
        goals: Number of sub-questions that the method planned.
        completed: Number of sub-questions with an answer.
    """

    requests: Mapping[str, int]
    goals: int
    completed: int


def count_agents(trace: Trace) -> AgentCounts:
    """Return the counts for a method that has no counter of its own, from its programs, steps and attempts."""
    return AgentCounts(requests_of(trace), len(trace.sub_queries), len(answered_steps(trace)))


def requests_of(trace: Trace) -> Counter[str]:
    """Return the number of requests by role. Results from the memo are not requests."""
    planned = sum(program.origin != UNPLANNED for program in trace.programs)
    requests: Counter[str] = Counter(plan=planned)
    for step in _read_steps(trace):
        for attempt in step.tries:
            requests["rewrite"] += attempt.policy == "rewrite"
            requests["analysis"] += attempt.policy != "rewrite" or bool(attempt.topk)
    return requests


def answered_steps(trace: Trace) -> list[Step]:
    """Return the steps that answered from evidence."""
    return [step for step in trace.steps if step.mode == "evidence" and step.answer is not None and step.answer.known]


def _read_steps(trace: Trace) -> Iterable[Step]:
    rounds = range(len(trace.programs)) if trace.programs else {step.round for step in trace.steps}
    return (step for step in trace.steps if step.answer is not None and not step.memo and step.round in rounds)
