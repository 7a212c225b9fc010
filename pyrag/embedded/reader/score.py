"""Answers to any question: every candidate span of the best sentences, scored by a linear model over plain features.

The weights in `reader_weights` were fitted by `benchmarks/embedded_reader_fit.py` on training questions; there is no
other learned part in the embedded engine. Relations with known wordings are read by patterns first (`reader_facts`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyrag.embedded.lexicon import is_country, words
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.spans import Span, clauses, dates, names, numbers, phrases, quoted
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import STOPWORDS, Sentence, content_stem, fold

SENTENCES = 7
_MAX_TOKENS = 12
_LEFT = words("""
    in at on by of the to from for with as was is were are a an and or named called into than about near that under
    ( , " :
""")
_RIGHT = words("""in at on by of the to from for with as was is were are and or who which that ( ) , . ; " 's""")
Features = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Terms:
    """The question's content stems with their weights: rare among the sentences at hand counts more."""

    weights: dict[str, float]
    total: float
    head: str
    folded: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span with the features it is scored by."""

    page: View
    sentence: Sentence
    span: Span
    features: Features

    @property
    def text(self) -> str:
        return self.sentence.span(self.span.first, self.span.stop)


def terms(want: QuestionAnalysis, pages: Sequence[View]) -> Terms:
    words = fold(want.question.replace(">>", " ")).split()
    stems = {found for word in words if (found := content_stem(word))}
    every = [set(each.stems) for page in pages for each in page.sentences]
    weights = {}
    for each in sorted(stems):
        seen = sum(each in there for there in every)
        weights[each] = math.log(1.0 + (len(every) + 1) / (seen + 1))
    return Terms(
        weights, sum(weights.values()) or 1.0, content_stem(want.head) if want.head else "", f" {fold(want.question)} "
    )


@dataclass(frozen=True, slots=True)
class Scene:
    """A sentence with what it shares with the question."""

    page: View
    sentence: Sentence
    own: float  # share of the question's weight in the sentence itself
    wide: float  # … with the title and the sentence before


def scenes(found: Terms, pages: Sequence[View]) -> list[Scene]:
    """The sentences that share most with the question, best first."""
    every: list[Scene] = []
    for page in pages:
        title = {content_stem(word) for word in fold(page.title).split()}
        before: set[str] = set()
        for sentence in page.sentences:
            here = set(sentence.stems)
            own = sum(weight for stem, weight in found.weights.items() if stem in here)
            around = sum(weight for stem, weight in found.weights.items() if stem not in here and stem in title)
            back = sum(
                weight
                for stem, weight in found.weights.items()
                if stem not in here and stem not in title and stem in before
            )
            every.append(Scene(page, sentence, own / found.total, (own + 0.9 * around + 0.4 * back) / found.total))
            before = here
    every.sort(key=lambda scene: (-scene.wide, scene.page.position, scene.sentence.index))
    return every[:SENTENCES]


def _spans(sentence: Sentence, asked: str) -> Iterator[Span]:
    found = dates(sentence)
    found += numbers(sentence, found)
    found += quoted(sentence)
    found += clauses(sentence) if asked in ("clause", "cause") else []
    named = names(sentence)
    joined = [
        Span(left.first, right.stop, "names")
        for left, right in pairwise(named)
        if right.first - left.stop <= 1 and sentence.lowers[left.stop : right.first] in ((), ("and",), (",",), ("&",))
    ]
    seen: set[tuple[int, int]] = set()
    for span in (*found, *named, *joined, *phrases(sentence)):
        if (span.first, span.stop) not in seen and span.stop - span.first <= _MAX_TOKENS:
            seen.add((span.first, span.stop))
            yield span


def candidates(want: QuestionAnalysis, pages: Sequence[View]) -> list[Candidate]:
    found = terms(want, pages)
    result: list[Candidate] = []
    for rank, scene in enumerate(scenes(found, pages)):
        near = _nearness(scene.sentence, found)
        shared = _scene_features(scene, rank, want)
        for span in _spans(scene.sentence, want.kind):
            stems = [stem for stem in scene.sentence.stems[span.first : span.stop] if stem]
            if (stems and all(stem in found.weights for stem in stems)) or not fits(want, scene.sentence, span):
                continue
            features = shared + _span_features(want, found, scene.sentence, span, near, stems)
            result.append(Candidate(scene.page, scene.sentence, span, features))
    return result


_FITTING = {
    "date": {"date", "year"},
    "person": {"name", "person", "names", "opener"},
    "place": {"place", "name"},
    "country": {"place", "nationality", "name"},
    "nationality": {"nationality", "place"},
    "number": {"number", "bare number"},
    "state": {"place", "name"},
    "county": {"place", "name"},
}
_IN_PLACE = words("in at near of from to , the on (")


def fits(want: QuestionAnalysis, sentence: Sentence, span: Span) -> bool:
    """Whether a span has the kind of a known relation; without a relation the weights decide."""
    allowed = _FITTING.get(want.kind) if want.relation else None
    if allowed is None:
        return True
    text = sentence.span(span.first, span.stop)
    if want.kind == "country" and not is_country(text.removeprefix("the ")):
        return False
    if want.kind in ("place", "person") and (any(map(str.isdigit, text)) or text.endswith(("-based", "-born"))):
        return False  # "March 16" may look like a name
    left = sentence.lowers[span.first - 1] if span.first else ""
    return span.kind in allowed and (want.kind != "place" or left in _IN_PLACE)


def _scene_features(scene: Scene, rank: int, want: QuestionAnalysis) -> Features:
    return [
        ("own", scene.own), ("wide", scene.wide), ("about", scene.page.about), ("mentions", scene.page.mentions),
        (f"rank {min(rank, 4)}", 1.0), (f"page {min(scene.page.position, 3)}", 1.0),
        ("lead", float(scene.sentence.index == 0)), ("long", min(len(scene.sentence.words), 60) / 60),
    ]  # fmt: skip


def _nearness(sentence: Sentence, found: Terms) -> list[tuple[int, float]]:
    """Positions of question words in the sentence with their share of the weight; the first two of each stem."""
    seen: dict[str, int] = {}
    result = []
    for index, stem in enumerate(sentence.stems):
        weight = found.weights.get(stem, 0.0)
        if weight and seen.get(stem, 0) < 2:
            seen[stem] = seen.get(stem, 0) + 1
            result.append((index, weight / found.total))
    return result


def _span_features(
    want: QuestionAnalysis,
    found: Terms,
    sentence: Sentence,
    span: Span,
    near: list[tuple[int, float]],
    stems: list[str],
) -> Features:
    first, stop, asked = span.first, span.stop, want.kind
    left = sentence.lowers[first - 1] if first else "^"
    right = sentence.lowers[stop] if stop < len(sentence.words) else "$"
    before = sum(weight / (first - at + 1) for at, weight in near if at < first)
    after = sum(weight / (at - stop + 2) for at, weight in near if at >= stop)
    distance = min(
        (first - at if at < first else at - stop + 1 for at, _ in near if not first <= at < stop), default=20
    )
    inside = sum(stem in found.weights for stem in stems) / len(stems) if stems else 0.0
    length = stop - first
    left_word, right_word = left if left in _LEFT else "…", right if right in _RIGHT else "…"
    features = [
        (f"{asked}|{span.kind}", 1.0), (f"{asked}<{left_word}", 1.0), (f"{asked}>{right_word}", 1.0),
        ("before", before), ("after", after), (f"distance {min(distance, 8)}", 1.0), ("inside", inside),
        (f"{span.kind} length {min(length, 6)}", 1.0), (f"{asked} long", min(length, 8) / 8),
        (f"{span.kind}<{left_word}", 1.0),
    ]  # fmt: skip
    features += _edge_features(found, sentence, span, left)
    low, high = _segment(sentence, first, stop)
    features.append(("segment", sum(weight for at, weight in near if low <= at < high and not first <= at < stop)))
    features.append(
        ("window", sum(weight for at, weight in near if first - 6 <= at < stop + 6 and not first <= at < stop))
    )
    features.append((f"{want.shape} {span.kind}", 1.0))
    features.append(_side(want.shape, found, sentence, span, left))
    if found.head:
        features += _head_features(found.head, sentence, span, asked)
    return features


def _segment(sentence: Sentence, first: int, stop: int) -> tuple[int, int]:
    """The part of the sentence between commas and the like in which a span stands."""
    low, high = first, stop
    while low and sentence.lowers[low - 1] not in _BREAKS:
        low -= 1
    while high < len(sentence.words) and sentence.lowers[high] not in _BREAKS:
        high += 1
    return low, high


_BREAKS = frozenset((",", ";", ":", "(", ")", "—", "–"))


def _side(shape: str, found: Terms, sentence: Sentence, span: Span, left: str) -> tuple[str, float]:
    """Whether the span stands before or after the nearest plain word of the question: doer or thing done."""
    best, side = 99, "none"
    for index, stem in enumerate(sentence.stems):
        if stem in found.weights and not sentence.words[index][0].isupper() and not span.first <= index < span.stop:
            distance = span.first - index if index < span.first else index - span.stop + 1
            if distance < best:
                best, side = distance, "after" if index < span.first else "before"
    near = "near" if best <= 3 else "far"
    return f"{shape} {side} {near}{' by' if left == 'by' else ''}", 1.0


def _edge_features(found: Terms, sentence: Sentence, span: Span, left: str) -> Features:
    features: Features = []
    first, stop = span.first, span.stop
    if first and sentence.stems[first - 1] in found.weights:
        features.append(("left in question", 1.0))
    if stop < len(sentence.words) and sentence.stems[stop] in found.weights:
        features.append((f"right in question {span.kind == 'number'}", 1.0))
    features += _phrase_features(sentence, span, left) if span.kind == "phrase" else []
    if left == "(" or (stop < len(sentence.words) and sentence.words[stop] == ")"):
        features.append(("in brackets", 1.0))
    if stop < len(sentence.words) and sentence.lowers[stop] not in STOPWORDS and sentence.words[stop].isalnum():
        features.append(("cut right", 1.0))
    if first and sentence.stems[first - 1]:
        features.append(("cut left", 1.0))
    return features


def _phrase_features(sentence: Sentence, span: Span, left: str) -> Features:
    """Endings of a plain phrase's first and last word: it has no part-of-speech tags to tell verbs from nouns."""
    features: Features = [("after article", 1.0)] if left in ("the", "a", "an") else []
    for name, word in (("starts", sentence.lowers[span.first]), ("ends", sentence.lowers[span.stop - 1])):
        ending = next((each for each in ("ed", "ing", "ly", "s") if word.endswith(each) and len(word) > 4), "")
        if ending:
            features.append((f"{name} -{ending}", 1.0))
    return features


def _head_features(head: str, sentence: Sentence, span: Span, asked: str) -> Features:
    """How the noun after "which" stands to the span: within it, before it ("the river Don"), after it."""
    features: Features = []
    if head in sentence.stems[span.first : span.stop]:
        features.append(("head within", 1.0))
        if span.stop - span.first == 1:
            features.append(("head alone", 1.0))
    if head in sentence.stems[max(span.first - 3, 0) : span.first]:
        features.append(("head before", 1.0))
    if head in sentence.stems[span.stop : span.stop + 2]:
        features.append((f"head after {asked}", 1.0))
    return features


@dataclass(frozen=True, slots=True)
class Guess:
    """The best candidate and how sure it is; `signs` are what the certainty was computed from."""

    candidate: Candidate
    confidence: float
    signs: Features


def guess(
    want: QuestionAnalysis, pages: Sequence[View], weights: dict[str, float], sureness: dict[str, float]
) -> Guess | None:
    """The best answer among all candidates; equal texts add up."""
    found = candidates(want, pages)
    if not found:
        return None
    scores = [total(each.features, weights) for each in found]
    top = max(scores)
    mass: dict[str, float] = {}
    for each, score in zip(found, scores, strict=True):
        key = fold(each.text)
        mass[key] = mass.get(key, 0.0) + math.exp(score - top)
    best = max(range(len(found)), key=lambda index: (mass[fold(found[index].text)], scores[index], -index))
    share = mass[fold(found[best].text)] / sum(mass.values())
    signs = _signs(want, found[best], share, top)
    return Guess(found[best], 1 / (1 + math.exp(-total(signs, sureness))), signs)


def _signs(want: QuestionAnalysis, best: Candidate, share: float, score: float) -> Features:
    seen = names_seen(want, best.page)
    by_name = dict(best.features[:8])
    return [
        ("one", 1.0), ("share", share), ("log share", math.log(share)), ("score", score), ("own", by_name["own"]),
        ("wide", by_name["wide"]), ("about", best.page.about), ("mentions", best.page.mentions), ("names", seen),
        ("all names", float(seen == 1.0)), (f"asked {want.kind}", 1.0), ("related", float(bool(want.relation))),
        ("first page", float(best.page.position == 0)),
    ]  # fmt: skip


def names_seen(want: QuestionAnalysis, page: View) -> float:
    """Share of the capitalised words and numbers of the question that the page has; 1 where there are none."""
    wanted = {
        word
        for token in want.question.split()[1:]
        if token[:1].isupper() or token[:1].isdigit() or token[:1] in '"“'
        for word in fold(token).split()
        if word not in STOPWORDS
    }
    if not wanted:
        return 1.0
    there = {part for each in page.sentences for word in each.lowers for part in fold(word).split()} | set(
        fold(page.title).split()
    )
    return sum(word in there or word.removesuffix("s") in there for word in wanted) / len(wanted)


def total(features: Features, weights: dict[str, float]) -> float:
    score = 0.0
    for name, value in features:
        if name in weights:
            score += weights[name] * value
    return score
