"""Recipes for everything that the papers train or evolve: training rows, configuration, and folders of results."""

from __future__ import annotations

from dataclasses import dataclass

_THREE = ("hotpotqa", "2wikimultihopqa", "musique")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSet:
    """A training set that `pyrag train data` writes.

    Attributes:
        file: Name without folder and extension.
        tasks: Tasks of `pyrag train data`.
        sets: Question sets; empty if the rows only come from a run.
        run: Whether to learn from the recipe's run on training questions.
        options: Further options.
    """

    file: str
    tasks: tuple[str, ...]
    sets: tuple[str, ...] = ()
    run: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Recipe for training what a row measures.

    Attributes:
        config: Name of the packaged configuration; empty for the agent's own.
        agent: Agent to train; the first one of a curriculum.
        algorithm: Algorithm of `pyrag train`.
        rows: Training sets.
        sources: Names for `pyrag data download --split train`.
        run: Method of the run on training questions; empty for no run.
        run_sets: Question sets of that run.
        gate: Question sets and number of a curriculum's gate questions; without sets, it is not a curriculum.
        adapters: Curriculum stage that makes the adapter of each agent; empty for one adapter for all agents.
        prescored: Whether candidate plans are written first.
        after: Recipe that must be finished first.
        model: Short name of the model to train; empty for the backbone.
        tokens: Number of tokens generated or learnt from, for the estimate of hours.
    """

    config: str
    agent: str
    algorithm: str = "grpo"
    rows: tuple[RowSet, ...]
    sources: tuple[str, ...]
    run: str = ""
    run_sets: tuple[str, ...] = ("hotpotqa",)
    gate: tuple[tuple[str, ...], int] = ((), 0)
    adapters: tuple[tuple[str, str], ...] = ()
    prescored: bool = False
    after: str = ""
    model: str = ""
    tokens: float


_GOALS = RowSet(file="goals", tasks=("goals",), sets=_THREE, options=("--limit", "10000"))
_OPERA_AGENTS = (("plan", "plan"), ("answer", "answer"), ("rewrite", "rewrite"))
RECIPES = {
    "pyrag-rl": Recipe(
        config="curriculum",
        agent="answer",
        rows=(
            RowSet(file="answer", tasks=("answer", "synthesis"), sets=("nq",), run=True),
            RowSet(file="plan", tasks=("plan",), run=True),
            RowSet(file="decompose", tasks=("decompose",), run=True),
        ),
        sources=("search-r1",),
        run="pyrag",
        gate=(("hotpotqa",), 500),
        tokens=79_168 * 8 * 1_700 + 2 * 8_757 * 4 * 2 * 8_000,
    ),
    "rag-rl": Recipe(
        config="rag-rl",
        agent="answer",
        rows=(RowSet(file="rag", tasks=("rag",), sets=("nq", "hotpotqa"), options=("--depths", "5")),),
        sources=("search-r1",),
        tokens=87_925 * 8 * 1_700,
    ),
    "rag-sft": Recipe(
        config="rag-sft",
        agent="answer",
        algorithm="sft",
        rows=(RowSet(file="rag-sft", tasks=("rag",), sets=("nq", "hotpotqa"), options=("--sft", "--depths", "5")),),
        sources=("search-r1",),
        tokens=87_925 * 2 * 1_700,
    ),
    "opera-mapgrpo": Recipe(
        config="mapgrpo",
        agent="plan",
        algorithm="mapgrpo",
        rows=(_GOALS,),
        sources=_THREE,
        gate=(("musique",), 300),
        adapters=_OPERA_AGENTS,
        prescored=True,
        tokens=30_000 * 8 * (3 * 1_200 + 2 * 1_700 + 2 * 1_000),
    ),
    "opera-grpo": Recipe(
        config="opera-grpo",
        agent="plan",
        algorithm="mapgrpo",
        rows=(
            _GOALS,
            RowSet(file="analysis", tasks=("analysis",), sets=("musique",), options=("--limit", "10000")),
            RowSet(file="rewrite", tasks=("rewrite",), sets=("musique",), options=("--limit", "10000")),
        ),
        sources=_THREE,
        gate=(("musique",), 300),
        adapters=_OPERA_AGENTS,
        tokens=30_000 * 8 * (3 * 1_200 + 2 * 1_700 + 2 * 1_000),
    ),
    "opera-sft": Recipe(
        config="opera-sft",
        agent="plan",
        algorithm="sft",
        rows=(
            RowSet(file="goals-sft", tasks=("goals",), sets=("musique",), options=("--sft",)),
            RowSet(file="analysis-sft", tasks=("analysis",), sets=("musique",), options=("--sft",)),
            RowSet(file="rewrite-sft", tasks=("rewrite",), run=True, options=("--sft",)),
        ),
        sources=_THREE,
        run="opera",
        run_sets=("musique", "hotpotqa", "2wikimultihopqa"),
        gate=(("musique",), 300),
        adapters=_OPERA_AGENTS,
        tokens=20_000 * 2 * 4_000,
    ),
    **{
        f"opera-rewrite-{size}": Recipe(
            config="",
            agent="rewrite",
            algorithm="mapgrpo",
            rows=(),
            sources=_THREE,
            after="opera-mapgrpo",
            model=f"qwen2.5-{size}",
            tokens=30_000 * 8 * 2 * 1_000,
        )
        for size in ("7b", "1.5b")
    },
}

# HERA trains no weights: options of `pyrag evolve` by name.
EVOLVED: dict[str, tuple[str, ...]] = {
    "hera": (),
    "hera-no-library": ("--no-library",),
    "hera-no-prompt-evolution": ("--no-prompt-evolution",),
    "hera-no-mutation": ("--no-mutation",),
}
EVOLVE_QUESTIONS = 200
