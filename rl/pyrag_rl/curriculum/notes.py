"""Progress of a curriculum, the file that holds it, and the loss that a gate tolerates.

Left out: the stages themselves (`pyrag_rl.curriculum.stages`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from pyrag._io.files import write_json
from pyrag.errors import ConfigError
from pyrag.evaluation.runs.folder import SUMMARY
from pyrag_rl.config import TrainConfig

NOTES = "curriculum.json"
_ONE_SIDED = 1.645  # quantile of the normal distribution for an error of 5 %


@dataclass(slots=True)
class Done:
    """Progress of a stage. Scores are exact match on the gate's questions, from 0 to 1.

    `model` is set if all weights were trained, else `adapter`.
    """

    name: str
    before: float
    after: float | None = None
    adapter: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class _Notes:
    """Content of the file `NOTES`: the identity of the curriculum and its stages so far."""

    curriculum: Any
    stages: list[Done]


def check_ranks(before: TrainConfig | None, config: TrainConfig, name: str) -> None:
    """Check that a stage can go on with the adapter of the one before.

    Args:
        before: the stage before; None for the first.
        config: the stage.
        name: its name.

    Raises:
        ConfigError: both train adapters, of another rank or alpha.
    """
    if before is None or not (before.lora_rank and config.lora_rank):
        return
    ranks = [(one.lora_rank, one.lora_alpha) for one in (before, config)]
    if ranks[0] != ranks[1]:
        (rank, alpha), (own_rank, own_alpha) = ranks
        raise ConfigError(
            f"stage {name} goes on with an adapter of rank {rank} and alpha {alpha}, and has lora_rank {own_rank} and "
            f"lora_alpha {own_alpha}: give all stages of a shared adapter the same"
        )


def chance_loss(share: float, questions: int) -> float:
    """Return the loss that chance exceeds in one of twenty pairs of measurements of a model that stayed as it was.

    Args:
        share: share of right answers before, from 0 to 1.
        questions: number of questions of each measurement; 0 if unknown, which tolerates no loss.
    """
    if not questions:
        return 0.0
    smoothed = (share * questions + 1) / (questions + 2)  # a share of 0 or 1 is measured no better than others
    return _ONE_SIDED * sqrt(2 * smoothed * (1 - smoothed) / questions)


def asked_in(run: Path) -> int:
    """Return the number of questions of a run of `pyrag bench`; 0 if it has no summary."""
    path = run / SUMMARY
    return int(json.loads(path.read_bytes())["questions"]) if path.is_file() else 0


def noted(path: Path, curriculum: Any) -> list[Done]:
    """Return the stages that earlier sessions noted.

    Args:
        path: the file.
        curriculum: the identity of the curriculum.

    Raises:
        ConfigError: the notes are another curriculum's, or cannot be read.
    """
    import msgspec

    if not path.is_file():
        return []
    try:
        notes = msgspec.json.decode(path.read_bytes(), type=_Notes)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} does not hold the notes of a curriculum ({error}): put it right, or remove it"
        ) from error
    if notes.curriculum != curriculum:
        raise ConfigError(
            f"{path.parent} holds another curriculum (another model, stages or evaluation): choose another --out"
        )
    return notes.stages


def write_notes(path: Path, curriculum: Any, stages: list[Done]) -> None:
    """Write the notes, replacing the file in one step.

    Args:
        path: the file.
        curriculum: the identity of the curriculum.
        stages: its stages so far.
    """
    write_json(path, _Notes(curriculum, stages))


def percent(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.1f}"


def table(done: Sequence[Done]) -> str:
    from pyrag.evaluation.reports.writer import Table

    rows = [(one.name, percent(one.before), percent(one.after), one.adapter or one.model) for one in done]
    return str(Table(("stage", "EM before", "after", "adapter or model"), rows))
