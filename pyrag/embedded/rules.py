"""The planner's rules for methods that plan by goals."""

from __future__ import annotations

from collections.abc import Iterator

from pyrag.agents.goals.rules import QuestionReading


class EmbeddedRules:
    """The planner's rules, whose modules load at their first use."""

    def readings(self, question: str) -> Iterator[QuestionReading]:
        """Yield the planner's readings of a question as goals, and finally the question as the only goal."""
        from pyrag.embedded.planner.goals import readings_of

        return readings_of(question)

    def asked_for(self, question: str) -> str:
        """Return the kind of answer that a question asks for, in one word; empty if the question does not name it."""
        from pyrag.embedded.question_analysis import asked_for

        return asked_for(question)

    def answer_kind(self, query: str) -> str:
        """Return the kind of a query's answer, such as "person", "date", "choice" or "yesno"."""
        from pyrag.embedded.question_analysis import analyse

        return analyse(query).kind

    def without_facts(self, query: str) -> str:
        """Return the question in a query of the form "Given: … Answer the question: …"."""
        from pyrag.embedded.question_analysis import split_aggregation

        return split_aggregation(query)[1]
