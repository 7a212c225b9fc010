"""Passages fitted to the window of the model that reads them, before it is asked or after it said "too long".

A `Fitting` belongs to one agent, and a wrapper puts it around each role whose prompt holds passages. Where the window
is known, passages are trimmed to it beforehand. Where it is not, or was misjudged, a `ContextLengthError` has them
trimmed to half, once; a second one passes through. What was left out is in the reply's `note`, which the trace repeats
as a warning; what a reply says of passages by position counts in those that came in.

Left out: the other agents, whose prompts hold no passages to leave out.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from statistics import median
from typing import Any, TypeVar

from pyrag.agents.protocol import Answerer, Reading, Rewriter, Rewritten
from pyrag.errors import ContextLengthError
from pyrag.llm.context import CountTokens, about_tokens
from pyrag.trace.model import Passage

T = TypeVar("T")
SHOWN = 5  # of what was found, a Rewrite agent sees this much
_A_PASSAGE = 8  # tokens of its number and the blank lines around it
_LEAST = 32  # tokens; a shorter rest of a passage says nothing
_MARGIN = 64  # tokens of the chat template
_UNUSUAL = 4096  # tokens; no server is asked for its window while a prompt with its reply is shorter
_WORD_END = re.compile(r"\s+\S*\Z")


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is left of passages; `positions` says where each of them stood. `note` says what an agent was not shown."""

    passages: tuple[Passage, ...]
    positions: tuple[int, ...]
    cut: int = 0  # how many of them are shorter than they were
    given: int = 0
    note: str = ""

    @property
    def whole(self) -> bool:
        return not self.cut and len(self.passages) == self.given

    def noted(self, agent: str, why: str) -> Fitted:
        cut = f", {self.cut} of them cut short," if self.cut else ""
        said = f"the {agent} agent read {len(self.passages)} of {self.given} passages{cut} because {why}"
        return self if self.whole else replace(self, note=said)

    def places(self, among: Sequence[int]) -> tuple[int, ...]:
        """Where those stood that a reply names by their positions among what is left."""
        return tuple(self.positions[one] for one in among)


def fit_passages(passages: Sequence[Passage], tokens: int, count: CountTokens = about_tokens) -> Fitted:
    """Passages that take at most `tokens`, in their order: long ones are cut to twice the median length, then the
    lowest-ranked are left out, and the last one that is left is cut to what fits.

    Passages of several searches stand one after the other, each best first: a score that rises begins another search,
    and ranks are taken within each.
    """
    lengths = [_length(passage, count) for passage in passages]
    everything = tuple(range(len(passages)))
    if sum(lengths) <= tokens:
        return Fitted(tuple(passages), everything, 0, len(passages))
    most = int(2 * median(lengths))
    kept = list(_by_rank(passages))
    while len(kept) > 1 and sum(min(lengths[one], most) for one in kept) > tokens:
        kept.pop()
    shown = {one: _cut(passages[one], min(most, tokens), count) for one in kept}
    order = tuple(sorted(kept))
    fitted = tuple(shown[one] for one in order)
    return Fitted(fitted, order, sum(shown[one] is not passages[one] for one in order), len(passages))


def _length(passage: Passage, count: CountTokens) -> int:
    return count(passage.title) + count(passage.text) + _A_PASSAGE


def _by_rank(passages: Sequence[Passage]) -> list[int]:
    """Positions, the first of every search before the second of any."""
    searches: list[list[int]] = []
    for position, passage in enumerate(passages):
        if not searches or passage.score > passages[position - 1].score:
            searches.append([])
        searches[-1].append(position)
    return [one for rank in zip_longest(*searches) for one in rank if one is not None]


def _cut(passage: Passage, tokens: int, count: CountTokens) -> Passage:
    """The beginning of a passage, ended at a word."""
    length = _length(passage, count)
    if length <= tokens:
        return passage
    room = max(tokens - count(passage.title) - _A_PASSAGE, _LEAST)
    text = passage.text
    while text and count(text) > room:
        text = text[: min(len(text) * room // max(count(text), 1), len(text) - 1)]
    return replace(passage, text=_WORD_END.sub("", text) + " …")


@dataclass(frozen=True, slots=True)
class Fitting:
    """Trims what one agent is shown. `window` is its model's in tokens, if known; else `model` is asked for it where a
    prompt is unusually long. `prompt` gives the agent's prompt without passages and query, `reply_tokens` is what a
    reply may take."""

    agent: str = "Answer"
    model: Any = None
    window: int | None = None
    prompt: Callable[[], str] = str
    reply_tokens: int = 1024
    count: CountTokens = about_tokens

    async def ask(
        self, query: str, passages: Sequence[Passage], ask: Callable[[Sequence[Passage]], Awaitable[T]]
    ) -> tuple[T, Fitted]:
        """The agent's reply, and the passages that it was shown beside a query and whatever else is in `query`."""
        fitted = await self._fitted(query, passages)
        try:
            return await ask(fitted.passages), fitted
        except ContextLengthError:
            if not fitted.passages:
                raise
            total = sum(_length(passage, self.count) for passage in fitted.passages)
            half = fit_passages(passages, total // 2, self.count)
            return await ask(half.passages), half.noted(self.agent, "the server said that the prompt was too long")

    async def _fitted(self, query: str, passages: Sequence[Passage]) -> Fitted:
        overhead = self.count(self.prompt())
        around = overhead + self.count(query) + self.reply_tokens + _MARGIN
        window = await self._window(around + sum(_length(passage, self.count) for passage in passages))
        if window is None or not passages:
            return Fitted(tuple(passages), tuple(range(len(passages))), 0, len(passages))
        # Where replies alone take half of a small window, passages get the other half: the server has the last word.
        fitted = fit_passages(passages, max(window - around, window // 2 - overhead, _LEAST), self.count)
        return fitted.noted(self.agent, "more would not fit into the model's window")

    async def _window(self, wanted: int) -> int | None:
        if self.window is not None or wanted <= _UNUSUAL:
            return self.window
        asked = getattr(self.model, "context_tokens", None)
        return await asked() if asked else None


@dataclass(frozen=True, slots=True)
class FittingAnswerer:
    inner: Answerer
    fitting: Fitting = Fitting()
    question: str = ""  # shown beside every query

    def about(self, question: str) -> FittingAnswerer:
        """This answerer, told which question its queries belong to, as far as it can be told."""
        tell = getattr(self.inner, "about", None)
        return self if tell is None else replace(self, inner=tell(question), question=question)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        if not passages:
            return await self.inner.answer(query, passages)
        asked = f"{query}\n{self.question}" if self.question else query
        reading, fitted = await self.fitting.ask(asked, passages, partial(self.inner.answer, query))
        if not fitted.note:
            return reading
        return replace(
            reading,
            citations=fitted.places(reading.citations),
            rationale=f"{reading.rationale}\n[{fitted.note}]".strip(),
            note=fitted.note,
        )


@dataclass(frozen=True, slots=True)
class FittingRewriter:
    inner: Rewriter
    fitting: Fitting = Fitting()

    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        async def ask(shown: Sequence[Passage]) -> Rewritten:
            return await self.inner.rewrite(query, tried, shown, missing)

        rewritten, fitted = await self.fitting.ask("\n".join([query, *tried, missing]), passages[:SHOWN], ask)
        return replace(rewritten, note=fitted.note)
