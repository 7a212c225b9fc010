"""Rows of the span policy, and its packaged config; no torch."""

from __future__ import annotations

import random

from recipes.reader.layout import GoldQuestion, Text
from recipes.reader.search import Bm25
from recipes.span_policy.rows import rows

TEXTS = [Text(f"t{n}", f"Mill {n}", f"Mill {n} of Dorn was founded by Ann{n} Lee.") for n in range(9)]
TEXTS.append(Text("again", "Dorn", "The founder of the mill of Dorn is Ann3 Lee."))
ASKED = [GoldQuestion(f"Who founded Mill {n}?", (f"Ann{n} Lee",), TEXTS[n], "2wiki") for n in range(9)] * 20


def test_rows_say_whether_their_passages_suffice() -> None:
    made = list(rows(ASKED, Bm25(TEXTS), random.Random(0)))
    assert len(made) == len(ASKED)
    for row in made:
        texts = [one.text for one in row.documents or ()]
        assert row.sufficient == (row.supporting[0] in [one.id for one in row.documents or ()])
        assert any(row.answers[0] in text for text in texts) == row.sufficient
        assert 1 <= len(texts) <= 5
    assert 0.15 < sum(not row.sufficient for row in made) / len(made) < 0.35
    assert {row.source for row in made} == {"2wikimultihopqa"}
