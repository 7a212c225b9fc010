"""Replies as models write them, read by the parsers. Data: `answers`, `lists`, `judgements` and `rewrites` (.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyrag.agents.parsing.answers import parse_answer, read_answer, salvage_answer
from pyrag.agents.parsing.judgements import Judged, parse_judged, salvage_judged
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.prompts import placeholders
from pyrag.agents.rewriter import parse_rewrite, salvage_rewrite
from pyrag.errors import BadOutputError

QUERY = "In which town was Ines Valdoria born?"


def rows(name: str) -> list[dict[str, Any]]:
    text = Path(__file__).with_name(f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def answered(row: dict[str, Any]) -> str | None:
    """The answer of a reply; None where it goes back."""
    try:
        return parse_answer(row["reply"], row["documents"], row["query"]).text
    except BadOutputError:
        return None


def test_answers_are_found_whatever_their_form() -> None:
    wrong = [(row["reply"], found) for row in rows("answers") if (found := answered(row)) != row["answer"]]
    assert wrong == []


def test_what_went_back_is_made_short_in_the_end() -> None:
    for row in rows("answers"):
        if "salvaged" in row and row["salvaged"] != "*":
            salvaged = salvage_answer(row["reply"], row["documents"], row["query"])
            assert (salvaged and salvaged.text) == row["salvaged"], row["reply"]
            assert read_answer(row["reply"], row["documents"], row["query"]).text == row["salvaged"] or "unknown"


def test_lists_are_read_in_any_form() -> None:
    def queries(reply: str) -> list[str] | None:
        try:
            return list(parse_sub_queries(reply))
        except BadOutputError:
            return None

    assert [row["reply"] for row in rows("lists") if queries(row["reply"]) != row["queries"]] == []


def test_judgements_are_read_in_any_form() -> None:
    def judged(reply: str) -> Judged | None:
        try:
            return parse_judged(reply, 3)
        except BadOutputError:
            return None

    def fits(found: Judged | None, want: dict[str, Any]) -> bool:
        if not want or found is None:
            return found is None and not want
        said = {name: getattr(found, name) for name in want}
        return {name: list(one) if isinstance(one, tuple) else one for name, one in said.items()} == want

    assert [row["reply"] for row in rows("judgements") if not fits(judged(row["reply"]), row["want"])] == []


def test_search_terms_alone_are_a_query_in_the_end() -> None:
    assert salvage_rewrite("Ines Valdoria birthplace town") == "Ines Valdoria birthplace town"
    assert salvage_rewrite('"Ines Valdoria birthplace"') == "Ines Valdoria birthplace"
    for reply in ("I cannot rewrite it.", "unknown", '{"strategy": "x"}', "One line.\nAnother.", ""):
        assert not salvage_rewrite(reply)


def test_rewritten_queries_are_read_in_any_form() -> None:
    def query(reply: str) -> str | None:
        try:
            return parse_rewrite(reply)[0]
        except BadOutputError:
            return None

    assert [row["reply"] for row in rows("rewrites") if query(row["reply"]) != row["query"]] == []


@pytest.mark.parametrize("said", sorted(filter(None, placeholders())))
def test_what_a_form_shows_is_no_answer(said: str) -> None:
    for reply in (f"<answer>{said}</answer>", f'{{"answer": "{said}"}}', f"Answer: {said}"):
        assert salvage_answer(reply, 1, QUERY) is None or not read_answer(reply, 1, QUERY).known


def test_a_confidence_that_cannot_be_read_is_told() -> None:
    judged = parse_judged('{"decision": "YES", "answer": "Rome", "confidence": "sure"}', 1)
    assert (judged.text, judged.confidence) == ("Rome", None)
    assert "confidence" in judged.note
    assert not parse_judged('{"decision": "YES", "answer": "Rome", "confidence": "high"}', 1).note


@pytest.mark.parametrize(
    ("answer", "salvaged"),
    [("Ines Valdoria was born in Marrow Bay.", "Marrow Bay"), ("yes", "yes"), ("Marrow Bay", "Marrow Bay")],
)
def test_a_judged_sentence_goes_back_and_is_made_short(answer: str, salvaged: str) -> None:
    reply = json.dumps({"decision": "YES", "answer": answer})
    if answer != salvaged or answer == "yes":
        with pytest.raises(BadOutputError):
            parse_judged(reply, 1, QUERY)
    found = salvage_judged(reply, 1, QUERY)
    assert found is not None
    assert found.text == salvaged


def test_a_marked_answer_is_read_from_a_bad_judgement() -> None:
    found = salvage_judged("Doc [1] says so.\n<answer>Marrow Bay</answer>", 1, QUERY)
    assert found is not None
    assert (found.text, found.citations) == ("Marrow Bay", (0,))
    assert salvage_judged("It may be anywhere.", 1, QUERY) is None
