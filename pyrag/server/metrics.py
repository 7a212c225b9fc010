"""Counters of the service in Prometheus' text format."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyrag.trace.model import Trace

BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)  # seconds
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Metrics:
    """Counts since the service started. Used from its event loop alone."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by route and status
    questions: Counter[tuple[str, str]] = field(default_factory=Counter)  # by index and outcome
    spent: Counter[str] = field(default_factory=Counter)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def answered(self, index: str, trace: Trace) -> None:
        """Count a finished question.

        Args:
            index: name of the index that was asked.
            trace: its `error.kind` is the outcome, else `known` or `unknown`.
        """
        outcome = trace.error.kind if trace.error else "known" if trace.answer.known else "unknown"
        self.questions[index, outcome] += 1
        self.buckets[bisect_left(BUCKETS, trace.usage.seconds)] += 1
        self.seconds += trace.usage.seconds
        for name in ("model_calls", "retrievals", "prompt_tokens", "completion_tokens"):
            self.spent[name] += getattr(trace.usage, name)

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return everything in Prometheus' text format, with gauges whose values the caller knows."""
        lines = ["# TYPE pyrag_http_requests_total counter"]
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'pyrag_http_requests_total{{route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE pyrag_questions_total counter")
        for (index, outcome), count in sorted(self.questions.items()):
            lines.append(f'pyrag_questions_total{{index="{index}",outcome="{outcome}"}} {count}')
        for name, count in sorted(self.spent.items()):
            lines += [f"# TYPE pyrag_{name}_total counter", f"pyrag_{name}_total {count}"]
        lines += [*self._histogram(), *(f"# TYPE {name} gauge\n{name} {value:g}" for name, value in gauges.items())]
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        lines, total = ["# TYPE pyrag_question_seconds histogram"], 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.buckets, strict=True):
            total += count
            lines.append(f'pyrag_question_seconds_bucket{{le="{bound}"}} {total}')
        return [*lines, f"pyrag_question_seconds_sum {self.seconds:g}", f"pyrag_question_seconds_count {total}"]
