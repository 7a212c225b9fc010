"""Questions over contacts, calendars, mails and bibliographies, asked of the offline engine on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.embedded.test_record_fields import ANSWERS, FILES

from .conftest import Run


def test_offline_engine_answers_from_cards_with_citations(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    for name, text in FILES.items():
        (tmp_path / "cards" / name).write_text(text, encoding="utf-8")
    assert pyrag("index", "cards", "--out", "ix").returncode == 0
    questions = "\n".join(question for question, _, _ in ANSWERS)
    done = pyrag("ask", "-", "--index", "ix", "--llm", "embedded", "--json", stdin=questions)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    answers = [(reply["answer"], [citation["title"] for citation in reply["citations"]]) for reply in replies]
    assert answers == [(expected, [title]) for _, expected, title in ANSWERS]
    assert not any(reply["weak"] for reply in replies)
