"""The embedded engine: agents that need no server and no download.

A rule-based semantic parser writes the programs; a small trained network that comes with the package picks the short
answers, beside patterns of known relations (`lexical=True`: the patterns alone). It is the default,
deterministic on one machine, good for trying pyrag out and for small corpora; a language model reads better.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrag.agents.protocol import Agents, RoleEngines
from pyrag.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EmbeddedEngine:
    """The parts from which a method makes agents without a language model; the answerer also rates passages."""

    answerer: Any


def embedded_agents(name: str = "embedded", *, lexical: bool = False, folder: str = "") -> Agents:
    """`folder` holds a reader of one's own, as `make reader` and `pyrag train` write it. Raises `ConfigError`."""
    from pyrag.embedded.planner.planner import EmbeddedDecomposer, EmbeddedPlanner
    from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
    from pyrag.embedded.reader.neural.network import NETWORK
    from pyrag.embedded.reader.reader import EmbeddedAnswerer
    from pyrag.embedded.rewriter import EmbeddedRewriter

    if folder and not (Path(folder) / NETWORK).is_file():
        raise ConfigError(f"there is no {NETWORK} in {folder}: name a folder that make reader or pyrag train wrote")
    neural = NeuralAnswerer(Path(folder)) if folder else NeuralAnswerer()
    answerer = EmbeddedAnswerer() if lexical else neural
    engine = EmbeddedEngine(answerer)
    return Agents(
        name,
        EmbeddedDecomposer(),
        EmbeddedPlanner(),
        answerer,
        rewriter=EmbeddedRewriter(),
        engines=RoleEngines(engine, engine, engine, engine),
    )
