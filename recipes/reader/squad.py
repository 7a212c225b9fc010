"""Examples of stage 1: SQuAD's training questions, and similar passages of the same article that lack the answer."""

# ruff: noqa: S311  seeds must repeat

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyrag.errors import DataError
from recipes.reader.layout import GoldQuestion, Text, corpus, gold, rows
from recipes.reader.windows import Example, ExampleEncoder, occurrence, terms

HELD_OUT_ARTICLES = 20
NEGATIVES = 0.33  # per question
SHORT, LONG = (48, 64, 80, 96, 112), (80, 104, 128, 160, 200)  # tokens of a window, early and late in training


@dataclass(frozen=True, slots=True)
class Squad:
    """Questions for training and held-out questions, with all passages by article."""

    train: tuple[GoldQuestion, ...]
    held_out: tuple[GoldQuestion, ...]
    articles: dict[str, list[Text]]


def load(folder: Path, seed: int) -> Squad:
    """Read the training split, and hold out `HELD_OUT_ARTICLES` articles.

    Args:
        folder: Folder with `train_full_questions.jsonl.gz` and `train_full_corpus.jsonl.gz`.
        seed: Seed for the choice of held-out articles.

    Raises:
        DataError: A file is missing or broken, or has too few articles.
    """
    texts = corpus(folder / "train_full_corpus.jsonl.gz")
    articles: dict[str, list[Text]] = defaultdict(list)
    for text in texts.values():
        articles[text.title].append(text)
    if len(articles) <= HELD_OUT_ARTICLES:
        raise DataError(
            f"{folder} has {len(articles)} articles, of which {HELD_OUT_ARTICLES} are held out: fetch it again"
        )
    held_out_titles = set(random.Random(seed).sample(sorted(articles), HELD_OUT_ARTICLES))
    questions = rows(folder / "train_full_questions.jsonl.gz")
    usable = [GoldQuestion(row.question, row.answers, gold(row, texts)) for row in questions if row.answers]
    train = tuple(each for each in usable if each.text.title not in held_out_titles)
    return Squad(train, tuple(each for each in usable if each.text.title in held_out_titles), dict(articles))


class Lookalikes:
    """Passages of an article, ranked by the rare words that they share with a question."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts
        self._terms = [terms(text.text) for text in texts]
        counts = Counter(word for words in self._terms for word in words)
        self._rarity = {word: math.log(1 + len(texts) / count) for word, count in counts.items()}

    def of(self, question: GoldQuestion, count: int = 6) -> list[Text]:
        """Return the most similar passages without the answer, most similar first.

        Args:
            question: The question. Its own passage is excluded.
            count: Maximum number of passages. There may be fewer, since passages with the answer are excluded.
        """
        question_terms = terms(question.question)
        scored = [
            (math.fsum(self._rarity[w] for w in question_terms & words), i) for i, words in enumerate(self._terms)
        ]
        nearest = [self._texts[i] for _, i in sorted(scored, reverse=True)[: count + 1]]
        answers = [answer.lower() for answer in question.answers]
        return [t for t in nearest if t is not question.text and not any(a in t.text.lower() for a in answers)][:count]


def examples(squad: Squad, encoder: ExampleEncoder, seed: int, limit: int | None = None) -> list[Example]:
    """Return the examples of stage 1 in training order, with short windows first and longer windows later.

    Args:
        squad: Questions for training, and articles to find negatives in.
        encoder: Encoder that cuts windows and labels tokens.
        seed: Seed for order, windows and negatives.
        limit: Number of examples after which no question is added, so there may be one more. None for all.
    """
    rng = random.Random(seed)
    lookalikes = {title: Lookalikes(texts) for title, texts in squad.articles.items()}
    questions = list(squad.train)
    rng.shuffle(questions)
    made: list[Example] = []
    for place, each in enumerate(questions):
        if limit is not None and len(made) >= limit:
            break
        done = len(made) / limit if limit else place / len(questions)
        made += examples_of(each, lookalikes[each.text.title], encoder, rng, LONG if rng.random() < done else SHORT)
    return made


def examples_of(
    question: GoldQuestion, near: Lookalikes, encoder: ExampleEncoder, rng: random.Random, budgets: Sequence[int]
) -> Iterator[Example]:
    """Yield a question's examples: over its passage and, for some questions, over one without the answer.

    Args:
        question: The question. Its first answer is the label.
        near: Passages of the question's article to draw the negative from.
        encoder: Encoder that cuts windows and labels tokens.
        rng: Random generator for window lengths, titles and negatives.
        budgets: Window lengths in tokens to draw from.
    """
    span = occurrence(question.text.text, question.answers[0], question.question)
    titled = rng.random() < 0.6
    if span is not None:
        made = encoder.example(
            question.question, question.text, span, budget=rng.choice(budgets), titled=titled, rng=rng
        )
        if made is not None:
            yield made
    if rng.random() < NEGATIVES and (others := near.of(question)):
        other = rng.choice(others)
        made = encoder.example(question.question, other, None, budget=rng.choice(budgets), titled=titled, rng=rng)
        if made is not None:
            yield made
