"""Counters of the service in Prometheus' text format."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from pyrag.trace.model import Trace

BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)  # seconds
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SPENT = ("model_calls", "cached_calls", "retrievals", "prompt_tokens", "completion_tokens", "cost")
_HELP = {
    "pyrag_requests_total": "Requests by route, method and status.",
    "pyrag_request_seconds": "Seconds from a request to the start of its reply, by route.",
    "pyrag_refusals_total": "Requests refused or failed, by the code of the error.",
    "pyrag_questions_total": "Finished questions by index and outcome: known, unknown or the kind of the error.",
    "pyrag_question_seconds": "Seconds that questions took, without their wait for a place.",
    "pyrag_wait_seconds": "Seconds that questions waited for a place.",
    "pyrag_model_calls_total": "Model calls of questions.",
    "pyrag_cached_calls_total": "Model calls answered from the cache.",
    "pyrag_retrievals_total": "Searches of questions.",
    "pyrag_prompt_tokens_total": "Tokens of prompts.",
    "pyrag_completion_tokens_total": "Tokens of replies.",
    "pyrag_cost_total": "Cost of questions in the currency of the prices.",
    "pyrag_store_errors_total": "Traces that could not be kept.",
    "pyrag_requests_in_flight": "Questions and searches that are being worked on or wait.",
    "pyrag_questions_running": "Questions that are being answered.",
    "pyrag_questions_waiting": "Questions that wait for a place.",
    "pyrag_sandbox_restarts": "Times that the sandbox's factory of workers was started again.",
}
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Histogram:
    """Counts of durations by bucket, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """Counts since the service started. To be used only in its event loop."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Labels]] = defaultdict(Counter)
        self._amounts: Counter[str] = Counter({"store_errors": 0})
        self._histograms: dict[str, dict[Labels, Histogram]] = defaultdict(lambda: defaultdict(Histogram))
        self._histograms["pyrag_question_seconds"][()] = Histogram()
        self._histograms["pyrag_wait_seconds"][()] = Histogram()

    def requested(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            route: Path of the route, with the names of its parameters.
            method: HTTP method.
            status: HTTP status of the reply.
            seconds: Time until the reply began.
        """
        self._counts["pyrag_requests_total"][("route", route), ("method", method), ("status", str(status))] += 1
        self._histograms["pyrag_request_seconds"][(("route", route),)].add(seconds)

    def refused(self, code: str) -> None:
        """Count a refusal by the code of its error."""
        self._counts["pyrag_refusals_total"][(("code", code),)] += 1

    def waited(self, seconds: float) -> None:
        """Record how long a question waited for its turn."""
        self._histograms["pyrag_wait_seconds"][()].add(seconds)

    def count(self, name: str) -> None:
        """Count an event without labels, such as `store_errors`."""
        self._amounts[name] += 1

    def answered(self, index: str, trace: Trace) -> None:
        """Count a finished question.

        Args:
            index: Name of the index.
            trace: Trace of the question. The outcome is its `error.kind`, or else `known` or `unknown`.
        """
        outcome = trace.error.kind if trace.error else "known" if trace.answer.known else "unknown"
        self._counts["pyrag_questions_total"][("index", index), ("outcome", outcome)] += 1
        self._histograms["pyrag_question_seconds"][()].add(trace.usage.seconds)
        for name in _SPENT:
            self._amounts[name] += getattr(trace.usage, name) or 0

    def text(self, gauges: Mapping[str, float], indexes: Collection[str]) -> str:
        """Return everything in Prometheus' text format.

        Args:
            gauges: Current values, by name.
            indexes: Names of the indexes to show; counters of other indexes are omitted.
        """
        lines: list[str] = []
        for name, values in sorted(self._counts.items()):
            shown = sorted(item for item in values.items() if _is_shown(item[0], indexes))
            lines += [*_head(name, "counter"), *(_line(name, labels, count) for labels, count in shown)]
        for amount, value in sorted(self._amounts.items()):
            name = f"pyrag_{amount}_total"
            lines += [*_head(name, "counter"), _line(name, (), value)]
        for name, series in sorted(self._histograms.items()):
            lines += _head(name, "histogram")
            for labels, histogram in sorted(series.items()):
                lines += _buckets(name, labels, histogram)
        for name, gauge in gauges.items():
            lines += [*_head(name, "gauge"), _line(name, (), gauge)]
        return "\n".join(lines) + "\n"


def _is_shown(labels: Labels, indexes: Collection[str]) -> bool:
    return all(value in indexes for key, value in labels if key == "index")


def _head(name: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {_HELP[name]}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value:.15g}" if shown else f"{name} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _buckets(name: str, labels: Labels, histogram: Histogram) -> Iterator[str]:
    total = 0
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), histogram.counts, strict=True):
        total += count
        yield _line(f"{name}_bucket", (*labels, ("le", bound)), total)
    yield _line(f"{name}_sum", labels, histogram.seconds)
    yield _line(f"{name}_count", labels, total)
