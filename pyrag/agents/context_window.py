"""Passages fitted to the context window of the model that reads them.

A `ContextWindow` belongs to one agent, and a wrapper puts it around each role whose prompt holds passages. If the
window's size is known, passages are trimmed in advance. If it is unknown or was misjudged, a `ContextLengthError`
causes one retry with half of the passages; a second such error is raised. The reply's `note` says which passages were
left out, and becomes a warning in the trace. Positions of passages in a reply refer to the passages that the caller
passed.
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
from pyrag.agents.typed.returns import Returns
from pyrag.errors import ContextLengthError
from pyrag.llm.context import CountTokens, about_tokens
from pyrag.trace.model import Passage

T = TypeVar("T")
SHOWN = 5  # passages that a Rewrite agent sees
DEFAULT_ROOM = 8_000
"""Tokens of passages that an answerer with an unknown window is given at once."""

_A_QUERY = 256  # tokens of a query that is not known yet
_A_PASSAGE = 8  # tokens of a passage's number and the blank lines around it
_MIN_TOKENS = 32  # minimum tokens of a cut passage; a shorter text is useless
_MARGIN = 64  # tokens of the chat template
_UNUSUAL = 4096  # tokens of prompt and reply above which the server's window is looked up
_WORD_END = re.compile(r"\s+\S*\Z")


@dataclass(frozen=True, slots=True)
class Fitted:
    """Passages that fit into a window.

    Attributes:
        positions: Original position of each passage.
        cut: Number of passages that were shortened.
        total: Number of passages before fitting.
        note: Sentence about passages that the agent was not shown; empty if it was shown everything.
    """

    passages: tuple[Passage, ...]
    positions: tuple[int, ...]
    cut: int = 0
    total: int = 0
    note: str = ""

    @property
    def whole(self) -> bool:
        return not self.cut and len(self.passages) == self.total

    def noted(self, agent: str, why: str) -> Fitted:
        """Return these passages with a note if some were cut or left out.

        Args:
            agent: Name of the agent in the note.
            why: Reason, as a clause.
        """
        cut = f", {self.cut} of them cut short," if self.cut else ""
        note = f"the {agent} agent read {len(self.passages)} of {self.total} passages{cut} because {why}"
        return self if self.whole else replace(self, note=note)

    def places(self, among: Sequence[int]) -> tuple[int, ...]:
        """Convert positions in these passages, as a reply names them, to original positions."""
        return tuple(self.positions[place] for place in among)


def fit_passages(passages: Sequence[Passage], tokens: int, count: CountTokens = about_tokens) -> Fitted:
    """Shorten passages, or leave out the lowest-ranked, until all fit into a number of tokens.

    Passages are cut to twice the median length; then the lowest-ranked are left out, and the last one is cut to fit.

    Args:
        passages: Results of one or several searches, one after the other, each best first. A rising score marks the
            beginning of another search; passages are ranked within their search.
        tokens: Maximum number of tokens of all passages together.
        count: Returns the number of tokens of a text.
    """
    lengths = [_length(passage, count) for passage in passages]
    everything = tuple(range(len(passages)))
    if sum(lengths) <= tokens:
        return Fitted(tuple(passages), everything, 0, len(passages))
    limit = int(2 * median(lengths))
    positions = list(_by_rank(passages))
    while len(positions) > 1 and sum(min(lengths[position], limit) for position in positions) > tokens:
        positions.pop()
    shown = {position: _cut(passages[position], min(limit, tokens), count) for position in positions}
    order = tuple(sorted(positions))
    fitted = tuple(shown[position] for position in order)
    return Fitted(fitted, order, sum(shown[position] is not passages[position] for position in order), len(passages))


def _length(passage: Passage, count: CountTokens) -> int:
    return count(passage.title) + count(passage.text) + _A_PASSAGE


def _by_rank(passages: Sequence[Passage]) -> list[int]:
    """Return positions ordered by rank: the first passage of each search, then the second of each, and so on."""
    searches: list[list[int]] = []
    for position, passage in enumerate(passages):
        if not searches or passage.score > passages[position - 1].score:
            searches.append([])
        searches[-1].append(position)
    return [position for rank in zip_longest(*searches) for position in rank if position is not None]


def _cut(passage: Passage, tokens: int, count: CountTokens) -> Passage:
    """Return the beginning of a passage, cut at the end of a word."""
    length = _length(passage, count)
    if length <= tokens:
        return passage
    room = max(tokens - count(passage.title) - _A_PASSAGE, _MIN_TOKENS)
    text = passage.text
    while text and count(text) > room:
        text = text[: min(len(text) * room // max(count(text), 1), len(text) - 1)]
    return replace(passage, text=_WORD_END.sub("", text) + " …")


async def reading_sections(answerer: object, passages: Sequence[Passage]) -> list[list[Passage]]:
    """Group passages, in order, into parts that an answerer can read at once.

    Args:
        answerer: The Answer agent; `DEFAULT_ROOM` tokens are assumed if its window is unknown.
        passages: Passages in reading order.

    Returns:
        At least one part. A passage that is too long is a part of its own.
    """
    while not isinstance(answerer, WindowedAnswerer) and hasattr(answerer, "answerer"):
        answerer = answerer.answerer
    window = answerer.window if isinstance(answerer, WindowedAnswerer) else ContextWindow()
    room = await window.room()
    sections: list[list[Passage]] = [[]]
    used = 0
    for passage in passages:
        length = _length(passage, window.count)
        if sections[-1] and used + length > room:
            sections.append([])
            used = 0
        sections[-1].append(passage)
        used += length
    return sections


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Limit that fits the passages of an agent's prompts into its model's window.

    Attributes:
        agent: Name of the agent in notes.
        model: Model whose window is looked up if `window` is None and a prompt is unusually long.
        window: Maximum tokens of prompt and reply together, if known.
        prompt: Returns the agent's prompt without passages and query.
        reply_tokens: Maximum tokens of a reply.
        count: Returns the number of tokens of a text.
    """

    agent: str = "Answer"
    model: Any = None
    window: int | None = None
    prompt: Callable[[], str] = str
    reply_tokens: int = 1024
    count: CountTokens = about_tokens

    async def ask(
        self, query: str, passages: Sequence[Passage], ask: Callable[[Sequence[Passage]], Awaitable[T]]
    ) -> tuple[T, Fitted]:
        """Ask an agent, and ask again with half of the passages if the server finds the prompt too long.

        Args:
            query: All text of the prompt except the passages.
            passages: Passages for the agent.
            ask: Asks the agent with the passages that fit.

        Returns:
            The reply, and the passages that the agent was shown.
        """
        fitted = await self._fitted(query, passages)
        try:
            return await ask(fitted.passages), fitted
        except ContextLengthError:
            if not fitted.passages:
                raise
            total = sum(_length(passage, self.count) for passage in fitted.passages)
            half = fit_passages(passages, total // 2, self.count)
            return await ask(half.passages), half.noted(self.agent, "the server said that the prompt was too long")

    async def room(self) -> int:
        """Return the number of tokens left for passages if the query has the usual length."""
        overhead = self.count(self.prompt())
        window = await self._window(_UNUSUAL + 1)
        if window is None:
            return DEFAULT_ROOM
        return max(window - overhead - self.reply_tokens - _MARGIN - _A_QUERY, window // 2 - overhead, _MIN_TOKENS)

    async def _fitted(self, query: str, passages: Sequence[Passage]) -> Fitted:
        overhead = self.count(self.prompt())
        around = overhead + self.count(query) + self.reply_tokens + _MARGIN
        window = await self._window(around + sum(_length(passage, self.count) for passage in passages))
        if window is None or not passages:
            return Fitted(tuple(passages), tuple(range(len(passages))), 0, len(passages))
        # If replies take more than half of a small window, passages still get half: the server may accept them.
        fitted = fit_passages(passages, max(window - around, window // 2 - overhead, _MIN_TOKENS), self.count)
        return fitted.noted(self.agent, "more would not fit into the model's window")

    async def _window(self, wanted: int) -> int | None:
        if self.window is not None or wanted <= _UNUSUAL:
            return self.window
        read_window = getattr(self.model, "context_tokens", None)
        return await read_window() if read_window else None


@dataclass(frozen=True, slots=True)
class WindowedAnswerer:
    """Answerer whose passages are fitted to its model's window.

    Attributes:
        question: The user's question, which is shown beside every query.
    """

    inner: Answerer
    window: ContextWindow = ContextWindow()
    question: str = ""  # shown beside every query

    def about(self, question: str) -> WindowedAnswerer:
        """Return this answerer for the queries of one question, if it takes the question into account."""
        about = getattr(self.inner, "about", None)
        return self if about is None else replace(self, inner=about(question), question=question)

    def returning(self, returns: Returns) -> WindowedAnswerer | None:
        """Return this answerer for values of a type; None if the inner answerer does not support this."""
        make = getattr(self.inner, "returning", None)
        if make is None:
            return None
        inner = make(returns)
        return replace(self, inner=inner, window=replace(self.window, prompt=inner.prompt))

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the answer; its citations are positions in `passages`.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        if not passages:
            return await self.inner.answer(query, passages)
        text = f"{query}\n{self.question}" if self.question else query
        reading, fitted = await self.window.ask(text, passages, partial(self.inner.answer, query))
        if not fitted.note:
            return reading
        return replace(
            reading,
            citations=fitted.places(reading.citations),
            rationale=f"{reading.rationale}\n[{fitted.note}]".strip(),
            note="; ".join(filter(None, (reading.note, fitted.note))),
        )


@dataclass(frozen=True, slots=True)
class WindowedRewriter:
    """Rewriter whose passages are fitted to its model's window."""

    inner: Rewriter
    window: ContextWindow = ContextWindow()

    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Return another search query.

        Args:
            query: Query that has no answer yet.
            tried: Queries searched for so far.
            passages: Passages that these searches returned.
            missing: Information that the passages lack.
        """

        async def ask(shown: Sequence[Passage]) -> Rewritten:
            return await self.inner.rewrite(query, tried, shown, missing)

        rewritten, fitted = await self.window.ask("\n".join([query, *tried, missing]), passages[:SHOWN], ask)
        return replace(rewritten, note="; ".join(filter(None, (rewritten.note, fitted.note))))
