"""Progress of a curriculum, the file that stores it, and the loss that a gate tolerates.

`pyrag_rl.curriculum.stages` runs the stages.
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
class StageProgress:
    """Progress of a stage. Scores are exact match on the gate's questions, from 0 to 1.

    `model` is set if all weights were trained, and `adapter` otherwise.
    """

    name: str
    before: float
    after: float | None = None
    adapter: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class _Notes:
    """Content of the file `NOTES`: identity of the curriculum, and its stages so far."""

    curriculum: Any
    stages: list[StageProgress]


def check_ranks(before: TrainConfig | None, config: TrainConfig, name: str) -> None:
    """Check that a stage can continue with the previous stage's adapter.

    Args:
        before: Configuration of the previous stage; None for the first stage.
        config: Configuration of the stage.
        name: Name of the stage.

    Raises:
        ConfigError: Both stages train adapters, and these differ in rank or alpha.
    """
    if before is None or not (before.lora_rank and config.lora_rank):
        return
    ranks = [(stage_config.lora_rank, stage_config.lora_alpha) for stage_config in (before, config)]
    if ranks[0] != ranks[1]:
        (rank, alpha), (own_rank, own_alpha) = ranks
        raise ConfigError(
            f"stage {name} continues an adapter of rank {rank} and alpha {alpha}, and has lora_rank {own_rank} and "
            f"lora_alpha {own_alpha}: give all stages of a shared adapter the same"
        )


def chance_loss(share: float, questions: int) -> float:
    """Return the loss of accuracy between two measurements that an unchanged model exceeds in 5 % of cases.

    Args:
        share: Share of right answers in the first measurement, from 0 to 1.
        questions: Number of questions of each measurement; 0 if unknown, for which the loss is 0.
    """
    if not questions:
        return 0.0
    smoothed = (share * questions + 1) / (questions + 2)  # avoids a variance of zero for a share of 0 or 1
    return _ONE_SIDED * sqrt(2 * smoothed * (1 - smoothed) / questions)


def asked_in(run: Path) -> int:
    """Return the number of questions of a run of `pyrag bench`; 0 if it has no summary."""
    path = run / SUMMARY
    return int(json.loads(path.read_bytes())["questions"]) if path.is_file() else 0


def noted(path: Path, curriculum: Any) -> list[StageProgress]:
    """Return the stages that earlier sessions recorded.

    Args:
        path: File of the notes.
        curriculum: Identity of the curriculum.

    Raises:
        ConfigError: The notes belong to another curriculum, or cannot be read.
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


def write_notes(path: Path, curriculum: Any, stages: list[StageProgress]) -> None:
    """Write the notes, replacing the file in one step.

    Args:
        path: File of the notes.
        curriculum: Identity of the curriculum.
        stages: Stages so far.
    """
    write_json(path, _Notes(curriculum, stages))


def percent(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.1f}"


def table(done: Sequence[StageProgress]) -> str:
    from pyrag.evaluation.reports.writer import Table

    rows = [(stage.name, percent(stage.before), percent(stage.after), stage.adapter or stage.model) for stage in done]
    return str(Table(("stage", "EM before", "after", "adapter or model"), rows))
