"""The embedded engine: agents that need no server and no download.

A rule-based semantic parser writes the programs; a small trained network that comes with the package picks the short
answers, beside patterns of known relations (`lexical=True`: the patterns and word overlap alone). It is the default,
deterministic on one machine, good for trying pyrag out and for small corpora; a language model reads better.
"""

from __future__ import annotations

from pathlib import Path

from pyrag.agents.protocol import Agents
from pyrag.errors import ConfigError


def embedded_agents(name: str = "embedded", *, lexical: bool = False, folder: str = "") -> Agents:
    """`folder` holds a reader of one's own, as `make reader` and `pyrag train` write it. Raises `ConfigError`."""
    from pyrag.embedded.coach import EmbeddedCoach
    from pyrag.embedded.goals import EmbeddedGoalPlanner
    from pyrag.embedded.neural import NeuralAnswerer
    from pyrag.embedded.neural_model import NETWORK
    from pyrag.embedded.planner import EmbeddedDecomposer, EmbeddedPlanner
    from pyrag.embedded.reader import EmbeddedAnswerer
    from pyrag.embedded.rewriter import EmbeddedRewriter
    from pyrag.embedded.team import embedded_team

    if folder and not (Path(folder) / NETWORK).is_file():
        raise ConfigError(f"there is no {NETWORK} in {folder}: name a folder that make reader or pyrag train wrote")
    neural = NeuralAnswerer(Path(folder)) if folder else NeuralAnswerer()
    answerer = EmbeddedAnswerer() if lexical else neural
    return Agents(
        name,
        EmbeddedDecomposer(),
        EmbeddedPlanner(),
        answerer,
        goal_planner=EmbeddedGoalPlanner(),
        rewriter=EmbeddedRewriter(),
        team=embedded_team(answerer),
        coach=EmbeddedCoach(),
    )
