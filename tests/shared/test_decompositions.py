"""Programs of the gold decompositions in `../shared/data`: nearly all run, and come to the gold answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pyrag_rl.data.decompositions.gold_examples import GoldRequest, gold_examples

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "decompositions"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="needs ../shared/data beside this checkout"),
]


@pytest.mark.parametrize(
    ("source", "at_least"),
    [("musique", 19), ("2wiki", 20), ("compositional-celebrities", 20), ("mquake-hard", 20), ("break-hotpot", 8)],
)
async def test_programs_of_a_source_come_to_the_answer(source: str, at_least: int) -> None:
    dropped: Counter[str] = Counter()
    request = GoldRequest(folder=FOLDER, sources=[f"{source}=20"], seed=3)
    made = [row async for rows in gold_examples(request, ["joint"], dropped) for row in rows]
    assert len(made) >= at_least
    assert len(made) + dropped.total() == 20
    assert not [reason for reason in dropped if reason.startswith("the program")]
