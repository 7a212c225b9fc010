"""Registration of the embedded engine: its agents, its language, and its evidence scores."""

from __future__ import annotations

from pyrag.agents.engine import Engine
from pyrag.agents.goals.rules import EvidenceReader
from pyrag.agents.protocol import Agents, Answerer
from pyrag.embedded.rules import EmbeddedRules
from pyrag.settings import Settings

NAME = "embedded"


def open_agents(rest: str, settings: Settings) -> Agents:
    """Return the embedded engine's agents.

    Args:
        rest: Folder of another reader. Empty for the bundled reader.
        settings: Settings of the run. Only the minimum evidence is used.

    Raises:
        ConfigError: The folder holds no reader.
    """
    from pyrag.embedded import embedded_agents

    name = f"{NAME}:{rest}" if rest else NAME
    return embedded_agents(name, folder=rest, min_evidence=settings.least_evidence)


def about(rest: str) -> str:
    """Return a one-line description of the engine.

    Args:
        rest: Folder of another reader. Empty for the bundled reader.
    """
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
    """Return an answerer that turns answers with too little evidence into unknown ones.

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
