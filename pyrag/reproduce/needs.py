"""Requirements of a table, and which of them this machine lacks. The check does not use the network.

Hours are estimates, computed from counts and from assumed rates that were not measured on such a machine:

* A model call reads 1,600 tokens and writes 200, at two operations per weight and token and 35 % of 312 TFLOP/s on each
  of four A100s; half as much again is added for writing token by token.
* A search compares 21 million vectors, 13 times a second on 64 cores. This is scaled from a measurement of 17 searches
  a second on 2 cores, over 1 million vectors of half the length.
* Training takes ten operations per weight and token at the same rate; half as much again is added for rollouts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pyrag.reproduce.models import MODELS
from pyrag.reproduce.recipes import EVOLVE_QUESTIONS, EVOLVED, RECIPES
from pyrag.reproduce.tables import NEWS, OWN, WIKI, WIKI_BGE, PaperTable, TableRow

# Number of questions in each set: PyRAG's table 4, and the released files of the other papers.
COUNTS = {
    "popqa": 14_267, "hotpotqa": 7_405, "2wikimultihopqa": 12_576, "musique": 2_417, "bamboogle": 125, "nq": 3_610,
    "multihoprag": 2_556, "ambigqa": 2_002, "hover": 4_000,
}  # fmt: skip
# Model calls and searches per question: PyRAG's 3.7 plus a planning call, OPERA's table 12; the others are assumed.
_CALLS = {
    "direct": (1.0, 0.0), "cot": (1.0, 0.0), "vanilla": (1.0, 1.0), "self-ask": (5.0, 2.0), "ircot": (4.0, 3.0),
    "iter-retgen": (2.0, 2.0), "adaptive": (3.0, 2.0), "decompose-only": (3.0, 2.0), "plan-only": (3.0, 1.0),
    "pyrag": (4.7, 2.4), "search-agent": (4.0, 2.5), "opera": (6.0, 4.0), "hera": (8.0, 4.0),
}  # fmt: skip
_FLOPS = 0.35 * 312e12 * 4
_SEARCHES = {WIKI: 13.0, WIKI_BGE: 13.0, OWN: 100.0, NEWS: 100.0}  # searches per second
_DISK = {WIKI: 181.0, WIKI_BGE: 128.0, OWN: 12.0, NEWS: 1.0}  # GB: downloads and index; the last three are estimates
_MEMORY = {WIKI: 65.0, WIKI_BGE: 65.0, OWN: 8.0, NEWS: 1.0}
_TRAINING_DISK = 40.0  # GB per recipe: checkpoints, rollouts and traces


@dataclass(frozen=True, slots=True)
class TableNeeds:
    """Requirements of a table with the chosen backbones.

    Attributes:
        gpus: Number of GPUs of 80 GB.
        disk: Disk space, in gigabytes.
        memory: RAM, in gigabytes.
        models: Names on the hub.
        keys: Environment variables that hold keys of paid services.
        packages: Names of Python packages to import.
        trains: Recipes that are trained or evolved.
        measuring: Estimated hours of measuring.
        training: Estimated hours of training.
    """

    gpus: int
    disk: float
    memory: float
    models: tuple[str, ...]
    keys: tuple[str, ...]
    packages: tuple[str, ...]
    trains: tuple[str, ...]
    measuring: float
    training: float


def needs_of(table: PaperTable, backbones: Iterable[str]) -> TableNeeds:
    """Return the requirements of a table.

    Args:
        table: The table.
        backbones: Short names of its backbones.
    """
    chosen = tuple(backbones)
    names = {name for backbone in chosen for row in table.rows for name in _models(row, backbone)}
    models = sorted(MODELS[name].hub for name in names if not MODELS[name].api and MODELS[name].hub)
    recipes = tuple(dict.fromkeys(row.training for row in table.rows if row.training))
    trained = [name for name in recipes if name in RECIPES]
    keys = ["OPENAI_API_KEY"] if any(MODELS[name].api for name in names) or set(recipes) & set(EVOLVED) else []
    keys += ["PYRAG_API_KEY"] if any(RECIPES[name].prescored for name in trained) else []
    weights = sum(2 * MODELS[name].billions for name in names)
    return TableNeeds(
        gpus=8 if trained else 6,
        disk=sum(_DISK[corpus] for corpus in table.corpora) + weights + _TRAINING_DISK * len(trained) * len(chosen),
        memory=16 + max(_MEMORY[corpus] for corpus in table.corpora),
        models=tuple(models),
        keys=tuple(keys),
        packages=("vllm", "sentence_transformers", "fastapi", "uvicorn", "huggingface_hub", "pyarrow",
                  *(("verl", "yaml") if trained else ())),
        trains=recipes,
        measuring=sum(_measuring(table, row, backbone) for backbone in chosen for row in table.rows) / 3600,
        training=sum(_training(name, backbone) for backbone in chosen for name in recipes) / 3600,
    )  # fmt: skip


def _models(row: TableRow, backbone: str) -> list[str]:
    names = [row.model or backbone, row.plan.format(backbone=backbone), row.rewrite]
    recipe = RECIPES.get(row.training)
    return [name for name in [*names, recipe.model if recipe else "", backbone if row.training else ""] if name]


def _measuring(table: PaperTable, row: TableRow, backbone: str) -> float:
    if not row.method:
        return 0.0
    calls, searches = _CALLS[row.method.partition(":")[0]]
    model = MODELS[row.model or backbone]
    seconds = 0.0
    for corpus, sets in table.corpora.items():
        questions = sum(min(COUNTS[name], table.limit or COUNTS[name]) for name in sets)
        seconds += questions * (calls * 2e9 * model.billions * 1_800 * 1.5 / _FLOPS + searches / _SEARCHES[corpus])
    return seconds


def _training(name: str, backbone: str) -> float:
    if name in EVOLVED:  # four topologies per question, each with variants: calls of the orchestrator, and searches
        return EVOLVE_QUESTIONS * 4 * 3 * 4.0 / _SEARCHES[WIKI]
    recipe = RECIPES[name]
    return recipe.tokens * 10e9 * MODELS[recipe.model or backbone].billions * 1.5 / _FLOPS


def missing_here(table: PaperTable, needs: TableNeeds, folder: Path) -> list[str]:
    """Return what this machine lacks for a table, in phrases.

    Args:
        table: The table.
        needs: Requirements of the table.
        folder: Folder of the reproduction, whose disk and data are checked.
    """
    items = []
    if (gpus := gpu_count()) < needs.gpus:
        items.append(f"{needs.gpus} GPUs (nvidia-smi lists {gpus})")
    place = next((parent for parent in (folder, *folder.absolute().parents) if parent.exists()), Path("/"))
    if (free := shutil.disk_usage(place).free / 1e9) < needs.disk:
        items.append(f"{needs.disk:.0f} GB of disk ({free:.0f} GB are free at {place})")
    if (memory := os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9) < needs.memory:
        items.append(f"{needs.memory:.0f} GB of memory (there are {memory:.0f} GB)")
    if packages := [name for name in needs.packages if find_spec(name) is None]:
        items.append(f"packages {', '.join(packages)}")
    items += [f"the variable {name}" for name in needs.keys if not os.environ.get(name)]
    absent = [name for name in table.sets if not (folder / "data" / name / "questions.jsonl").is_file()]
    if absent:
        items.append(f"data in {folder}/data: {', '.join(absent)}")
    return items


def gpu_count() -> int:
    """Return the number of GPUs that nvidia-smi lists; 0 without it."""
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=False)  # noqa: S607
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return done.stdout.count("GPU ") if done.returncode == 0 else 0
