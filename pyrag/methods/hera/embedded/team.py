"""HERA's agents without a language model: the embedded reader and planner in the agents' roles.

The evidence selector ranks passages with the reader, the context validator checks whether the reader finds an answer,
and the reflect agent checks whether an answer is of the right kind. They have no prompts, so they cannot be taught.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyrag.agents.goals.rules import EvidenceReader, QuestionRules, RuleEngine
from pyrag.agents.protocol import Reading
from pyrag.methods.hera.embedded.coach import EmbeddedCoach
from pyrag.methods.hera.embedded.orchestrator import EmbeddedOrchestrator
from pyrag.methods.hera.protocol import HeraTeam, Reflection, Selection, Validation
from pyrag.trace.model import UNKNOWN, Passage
from pyrag_helpers.dates import parse_date
from pyrag_helpers.numbers import parse_number

MAX_SELECTED = 3  # maximum number of passages of a selection
_READERS: dict[str, Callable[[str], object]] = {"date": parse_date, "number": parse_number}


@dataclass(frozen=True, slots=True)
class EmbeddedSelector:
    reader: EvidenceReader

    async def select(self, query: str, passages: Sequence[Passage]) -> Selection:
        """Keep the `MAX_SELECTED` passages that the reader rates highest; on ties, the earlier one.

        Args:
            query: The question that the passages are for.
            passages: The candidates.
        """
        likely = self.reader.evidence(query, passages)
        best = sorted(range(len(passages)), key=lambda place: (-likely[place], place))[:MAX_SELECTED]
        ratings = ", ".join(f"[{place + 1}] {likely[place]:.2f}" for place in best)
        return Selection(tuple(best), f"likely to hold the answer: {ratings}")


@dataclass(frozen=True, slots=True)
class EmbeddedValidator:
    reader: EvidenceReader
    rules: QuestionRules

    async def validate(self, query: str, passages: Sequence[Passage]) -> Validation:
        """Accept passages in which the reader finds an answer; otherwise, name the kind of answer that is missing.

        Args:
            query: The question that the passages are for.
            passages: All of the evidence.
        """
        reading = await self.reader.answer(query, passages)
        return Validation(reading.known, "" if reading.known else self.rules.answer_kind(query), reading.rationale)


@dataclass(frozen=True, slots=True)
class EmbeddedReflector:
    rules: QuestionRules

    async def reflect(self, query: str, answer: str, passages: Sequence[Passage]) -> Reflection:
        """Accept an answer of the requested kind: yes or no, a date, or a number.

        Args:
            query: The question.
            answer: The answer.
            passages: Ignored.
        """
        if answer == UNKNOWN:
            return Reflection(False, "there is no answer yet")
        kind = self.rules.answer_kind(query)
        if kind == "yesno" and answer.casefold() not in ("yes", "no"):
            return Reflection(False, "the question asks for yes or no")
        try:
            _READERS.get(kind, str)(answer)
        except ValueError:
            return Reflection(False, f"the question asks for a {kind}, and {answer!r} holds none")
        return Reflection(True)


@dataclass(frozen=True, slots=True)
class EmbeddedConcluder:
    """Answerer that answers from facts, or from passages if facts are missing or cannot be used for computing."""

    reader: EvidenceReader
    rules: QuestionRules

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Answer from facts, or answer the question without its facts from passages.

        Args:
            query: Facts, and the question.
            passages: The passages; None to answer from the facts.
        """
        question = self.rules.without_facts(query)
        return await self.reader.answer(query if passages is None else question, passages)


def embedded_team(engine: RuleEngine) -> HeraTeam:
    """Return the team of an engine without a language model."""
    reader, rules = engine.answerer, engine.rules
    return HeraTeam(
        orchestrator=EmbeddedOrchestrator(rules),
        decomposer=engine.decomposer,
        answerer=reader,
        rewriter=engine.rewriter,
        selector=EmbeddedSelector(reader),
        validator=EmbeddedValidator(reader, rules),
        reflector=EmbeddedReflector(rules),
        concluder=EmbeddedConcluder(reader, rules),
        coach=EmbeddedCoach(),
    )
