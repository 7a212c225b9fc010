"""Questions over a folder of notes: minutes, specifications, tables, mails. Wrong answers are marked as weak."""

from __future__ import annotations

from tests.embedded.answering import ask_all, lines, tally


async def test_wrong_answers_over_notes_are_marked() -> None:
    rows = lines("notes/questions.jsonl")
    traces = await ask_all("notes", [row["question"] for row in rows])
    golds = [{answer.lower().removeprefix("the ") for answer in row["answers"]} for row in rows]
    counts = tally(traces, golds)
    assert counts["wrong"] <= 2, counts
    assert counts["right"] >= 40, counts
