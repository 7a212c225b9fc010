"""Check of a language model's answers by the small reader.

A language model may answer from what it remembers although the passages hold no answer. The reader estimates how likely
it is that one of the passages answers the query. If the rating is below `min_evidence`, the answer counts as unknown:
the method then searches again, and the trace says why. Yes/no and either-or questions are not checked, because no span
answers them.
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
    """`Answerer` that turns answers with too little evidence into unknown ones.

    Args:
        answerer: Answerer to check.
        min_evidence: Minimum evidence of a known answer, in [0, 1].
        reader: Reader that rates the evidence.
    """

    answerer: Answerer
    min_evidence: float
    reader: NeuralAnswerer = field(default_factory=NeuralAnswerer)

    def returning(self, returns: Returns) -> CheckedAnswerer:
        """Return a checked answerer for values of this type."""
        return replace(self, answerer=typed_answerer(self.answerer, returns))

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the inner answerer's reading, or an unknown one if the passages hold too little evidence.

        Args:
            query: Question to answer.
            passages: Passages to answer from. Without passages, nothing is checked.

        Returns:
            The reading. If it was changed to unknown, its confidence is the evidence, in [0, 1].
        """
        reading = await self.answerer.answer(query, passages)
        if not (reading.known and passages) or analyse(query).kind in COMPUTED:
            return reading
        evidence = max(await asyncio.to_thread(self.reader.evidence, query, passages))
        if evidence >= self.min_evidence:
            return reading
        reason = (
            f"{NOT_BELIEVED}: {reading.text!r}; the passages' evidence is {evidence:.2f}, below {self.min_evidence:g}"
        )
        reason = f"{reason} ({reading.rationale})" if reading.rationale else reason
        return replace(
            reading, text=UNKNOWN, known=False, citations=(), rationale=reason, confidence=round(evidence, 4)
        )
