"""The pre-scored set: plans are run over the bundled corpus by the embedded engine, scored, and kept once each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")
pytest.importorskip("yaml")

from typer.testing import CliRunner

from pyrag._io.jsonl import locked_lines
from pyrag.errors import ConfigError, DataError, UsageError
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag_rl.config import make_config
from pyrag_rl.data.examples import ask_goals
from pyrag_rl.data.rows import TrainRow, write_rows
from pyrag_rl.mapgrpo.candidates import (
    Counts,
    Drawn,
    plan_rows,
    prescore,
    recorded,
)
from pyrag_rl.mapgrpo.plans import read_plan
from pyrag_rl.mapgrpo.prescored import Candidate, best_of, distinct, read_candidates
from pyrag_rl.mapgrpo.rewards import PrescoreWeights, efficiency, prescored
from pyrag_rl.prompting import prompt_of
from pyrag_rl.rewards.environment import RewardEnvironment

QUESTION = "In which city was the director of The Seventh Seal born?"
TWO = [("Who directed The Seventh Seal?", "person"), ("In which city was [person from step 1] born?", "city")]
ROUNDABOUT = [("Who made The Seventh Seal?", "person"), ("When was [person from step 1] born?", "date"),
              ("In which city was [person from step 1] born?", "city")]  # fmt: skip


def plan(*goals: tuple[str, str]) -> str:
    listed = [
        {"step": step, "goal": text, "type": kind, "needs": [1] if "step 1" in text else []}
        for step, (text, kind) in enumerate(goals, start=1)
    ]
    return json.dumps({"rationale": "", "goals": listed})


@pytest.fixture
def row() -> TrainRow:
    messages = asyncio.run(prompt_of(ask_goals(QUESTION)))
    return TrainRow(
        index=0, id="q", agent="plan", source="bundled", question=QUESTION, answers=("Uppsala",), hops=2,
        messages=messages,
    )  # fmt: skip


def built(rows: Sequence[TrainRow], out: Path, replies: Sequence[str]) -> tuple[Counts, ScriptedChat]:
    chat = ScriptedChat(list(replies))

    async def work() -> Counts:
        frozen = RewardEnvironment(
            make_config({"agent": "plan", "algorithm": "mapgrpo", "runtime": {"llm": "embedded"}})
        )
        embedder = open_embedder("bundled")
        try:
            return await prescore(rows, out, Drawn(chat, count=len(replies)), frozen, embedder)
        finally:
            await frozen.aclose()
            await embedder.aclose()

    return asyncio.run(work()), chat


def test_candidates_are_run_scored_and_kept_once(row: TrainRow, tmp_path: Path) -> None:
    out = tmp_path / "prescored.jsonl"
    almost = plan(("Who directed the film The Seventh Seal?", "person"), TWO[1])
    other = plan(("What is the capital of Peru?", "city"))
    counts, chat = built([row], out, [plan(*TWO), almost, other, "no plan at all"])
    assert [call[0].content for call in chat.calls] == [row.messages[0].content] * 4  # the agent's own prompt
    assert (counts.candidates, counts.stored, counts.duplicates) == (4, 3, 1)
    kept = {one.completion: one for one in read_candidates(out)}
    good = kept[plan(*TWO)]
    assert (good.score, good.answer, good.execution, good.logic) == (1.0, 1.0, 1.0, 1.0)
    assert kept[other].answer == 0.0
    assert kept["no plan at all"].score == 0.0
    assert best_of(out, 0.7) == {("bundled", "q"): good}


def test_a_session_goes_on_where_the_last_one_was_killed(row: TrainRow, tmp_path: Path) -> None:
    out = tmp_path / "prescored.jsonl"
    built([row], out, [plan(*TWO)])
    whole = out.read_bytes()
    out.write_bytes(whole + b'{"id": "half')
    other = replace(row, id="q2")
    counts, chat = built([row, other], out, [plan(*TWO)])
    assert (counts.questions, len(chat.calls)) == (1, 1)
    assert [one.id for one in read_candidates(out)] == ["q", "q2"]
    assert out.read_bytes().startswith(whole)


def test_two_sessions_at_once_are_refused(row: TrainRow, tmp_path: Path) -> None:
    out = tmp_path / "prescored.jsonl"
    with locked_lines(out), pytest.raises(UsageError, match=r"prescored.jsonl is in use by another process"):
        built([row], out, [plan(*TWO)])


@pytest.mark.parametrize("content", ["my only copy", "one line\nmy only copy", '{"mine": 1}'])
def test_a_file_of_something_else_is_left_alone(content: str, row: TrainRow, tmp_path: Path) -> None:
    out = tmp_path / "notes.txt"
    out.write_text(content)
    with pytest.raises(DataError, match=r"is not a candidate|is not a file of candidates"):
        built([row], out, [plan(*TWO)])
    assert out.read_text() == content


def test_rows_of_another_agent_are_refused(row: TrainRow, tmp_path: Path) -> None:
    for number, other in enumerate((replace(row, agent="answer"), replace(row, sub_queries=("Who?",)))):
        write_rows(tmp_path / f"{number}.parquet", [row, other])
        with pytest.raises(DataError, match=r"row 2 asks for no goals: .* pyrag train data goals"):
            plan_rows(tmp_path / f"{number}.parquet")


@pytest.mark.parametrize("line", [b"\xff", b'"\xff"', b"[]", b"{}", b""])
def test_completions_that_cannot_be_read_are_named(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"id":"q","source":"s","completion":"c"}\n' + line + b"\n")
    with pytest.raises(DataError, match="line 2 lacks"):
        recorded(tmp_path / "x")


def test_weights_of_equation_14_are_weighed() -> None:
    weights = PrescoreWeights()
    assert weights.logic + weights.execution + weights.answer + weights.efficiency + weights.placeholders == 1.0
    assert (weights.logic, weights.execution, weights.answer) == (0.25, 0.25, 0.3)
    assert (weights.efficiency, weights.placeholders) == (0.1, 0.1)


def test_a_plan_beyond_the_hops_is_less_efficient(row: TrainRow) -> None:
    assert efficiency(read_plan(plan(*TWO)).goals, 2) == 1.0
    assert efficiency(read_plan(plan(*ROUNDABOUT)).goals, 2) == pytest.approx(2 / 3)
    assert prescored("no plan", row, None, "x").score == 0.0


VECTORS = st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=1, max_size=6)


@given(VECTORS, st.lists(st.floats(0, 1), min_size=6, max_size=6), st.floats(0, 1))
def test_no_two_that_stay_are_similar_and_the_best_stays(
    vectors: list[list[float]], scores: list[float], most: float
) -> None:
    candidates = [
        Candidate(id=str(place), source="", question="", completion="", score=scores[place])
        for place in range(len(vectors))
    ]
    similar = [[sum(a * b for a, b in zip(one, other, strict=True)) for other in vectors] for one in vectors]
    kept = distinct(candidates, similar, most)
    places = [int(one.id) for one in kept]
    assert all(similar[a][b] < most for a in places for b in places if a < b)
    assert max(scores[: len(vectors)]) in [one.score for one in kept]


def test_the_command_reads_a_recording(row: TrainRow, tmp_path: Path) -> None:
    from pyrag.cli.app import app

    rows, recording, out = tmp_path / "rows.parquet", tmp_path / "said.jsonl", tmp_path / "out.jsonl"
    write_rows(rows, [row])
    recording.write_text(json.dumps({"source": "bundled", "id": "q", "completion": plan(*TWO)}) + "\n")
    words = ["train", "prescore", str(rows), "--completions", str(recording), "-o", str(out), "--llm", "embedded"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "1 candidate of 1 question" in done.output
    assert next(read_candidates(out)).score == 1.0


def test_the_authors_replies_are_paid_for_once(row: TrainRow, tmp_path: Path) -> None:
    from pyrag.cli.app import app

    rows, author, out = tmp_path / "rows.parquet", tmp_path / "author.json", tmp_path / "out.jsonl"
    write_rows(rows, [row])
    words = ["train", "prescore", str(rows), "--author", f"scripted:{author}", "-o", str(out), "--count", "1"]
    author.write_text(json.dumps([plan(*TWO)]))
    away = CliRunner().invoke(app, [*words, "--llm", "embedded", "--retriever", "http://127.0.0.1:9"])
    assert "0 candidates of 1 question" in away.output, away.output
    assert "without a candidate: 1 question, whose plans the same command runs again" in away.output
    author.write_text("[]")  # it would have nothing to say
    again = CliRunner().invoke(app, [*words, "--llm", "embedded"])
    assert "1 candidate of 1 question" in again.output, again.output
    assert next(read_candidates(out)).score == 1.0
    assert not list(tmp_path.glob("*.sqlite*")), "all have their candidates"


def test_what_is_no_candidate_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}\n")
    with pytest.raises(DataError, match="line 1 is not a candidate"):
        list(read_candidates(tmp_path / "x"))
    with pytest.raises(ConfigError, match="set algorithm mapgrpo, agent plan"):
        make_config({"agent": "answer", "prescored": "x"})
