"""Figures of a reader: SQuAD, sub-questions over gold passages and over BM25's top five, unknown answers, speed.

Threshold and calibration come from held-out questions of the training splits. The measured questions
(`questions.jsonl.gz`) are only read on request, and do not affect the calibration.
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
from pyrag.embedded.reader.neural import answerer
from pyrag.embedded.reader.neural.answerer import Candidate, SpanReader, ordered
from pyrag.embedded.reader.neural.decode import MarkedSpan
from pyrag.embedded.reader.neural.network import Calibration, Model, load
from pyrag.embedded.reader.reader import read_views
from pyrag.embedded.reader.view import views
from pyrag.evaluation.metrics import exact_match, f1
from pyrag.trace.model import Passage
from recipes.reader import hops, squad
from recipes.reader.layout import GoldQuestion, Text, corpus, gold, rows
from recipes.reader.score_statistics import auroc, logistic, platt
from recipes.reader.search import Bm25

_TOP = 5
_MODES = ("gold", "top5", "without")
_HELD_OUT_SQUAD = 200
_MEASURED = 200  # sub-questions per group
_SQUAD_DEV = 800  # questions on which int8 and float32 are compared
_ABOUT = (0.0, 1.0, 2.0, 3.0, 4.0)  # weights tried for a passage about the question's subject
_AGREES = (0.0, 1.0, 2.0, 3.0)  # weights tried for agreement with the lexical reader, whose patterns fit the questions
_THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
_MAX_ASTRAY = 0.2  # share of questions that may be answered although their passage is missing


@dataclass(frozen=True, slots=True)
class Reading:
    """Question with all candidate answers from some passages, before they are ranked."""

    question: GoldQuestion
    texts: tuple[Text, ...]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Best answer of a reading.

    Args:
        score: Score of the answer.
        em: Exact match with a correct answer.
        f1: F1 with a correct answer.
        picked: True if the answer comes from the gold passage.
        answerable: True if the gold passage was among the passages.
    """

    score: float
    em: float
    f1: float
    picked: bool
    answerable: bool


def passage(text: Text) -> Passage:
    """Return a text as a passage."""
    return Passage(text.id, text.title, text.text)


def _read(model: SpanReader, questions: Sequence[GoldQuestion], index: Bm25, mode: str) -> list[Reading]:
    """Return the readings of questions.

    Args:
        model: Model that scores spans.
        questions: Questions to read.
        index: Index to search for passages.
        mode: "gold" reads the gold passage, "top5" BM25's top five, and "without" the top five minus the gold passage.
    """
    readings = []
    for item in questions:
        texts = [item.text]
        if mode != "gold":
            hits = index.search(item.question, _TOP + 3)
            texts = hits if mode == "top5" else [text for text in hits if text.id != item.text.id]
        texts = texts[:_TOP]
        readings.append(Reading(item, tuple(texts), tuple(candidates_in(model, item.question, texts))))
    return readings


def candidates_in(model: SpanReader, question: str, texts: Sequence[Text]) -> list[Candidate]:
    """Return all candidate answers, even if a pattern would answer without the network.

    Args:
        model: Model that scores spans.
        question: The question.
        texts: Passages to read, best first.
    """
    analysis, passages = analyse(question), [passage(text) for text in texts]
    pages = views(analysis, passages)
    return answerer.candidates(model, analysis, passages, pages, read_views(analysis, pages, passages))


def outcome(reading: Reading, calibration: Calibration) -> Outcome:
    """Return the best answer of a reading with its score, known or not.

    Args:
        reading: Question with its candidates. Without candidates, the score is -30.
        calibration: Weights that rank and score candidates.
    """
    answerable = any(text.id == reading.question.text.id for text in reading.texts)
    if not reading.candidates:
        return Outcome(-30.0, 0.0, 0.0, False, answerable)
    best = ordered(reading.candidates, calibration)[0]
    picked = reading.texts[best.span.passage].id == reading.question.text.id
    answers = reading.question.answers
    return Outcome(best.score(calibration), exact_match(best.text, answers), f1(best.text, answers), picked, answerable)


def _outcomes(readings: Sequence[Reading], calibration: Calibration) -> list[Outcome]:
    """Return the best answers of readings, in their order."""
    return [outcome(reading, calibration) for reading in readings]


def _figures(name: str, results: Sequence[Outcome]) -> dict[str, float]:
    """Print and return the number of results and their means in per cent."""
    count = max(len(results), 1)
    means = {
        "n": float(len(results)),
        "em": 100 * sum(each.em for each in results) / count,
        "f1": 100 * sum(each.f1 for each in results) / count,
        "picked": 100 * sum(each.picked for each in results) / count,
        "gold_at_5": 100 * sum(each.answerable for each in results) / count,
    }
    print(f"{name}: " + ", ".join(f"{key} {value:.1f}" for key, value in means.items()), flush=True)
    return {key: round(value, 2) for key, value in means.items()}


def _abstention(
    name: str, with_gold: Sequence[Outcome], without: Sequence[Outcome], threshold: float
) -> dict[str, float]:
    """Print and return figures on how well the score separates passages with the answer from passages without it.

    The figures are areas under the ROC curve and shares of questions, from 0 to 1.

    Args:
        name: Name of the group.
        with_gold: Outcomes over the top five.
        without: Outcomes over the top five without the gold passage.
        threshold: Minimum score of a known answer.
    """
    answerable = [each.score for each in with_gold if each.answerable]
    right = [each.score for each in with_gold if each.em]
    wrong = [each.score for each in with_gold if not each.em]
    rates = {
        "auroc_gold": auroc(answerable, [each.score for each in without]),
        "auroc_right": auroc(right, wrong),
        "em_of_all_if_known": sum(each.em for each in with_gold if each.score >= threshold) / max(len(with_gold), 1),
        "known_with_gold": sum(value >= threshold for value in answerable) / max(len(answerable), 1),
        "known_without": sum(each.score >= threshold for each in without) / max(len(without), 1),
    }
    print(f"{name}: " + ", ".join(f"{key} {value:.3f}" for key, value in rates.items()), flush=True)
    return {key: round(value, 4) for key, value in rates.items()}


def evaluate(data: Path, out: Path, seed: int, *, final: bool) -> dict[str, Any]:
    """Measure a reader after calibrating it on held-out questions, and write `calibration.json` and `figures.json`.

    Args:
        data: Folder with one folder per data set.
        out: Folder of the reader, with its networks and tokenizer.
        seed: Seed of the training, so that the same questions are held out.
        final: True to include the measured questions, which do not affect the calibration.

    Returns:
        All figures, as in `figures.json`.

    Raises:
        DataError: A data set is missing or broken.
    """
    model = load(out)
    studies = {name: _study(model, questions, index) for name, questions, index in held_out(data, seed)}
    fitted = calibrate(studies)
    (out / "calibration.json").write_text(json.dumps(asdict(fitted)) + "\n")
    if final:
        studies |= {name: _study(model, questions, index) for name, questions, index in measured(data)}
    report: dict[str, Any] = {
        "calibration": asdict(fitted),
        "speed": _speed(model, studies["held-out 2wiki"]["gold"]),
    }
    for name, readings in studies.items():
        report[name] = _summary(name, readings, fitted)
    if final:
        questions, index = _squad_dev(data, _SQUAD_DEV)
        for network in ("reader.int8.onnx", "reader.fp32.onnx"):
            results = _outcomes(_read(load(out, network), questions, index, "gold"), fitted)
            report[f"squad dev, {network}"] = _figures(f"squad dev, {network}", results)
    (out / "figures.json").write_text(json.dumps(report, indent=1) + "\n")
    return report


class CachedModel:
    """Model that reads each passage for a question only once."""

    def __init__(self, model: Model) -> None:
        self.calibration = model.calibration
        self._model = model
        self._seen: dict[tuple[str, str, str], list[MarkedSpan]] = {}

    def spans(self, question: str, texts: Sequence[tuple[str, str]], count: int = 3) -> list[MarkedSpan]:
        """Return the spans of all passages, best margin first.

        Args:
            question: The question.
            texts: Title and text of each passage.
            count: Maximum number of spans per passage. A passage that was read before keeps its first maximum.
        """
        spans: list[MarkedSpan] = []
        for place, (title, text) in enumerate(texts):
            key = (question, title, text)
            if key not in self._seen:
                self._seen[key] = self._model.spans(question, [(title, text)], count)
            spans += [replace(span, passage=place) for span in self._seen[key]]
        return sorted(spans, key=lambda span: (-span.margin, span.passage, span.start))


def _study(model: Model, questions: Sequence[GoldQuestion], index: Bm25) -> dict[str, list[Reading]]:
    """Return the readings of questions in each mode, by mode."""
    cached = CachedModel(model)
    return {mode: _read(cached, questions, index, mode) for mode in _MODES}


def _summary(name: str, readings: Mapping[str, Sequence[Reading]], fitted: Calibration) -> dict[str, Any]:
    """Print and return a group's figures. Unknown answers are counted with the calibration's minimum score."""
    gold, top, without = (_outcomes(readings[mode], fitted) for mode in _MODES)
    return {
        "gold": _figures(f"{name}, gold passage", gold),
        "top5": _figures(f"{name}, top five", top),
        "abstention": _abstention(name, top, without, fitted.least_score),
    }


def held_out(data: Path, seed: int) -> Iterator[tuple[str, list[GoldQuestion], Bm25]]:
    """Yield groups of held-out sub-questions and SQuAD questions.

    Args:
        data: Folder with one folder per data set.
        seed: Seed of the training, so that the same questions are held out.

    Yields:
        Name of the group, its questions (at most 200 of SQuAD), and an index to search.

    Raises:
        DataError: A data set is missing or broken.
    """
    multi = hops.load(data, seed)
    index = Bm25(text for each in multi.texts.values() for text in each.values())
    for group in sorted({each.group for each in multi.held_out}):
        yield f"held-out {group}", [each for each in multi.held_out if each.group == group], index
    questions = squad.load(data / "squad", seed)
    chosen = random.Random(seed).sample(questions.held_out, min(_HELD_OUT_SQUAD, len(questions.held_out)))
    yield "held-out squad", chosen, Bm25(text for texts in questions.articles.values() for text in texts)


def calibrate(studies: Mapping[str, Mapping[str, Sequence[Reading]]]) -> Calibration:
    """Return a calibration for readings of held-out questions.

    The readings are over the top five with and without the gold passage. Without it, no answer counts as correct.
    First, the weights of the subject's page and of the lexical reader's agreement are chosen. Then the confidence is
    fitted, and finally, the threshold is chosen.
    """
    tried = [Calibration(about=about, agrees=agrees) for about in _ABOUT for agrees in _AGREES]
    best = max(tried, key=lambda each: sum(_merit(study, each) for study in studies.values()))
    every = [reading for each in studies.values() for mode in ("top5", "without") for reading in each[mode]]
    results = _outcomes(every, best)
    scale, offset = platt([each.score for each in results], [each.em for each in results])
    fitted = replace(best, scale=round(scale, 4), offset=round(offset, 4))
    without = [_outcomes(each["without"], best) for each in studies.values()]
    astray = {each: _astray(without, replace(fitted, threshold=each)) for each in _THRESHOLDS}
    fitted = replace(fitted, threshold=next((t for t in _THRESHOLDS if astray[t] <= _MAX_ASTRAY), _THRESHOLDS[-1]))
    print(f"calibration: {fitted}, error {_calibration_error(results, fitted):.3f}", flush=True)
    return fitted


def _astray(without: Sequence[Sequence[Outcome]], fitted: Calibration) -> float:
    """Return the share of questions that are answered although their gold passage is missing, averaged over groups."""
    min_score = fitted.least_score
    return sum(sum(each.score >= min_score for each in group) / max(len(group), 1) for group in without) / len(without)


def _merit(readings: Mapping[str, Sequence[Reading]], tried: Calibration) -> float:
    """Return the share of correct answers plus the area under the ROC curve of correct answers against all others."""
    top, without = _outcomes(readings["top5"], tried), _outcomes(readings["without"], tried)
    right = [each.score for each in top if each.em]
    others = [each.score for each in (*top, *without) if not each.em]
    return sum(each.em for each in top) / max(len(top), 1) + auroc(right, others)


def _calibration_error(results: Sequence[Outcome], fitted: Calibration, bins: int = 10) -> float:
    """Return the mean distance between confidence and share of correct answers, from 0 to 1."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for each in results:
        chance = logistic(fitted.scale * each.score + fitted.offset)
        groups.setdefault(min(int(chance * bins), bins - 1), []).append((chance, each.em))
    gaps = [abs(sum(c for c, _ in group) - sum(e for _, e in group)) for group in groups.values()]
    return sum(gaps) / max(len(results), 1)


def measured(data: Path) -> Iterator[tuple[str, list[GoldQuestion], Bm25]]:
    """Yield groups of the measured questions, as `held_out` does. Use them only for final figures."""
    for name in ("2wikimultihopqa", "musique"):
        texts = corpus(data / name / "corpus.jsonl.gz")
        rng = random.Random(0)
        questions = [
            each
            for row in rows(data / name / "questions.jsonl.gz")
            for each in hops.sub_questions(name, row, texts, rng)
        ]
        for group in sorted({each.group for each in questions}):
            chosen = [each for each in questions if each.group == group]
            yield group, rng.sample(chosen, min(_MEASURED, len(chosen))), Bm25(texts.values())
    yield "squad", *_squad_dev(data, _HELD_OUT_SQUAD)


def _squad_dev(data: Path, count: int) -> tuple[list[GoldQuestion], Bm25]:
    """Return answerable questions of SQuAD's development set, the same in each run, with an index of its passages."""
    texts = corpus(data / "squad" / "corpus.jsonl.gz")
    answerable = [row for row in rows(data / "squad" / "questions.jsonl.gz") if row.answerable]
    chosen = random.Random(0).sample(answerable, min(count, len(answerable)))
    questions = [GoldQuestion(row.question, row.answers, gold(row, texts), "squad") for row in chosen]
    return questions, Bm25(texts.values())


def _speed(model: Model, readings: Sequence[Reading], rounds: int = 40) -> dict[str, float]:
    """Print and return the milliseconds per question over one passage and over five passages."""
    texts = [reading.question.text for reading in readings[:_TOP]]
    question = f"Who directed {texts[0].title}?"
    timings = {}
    for count in (1, _TOP):
        began = time.perf_counter()
        for _ in range(rounds // count):
            candidates_in(model, question, texts[:count])
        timings[f"ms_for_{count}"] = round(1000 * (time.perf_counter() - began) / (rounds // count), 1)
    print(f"speed: {timings}", flush=True)
    return timings
