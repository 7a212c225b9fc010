"""Estimate for a program from its dry run: amounts for each line, and the duration of its critical path."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyrag._io.lines import lines_of
from pyrag.agents.typed.typed_answer import RETRIES
from pyrag.episode.ledger import QuestionBudget
from pyrag.runtime.explain.control import CallSite
from pyrag.runtime.explain.dry_run import DryRun
from pyrag.runtime.explain.explanation import LineEstimate, Range
from pyrag.runtime.explain.placeholders import shape_of
from pyrag.trace.model import Step, Usage

_OFTEN = 5  # times that a part is expected to repeat at most, if answers decide how often
_DEEPER = 1.6  # size of a recovery's prompt, which holds more passages
_SIZES = Range(0.8, 1.0, 1.25)  # prompt tokens, relative to prompts with sample passages
_UNSURE_SIZES = Range(0.3, 1.0, 3.0)  # without passages of the corpus
_REPLIES = Range(0.25, 1.0, 6.0)  # reply tokens around the expected ones
_START = Range(0.0, 0.02, 0.5)  # seconds of the sandbox for a program
_PER_STEP = Range(0.0, 0.004, 0.05)
_SEARCHING = frozenset(("retrieve", "documents", "count", "open_document"))
NOTHING = Range()


@dataclass(frozen=True, slots=True)
class Rates:
    """Cost of calls, and rates of additional calls.

    Attributes:
        call: Seconds of a model call.
        search: Seconds of a search.
        plan: Seconds of a planner's call.
        recovery: Expected recoveries per answer from documents.
        max_recoveries: Maximum calls of one recovery ladder.
        max_searches: Maximum searches of one recovery ladder.
        repair: Expected repairs of the program.
        may_repair: Whether a planner repairs the program.
        plan_usage: Tokens of a repair's call.
        tokens_ratio: Number of tokens that the server counts per token that we count.
        measured_sizes: Whether passages of the corpus were measured.
        calls_model: Whether answers are model calls.
        cached: Whether replies may come from the cache.
        in_flight: Maximum number of simultaneous calls.
        parallel: Whether independent calls run in parallel.
    """

    call: Range
    search: Range
    plan: Range
    recovery: float
    max_recoveries: int
    max_searches: int
    repair: float
    may_repair: bool
    plan_usage: Usage
    budget: QuestionBudget
    tokens_ratio: float = 1.0
    measured_sizes: bool = True
    calls_model: bool = True
    cached: bool = False
    in_flight: int = 32
    parallel: bool = True


@dataclass(slots=True)
class _Amounts:
    """Amounts of some calls; `prompt` and `reply` are tokens."""

    answers: Range = NOTHING
    retrievals: Range = NOTHING
    prompt: Range = NOTHING
    reply: Range = NOTHING

    def __add__(self, other: _Amounts) -> _Amounts:
        return _Amounts(
            self.answers + other.answers, self.retrievals + other.retrievals, self.prompt + other.prompt,
            self.reply + other.reply,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProgramEstimate:
    """Amounts for a program, and for each of its lines."""

    lines: tuple[LineEstimate, ...]
    answers: Range
    calls: Range
    retrievals: Range
    tokens: Range
    seconds: Range
    cost: Range | None


@dataclass(slots=True)
class Estimator:
    """Estimate in progress.

    Attributes:
        run: The program's dry run.
        sites: Calls in the program's source.
    """

    source: str
    run: DryRun
    sites: Sequence[CallSite]
    rates: Rates
    _lines: dict[int, list[Step]] = field(default_factory=lambda: defaultdict(list))

    def estimate(self) -> ProgramEstimate:
        """Return the estimate of the whole program."""
        for step in self.run.steps:
            self._lines[step.line].append(step)
        numbers = sorted({*self._lines, *(site.line for site in self.sites)})
        amounts = {number: self._amounts(number) for number in numbers}
        total = sum(amounts.values(), _Amounts())
        seconds = self._seconds(amounts)
        total = total + self._repairs(total)
        lines = tuple(self._line(number, amounts[number]) for number in numbers)
        return ProgramEstimate(
            lines, total.answers, self._calls(total), total.retrievals, self._tokens(total), seconds, self._cost(total)
        )

    def _amounts(self, line: int) -> _Amounts:
        sites = [site for site in self.sites if site.line == line]
        steps = [step for step in self._lines.get(line, ()) if not step.memo]
        amounts = sum((self._of_steps(group) for group in _by_primitive(steps)), _Amounts())
        unreached = [site for site in sites if not self._lines.get(line)]
        return sum(map(self._of_site, unreached), amounts)

    def _of_steps(self, steps: Sequence[Step]) -> _Amounts:
        """Return the amounts for the steps of one primitive on one line."""
        site = self._site(steps[0])
        usage = sum((step.usage for step in steps), Usage())
        searches = usage.retrievals + sum(step.primitive in _SEARCHING for step in steps)
        share = len({shape_of(step.query) for step in steps}) / len(steps)  # equal queries are asked once
        answers = usage.model_calls if steps[0].primitive in ("answer", "each") else 0
        sure = site.sure and not site.repeats
        sections = max(self.run.sections.get(step.id, 1) for step in steps)
        times = Range(share if sure else 0.0, 1.0, float(sections * (_OFTEN if site.repeats else 1)))
        calls = replace(times, high=times.high * _replies(site))
        prompt, reply = self._sized(usage, calls)
        base = _Amounts(calls.times(answers), times.times(searches), prompt, reply)
        recovers = answers and self.rates.max_recoveries and any(map(_recovers, steps))
        return base + self._recoveries(answers, usage, times, _replies(site)) if recovers else base

    def _site(self, step: Step) -> CallSite:
        """Return the call in the source that led to a step."""
        place = (step.line, step.primitive)
        return next((site for site in self.sites if (site.line, site.name) == place), CallSite(*place))

    def _sized(self, usage: Usage, times: Range) -> tuple[Range, Range]:
        """Return the tokens of prompts and replies."""
        sizes = _SIZES if self.rates.measured_sizes else _UNSURE_SIZES
        prompt, reply = usage.prompt_tokens * self.rates.tokens_ratio, usage.completion_tokens
        return _product(sizes, times).times(prompt), _product(_REPLIES, times).times(reply)

    def _recoveries(self, answers: int, usage: Usage, times: Range, replies: int) -> _Amounts:
        rates = self.rates
        calls = Range(0.0, rates.recovery * answers, rates.max_recoveries * answers * times.high * replies)
        searches = Range(0.0, rates.recovery * answers, rates.max_searches * answers * times.high)
        prompt = usage.prompt_tokens * rates.tokens_ratio / max(answers, 1) * _DEEPER
        reply = usage.completion_tokens / max(answers, 1)
        return _Amounts(calls, searches, calls.times(prompt), calls.times(reply))

    def _of_site(self, site: CallSite) -> _Amounts:
        """Return the amounts for a call that the dry run did not reach."""
        if site.sure and not self.run.problem:
            return _Amounts()  # a loop over nothing
        expected = 1.0 if site.sure else 0.0
        times = Range(expected, expected, float(_OFTEN) if site.repeats else 1.0)
        if site.name == "retrieve":
            return _Amounts(retrievals=times)
        if site.name not in ("answer", "each"):
            return _Amounts()
        calls = replace(times, high=times.high * _replies(site) * (1 + self.rates.max_recoveries))
        prompt, reply = self._sized(self._usual(), calls)
        return _Amounts(calls, Range(0.0, 0.0, self.rates.max_searches * times.high), prompt, reply)

    def _usual(self) -> Usage:
        """Return the mean tokens of the answers in the dry run."""
        answers = [step.usage for step in self.run.steps if step.primitive == "answer" and not step.memo]
        if not answers:
            return Usage(1, 0, 1000, 40)
        count = len(answers)
        total = sum(answers, Usage())
        return Usage(1, 0, total.prompt_tokens // count, total.completion_tokens // count)

    def _repairs(self, total: _Amounts) -> _Amounts:
        """Return the amounts that repairs add: the planner's call, and the next program's calls."""
        rates = self.rates
        if not rates.may_repair:
            return _Amounts()
        again = Range(0.0, rates.repair, 1.0)
        part = total.answers.expected / 2
        prompt = rates.plan_usage.prompt_tokens + total.prompt.expected / 2
        reply = rates.plan_usage.completion_tokens + total.reply.expected / 2
        return _Amounts(
            again.times(1 + part), again.times(total.retrievals.expected / 2), again.times(prompt), again.times(reply)
        )

    def _line(self, number: int, amounts: _Amounts) -> LineEstimate:
        texts = lines_of(self.source)
        steps = self._lines.get(number, [])
        sites = [site for site in self.sites if site.line == number]
        by_id = {step.id: step for step in self.run.steps}
        needs = {by_id[source].line for step in steps for source in step.depends_on if source in by_id}
        items = [self.run.items[step.id] for step in steps if step.id in self.run.items]
        names = dict.fromkeys((*(site.name for site in sites), *(step.primitive for step in steps)))
        return LineEstimate(
            line=number,
            source=texts[number - 1].strip() if 0 < number <= len(texts) else "",
            primitives=tuple(names),
            calls=self._calls(amounts),
            retrievals=amounts.retrievals,
            tokens=self._tokens(amounts),
            seconds=self._time_of(amounts),
            cost=self._cost(amounts),
            items=max(items, default=None),
            depends_on=tuple(sorted(needs - {number})),
            sure=all(site.sure and not site.repeats for site in sites),
        )

    def _calls(self, amounts: _Amounts) -> Range:
        if not self.rates.calls_model:
            return NOTHING
        return self._uncached(amounts.answers)

    def _tokens(self, amounts: _Amounts) -> Range:
        return self._uncached(amounts.prompt + amounts.reply) if self.rates.calls_model else NOTHING

    def _cost(self, amounts: _Amounts) -> Range | None:
        budget = self.rates.budget
        if budget.price_in is None and budget.price_out is None:
            return None
        if not self.rates.calls_model:
            return NOTHING
        prompt, reply = (budget.price_in or 0) / 1e6, (budget.price_out or 0) / 1e6
        return self._uncached(amounts.prompt.times(prompt) + amounts.reply.times(reply))

    def _uncached(self, amount: Range) -> Range:
        return Range(0.0, amount.expected, amount.high) if self.rates.cached else amount

    def _time_of(self, amounts: _Amounts) -> Range:
        """Return the seconds of calls that only wait for a free place in the limit of simultaneous calls."""
        rates = self.rates
        return _each(
            lambda calls, searches, call, search: math.ceil(calls / rates.in_flight) * call + min(searches, 1) * search,
            amounts.answers, amounts.retrievals, rates.call, rates.search,
        )  # fmt: skip

    def _seconds(self, amounts: Mapping[int, _Amounts]) -> Range:
        """Return the seconds of the critical path, plus the program's start and its calls beyond the dry run."""
        rates = self.rates
        low, expected, high = (self._path(side) for side in ("low", "expected", "high"))
        reached = {step.line for step in self.run.steps}
        others = sum((self._time_of(item) for line, item in amounts.items() if line not in reached), NOTHING)
        count = len(self.run.steps)
        path = Range(low, expected, high) + others + _START + _PER_STEP.times(count)
        if rates.cached:
            path = Range(0.0, path.expected, path.high)
        if not rates.may_repair:
            return path
        again = rates.repair * (rates.plan.expected + path.expected / 2)
        return path + Range(0.0, again, rates.plan.expected + path.expected)

    def _path(self, side: str) -> float:
        """Return the seconds of the longest chain of steps, or of all calls if these are the bottleneck."""
        rates = self.rates
        ends: dict[int, float] = {}
        busy = 0.0
        for step in self.run.steps:
            seconds, work = self._duration(step, side)
            busy += work
            needs = ends.values() if not rates.parallel else (ends[need] for need in step.depends_on if need in ends)
            ends[step.id] = max(needs, default=0.0) + seconds
        return max(max(ends.values(), default=0.0), busy / rates.in_flight)

    def _duration(self, step: Step, side: str) -> tuple[float, float]:
        """Return the seconds of a step, and the total seconds of its calls."""
        rates = self.rates
        call, search = getattr(rates.call, side), getattr(rates.search, side)
        if step.memo or step.primitive not in ("retrieve", "answer", "each"):
            return 0.0, 0.0
        if step.primitive == "retrieve":
            return search, 0.0
        tries, searches = {
            "low": (0.0, 0.0), "expected": (rates.recovery, rates.recovery),
            "high": (rates.max_recoveries, rates.max_searches),
        }[side] if _recovers(step) and rates.max_recoveries else (0.0, 0.0)  # fmt: skip
        again = _replies(self._site(step)) if side == "high" else 1
        calls = max(step.usage.model_calls, 1) * (1 + tries) * again
        rounds = (1 + tries) * again if step.primitive == "answer" else math.ceil(calls / rates.in_flight)
        return rounds * call + (searches + min(step.usage.retrievals, 1)) * search, calls * call


def _replies(site: CallSite) -> int:
    """Return the maximum number of replies to one request of a call."""
    return 1 + RETRIES if site.typed and site.name in ("answer", "each") else 1


def _recovers(step: Step) -> bool:
    """Return True for a step whose unknown answers are recovered by further searches."""
    return step.mode == "evidence" or (step.mode == "each" and step.usage.retrievals > 0)


def _by_primitive(steps: Sequence[Step]) -> list[list[Step]]:
    groups: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        groups[step.primitive].append(step)
    return list(groups.values())


def _product(first: Range, second: Range) -> Range:
    return Range(first.low * second.low, first.expected * second.expected, first.high * second.high)


def _each(compute: object, *ranges: Range) -> Range:
    """Apply a function to the low, the expected and the high amounts."""
    assert callable(compute)
    return Range(*(compute(*(getattr(item, side) for item in ranges)) for side in ("low", "expected", "high")))
