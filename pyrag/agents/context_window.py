"""Passages fitted to the window of the model that reads them, before it is asked or after it said "too long".

A `ContextWindow` belongs to one agent, and a wrapper puts it around each role whose prompt holds passages. If the
window is known, passages are trimmed to it in advance. If it is unknown or was misjudged, `ContextLengthError` causes
one retry with half of the passages; a second error is raised. The reply's `note` says what was left out, and the trace
repeats it as a warning. Positions of passages in a reply count the passages that the agent was given.

Left out: agents whose prompts hold no passages.
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
_MIN_TOKENS = 32  # tokens; a shorter rest of a passage says nothing
_MARGIN = 64  # tokens of the chat template
_UNUSUAL = 4096  # tokens; no server is asked for its window while a prompt with its reply is shorter
_WORD_END = re.compile(r"\s+\S*\Z")


@dataclass(frozen=True, slots=True)
class Fitted:
    """Passages that fit into a window.

    Attributes:
        positions: the former position of each passage.
        note: a sentence about what an agent was not shown; empty if it was shown everything.
    """

    passages: tuple[Passage, ...]
    positions: tuple[int, ...]
    cut: int = 0  # how many of them are shorter than they were
    given: int = 0
    note: str = ""

    @property
    def whole(self) -> bool:
        return not self.cut and len(self.passages) == self.given

    def noted(self, agent: str, why: str) -> Fitted:
        """Return these passages with a note, if some of them were cut or left out.

        Args:
            agent: Name of the agent in the note.
            why: The reason, as a clause.
        """
        cut = f", {self.cut} of them cut short," if self.cut else ""
        said = f"the {agent} agent read {len(self.passages)} of {self.given} passages{cut} because {why}"
        return self if self.whole else replace(self, note=said)

    def places(self, among: Sequence[int]) -> tuple[int, ...]:
        """Return the former positions of passages that a reply names by their positions here."""
        return tuple(self.positions[one] for one in among)


def fit_passages(passages: Sequence[Passage], tokens: int, count: CountTokens = about_tokens) -> Fitted:
    """Cut long passages to twice the median length, leave out the lowest-ranked, and cut the last one to what fits.

    Args:
        passages: Those of several searches one after the other, each best first; a score that rises begins another
            search, and ranks are taken within each.
        tokens: Most that the passages may take together.
        count: Counts the tokens of a text.
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
    room = max(tokens - count(passage.title) - _A_PASSAGE, _MIN_TOKENS)
    text = passage.text
    while text and count(text) > room:
        text = text[: min(len(text) * room // max(count(text), 1), len(text) - 1)]
    return replace(passage, text=_WORD_END.sub("", text) + " …")


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Fits the passages of one agent's prompts into its model's window.

    Attributes:
        agent: name of the agent in notes.
        model: asked for its window if `window` is None and a prompt is unusually long.
        window: tokens of prompt and reply.
        prompt: returns the agent's prompt without passages and query.
        reply_tokens: most that a reply may take.
        count: counts the tokens of a text.
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
            query: All texts of the prompt besides the passages.
            passages: What the agent should be shown.
            ask: Asks the agent with the passages that fit.

        Returns:
            Its reply and the passages that it was shown.
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

    async def _fitted(self, query: str, passages: Sequence[Passage]) -> Fitted:
        overhead = self.count(self.prompt())
        around = overhead + self.count(query) + self.reply_tokens + _MARGIN
        window = await self._window(around + sum(_length(passage, self.count) for passage in passages))
        if window is None or not passages:
            return Fitted(tuple(passages), tuple(range(len(passages))), 0, len(passages))
        # Where replies alone take half of a small window, passages get the other half: the server has the last word.
        fitted = fit_passages(passages, max(window - around, window // 2 - overhead, _MIN_TOKENS), self.count)
        return fitted.noted(self.agent, "more would not fit into the model's window")

    async def _window(self, wanted: int) -> int | None:
        if self.window is not None or wanted <= _UNUSUAL:
            return self.window
        asked = getattr(self.model, "context_tokens", None)
        return await asked() if asked else None


@dataclass(frozen=True, slots=True)
class WindowedAnswerer:
    inner: Answerer
    window: ContextWindow = ContextWindow()
    question: str = ""  # shown beside every query

    def about(self, question: str) -> WindowedAnswerer:
        """Return this answerer for the queries of one question, if it takes the question into account."""
        tell = getattr(self.inner, "about", None)
        return self if tell is None else replace(self, inner=tell(question), question=question)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the answer; its citations are positions in `passages`. Args: those of `Answerer.answer`."""
        if not passages:
            return await self.inner.answer(query, passages)
        asked = f"{query}\n{self.question}" if self.question else query
        reading, fitted = await self.window.ask(asked, passages, partial(self.inner.answer, query))
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
    inner: Rewriter
    window: ContextWindow = ContextWindow()

    async def rewrite(self, query: str, tried: Sequence[str], passages: Sequence[Passage], missing: str) -> Rewritten:
        """Return another query. Args: those of `Rewriter.rewrite`."""

        async def ask(shown: Sequence[Passage]) -> Rewritten:
            return await self.inner.rewrite(query, tried, shown, missing)

        rewritten, fitted = await self.window.ask("\n".join([query, *tried, missing]), passages[:SHOWN], ask)
        return replace(rewritten, note="; ".join(filter(None, (rewritten.note, fitted.note))))
