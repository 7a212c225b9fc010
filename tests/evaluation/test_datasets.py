"""Malformed question files: the file, the line and the cure in one sentence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pyrag.errors import DataError, UsageError
from pyrag.evaluation.datasets import layout as datasets
from pyrag.evaluation.datasets.layout import read_questions
from pyrag.evaluation.datasets.suite import PassageOptions, default_sets, digest, open_set, sample, source_of

from .conftest import write_set

GOOD = {"id": "1", "question": "Who?", "answers": ["Ada"]}


def line(**changes: object) -> bytes:
    row = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    return json.dumps(row, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (line(id="2", answers=None), "missing required field `answers`"),
        (line(id="2", question=None), "missing required field `question`"),
        (line(id=[7]), "Expected `str`, got `array` - at `$.id`"),
        (line(), "repeats the id '1' of line 1: remove one of them"),
        (line(id="2", answers=[]), "has no gold answer: add one"),
        (line(id="2", answers=["", " "]), "has no gold answer: add one"),
        (line(id="2", question="  "), "has an empty question"),
        (line(id=" "), "has an empty id"),
        (line(id="2", question="Café?").decode().encode("latin-1"), "is not UTF-8 text: convert the file"),
        (b"{nonsense", "is not a question (JSON is malformed"),
        (b'["a", "list"]', "is not a question"),
    ],
)
def test_a_bad_line_is_named_with_its_cure(tmp_path: Path, second: bytes, said: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(line() + b"\n" + second + b"\n")
    with pytest.raises(DataError) as caught:
        list(read_questions(path))
    message = str(caught.value)
    assert f"{path} line 2 " in message
    assert said in message
    assert ": " in message.removeprefix(str(path))
    assert "\n" not in message


def test_utf16_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(line().decode(), encoding="utf-16")
    with pytest.raises(DataError, match="line 1 is UTF-16 text: convert it"):
        list(read_questions(path))


def test_a_byte_order_mark_and_blank_lines_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line() + b"\r\n\r\n" + line(id="2"))
    assert [one.id for one in read_questions(path)] == ["1", "2"]


def test_questions_of_ones_own_need_no_id(tmp_path: Path) -> None:
    path, other = tmp_path / "questions.jsonl", tmp_path / "other.jsonl"
    path.write_text(
        '{"question": "Who wrote Dracula?", "answers": ["Bram Stoker"]}\n'
        '{"id": "mine", "question": "Where?", "answer": "Whitby"}\n'
        '{"question": "When?", "answers": "1897"}\n'
    )
    other.write_text('\n{"question": "Who wrote Dracula?", "answers": ["Stoker"]}\n')
    first, second, third = read_questions(path)
    assert (second.id, second.answers, third.answers) == ("mine", ("Whitby",), ("1897",))
    assert first.id != third.id
    assert [one.id for one in read_questions(other)] == [first.id]


def test_an_endless_line_is_refused_without_reading_it_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "MAX_LINE", 2 << 20)
    path = tmp_path / "questions.jsonl"
    with path.open("wb") as file:
        file.write(line() + b"\n")
        file.truncate(1 << 30)  # a gigabyte of zeros, sparse
    with pytest.raises(DataError, match="line 2 is longer than 2 MB: put one question on each line"):
        list(read_questions(path))


def test_a_truncated_gzip_file_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join(line(id=str(i)) for i in range(500)))[:-40])
    with pytest.raises(DataError, match=r"questions.jsonl.gz is damaged after line \d+ .*: fetch it again"):
        list(read_questions(path))


def test_a_larger_sample_holds_the_smaller_one(tmp_path: Path) -> None:
    questions = open_set("stones", write_set(tmp_path, 40)).questions
    ids = [one.id for one in questions]
    few, more, other = ([one.id for one in sample(questions, n, seed)] for n, seed in ((5, 1), (12, 1), (5, 2)))
    assert len(few) == 5
    assert set(few) <= set(more)
    assert few != other
    assert more == [one for one in ids if one in more], "in the order of the file"


def test_an_unknown_set_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no bundled set 'popq': did you mean 'mini-popqa'"):
        open_set("popq", None)
    with pytest.raises(UsageError, match="did you mean 'stones'"):
        open_set("stone", write_set(tmp_path))
    with pytest.raises(UsageError, match=r"no train_questions.jsonl\[.gz\] in .*stones, nor in any other folder there"):
        open_set("stones", tmp_path, split="train")


def test_a_set_without_a_corpus_asks_for_one(tmp_path: Path) -> None:
    data = write_set(tmp_path / "data")
    corpus = data / "stones" / "corpus.jsonl"
    elsewhere = corpus.rename(tmp_path / "corpus.jsonl")
    chosen = open_set("stones", data)
    with pytest.raises(UsageError, match="the set stones has no corpus: name one with --corpus"):
        source_of(chosen, PassageOptions())
    told: list[str] = []
    given = PassageOptions(corpora=(elsewhere,), cache=tmp_path / "indexes")
    source = source_of(chosen, given, lambda corpus, _: told.append(corpus))
    assert source.identity == digest(elsewhere)
    assert source_of(chosen, given, lambda corpus, _: told.append(corpus)) == source
    assert len(told) == 1, "the index is built once"


def test_the_five_bundled_sets_are_the_default() -> None:
    assert default_sets(None) == [
        "mini-popqa",
        "mini-hotpotqa",
        "mini-2wikimultihopqa",
        "mini-musique",
        "mini-bamboogle",
    ]


def test_the_password_of_a_server_is_in_no_name(tmp_path: Path) -> None:
    """The name is written to the run's config and its reports."""
    address = "http://user:sesame@127.0.0.1:8008/retrieve?token=sesame"
    chosen = open_set("mini-hotpotqa", None, limit=1)
    source = source_of(chosen, PassageOptions(retriever=address, cache=tmp_path))
    assert source.name == "http://127.0.0.1:8008/retrieve"
    assert source.overrides["retriever"] == address
