"""Estimate for a program as plain data: calls, tokens, money and seconds, per line and in total."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyrag._io.lines import lines_of
from pyrag.trace.model import Usage


@dataclass(frozen=True, slots=True)
class Range:
    """Amount with bounds: at least `low`, probably `expected`, at most `high`."""

    low: float = 0.0
    expected: float = 0.0
    high: float = 0.0

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __contains__(self, amount: float) -> bool:
        return self.low <= amount <= self.high

    def times(self, factor: float) -> Range:
        """Return the amount multiplied by a factor."""
        return Range(self.low * factor, self.expected * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class LineEstimate:
    """Estimate of the calls on one line of a program.

    Attributes:
        line: Number of the line, from 1.
        primitives: Names of the functions that the line calls.
        items: Exact number of documents or items that the line enumerates; None if it enumerates nothing.
        seconds: Duration of the line's calls if nothing else runs.
        cost: Price of the calls; None if no prices are set.
        depends_on: Lines whose results the line's calls need.
        sure: False if it depends on answers whether, or how often, the line is reached.
    """

    line: int
    source: str
    primitives: tuple[str, ...]
    calls: Range = Range()
    retrievals: Range = Range()
    tokens: Range = Range()
    seconds: Range = Range()
    cost: Range | None = None
    items: int | None = None
    depends_on: tuple[int, ...] = ()
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Happened:
    """Cost of a program's run, without its planning."""

    calls: int
    retrievals: int
    tokens: int
    seconds: float
    cost: float | None
    answer: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Program and the estimate of its cost. Making the estimate calls a model for planning only.

    Attributes:
        title: The question, or the title of a caller's own program.
        lines: Lines that call functions, in order.
        calls: Model calls of the whole program, with expected recoveries and repairs.
        seconds: Duration of the critical path.
        answers: Number of answers that the program requests, with or without a model call.
        cost: Price of the calls; None if no prices are set.
        basis: Sentences about the basis of the estimate: measured values and defaults.
        planning: Cost of planning the program, already spent.
        estimated_in: Seconds taken by the estimate.
        happened: Actual cost of running the program; None if it was not run.
        error: Reason why there is no program; empty if there is one.
    """

    title: str
    program: str = ""
    lines: tuple[LineEstimate, ...] = ()
    calls: Range = Range()
    answers: Range = Range()
    retrievals: Range = Range()
    tokens: Range = Range()
    seconds: Range = Range()
    cost: Range | None = None
    basis: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    planning: Usage = field(default_factory=Usage)
    estimated_in: float = 0.0
    happened: Happened | None = None
    error: str = ""
    exit_code: int = 0

    def as_object(self) -> dict[str, Any]:
        """Return the explanation as plain JSON data."""
        import msgspec

        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def __str__(self) -> str:
        return _text_of(self)


def _text_of(explanation: Explanation) -> str:
    """Return the program with its estimates, the totals, and their basis."""
    if explanation.error:
        return f"{explanation.title}\n✗ {explanation.error}"
    by_line = {line.line: line for line in explanation.lines}
    sources = lines_of(explanation.program)
    width = min(max((len(source) for source in sources), default=0), 72)
    rows = []
    for number, source in enumerate(sources, start=1):
        note = f"  # {_of_line(by_line[number])}" if number in by_line else ""
        rows.append(f"{number:>3}  {source.ljust(width) if note else source}{note}")
    totals = [
        ("model calls", explanation.calls, _count), ("retrievals", explanation.retrievals, _count),
        ("tokens", explanation.tokens, _count), ("money", explanation.cost, _money),
        ("seconds", explanation.seconds, _seconds),
    ]  # fmt: skip
    actual = _actual(explanation)
    shown = [
        f"{name:<12} {_range(amount, form):<28}{actual.get(name, '')}".rstrip()
        for name, amount, form in totals
        if amount is not None
    ]
    head = f"{'':<12} {'low / expected / high':<28}{'happened' if actual else ''}".rstrip()
    spent = explanation.planning
    tokens = spent.prompt_tokens + spent.completion_tokens
    planning = f"planning: {spent.model_calls} model calls and {tokens:,} tokens, already spent"
    happened = explanation.happened
    answer = [f"✗ {happened.error}" if happened.error else f"→ {happened.answer}"] if happened else []
    return "\n".join([explanation.title, "", *rows, "", head, *shown, "", planning, *explanation.basis, *answer])


def _actual(explanation: Explanation) -> dict[str, str]:
    happened = explanation.happened
    if happened is None:
        return {}
    return {
        "model calls": f"{happened.calls:,}",
        "retrievals": f"{happened.retrievals:,}",
        "tokens": f"{happened.tokens:,}",
        "seconds": _seconds(happened.seconds),
        "money": "" if happened.cost is None else _money(happened.cost),
    }


def _of_line(line: LineEstimate) -> str:
    parts = []
    if line.items is not None:
        parts.append(f"{line.items:,} items")
    if line.calls.high:
        parts.append(f"{_counted(line.calls, 'call')}, {_count(line.tokens.expected)} tokens")
    elif line.retrievals.high:
        parts.append(_counted(line.retrievals, "retrieval"))
    if line.cost is not None and line.cost.expected:
        parts.append(_money(line.cost.expected))
    if line.seconds.expected:
        parts.append(f"{_seconds(line.seconds.expected)} s")
    if line.depends_on:
        parts.append(f"after line {', '.join(map(str, line.depends_on))}")
    if not line.sure:
        parts.append("only for some answers")
    return "; ".join(parts) or "no calls"


def _counted(amount: Range, noun: str) -> str:
    shown = _range(amount, _count)
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"


def _range(amount: Range, form: Callable[[float], str]) -> str:
    shown = [form(amount.low), form(amount.expected), form(amount.high)]
    return shown[0] if len(set(shown)) == 1 else " / ".join(shown)


def _count(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 10 or amount == int(amount) else f"{amount:.1f}"


def _money(amount: float) -> str:
    return f"{amount:.4g}"


def _seconds(amount: float) -> str:
    return f"{amount:.2g}" if amount < 10 else f"{amount:,.0f}"
