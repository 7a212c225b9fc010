"""The embedded engine: agents that need no server and no download.

A rule-based semantic parser writes the programs; a small trained network that comes with the package picks the short
answers, beside patterns of known relations. It is the default, deterministic on one machine, good for trying pyrag out
and for small corpora; a language model reads better.
"""

from __future__ import annotations

from pathlib import Path

from pyrag.agents.protocol import Agents, RoleEngines
from pyrag.errors import ConfigError


def embedded_agents(name: str = "embedded", *, folder: str = "", least: float | None = None) -> Agents:
    """Return the agents of the embedded engine.

    Args:
        name: The engine as traces and reports call it.
        folder: Folder of another reader, as `make reader` and `pyrag train` write it; empty for the bundled one.
        least: Minimum evidence for an answer, from 0 to 1, if it is below the reader's own threshold.

    Raises:
        ConfigError: The folder holds no reader, or a package is missing.
    """
    from pyrag._io.packages import NETWORKS, require_packages
    from pyrag.agents.goals.rules import RuleEngine
    from pyrag.embedded.follow_up import EmbeddedFollowUp
    from pyrag.embedded.planner.planner import EmbeddedDecomposer, EmbeddedPlanner
    from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
    from pyrag.embedded.reader.neural.network import NETWORK
    from pyrag.embedded.rewriter import EmbeddedRewriter
    from pyrag.embedded.rules import EmbeddedRules

    require_packages("the embedded engine", NETWORKS, instead="name a model with --llm")
    if folder == "lexical" and not Path(folder).is_dir():
        raise ConfigError("there is no engine embedded:lexical any more: use embedded, which holds the same patterns")
    if folder and not (Path(folder) / NETWORK).is_file():
        raise ConfigError(f"there is no {NETWORK} in {folder}: name a folder that make reader or pyrag train wrote")
    answerer = NeuralAnswerer(Path(folder), min_evidence=least) if folder else NeuralAnswerer(min_evidence=least)
    engine = RuleEngine(answerer, EmbeddedDecomposer(), EmbeddedRewriter(), EmbeddedRules())
    return Agents(
        name,
        engine.decomposer,
        EmbeddedPlanner(),
        answerer,
        rewriter=engine.rewriter,
        engines=RoleEngines(engine, engine, engine, engine),
        calls_model=False,
        follow_up=EmbeddedFollowUp(),
    )
