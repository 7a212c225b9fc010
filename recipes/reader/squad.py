"""Stage 1: SQuAD's training questions, and passages of the same article that share words but lack the answer.

Some articles are held out: they set thresholds and calibrate confidence, and are never trained on.
"""

# ruff: noqa: S311  seeds must repeat

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError
from recipes.reader.layout import Asked, Text, corpus, gold, rows
from recipes.reader.windows import Example, ExampleEncoder, occurrence, terms

HELD_OUT_ARTICLES = 20
NEGATIVES = 0.33  # a question
SHORT, LONG = (48, 64, 80, 96, 112), (80, 104, 128, 160, 200)  # tokens of a window, early and late in training


@dataclass(frozen=True, slots=True)
class Squad:
    """The questions to train on and those held out, with all passages by article."""

    train: tuple[Asked, ...]
    held_out: tuple[Asked, ...]
    articles: dict[str, list[Text]]


def load(folder: Path, seed: int) -> Squad:
    """Read the training split and hold `HELD_OUT_ARTICLES` articles out.

    Args:
        folder: Holds `train_full_questions.jsonl.gz` and `train_full_corpus.jsonl.gz`.
        seed: Decides which articles are held out.

    Raises:
        DataError: a file is missing or broken, or has too few articles.
    """
    texts = corpus(folder / "train_full_corpus.jsonl.gz")
    articles: dict[str, list[Text]] = defaultdict(list)
    for text in texts.values():
        articles[text.title].append(text)
    if len(articles) <= HELD_OUT_ARTICLES:
        raise DataError(
            f"{folder} has {len(articles)} articles, of which {HELD_OUT_ARTICLES} are held out: fetch it again"
        )
    held = set(random.Random(seed).sample(sorted(articles), HELD_OUT_ARTICLES))
    questions = rows(folder / "train_full_questions.jsonl.gz")
    asked = [Asked(row.question, row.answers, gold(row, texts)) for row in questions if row.answers]
    train = tuple(each for each in asked if each.text.title not in held)
    return Squad(train, tuple(each for each in asked if each.text.title in held), dict(articles))


class Lookalikes:
    """Passages of one article ranked by the rare words they share with a question."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts
        self._terms = [terms(text.text) for text in texts]
        counts = Counter(word for words in self._terms for word in words)
        self._rarity = {word: math.log(1 + len(texts) / count) for word, count in counts.items()}

    def of(self, asked: Asked, count: int = 6) -> list[Text]:
        """Return the nearest passages that hold no answer, nearest first.

        Args:
            asked: The question; its own passage is left out.
            count: Passages at most; fewer where near ones hold an answer.
        """
        wanted = terms(asked.question)
        scored = [(math.fsum(self._rarity[w] for w in wanted & words), i) for i, words in enumerate(self._terms)]
        nearest = [self._texts[i] for _, i in sorted(scored, reverse=True)[: count + 1]]
        answers = [answer.lower() for answer in asked.answers]
        return [t for t in nearest if t is not asked.text and not any(a in t.text.lower() for a in answers)][:count]


def examples(squad: Squad, encoder: ExampleEncoder, seed: int, limit: int | None = None) -> list[Example]:
    """Make examples in training order: short windows first, longer ones later.

    Args:
        squad: Questions to train on, and the articles to find negatives in.
        encoder: Cuts windows and labels tokens.
        seed: Decides order, windows and negatives.
        limit: Questions are added until there are so many examples, so there may be one more; None for all.
    """
    rng = random.Random(seed)
    lookalikes = {title: Lookalikes(texts) for title, texts in squad.articles.items()}
    asked = list(squad.train)
    rng.shuffle(asked)
    made: list[Example] = []
    for place, each in enumerate(asked):
        if limit is not None and len(made) >= limit:
            break
        done = len(made) / limit if limit else place / len(asked)
        made += one(each, lookalikes[each.text.title], encoder, rng, LONG if rng.random() < done else SHORT)
    return made


def one(
    asked: Asked, near: Lookalikes, encoder: ExampleEncoder, rng: random.Random, budgets: Sequence[int]
) -> Iterator[Example]:
    """Yield the question over its passage, and at times over one that does not answer it.

    Args:
        asked: The question; its first answer is the label.
        near: Passages of its article, to draw the negative from.
        encoder: Cuts windows and labels tokens.
        rng: Draws window lengths, titles and negatives.
        budgets: Tokens of a passage's window to draw from.
    """
    span = occurrence(asked.text.text, asked.answers[0], asked.question)
    titled = rng.random() < 0.6
    if span is not None:
        made = encoder.example(asked.question, asked.text, span, budget=rng.choice(budgets), titled=titled, rng=rng)
        if made is not None:
            yield made
    if rng.random() < NEGATIVES and (others := near.of(asked)):
        other = rng.choice(others)
        made = encoder.example(asked.question, other, None, budget=rng.choice(budgets), titled=titled, rng=rng)
        if made is not None:
            yield made
