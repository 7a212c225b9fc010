"""Silver facts, wordings and figures: what training and measuring rest on."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes.reader.__main__ import main as reader_command
from recipes.reader.facts import facts, kind_of
from recipes.reader.hops import SETS
from recipes.reader.layout import Text
from recipes.reader.wordings import CUES, WORDINGS, draw_questions, is_silent, wordings
from recipes.span_policy.rows import main as rows_command

ROOT = Path(__file__).parent.parent.parent
FOOTBALLER = Text(
    "1",
    "Kjetil Osvold",
    "Kjetil Osvold (born 5 June 1961 in Ålesund) is a retired Norwegian footballer. He played for Start.",
)
FILM = Text(
    "2",
    "Cochin Express",
    "Cochin Express is a 1967 Indian thriller film, directed by M. Krishnan Nair and starring Prem Nazir. "
    "The music was composed by V. Dakshinamoorthy.",
)


def stated(text: Text) -> dict[str, str]:
    return {fact.relation: text.text[fact.start : fact.end] for fact in facts(text)}


@pytest.mark.parametrize(("command", "lacks"), [(reader_command, "squad"), (rows_command, "2wikimultihopqa")])
def test_a_folder_without_the_sets_is_one_sentence(
    command: Callable[[], None],
    lacks: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--data", str(tmp_path), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match="2"):
        command()
    assert f"{tmp_path} has no set {lacks}: name the folder with" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """The files that training reads: SQuAD with an article more than are held out, and a question a set."""
    passages = [{"id": f"p{n}", "title": f"Mill {n}", "text": f"Mill {n} was built by Ann Lee."} for n in range(21)]
    asked = [{"id": "q", "question": "Who built Mill 1?", "answers": ["Ann Lee"], "supporting": ["p1"]}]
    names = ("train_full_corpus", "train_full_questions"), ("train_corpus", "train_questions")
    for folder in ("squad", *SETS):
        (tmp_path / folder).mkdir()
        for name, rows in zip(names[folder != "squad"], (passages, asked), strict=True):
            content = "".join(json.dumps(row) + "\n" for row in rows).encode()
            (tmp_path / folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(content))
    return tmp_path


DAMAGED: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "cut off": ("squad/train_full_corpus", lambda old: old[:-20], r"squad/train_full_corpus.jsonl.gz is damaged after"),
    "no gzip": ("musique/train_questions", lambda _: b"<html>", r"train_questions.jsonl.gz is damaged after line 0"),
    "no JSON": ("hotpotqa/train_corpus", lambda _: gzip.compress(b"{}\n{"), r"jsonl.gz line 1 is not a passage"),
    "no row": ("squad/train_full_questions", lambda _: gzip.compress(b"[1]\n"), r"jsonl.gz line 1 is not a question"),
    "others": ("hotpotqa/train_corpus", lambda _: gzip.compress(b""), r"train_corpus.jsonl.gz lacks the passage p1"),
    "few": ("squad/train_full_corpus", lambda _: gzip.compress(b""), r"squad has 0 articles, of which 20 are held out"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "damage", "said"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_sets_are_one_sentence(file: str, damage: Callable[[bytes], bytes], said: str, sets: Path) -> None:
    path = sets / f"{file}.jsonl.gz"
    path.write_bytes(damage(path.read_bytes()))
    command = [sys.executable, "-m", "recipes.reader", "--data", str(sets), "--out", str(sets / "out")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("", "rl", "sandbox", "prompts"))}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert re.search(said, done.stderr), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_biography_states_its_facts() -> None:
    found = stated(FOOTBALLER)
    assert kind_of(FOOTBALLER) == "person"
    assert found["date of birth"] == "5 June 1961"
    assert found["place of birth"] == "Ålesund"
    assert found["country of citizenship"] == "Norwegian"
    assert found["occupation"] == "footballer"


def test_a_film_states_its_makers() -> None:
    found = stated(FILM)
    assert kind_of(FILM) == "work"
    assert found["director"] == "M. Krishnan Nair"
    assert found["composer"] == "V. Dakshinamoorthy"
    assert found["publication date"] == "1967"
    assert found["country of origin"] == "Indian"
    assert "date of birth" not in found


def test_vague_text_states_nothing() -> None:
    assert stated(Text("3", "Rivers", "Rivers may refer to several things.")) == {}


@pytest.mark.parametrize("relation", WORDINGS)
def test_every_wording_has_one_place_for_the_subject(relation: str) -> None:
    assert all(wording.count("{}") == 1 for wording in WORDINGS[relation])


def test_unknown_relations_are_asked_by_name() -> None:
    assert "What is the mascot of Yale?" in [each.format("Yale") for each in wordings("mascot")]


def test_wordings_differ_and_repeat_with_the_seed() -> None:
    first = draw_questions("director", "Alpha", random.Random(3), 3)
    assert first == draw_questions("director", "Alpha", random.Random(3), 3)
    assert len(set(first)) == 3


def test_silence_needs_a_known_cue() -> None:
    assert set(CUES) <= set(WORDINGS)
    assert is_silent("spouse", "She was a painter from Oslo.")
    assert not is_silent("spouse", "Her husband was a painter.")
    assert not is_silent("no such relation", "Anything.")
