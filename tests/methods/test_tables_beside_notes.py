"""Tables with notes beside them: no confident wrong answer, and no table that answers for a note."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.own_documents.tables import verdict, verdict_on_note, write_notes
from benchmarks.own_documents.tables_with_notes import COMPUTED, STATED
from pyrag import PyRAG
from pyrag.cli.app import app


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PyRAG]:
    folder: Path = tmp_path_factory.mktemp("notes")
    (folder / "docs").mkdir()
    write_notes(folder / "docs")
    done = CliRunner().invoke(app, ["index", str(folder / "docs"), "--out", str(folder / "index")])
    assert done.exit_code == 0, done.output
    with PyRAG(retriever=str(folder / "index")) as opened:
        yield opened


def test_no_table_question_gets_confident_wrong_answer(rag: PyRAG) -> None:
    verdicts = {question: verdict(rag.ask(question), gold) for question, gold in COMPUTED}
    assert [question for question, shown in verdicts.items() if shown == "confident wrong"] == []
    assert list(verdicts.values()).count("right") >= 45


def test_notes_answer_what_tables_do_not(rag: PyRAG) -> None:
    traces = {question: (rag.ask(question), gold) for question, gold in STATED}
    verdicts = {question: verdict_on_note(trace, gold) for question, (trace, gold) in traces.items()}
    assert [question for question, shown in verdicts.items() if shown == "confident wrong"] == []
    assert not any("no answer: " in warning for trace, _ in traces.values() for warning in trace.warnings)
