"""Examples of stage 2: sub-questions of multi-hop questions, facts found by patterns, and misleading passages.

They come from the training splits of 2Wiki, MuSiQue and HotpotQA. Some questions are held out, with the passages that
they need, to measure the reader, set its threshold and calibrate its confidence.
"""

# ruff: noqa: S311  seeds must repeat

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipes.reader.facts import OF_PEOPLE, OF_WORKS, facts, kind_of
from recipes.reader.layout import Corpus, GoldQuestion, Row, Text, corpus, rows
from recipes.reader.search import Bm25
from recipes.reader.squad import Lookalikes, Squad
from recipes.reader.squad import examples_of as squad_examples
from recipes.reader.windows import Example, ExampleEncoder, occurrence
from recipes.reader.wordings import draw_questions, is_silent, wordings

SETS = ("2wikimultihopqa", "musique", "hotpotqa")
HELD_OUT = 0.18  # of the questions of each set
BUDGETS = (96, 128, 160, 200)
_RARE = 120  # a relation with fewer silver facts gets two questions per fact


@dataclass(frozen=True, slots=True)
class Hop:
    """Question for training.

    Args:
        question: The question.
        answer: Answer to the question. Empty if the passage does not contain it.
        text: Passage to read.
        span: Position of the answer's first character, and the position after its last. None if the passage lacks the
            answer.
        negatives: Number of examples to make with other passages, which do not answer the question.
    """

    question: str
    answer: str
    text: Text
    span: tuple[int, int] | None
    negatives: int


@dataclass(frozen=True, slots=True)
class Hops:
    """Data of stage 2, without its SQuAD part.

    Args:
        train: Questions for training.
        held_out: Questions that are held out.
        texts: Passages by data set.
    """

    train: tuple[Hop, ...]
    held_out: tuple[GoldQuestion, ...]
    texts: dict[str, Corpus]


def load(folder: Path, seed: int) -> Hops:
    """Read the three sets, hold out some of their questions, and make training questions from the others.

    Args:
        folder: Folder with one folder per set, named as in `SETS`.
        seed: Seed for the choice of held-out questions and of wordings.

    Raises:
        DataError: A file is missing or broken, or a passage that a question needs is missing.
    """
    rng = random.Random(seed)
    texts = {name: corpus(folder / name / "train_corpus.jsonl.gz") for name in SETS}
    train: list[Hop] = []
    held_out: list[GoldQuestion] = []
    barred: set[str] = set()  # titles whose passages answer held-out questions
    for name in SETS:
        questions = rows(folder / name / "train_questions.jsonl.gz")
        rng.shuffle(questions)
        cut = int(len(questions) * HELD_OUT)
        for row in questions[:cut]:
            barred |= {texts[name][each].title for each in row.supporting}
            held_out += sub_questions(name, row, texts[name], rng)
        for row in questions[cut:]:
            train += _hops(name, row, texts[name], rng)
    usable = [text for each in texts.values() for text in each.values() if text.title not in barred]
    train = [hop for hop in train if hop.text.title not in barred]
    train += [*_silver(usable, rng), *_silent(usable, rng)]
    return Hops(tuple(train), tuple(held_out), texts)


def _steps(row: Row) -> Iterator[tuple[str, str, str]]:
    """Yield question, answer and passage id of each step of a MuSiQue question, with references replaced by answers."""
    answers = [step.first_answer for step in row.decomposition]
    for step, answer in zip(row.decomposition, answers, strict=True):
        text = re.sub(r"#(\d)", lambda match: answers[int(match.group(1)) - 1], step.question)
        if step.supporting:
            yield text.replace(" 's", "'s").strip(), answer, step.supporting


def _triples(row: Row, texts: Corpus) -> Iterator[tuple[str, str, str, Text]]:
    """Yield 2Wiki's triples, each with the page of its subject."""
    for subject, relation, value in row.evidences or ():
        pages = [texts[each] for each in row.supporting]
        page = next((p for p in pages if p.title == subject), None)
        page = page or next((p for p in pages if p.title.startswith(subject) or subject.startswith(p.title)), None)
        if page is not None:
            yield subject, relation, value, page


def sub_questions(name: str, row: Row, texts: Corpus, rng: random.Random) -> Iterator[GoldQuestion]:
    """Yield the sub-questions of a held-out question. HotpotQA has none.

    Args:
        name: Name of the data set, as in `SETS`.
        row: Question with its decomposition or triples.
        texts: Passages of the set.
        rng: Random generator that chooses between the two plainest wordings of 2Wiki's relations.
    """
    if name == "2wikimultihopqa":
        for subject, relation, value, page in _triples(row, texts):
            yield GoldQuestion(rng.choice(wordings(relation)[:2]).format(subject), (value,), page, "2wiki")
    elif name == "musique":
        for question, answer, gold in _steps(row):
            subject, arrow, relation = (part.strip() for part in question.partition(">>"))
            wording = wordings(relation)[0].format(subject) if arrow else question
            yield GoldQuestion(wording, (answer,), texts[gold], "musique >>" if arrow else "musique")


def _from_arrow(question: str, rng: random.Random, count: int) -> list[str]:
    """Return wordings of MuSiQue's "X >> relation"."""
    subject, _, relation = (part.strip() for part in question.partition(">>"))
    return draw_questions(relation, subject, rng, count)


def _subject(text: Text, rng: random.Random) -> str:
    """Return a name of the passage's subject: its title, or sometimes its kind and title, as in "the film Alpha"."""
    kind = kind_of(text) == "work" and re.search(
        r"\b(?:is|was) [^.]*?\b(film|song|single|album|novel|book|band|series|magazine)\b", text.text
    )
    if not kind or rng.random() < 0.7:
        return text.title
    return f"the {kind.group(1)} {re.sub(r' *[(][^)]*[)]', '', text.title)}"


def _hops(name: str, row: Row, texts: Corpus, rng: random.Random) -> Iterator[Hop]:
    """Yield the training questions made from a question of a data set."""
    if name == "2wikimultihopqa":
        for subject, relation, value, page in _triples(row, texts):
            for question in draw_questions(relation, subject, rng, 3):
                yield Hop(question, value, page, occurrence(page.text, value, question), rng.choice((1, 1, 2)))
    elif name == "musique":
        for question, answer, gold in _steps(row):
            wordings = [question, *_from_arrow(question, rng, 2)] if ">>" in question else [question, question]
            for wording in wordings:
                yield Hop(
                    wording, answer, texts[gold], occurrence(texts[gold].text, answer, wording), rng.choice((1, 2, 2))
                )
    else:
        yield from _whole(row, [texts[each] for each in row.supporting], rng)


def _whole(row: Row, gold: list[Text], rng: random.Random) -> Iterator[Hop]:
    """Yield a HotpotQA question over each passage that contains the answer, and over both passages joined."""
    answer = row.answers[0].rstrip(".")
    both = Text("+".join(each.id for each in gold), "", " ".join(each.text for each in gold))
    for text in (*gold, both, both):
        span = occurrence(text.text, answer, row.question)
        if span is not None and answer.lower() not in ("yes", "no"):
            yield Hop(row.question, answer, text, span, rng.choice((1, 2)))


def _silver(texts: Iterable[Text], rng: random.Random) -> Iterator[Hop]:
    """Yield questions for the facts that patterns find, two per fact of a rare relation."""
    texts_and_facts = [(text, fact) for text in texts for fact in facts(text)]
    counts: dict[str, int] = {}
    for _, fact in texts_and_facts:
        counts[fact.relation] = counts.get(fact.relation, 0) + 1
    for text, fact in texts_and_facts:
        answer = text.text[fact.start : fact.end]
        for question in draw_questions(
            fact.relation, _subject(text, rng), rng, 2 if counts[fact.relation] < _RARE else 1
        ):
            yield Hop(question, answer, text, (fact.start, fact.end), rng.choice((1, 1, 2)))


def _silent(texts: Iterable[Text], rng: random.Random) -> Iterator[Hop]:
    """Yield questions about the subjects of passages that these passages do not answer."""
    for text in texts:
        kind = kind_of(text)
        fitting = OF_PEOPLE if kind == "person" else OF_WORKS if kind == "work" else frozenset()
        quiet = sorted(relation for relation in fitting if is_silent(relation, text.text))
        if quiet:
            yield Hop(draw_questions(rng.choice(quiet), _subject(text, rng), rng)[0], "", text, None, 0)


def examples(
    hops: Hops, squad: Squad, encoder: ExampleEncoder, seed: int, share: float, limit: int | None = None
) -> list[Example]:
    """Return the examples of stage 2 in training order, mixed with SQuAD's.

    Args:
        hops: Questions for training, and passages to find negatives in.
        squad: Questions of SQuAD.
        encoder: Encoder that cuts windows and labels tokens.
        seed: Seed for negatives, windows and order.
        share: SQuAD's share of all examples, at least 0 and below 1.
        limit: Maximum number of examples. None for all.
    """
    rng = random.Random(seed)
    index = Bm25(text for each in hops.texts.values() for text in each.values())
    made = [example for hop in hops.train for example in _examples_of(hop, index, encoder, rng)]
    wanted = int(len(made) * share / (1 - share))
    near: dict[str, Lookalikes] = {}
    replay: list[Example] = []
    for each in rng.sample(squad.train, len(squad.train)):
        if len(replay) >= wanted:
            break
        replay += _replay(each, near, squad, encoder, rng)
    made += replay
    rng.shuffle(made)
    return made[:limit]


def _replay(
    question: GoldQuestion, near: dict[str, Lookalikes], squad: Squad, encoder: ExampleEncoder, rng: random.Random
) -> list[Example]:
    """Return the examples of a SQuAD question, with different window lengths than in stage 1."""
    title = question.text.title
    near[title] = near.get(title) or Lookalikes(squad.articles[title])
    return list(squad_examples(question, near[title], encoder, rng, BUDGETS))


def _examples_of(hop: Hop, index: Bm25, encoder: ExampleEncoder, rng: random.Random) -> Iterator[Example]:
    """Yield a question's examples: over its own passage, and over others that BM25 finds for it."""
    chosen: Sequence[tuple[Text, tuple[int, int] | None]] = [(hop.text, hop.span)] if hop.span or not hop.answer else []
    others: list[Text] = []
    if hop.negatives:
        others = [text for text in index.search(hop.question, 8) if _answerless(text, hop)][:5]
    for text, span in (*chosen, *((other, None) for other in rng.sample(others, min(len(others), hop.negatives)))):
        made = encoder.example(hop.question, text, span, budget=rng.choice(BUDGETS), titled=rng.random() < 0.7, rng=rng)
        if made is not None:
            yield made


def _answerless(text: Text, hop: Hop) -> bool:
    """Return whether a passage is not the question's own and does not contain its answer."""
    return text.title != hop.text.title and hop.answer.lower() not in f"{text.title} {text.text}".lower()
