"""What a reader earns on rows; no torch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyrag.agents.protocol import Reading
from pyrag.trace.model import UNKNOWN, Passage
from pyrag_rl.config import TrainConfig
from pyrag_rl.data.rows import Document, TrainRow
from recipes.span_policy.evaluation import Scored, figures, gain, score

CONFIG = TrainConfig(agent="answer", model="embedded")


def row(name: str, *, enough: bool = True) -> TrainRow:
    documents = (Document(id="1", title="Mill", text=f"The mill was founded by {name}."),)
    return TrainRow(
        index=0, id=name, agent="answer", source="squad", question=f"Who is {name}?", answers=(name,), messages=(),
        documents=documents, sufficient=enough,
    )  # fmt: skip


def says_ann(question: str, passages: Sequence[Passage]) -> Reading:
    """Knows Ann wherever she is named, and nobody else."""
    known = "Ann" in passages[0].text
    return Reading("Ann Lee" if known else UNKNOWN, known)


def test_scores_and_figures() -> None:
    rows = [row("Ann Lee"), row("Bo Ray"), row("Ann Fox", enough=False), row("Cy Fox", enough=False)]
    results = score(says_ann, rows, CONFIG)
    assert [(each.reward, each.known) for each in results] == [(1.0, True), (0.0, False), (0.0, True), (1.0, False)]
    assert figures(results) == {
        "reward": 0.5, "em": 0.5, "f1": 0.5, "known_enough": 0.5, "known_short": 0.5, "rows": 4.0,
    }  # fmt: skip


def test_a_gain_is_told_with_its_interval() -> None:
    before, after = (
        [Scored(True, True, reward, reward, reward) for reward in group] for group in ([0] * 4, [1, 1, 0, 0])
    )
    found = gain(before, after)
    assert found == {"reward": 0.5, "half_interval": pytest.approx(1.96 * (1 / 3) ** 0.5 / 2)}
    with pytest.raises(ValueError, match="shorter"):
        gain(before, after[:3])
