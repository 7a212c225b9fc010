"""Checks of question sets: every gold answer scores 1.0, every gold passage exists, ids are unique.

They use a benchmark's reader and scores, and report all problems instead of stopping at the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrag.errors import DataError
from pyrag.evaluation.datasets.layout import Question, find_file, numbered_lines, read_questions
from pyrag.evaluation.metrics import Script, normalise, score_text, script_of


@dataclass(frozen=True, slots=True)
class Checked:
    """Counts for a file of questions, and its problems, one sentence each."""

    path: Path
    questions: int
    passages: int | None  # None if the set has no corpus
    problems: tuple[str, ...]


def check_folder(folder: Path) -> list[Checked]:
    """Check the sets in a folder and its subfolders, including training questions."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}: name a folder with questions.jsonl, or a folder of such folders")
    below = sorted(path for path in folder.iterdir() if path.is_dir())
    places = [place for place in (folder, *below) if find_file(place, "questions")]
    if not places:
        raise DataError(f"{folder} holds no questions.jsonl: make one with pyrag data import NAME FILE --out {folder}")
    return [checked for place in places for checked in _check_place(place)]


def _check_place(place: Path) -> Iterator[Checked]:
    for prefix in ("", "train_"):
        if path := find_file(place, f"{prefix}questions"):
            yield _check_set(path, find_file(place, f"{prefix}corpus"))


def _check_set(path: Path, corpus: Path | None) -> Checked:
    """Check a file of questions."""
    problems: list[str] = []
    script = script_of(path.parent.name)
    ids = None if corpus is None else _corpus_ids(corpus, problems)
    count = 0
    try:
        for question in read_questions(path):
            count += 1
            problems += [f"{path} question {question.id}: {problem}" for problem in _problems(question, ids, script)]
    except DataError as error:  # the rest of the file cannot be read
        problems.append(str(error))
    return Checked(path, count, None if ids is None else len(ids), tuple(problems))


def _problems(question: Question, ids: set[str] | None, script: Script) -> Iterator[str]:
    # A spelling that normalises to nothing ("*") can never match, but is harmless beside others.
    scored = {gold: score_text(gold, question.answers, script) for gold in question.answers or ("",)}
    for gold, scores in scored.items():
        if min(scores) < 1.0 and (normalise(gold) or max(map(min, scored.values())) < 1.0):
            yield f"its gold answer {gold!r} scores {scores} in EM, F1 and accuracy instead of 1.0: correct it"
    missing = [gold for gold in _named(question) if ids is not None and gold not in ids]
    if missing:
        yield f"the corpus lacks its gold passage {missing[0]!r}: add it, or build the corpus from the same release"
    if ids is None and question.supporting:
        yield "it names gold passages, but the set has no corpus: add corpus.jsonl beside it"


def _named(question: Question) -> list[str]:
    alternatives = [alternative for others in question.supporting_alt.values() for alternative in others]
    steps = [step.supporting for step in question.decomposition if step.supporting]
    return [*question.supporting, *alternatives, *steps]


def _corpus_ids(path: Path, problems: list[str]) -> set[str]:
    import msgspec

    seen: dict[str, int] = {}
    decoder: Any = msgspec.json.Decoder(dict[str, Any])
    try:
        for number, line in numbered_lines(path):
            try:
                fields = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problems.append(f"{path} line {number} is not a passage ({error}): fix or remove the line")
                continue
            problems += [f"{path} line {number} {problem}" for problem in _passage_problems(fields, seen)]
            seen.setdefault(str(fields.get("id")), number)
    except DataError as error:
        problems.append(str(error))
    return set(seen)


def _passage_problems(fields: dict[str, Any], seen: dict[str, int]) -> Iterator[str]:
    identity, text = fields.get("id"), fields.get("text")
    if not isinstance(identity, str) or not identity:
        yield 'has no "id": give the passage one of its own'
    elif identity in seen:
        yield f"repeats the id {identity!r} of line {seen[identity]}: remove one of them"
    if not isinstance(text, str) or not text.strip():
        yield 'has no "text": fill it in or remove the line'
