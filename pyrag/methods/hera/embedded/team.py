"""HERA's agents without a language model: what the embedded reader and planner know, in the agents' roles.

The evidence selector ranks by the reader, the context validator asks whether the reader finds an answer, the reflect
agent whether an answer is of the kind asked for. None of them can be taught by a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyrag.agents.protocol import Answerer, Reading
from pyrag.embedded.planner.planner import EmbeddedDecomposer
from pyrag.embedded.question_analysis import analyse, split_aggregation
from pyrag.embedded.rewriter import EmbeddedRewriter
from pyrag.methods.hera.embedded.coach import EmbeddedCoach
from pyrag.methods.hera.embedded.orchestrator import EmbeddedOrchestrator
from pyrag.methods.hera.protocol import HeraTeam, Reflection, Selection, Validation
from pyrag.trace.model import UNKNOWN, Passage
from pyrag_helpers.dates import parse_date
from pyrag_helpers.numbers import parse_number

KEPT = 3  # passages that a selection holds at most
_READERS: dict[str, Callable[[str], object]] = {"date": parse_date, "number": parse_number}


class EvidenceReader(Answerer, Protocol):
    def evidence(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """Rate how likely each passage answers the question.

        Args:
            query: The question.
            passages: Any number.

        Returns:
            One rating in [0, 1] for each passage, in their order.
        """
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedSelector:
    reader: EvidenceReader

    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Keep the `KEPT` passages that the reader rates highest, the earlier of equal ones.

        Args: those of `Selector.select`.
        """
        likely = self.reader.evidence(query, passages)
        best = sorted(range(len(passages)), key=lambda place: (-likely[place], place))[:KEPT]
        said = ", ".join(f"[{place + 1}] {likely[place]:.2f}" for place in best)
        return Selection(tuple(best), f"likely to hold the answer: {said}")


@dataclass(frozen=True, slots=True)
class EmbeddedValidator:
    reader: EvidenceReader

    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation:
        """Accept passages in which the reader finds an answer; else name the kind of answer that is missing.

        Args: those of `Validator.validate`.
        """
        found = await self.reader.answer(query, passages)
        return Validation(found.known, "" if found.known else analyse(query).kind, found.rationale)


class EmbeddedReflector:
    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Accept an answer of the kind that the question asks for: yes or no, a date, a number.

        Args: those of `Reflector.reflect`.
        """
        if answer == UNKNOWN:
            return Reflection(False, "there is no answer yet")
        kind = analyse(query).kind
        if kind == "yesno" and answer.casefold() not in ("yes", "no"):
            return Reflection(False, "the question asks for yes or no")
        try:
            _READERS.get(kind, str)(answer)
        except ValueError:
            return Reflection(False, f"the question asks for a {kind}, and {answer!r} holds none")
        return Reflection(True)


@dataclass(frozen=True, slots=True)
class EmbeddedConcluder:
    """From facts alone; from passages where facts are lacking, or could not be computed with."""

    reader: EvidenceReader

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Answer from facts, or from passages by the question without its facts. Args: those of `Answerer.answer`."""
        _, question = split_aggregation(query)
        return await self.reader.answer(query if passages is None else question, passages)


def embedded_team(reader: EvidenceReader) -> HeraTeam:
    return HeraTeam(
        orchestrator=EmbeddedOrchestrator(),
        decomposer=EmbeddedDecomposer(),
        answerer=reader,
        rewriter=EmbeddedRewriter(),
        selector=EmbeddedSelector(reader),
        validator=EmbeddedValidator(reader),
        reflector=EmbeddedReflector(),
        concluder=EmbeddedConcluder(reader),
        coach=EmbeddedCoach(),
    )
