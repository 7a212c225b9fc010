"""The embedded engine as a package registers an engine: what it is, what it reads, and what it rates."""

from __future__ import annotations

from collections.abc import Iterator

from pyrag.agents.engine import Engine
from pyrag.agents.goals.rules import EvidenceReader, QuestionReading
from pyrag.agents.protocol import Agents, Answerer
from pyrag.settings import Settings

NAME = "embedded"


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


def open_agents(rest: str, settings: Settings) -> Agents:
    """Return the agents of a spec.

    Args:
        rest: Folder of another reader; empty for the bundled one.
        settings: Settings, of which the minimum evidence is used.

    Raises:
        ConfigError: The folder holds no reader.
    """
    from pyrag.embedded import embedded_agents

    name = f"{NAME}:{rest}" if rest else NAME
    return embedded_agents(name, folder=rest, least=settings.least_evidence)


def about(rest: str) -> str:
    """Return a description of the engine for the REST of its spec."""
    reader = "reader of one's own" if rest else "small trained reader"
    return f"rules and a {reader}, no language model"


def reads(question: str) -> bool:
    """Return False if a question does not seem to be English."""
    from pyrag.embedded.language import is_english

    return is_english(question)


def open_reader() -> EvidenceReader:
    """Return the bundled reader."""
    from pyrag.embedded.reader.neural.answerer import NeuralAnswerer

    return NeuralAnswerer()


def check_answers(answerer: Answerer, limit: float) -> Answerer:
    """Return an answerer whose answers count as unknown if the reader sees too little evidence.

    Args:
        answerer: Answerer to check.
        limit: Minimum evidence of a known answer, in [0, 1].
    """
    from pyrag.embedded.evidence import CheckedAnswerer

    return CheckedAnswerer(answerer, limit)


ENGINE = Engine(
    name=NAME,
    open=open_agents,
    about=about,
    languages=("English",),
    reads=reads,
    rules=EmbeddedRules(),
    open_reader=open_reader,
    check_answers=check_answers,
)
