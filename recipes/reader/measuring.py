"""Figures of a reader: SQuAD, sub-questions over gold passages and BM25's top five, abstention, speed.

Thresholds and calibration come from questions of the training splits that were held out. The measured questions
(`questions.jsonl.gz`) are read only when asked for, and set nothing.
"""

# ruff: noqa: S311, T201  seeds must repeat; figures go to the terminal

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyrag.embedded.question_analysis import analyse
from pyrag.embedded.reader.neural.answerer import Candidate, SpanReader, candidates, ordered
from pyrag.embedded.reader.neural.decode import MarkedSpan
from pyrag.embedded.reader.neural.network import Calibration, Model, load
from pyrag.embedded.reader.reader import read_views
from pyrag.embedded.reader.view import views
from pyrag.evaluation.metrics import exact_match, f1
from pyrag.trace.model import Passage
from recipes.reader import hops, squad
from recipes.reader.layout import Asked, Text, corpus, gold, rows
from recipes.reader.score_statistics import auroc, logistic, platt
from recipes.reader.search import Bm25

_TOP = 5
_MODES = ("gold", "top5", "without")
_HELD_OUT_SQUAD = 200
_MEASURED = 200  # sub-questions of a kind
_SQUAD_DEV = 800  # questions on which int8 and float32 are compared
_ABOUT = (0.0, 1.0, 2.0, 3.0, 4.0)  # weights tried for a passage about the question's subject
_AGREES = (0.0, 1.0, 2.0, 3.0)  # … for the lexical reader's agreement: few, as its patterns know these questions
_THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
_LED_ASTRAY = 0.2  # share of questions answered although their passage is missing, at most


@dataclass(frozen=True, slots=True)
class Reading:
    """One question read over some passages: all candidate answers, before they are ranked."""

    asked: Asked
    texts: tuple[Text, ...]
    found: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best answer of a reading: its score, what it earns, and whether it is from the gold passage."""

    score: float
    em: float
    f1: float
    picked: bool
    answerable: bool


def passage(text: Text) -> Passage:
    return Passage(text.id, text.title, text.text)


def _read(model: SpanReader, asked: Sequence[Asked], index: Bm25, mode: str) -> list[Reading]:
    """Read each question over its gold passage (`gold`), BM25's top five (`top5`), or these without the gold one."""
    readings = []
    for each in asked:
        texts = [each.text]
        if mode != "gold":
            found = index.search(each.question, _TOP + 3)
            texts = found if mode == "top5" else [text for text in found if text.id != each.text.id]
        texts = texts[:_TOP]
        readings.append(Reading(each, tuple(texts), tuple(found_in(model, each.question, texts))))
    return readings


def found_in(model: SpanReader, question: str, texts: Sequence[Text]) -> list[Candidate]:
    """List all candidate answers, also where a pattern alone would have answered.

    Args:
        model: Scores spans of a passage.
        question: The question in words.
        texts: Passages to read, best first.
    """
    analysis, passages = analyse(question), [passage(text) for text in texts]
    pages = views(analysis, passages)
    return candidates(model, analysis, passages, pages, read_views(analysis, pages, passages))


def outcome(reading: Reading, calibration: Calibration) -> Outcome:
    """Mark the best answer, known or not.

    Args:
        reading: Candidates with their question; without any, the score is -30.
        calibration: Weights by which candidates are ranked and scored.
    """
    answerable = any(text.id == reading.asked.text.id for text in reading.texts)
    if not reading.found:
        return Outcome(-30.0, 0.0, 0.0, False, answerable)
    best = ordered(reading.found, calibration)[0]
    picked = reading.texts[best.span.passage].id == reading.asked.text.id
    answers = reading.asked.answers
    return Outcome(best.score(calibration), exact_match(best.text, answers), f1(best.text, answers), picked, answerable)


def _outcomes(readings: Sequence[Reading], calibration: Calibration) -> list[Outcome]:
    """Mark the best answer of each reading, in their order."""
    return [outcome(reading, calibration) for reading in readings]


def _figures(name: str, results: Sequence[Outcome]) -> dict[str, float]:
    """Print and return the number of results and their means in percent; `picked`: answers from the gold passage."""
    count = max(len(results), 1)
    found = {
        "n": float(len(results)),
        "em": 100 * sum(each.em for each in results) / count,
        "f1": 100 * sum(each.f1 for each in results) / count,
        "picked": 100 * sum(each.picked for each in results) / count,
        "gold_at_5": 100 * sum(each.answerable for each in results) / count,
    }
    print(f"{name}: " + ", ".join(f"{key} {value:.1f}" for key, value in found.items()), flush=True)
    return {key: round(value, 2) for key, value in found.items()}


def _abstention(
    name: str, with_gold: Sequence[Outcome], without: Sequence[Outcome], threshold: float
) -> dict[str, float]:
    """Measure how well the score tells passages that answer from passages that do not.

    The figures are areas under the ROC curve and shares of questions, each from 0 to 1.
    """
    held = [each.score for each in with_gold if each.answerable]
    right = [each.score for each in with_gold if each.em]
    wrong = [each.score for each in with_gold if not each.em]
    found = {
        "auroc_gold": auroc(held, [each.score for each in without]),
        "auroc_right": auroc(right, wrong),
        "em_of_all_if_known": sum(each.em for each in with_gold if each.score >= threshold) / max(len(with_gold), 1),
        "known_with_gold": sum(value >= threshold for value in held) / max(len(held), 1),
        "known_without": sum(each.score >= threshold for each in without) / max(len(without), 1),
    }
    print(f"{name}: " + ", ".join(f"{key} {value:.3f}" for key, value in found.items()), flush=True)
    return {key: round(value, 4) for key, value in found.items()}


def evaluate(data: Path, out: Path, seed: int, *, final: bool) -> dict[str, Any]:
    """Calibrate on held-out questions and measure; writes `calibration.json` and `figures.json` into `out`.

    Args:
        data: Holds one folder per data set.
        out: The reader's folder, with its networks and tokenizer.
        seed: Must be that of the training, so that the same questions are held out.
        final: Add the measured questions, which have no part in the calibration.

    Returns:
        All figures, as in `figures.json`.

    Raises:
        DataError: a data set is missing or broken.
    """
    model = load(out)
    studies = {name: _study(model, asked, index) for name, asked, index in held_out(data, seed)}
    fitted = calibrate(studies)
    (out / "calibration.json").write_text(json.dumps(asdict(fitted)) + "\n")
    if final:
        studies |= {name: _study(model, asked, index) for name, asked, index in measured(data)}
    found: dict[str, Any] = {"calibration": asdict(fitted), "speed": _speed(model, studies["held-out 2wiki"]["gold"])}
    for name, readings in studies.items():
        found[name] = _summary(name, readings, fitted)
    if final:
        asked = _squad_dev(data, _SQUAD_DEV)
        for network in ("reader.int8.onnx", "reader.fp32.onnx"):
            results = _outcomes(_read(load(out, network), *asked, "gold"), fitted)
            found[f"squad dev, {network}"] = _figures(f"squad dev, {network}", results)
    (out / "figures.json").write_text(json.dumps(found, indent=1) + "\n")
    return found


class Remembering:
    """A model that reads a passage for a question once, however often it is asked to."""

    def __init__(self, model: Model) -> None:
        self.calibration = model.calibration
        self._model = model
        self._seen: dict[tuple[str, str, str], list[MarkedSpan]] = {}

    def spans(self, question: str, texts: Sequence[tuple[str, str]], count: int = 3) -> list[MarkedSpan]:
        """Return the spans of all passages, best margin first.

        Args:
            question: The question in words.
            texts: Title and text of each passage.
            count: Spans a passage at most; passages seen before keep the count they were first read with.
        """
        found: list[MarkedSpan] = []
        for place, (title, text) in enumerate(texts):
            key = (question, title, text)
            if key not in self._seen:
                self._seen[key] = self._model.spans(question, [(title, text)], count)
            found += [replace(span, passage=place) for span in self._seen[key]]
        return sorted(found, key=lambda span: (-span.margin, span.passage, span.start))


def _study(model: Model, asked: Sequence[Asked], index: Bm25) -> dict[str, list[Reading]]:
    """Read the questions in all three modes, each passage once; return the readings by mode."""
    remembering = Remembering(model)
    return {mode: _read(remembering, asked, index, mode) for mode in _MODES}


def _summary(name: str, readings: Mapping[str, Sequence[Reading]], fitted: Calibration) -> dict[str, Any]:
    """Print and return a group's figures; the calibration's least score is the threshold of abstention."""
    gold, top, without = (_outcomes(readings[mode], fitted) for mode in _MODES)
    return {
        "gold": _figures(f"{name}, gold passage", gold),
        "top5": _figures(f"{name}, top five", top),
        "abstention": _abstention(name, top, without, fitted.least_score),
    }


def held_out(data: Path, seed: int) -> Iterator[tuple[str, list[Asked], Bm25]]:
    """Yield groups of held-out sub-questions and SQuAD questions.

    Args:
        data: Holds one folder per data set.
        seed: Must be that of the training, so that the same questions are held out.

    Yields:
        Name of the group, its questions (of SQuAD 200 at most), and an index to search.

    Raises:
        DataError: a data set is missing or broken.
    """
    multi = hops.load(data, seed)
    index = Bm25(text for each in multi.texts.values() for text in each.values())
    for group in sorted({each.group for each in multi.held_out}):
        yield f"held-out {group}", [each for each in multi.held_out if each.group == group], index
    questions = squad.load(data / "squad", seed)
    chosen = random.Random(seed).sample(questions.held_out, min(_HELD_OUT_SQUAD, len(questions.held_out)))
    yield "held-out squad", chosen, Bm25(text for texts in questions.articles.values() for text in texts)


def calibrate(studies: Mapping[str, Mapping[str, Sequence[Reading]]]) -> Calibration:
    """Choose the weights of the subject's page and of the lexical reader's agreement, and fit confidence.

    Each question is read with its gold passage among the top five and without it, where no answer is right.
    """
    tried = [Calibration(about=about, agrees=agrees) for about in _ABOUT for agrees in _AGREES]
    best = max(tried, key=lambda each: sum(_merit(study, each) for study in studies.values()))
    every = [reading for each in studies.values() for mode in ("top5", "without") for reading in each[mode]]
    results = _outcomes(every, best)
    scale, offset = platt([each.score for each in results], [each.em for each in results])
    fitted = replace(best, scale=round(scale, 4), offset=round(offset, 4))
    without = [_outcomes(each["without"], best) for each in studies.values()]
    astray = {each: _astray(without, replace(fitted, threshold=each)) for each in _THRESHOLDS}
    fitted = replace(fitted, threshold=next((t for t in _THRESHOLDS if astray[t] <= _LED_ASTRAY), _THRESHOLDS[-1]))
    print(f"calibration: {fitted}, error {_calibration_error(results, fitted):.3f}", flush=True)
    return fitted


def _astray(without: Sequence[Sequence[Outcome]], fitted: Calibration) -> float:
    """The share of questions without their passage that are answered all the same, as a mean over sets."""
    least = fitted.least_score
    return sum(sum(each.score >= least for each in one) / max(len(one), 1) for one in without) / len(without)


def _merit(readings: Mapping[str, Sequence[Reading]], tried: Calibration) -> float:
    """The share of right answers, and how well scores tell them from all others."""
    top, without = _outcomes(readings["top5"], tried), _outcomes(readings["without"], tried)
    right = [each.score for each in top if each.em]
    others = [each.score for each in (*top, *without) if not each.em]
    return sum(each.em for each in top) / max(len(top), 1) + auroc(right, others)


def _calibration_error(results: Sequence[Outcome], fitted: Calibration, bins: int = 10) -> float:
    """Return the mean distance between confidence and the share that is right, from 0 to 1."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for each in results:
        chance = logistic(fitted.scale * each.score + fitted.offset)
        groups.setdefault(min(int(chance * bins), bins - 1), []).append((chance, each.em))
    gaps = [abs(sum(c for c, _ in group) - sum(e for _, e in group)) for group in groups.values()]
    return sum(gaps) / max(len(results), 1)


def measured(data: Path) -> Iterator[tuple[str, list[Asked], Bm25]]:
    """The measured questions; for the last figures only."""
    for name in ("2wikimultihopqa", "musique"):
        texts = corpus(data / name / "corpus.jsonl.gz")
        rng = random.Random(0)
        asked = [each for row in rows(data / name / "questions.jsonl.gz") for each in hops.held(name, row, texts, rng)]
        for group in sorted({each.group for each in asked}):
            chosen = [each for each in asked if each.group == group]
            yield group, rng.sample(chosen, min(_MEASURED, len(chosen))), Bm25(texts.values())
    yield "squad", *_squad_dev(data, _HELD_OUT_SQUAD)


def _squad_dev(data: Path, count: int) -> tuple[list[Asked], Bm25]:
    """Draw answerable questions of SQuAD's development set, always the same ones, with an index of its passages."""
    texts = corpus(data / "squad" / "corpus.jsonl.gz")
    found = [row for row in rows(data / "squad" / "questions.jsonl.gz") if row.answerable]
    chosen = random.Random(0).sample(found, min(count, len(found)))
    asked = [Asked(row.question, row.answers, gold(row, texts), "squad") for row in chosen]
    return asked, Bm25(texts.values())


def _speed(model: Model, readings: Sequence[Reading], rounds: int = 40) -> dict[str, float]:
    """Measure the milliseconds that a question over one passage and over five takes."""
    texts = [reading.asked.text for reading in readings[:_TOP]]
    question = f"Who directed {texts[0].title}?"
    found = {}
    for count in (1, _TOP):
        began = time.perf_counter()
        for _ in range(rounds // count):
            found_in(model, question, texts[:count])
        found[f"ms_for_{count}"] = round(1000 * (time.perf_counter() - began) / (rounds // count), 1)
    print(f"speed: {found}", flush=True)
    return found
