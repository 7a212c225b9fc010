"""Engines whose agents are code: the object that a package registers for one, and its lookup by a spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyrag._io import plugins
from pyrag.agents.goals.rules import EvidenceReader, QuestionRules
from pyrag.agents.protocol import Agents, Answerer
from pyrag.errors import ConfigError, PyRAGError
from pyrag.settings import Settings

DEFAULT_ENGINE = "embedded"
"""Engine of the default settings. It also rates evidence and reads questions by rules for other engines."""

OTHER_LANGUAGE = "which this question does not seem to be"
"""Part of each warning about a question in another language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Engine whose agents are code, so that no language model is needed.

    A package registers it under the entry points of the group `pyrag.engines`. In the same group, an engine that is a
    chat model is a function `open(rest)`, which returns a `ChatModel`.

    Attributes:
        name: Name of the engine in specs, which are `NAME` or `NAME:REST`.
        open: Returns the agents, from the REST of the spec (may be empty) and the settings. Agents that call no
            language model have `calls_model=False`.
        about: Returns a description of the engine in a few words, from the REST of the spec.
        can_write: Whether the agents include a writer of free text, which some methods need.
        languages: Languages that the engine reads, as worded in messages; empty for all languages.
        reads: Returns False for a question in another language; None if the engine cannot detect languages.
        rules: Rules that turn questions into goals; None if the engine has none.
        open_reader: Returns a reader that rates passages; None if the engine has none.
        check_answers: Returns an answerer that gives an answer only if its evidence score reaches the limit, in [0, 1];
            None if the engine does not score evidence.
    """

    name: str
    open: Callable[[str, Settings], Agents]
    about: Callable[[str], str]
    can_write: bool = False
    languages: tuple[str, ...] = ()
    reads: Callable[[str], bool] | None = None
    rules: QuestionRules | None = None
    open_reader: Callable[[], EvidenceReader] | None = None
    check_answers: Callable[[Answerer, float], Answerer] | None = None

    def language_warning(self, question: str) -> str:
        """Return a warning about a question in a language that the engine does not read; empty for any other."""
        if self.reads is None or self.reads(question):
            return ""
        languages = " or ".join(self.languages)
        return (
            f"the {self.name} engine reads {languages} only, {OTHER_LANGUAGE}: ask in {languages}, or name a language "
            "model with --llm"
        )


def engine_of(spec: str) -> Engine | None:
    """Return the engine that a spec names; None for a chat model, a recording or an unknown name.

    Args:
        spec: Spec of an engine, `NAME` or `NAME:REST`.

    Raises:
        ConfigError: The engine's package cannot be loaded, or this copy of pyrag is not installed.
    """
    name = spec.partition(":")[0]
    if name != DEFAULT_ENGINE and name not in plugins.names("engines"):
        return None
    engine = plugins.load("engines", name)
    return engine if isinstance(engine, Engine) else None


def open_agents(engine: Engine, spec: str, settings: Settings) -> Agents:
    """Open the agents of an engine and name them after its spec.

    Args:
        engine: The engine that the spec names.
        spec: Spec of the engine.
        settings: The settings.

    Raises:
        ConfigError: The engine cannot be opened; any exception of the package's code is converted.
    """
    what = f"the engine {engine.name} of {plugins.package_of_part('engines', spec.partition(':')[0])}"
    try:
        agents = engine.open(spec.partition(":")[2], settings)
    except PyRAGError:
        raise
    except Exception as error:  # any error of the package's code
        raise ConfigError(f"{what} cannot be opened ({type(error).__name__}: {error})") from error
    if not isinstance(agents, Agents):
        raise ConfigError(f"{what} returned a {type(agents).__name__}: its open must return pyrag.extend.Agents")
    return replace(agents, name=spec)


def default_engine() -> Engine:
    """Return the engine of the default settings. Raises `ConfigError` if this copy of pyrag is not installed."""
    engine = engine_of(DEFAULT_ENGINE)
    assert engine is not None
    return engine


def default_rules() -> QuestionRules:
    """Return the rules of the default engine. Raises `ConfigError` if this copy of pyrag is not installed."""
    rules = default_engine().rules
    assert rules is not None
    return rules


def about_engine(spec: str) -> str:
    """Return the description of an engine without a language model; empty for any other engine, or if it is missing."""
    try:
        engine = engine_of(spec)
    except ConfigError:
        return ""
    return engine.about(spec.partition(":")[2]) if engine else ""


def can_write(spec: str) -> bool:
    """Return True if the engine of a spec writes free text, as every language model does."""
    engine = engine_of(spec)
    return engine is None or engine.can_write
