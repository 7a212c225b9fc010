"""Rates of recoveries and repairs in earlier questions with the same engines."""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.trace.model import Trace

DEFAULT_RECOVERIES = 0.05
"""Recoveries per answer from documents, if no traces were given."""

DEFAULT_REPAIRS = 0.02
"""Repairs per program, if no traces were given."""

DEFAULT_REPLY = 40
"""Tokens of an answer's reply, if no traces were given."""

_WEIGHT = 10  # answers or programs that a default counts for


@dataclass(slots=True)
class History:
    """Counts over traces; the defaults weigh as much as ten answers and ten programs."""

    traces: int = 0
    answers: int = 0
    recoveries: int = 0
    programs: int = 0
    repairs: int = 0
    reply_tokens: int = 0
    replies: int = 0
    retrievals: int = 0
    retrieval_seconds: float = 0.0

    def add(self, trace: Trace) -> None:
        """Count a trace."""
        self.traces += 1
        self.programs += bool(trace.programs)
        self.repairs += trace.repairs
        for step in trace.steps:
            if step.answer is None or step.memo:
                continue
            self.answers += step.mode == "evidence"
            self.recoveries += max(len(step.attempts) - 1, 0)
            self.reply_tokens += step.usage.completion_tokens
            self.replies += step.usage.model_calls
        searches = trace.roles.get("retrieve")
        if searches is not None:
            self.retrievals += searches.requests
            self.retrieval_seconds += searches.seconds

    @property
    def recovery_rate(self) -> float:
        """Expected recoveries per answer from documents."""
        return (self.recoveries + _WEIGHT * DEFAULT_RECOVERIES) / (self.answers + _WEIGHT)

    @property
    def repair_rate(self) -> float:
        """Expected repairs per program."""
        return (self.repairs + _WEIGHT * DEFAULT_REPAIRS) / (self.programs + _WEIGHT)

    @property
    def reply(self) -> float:
        """Expected tokens of a reply."""
        return self.reply_tokens / self.replies if self.replies and self.reply_tokens else DEFAULT_REPLY
