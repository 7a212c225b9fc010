"""Questions without decompositions, with the embedded planner's sub-questions in the form of gold ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag.errors import DataError
from pyrag_rl.data.decompositions.planned_questions import hops_of, planned_questions, steps_of
from pyrag_rl.data.decompositions.program_checks import ProgramCheck
from pyrag_rl.data.decompositions.programs import program_of

THREE_HOPS = "Where did the spouse of the director of Dracula die?"
TWO_HOPS = "Who is the spouse of the director of Dracula?"


def written(folder: Path, *questions: tuple[int, str]) -> Path:
    rows = [
        {"id": f"musique_train_{number:05}", "question": text, "answers": ["Rome"], "source": "musique-train-qa"}
        for number, text in questions
    ]
    rows.append({"id": "hotpot_1", "question": THREE_HOPS, "answers": ["Rome"], "source": "hotpotqa-train"})
    with gzip.open(folder / "questions.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def test_steps_refer_to_the_answers_of_earlier_ones() -> None:
    steps = steps_of(THREE_HOPS)
    assert [step.question for step in steps] == [
        "Who directed Dracula?", "Who is the spouse of #1?", "Where did #2 die?"
    ]  # fmt: skip
    assert [step.depends_on for step in steps] == [(), (1,), (2,)]


@pytest.mark.parametrize("question", ["Who is older, Ann Lee or Bo Ray?", "", "Dracula"])
def test_what_is_no_chain_has_no_steps(question: str) -> None:
    assert steps_of(question) == ()


@given(st.text(max_size=60))
def test_steps_of_any_text_depend_on_earlier_ones(text: str) -> None:
    for number, step in enumerate(steps_of(f"Where was the {text} of Dracula born?"), start=1):
        assert all(0 < one < number for one in step.depends_on)


@pytest.mark.parametrize(
    ("identifier", "hops"),
    [("musique_train_00000", 2), ("musique_train_14000", 3), ("musique_train_19000", 4), ("musique_train_19937", 4),
     ("hotpot_17", 0), ("musique_train_x", 0), ("", 0)],
)  # fmt: skip
def test_the_line_of_the_original_file_tells_the_hops(identifier: str, hops: int) -> None:
    assert hops_of(identifier) == hops


def test_only_readings_with_as_many_steps_as_hops_are_kept(tmp_path: Path) -> None:
    folder = written(tmp_path, (1, THREE_HOPS), (2, TWO_HOPS), (14_000, THREE_HOPS), (14_001, TWO_HOPS))
    kept = planned_questions(folder, 10, seed=0)
    assert {(one.id, one.hops) for one in kept} == {("musique_train_00002", 2), ("musique_train_14000", 3)}
    assert len(planned_questions(folder, 1, seed=0)) == 1


def test_another_sources_question_is_kept_as_a_chain(tmp_path: Path) -> None:
    asked = (THREE_HOPS, "Which novel about Dracula did Ann Lee write in Rome?", "Who is older, Ann Lee or Bo Ray?")
    rows = [
        {"id": f"r1s_2_{number}", "question": text, "answers": ["Rome"], "source": "r1-searcher-stage2"}
        for number, text in enumerate(asked)
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    kept = planned_questions(tmp_path, 10, seed=0)
    assert {(one.id, one.hops) for one in kept} == {("r1s_2_0", 3)}


def test_a_folder_without_questions_adds_none(tmp_path: Path) -> None:
    assert planned_questions(tmp_path, 10, seed=0) == []


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text("{\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1"):
        planned_questions(tmp_path, 10, seed=0)


async def test_the_program_of_a_planned_question_runs(tmp_path: Path) -> None:
    (question,) = planned_questions(written(tmp_path, (14_000, THREE_HOPS)), 10, seed=0)
    check = ProgramCheck({})
    try:
        assert await check.fault(question, program_of(question.question, question.sub_questions)) == ""
    finally:
        await check.aclose()
