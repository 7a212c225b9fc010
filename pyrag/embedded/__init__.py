"""The embedded engine: agents that need no server and no download.

A rule-based parser writes the programs. A small trained network, which comes with the package, and patterns of known
relations read the short answers. This is the default engine: deterministic on one machine, and good for trying pyrag
out and for small corpora. A language model gives better answers.
"""

from __future__ import annotations

from pathlib import Path

from pyrag.agents.protocol import Agents, RoleEngines
from pyrag.errors import ConfigError


def embedded_agents(name: str = "embedded", *, folder: str = "", min_evidence: float | None = None) -> Agents:
    """Return the agents of the embedded engine.

    Args:
        name: Name of the engine in traces and reports.
        folder: Folder of a reader that `make reader` or `pyrag train` wrote. Empty for the bundled reader.
        min_evidence: Minimum evidence of a known answer, in [0, 1]. Ignored unless it is below the reader's threshold.

    Raises:
        ConfigError: The folder holds no reader, or a package is missing.
    """
    from pyrag._io.packages import NETWORKS, require_packages
    from pyrag.agents.goals.rules import RuleEngine
    from pyrag.embedded.follow_up import EmbeddedFollowUp
    from pyrag.embedded.planner.planner import EmbeddedDecomposer, EmbeddedPlanner
    from pyrag.embedded.reader.neural.answerer import NeuralAnswerer
    from pyrag.embedded.reader.neural.network import MODEL_FOLDER, NETWORK
    from pyrag.embedded.rewriter import EmbeddedRewriter
    from pyrag.embedded.rules import EmbeddedRules

    require_packages("the embedded engine", NETWORKS, instead="name a model with --llm")
    if folder == "lexical" and not Path(folder).is_dir():
        raise ConfigError("there is no engine embedded:lexical any more: use embedded, which holds the same patterns")
    if folder and not (Path(folder) / NETWORK).is_file():
        raise ConfigError(f"there is no {NETWORK} in {folder}: name a folder that make reader or pyrag train wrote")
    answerer = NeuralAnswerer(Path(folder) if folder else MODEL_FOLDER, min_evidence=min_evidence)
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
