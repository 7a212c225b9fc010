"""A second opinion beside a language model: its answer stands only where the small reader sees evidence.

A language model answers from passages that do not answer, out of what it remembers. The reader scores how likely one of
the passages answers the query; below `least` the answer counts as unknown, so that the recovery ladder is climbed, and
the trace says why. Questions that are decided by comparing (yes/no, either-or) are not checked: no span answers them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyrag.agents.protocol import Answerer, Reading
from pyrag.agents.typed.returns import Returns
from pyrag.agents.typed.typed_answer import typed_answerer
from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.neural.answerer import COMPUTED, NeuralAnswerer
from pyrag.trace.model import NOT_BELIEVED, UNKNOWN, Passage


@dataclass(frozen=True, slots=True)
class CheckedAnswerer:
    """An `Answerer` whose known answers need evidence of at least `least`, in [0, 1]."""

    answerer: Answerer
    least: float
    reader: NeuralAnswerer = field(default_factory=NeuralAnswerer)

    def returning(self, returns: Returns) -> CheckedAnswerer:
        """Return this answerer for values of a type."""
        return replace(self, answerer=typed_answerer(self.answerer, returns))

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the inner answerer's reading, as unknown where the passages' evidence is below `least`.

        Args:
            query: What is asked.
            passages: The evidence; without any, nothing is checked.

        Returns:
            The reading; one that is not believed has the evidence, in [0, 1], as its confidence.
        """
        reading = await self.answerer.answer(query, passages)
        if not (reading.known and passages) or analyse(query).kind in COMPUTED:
            return reading
        found = max(await asyncio.to_thread(self.reader.evidence, query, passages))
        if found >= self.least:
            return reading
        why = f"{NOT_BELIEVED}: {reading.text!r}; the passages' evidence is {found:.2f}, below {self.least:g}"
        why = f"{why} ({reading.rationale})" if reading.rationale else why
        return replace(reading, text=UNKNOWN, known=False, citations=(), rationale=why, confidence=round(found, 4))
