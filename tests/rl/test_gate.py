"""The questions of a curriculum's gates: drawn from training questions, and left out of training sets."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyrag.agents.protocol import Decomposition
from pyrag.errors import DataError, UsageError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.datasets.suite import open_set
from pyrag.evaluation.scoring import score
from pyrag.trace.model import Answer, Program, Trace
from pyrag_rl.cli.app import train_app
from pyrag_rl.data import sets, traces
from pyrag_rl.data.build import Request, build
from pyrag_rl.data.gate import write_gate


def line(number: int, question: str = "") -> str:
    return json.dumps({"id": f"t{number}", "question": question or f"Who wrote book {number}?", "answers": ["x"]})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    lines = [line(number) for number in range(40)] + [line(90, "Who wrote book 3 ?"), line(91, "Is it reported?")]
    (folder / "train_questions.jsonl").write_text("\n".join(lines))
    (folder / "questions.jsonl").write_text(line(99, "Is it reported?"))
    (folder / "train_corpus.jsonl").write_text(json.dumps({"id": "p", "title": "Books", "text": "Book 3."}))
    return tmp_path / "data"


def test_a_gate_is_drawn_from_training_questions(data: Path) -> None:
    done = CliRunner().invoke(train_app, ["gate", "--data", str(data), "--sets", "toy", "--limit", "12"])
    assert done.exit_code == 0, done.output
    gate = open_set("toy", data, split="gate")
    words = {one.question for one in gate.questions}
    assert len(words) == 12
    assert "Is it reported?" not in words
    assert gate.corpus == data / "toy" / "train_corpus.jsonl"
    assert write_gate(data, "toy", 12) == gate.path  # the same draw again


def test_a_gate_stays_as_it_was_drawn(data: Path) -> None:
    write_gate(data, "toy", 12)
    with pytest.raises(UsageError, match="holds other questions"):
        write_gate(data, "toy", 5)
    with pytest.raises(UsageError, match="has 40 training questions for a gate of 99"):
        write_gate(data, "toy", 99)


def test_training_sets_hold_no_question_of_the_gate(data: Path, tmp_path: Path) -> None:
    write_gate(data, "toy", 12)
    request = Request(tasks=["decompose"], data=data, sets=["toy"], out=tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"held out in .*gate_questions\.jsonl"):
        build(request)
    built = build(replace(request, leave_out=True))
    assert built.rows <= 42 - 12 - 1
    assert built.dropped["held out"] >= 13


class Falling:
    def __init__(self, fallback: bool) -> None:
        self.fallback = fallback

    async def decompose(self, question: str) -> Decomposition:
        return Decomposition((question,), fallback=self.fallback)


@pytest.mark.parametrize(("fallback", "count"), [(True, 0), (False, 1)])
def test_plans_are_not_learnt_from_questions_without_a_list(fallback: bool, count: int) -> None:
    question = Question(id="q", question="Who?", answers=("x",))
    made = sets.RowSources(None, Falling(fallback))  # type: ignore[arg-type]
    assert len(asyncio.run(sets.EXAMPLES["plan"](question, "toy", made))) == count
    fallbacks = ("decompose",) if fallback else ()
    trace = Trace("Who?", Answer("x"), sub_queries=("Who?",), programs=(Program("a = 1", "p"),), fallbacks=fallbacks)
    row = score("toy", "pyrag", question, trace)
    assert len(list(traces.EXAMPLES["plan"](row, trace))) == count
