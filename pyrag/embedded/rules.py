"""The planner's rules, for methods that plan by goals. Their modules are imported at their first use."""

from __future__ import annotations

from collections.abc import Iterator

from pyrag.agents.goals.rules import QuestionReading


class EmbeddedRules:
    """The planner's rules, for methods that plan by goals."""

    def readings(self, question: str) -> Iterator[QuestionReading]:
        """Yield the planner's readings of a question as goals, the question as its only goal last."""
        from pyrag.embedded.planner.goals import readings_of

        return readings_of(question)

    def asked_for(self, question: str) -> str:
        """Return the kind of answer that a question asks for, in a word; empty if the question does not tell."""
        from pyrag.embedded.question_analysis import asked_for

        return asked_for(question)

    def answer_kind(self, query: str) -> str:
        """Return the class of a query's answer."""
        from pyrag.embedded.question_analysis import analyse

        return analyse(query).kind

    def without_facts(self, query: str) -> str:
        """Return the question of a query that also holds the facts to answer from."""
        from pyrag.embedded.question_analysis import split_aggregation

        return split_aggregation(query)[1]
