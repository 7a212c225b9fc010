"""Which questions are learned from and which are only measured on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyrag.errors import DataError, UsageError
from pyrag.evolve.questions import split


def write(path: Path, questions: list[tuple[str, str]]) -> Path:
    lines = [json.dumps({"id": id_, "question": text, "answers": ["x"]}) for id_, text in questions]
    path.write_text("\n".join(lines))
    return path


def numbered(path: Path, count: int) -> Path:
    return write(path, [(f"q{n}", f"Who is number {n}?") for n in range(count)])


def test_a_share_is_held_out_and_shares_no_question(tmp_path: Path) -> None:
    path = numbered(tmp_path / "train.jsonl", 20)
    write(
        path,
        [*((f"q{n}", f"Who is number {n}?") for n in range(20)), *((f"c{n}", f"who is number {n}") for n in range(20))],
    )
    found = split(path, "0.25", seed=3)
    words = {one.question.lower().rstrip("?") for one in found.train}
    assert len(found.validation) == 10
    assert not words & {one.question.lower().rstrip("?") for one in found.validation}
    assert split(path, "0.25", seed=3) == found
    assert split(path, "0.25", seed=4).validation != found.validation


def test_a_limit_leaves_the_validation_questions_as_they_are(tmp_path: Path) -> None:
    path = numbered(tmp_path / "train.jsonl", 20)
    found = split(path, "0.2", limit=5)
    assert len(found.train) == 5
    assert found.validation == split(path, "0.2").validation


@pytest.mark.parametrize("other", [("q1", "Something else?"), ("v1", "who is the number 1")])
def test_files_that_share_an_id_or_a_question_are_refused(tmp_path: Path, other: tuple[str, str]) -> None:
    train = numbered(tmp_path / "train.jsonl", 3)
    held_out = write(tmp_path / "val.jsonl", [("v0", "Who is nobody?"), other])
    with pytest.raises(UsageError, match="must not be learned from"):
        split(train, str(held_out))


@pytest.mark.parametrize("share", ["0", "1", "1.5", "-0.1"])
def test_a_share_is_between_0_and_1(tmp_path: Path, share: str) -> None:
    with pytest.raises(UsageError, match="a share between 0 and 1"):
        split(numbered(tmp_path / "train.jsonl", 3), share)


def test_a_small_share_of_few_questions_is_one(tmp_path: Path) -> None:
    found = split(numbered(tmp_path / "train.jsonl", 2), "0.1")
    assert (len(found.train), len(found.validation)) == (1, 1)


def test_one_question_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="too few questions"):
        split(numbered(tmp_path / "train.jsonl", 1), "0.5")
