"""Protocols of rules that read questions. Engines without a language model offer them to methods that plan by goals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pyrag.agents.goals.goal import Goal
from pyrag.agents.protocol import Answerer, Decomposer, Rewriter
from pyrag.trace.model import Passage

# How a question uses what is looked up: one chain of look-ups, a comparison of values, what two values or periods have
# in common, a number of years between dates, evidence on several names, or the whole question in one look-up.
Shape = Literal["chain", "comparison", "shared", "period", "difference", "gathering", "whole"]


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """Reading of a question as sub-goals.

    Attributes:
        goals: Goals in order; the last one gives the answer.
        shape: How the values that the goals look up are used.
        note: Reason why the reading is a fallback; empty if it is not.
        doubt: Whether the note casts doubt on the answer.
    """

    goals: tuple[Goal, ...]
    shape: Shape
    note: str = ""
    doubt: bool = False


class QuestionRules(Protocol):
    """Rules that read questions without a language model."""

    def readings(self, question: str) -> Iterator[QuestionReading]:
        """Yield the readings of a question: the best one, other readings, and finally the question as the only goal."""
        ...

    def asked_for(self, question: str) -> str:
        """Return the kind of answer that a question asks for, in one word; empty if the question does not show it."""
        ...

    def answer_kind(self, query: str) -> str:
        """Return the class of a query's answer: "yesno", "date", "number", "person" and the like."""
        ...

    def without_facts(self, query: str) -> str:
        """Return only the question of a query that also holds the facts to answer from."""
        ...


class EvidenceReader(Answerer, Protocol):
    """Answerer that also rates passages."""

    def evidence(self, query: str, passages: Sequence[Passage]) -> list[float]:
        """Return how likely each passage is to answer a query.

        Args:
            query: The query.
            passages: Any number of passages.

        Returns:
            One rating in [0, 1] per passage, in their order.
        """
        ...


@dataclass(frozen=True, slots=True)
class RuleEngine:
    """Parts from which a method makes agents without a language model."""

    answerer: EvidenceReader
    decomposer: Decomposer
    rewriter: Rewriter
    rules: QuestionRules
