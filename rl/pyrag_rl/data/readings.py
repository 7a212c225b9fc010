"""Rows of the Answer agent from questions whose gold passage is known, with the replies to learn.

Most questions stand over their gold passage alone, a share of them over several passages with the gold one among them,
and another share over others only: there the reply is unknown. The other passages are those that a search for the
question finds, so that they are about the same things, and in its order, as they are when the model is served.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyrag.errors import UsageError
from pyrag.llm.context import about_tokens
from pyrag.retrieval.protocol import Retriever
from pyrag.trace.model import UNKNOWN, Answer, Passage
from pyrag_rl.data.replies import answer_reply

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'“(]?[A-Z0-9])")
_WORD = re.compile(r"\w+")
_PROMPT = 80  # tokens of a prompt beside its passages and its question, and of the reply
_FOUND = 8  # passages searched for, of which some are left out
_MIN_TOKENS = 24  # of a passage: a shorter piece of one says nothing
OTHERS = (2, 3, 4)  # numbers of other passages
WHOLE = 5  # passages of a question that is read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingMix:
    """Shares of rows with several passages and of rows without the gold one; `tokens` is about the longest row."""

    several: float = 0.2
    unknown: float = 0.1
    tokens: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.several, self.unknown) < 0 or self.several + self.unknown > 1:
            raise UsageError("the shares of rows with several passages and without an answer are 0 to 1, 1 together")


@dataclass(frozen=True, slots=True)
class GoldReading:
    """The passages of a row and its reply; `sufficient` tells whether the gold passage is among them."""

    passages: tuple[Passage, ...]
    reply: str
    sufficient: bool


async def gold_reading(
    key: str, question: str, answers: Sequence[str], gold: Passage, retriever: Retriever, mix: ReadingMix
) -> GoldReading | None:
    """Return the passages and the reply of a question; None where its gold passage does not hold the answer.

    Args:
        key: Names the question in the draw.
        question: What is asked of the passages.
        answers: The gold spellings.
        gold: The gold passage.
        retriever: Finds the other passages.
        mix: Shares of the kinds of rows.
    """
    answer = next((one for one in answers if _holds(gold, one)), None)
    if answer is None:
        return None
    draw = random.Random(f"{mix.seed}:reading:{key}")  # noqa: S311  a draw, no secret
    place = draw.random()
    if place >= mix.several + mix.unknown:
        return _made([gold], gold, question, answer, mix)
    found = await retriever.retrieve(question, _FOUND)
    others = [one for one in found if one.id != gold.id and one.text != gold.text]
    if place < mix.unknown:
        unanswered = [one for one in others if not any(_holds(one, spelling) for spelling in answers)]
        return _made(unanswered[: 1 + draw.choice(OTHERS)], None, question, UNKNOWN, mix) if unanswered else None
    passages = [gold, *others[: draw.choice(OTHERS)]]
    ranks: dict[str, float] = {one.id: rank for rank, one in enumerate(found)}
    ranks.setdefault(gold.id, draw.uniform(-1, max(OTHERS)))  # the search did not find it: anywhere
    return _made(sorted(passages, key=lambda one: ranks[one.id]), gold, question, answer, mix)


async def whole_reading(
    key: str, question: str, answer: str, golds: Sequence[Passage], retriever: Retriever, mix: ReadingMix
) -> GoldReading:
    """Return the passages and the reply of a multi-hop question that is read at once, as vanilla RAG does.

    Args:
        key: Names the question in the draw.
        question: What is asked of the passages.
        answer: The gold answer, which the passages need not hold word for word.
        golds: All its gold passages.
        retriever: Finds other passages, up to `WHOLE` with the gold ones.
        mix: Its seed and tokens.
    """
    found = await retriever.retrieve(question, _FOUND)
    ids = {one.id for one in golds}
    passages = [*golds, *(one for one in found if one.id not in ids)][: max(WHOLE, len(golds))]
    random.Random(f"{mix.seed}:whole:{key}").shuffle(passages)  # noqa: S311  a draw, no secret
    cited = " ".join(f"Doc [{number}]" for number, one in enumerate(passages, start=1) if one.id in ids)
    if mix.tokens is not None:
        room = max((mix.tokens - _PROMPT - about_tokens(question)) // len(passages), _MIN_TOKENS)
        passages = [
            replace(one, text=shortened(one, answer if one.id in ids else "", question, room)) for one in passages
        ]
    return GoldReading(tuple(passages), answer_reply(Answer(_bare(answer)), f"{cited} answer it."), True)


def found_reading(answers: Sequence[str], found: Sequence[Passage]) -> GoldReading:
    """Return a reading of what a search found, with the gold answer as reply, whether or not a passage holds it.

    Args:
        answers: The gold spellings.
        found: The passages, best first.
    """
    spellings = [answer for answer in answers if any(_holds(passage, answer) for passage in found)]
    answer = spellings[0] if spellings else answers[0]
    numbers = [number for number, passage in enumerate(found, start=1) if _holds(passage, answer)]
    rationale = (
        f"{' '.join(f'Doc [{number}]' for number in numbers)} answer it." if numbers else "No document states it."
    )
    return GoldReading(tuple(found), answer_reply(Answer(_bare(answer)), rationale), bool(numbers))


def _holds(passage: Passage, answer: str) -> bool:
    """Return whether a passage holds an answer word for word."""
    return f" {_plain(answer)} " in f" {_plain(f'{passage.title} {passage.text}')} "


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _made(
    passages: Sequence[Passage], gold: Passage | None, question: str, answer: str, mix: ReadingMix
) -> GoldReading | None:
    if mix.tokens is not None:
        room = (mix.tokens - _PROMPT - about_tokens(question)) // len(passages)
        passages = [
            replace(one, text=shortened(one, answer if one is gold else "", question, max(room, _MIN_TOKENS)))
            for one in passages
        ]
    if gold is None:
        return GoldReading(tuple(passages), answer_reply(Answer(UNKNOWN, False), "No document answers it."), False)
    number = next(number for number, one in enumerate(passages, start=1) if one.id == gold.id)
    reply = answer_reply(Answer(_bare(answer)), f"Doc [{number}] answers it.")
    return GoldReading(tuple(passages), reply, True)


def _bare(answer: str) -> str:
    """An answer without the punctuation of the sentence that it was marked in."""
    answer = answer.strip().rstrip(",;:")
    return answer.removesuffix(".") if answer.count(".") == 1 else answer


def shortened(passage: Passage, answer: str, question: str, tokens: int) -> str:
    """Return neighbouring sentences of a passage: those around its answer, or from its beginning.

    Args:
        passage: The passage.
        answer: Text that must stay; empty if there is none.
        question: Its words tell which of several places of the answer is meant.
        tokens: About the most that title and text may take; more is taken where one sentence needs it.
    """
    sentences = _SENTENCE_END.split(passage.text)
    asked = set(_WORD.findall(question.casefold()))
    places = [number for number, one in enumerate(sentences) if answer and _plain(answer) in _plain(one)]
    if answer and not places and _holds(Passage("", "", passage.text), answer):
        return passage.text  # the answer goes over the end of a sentence
    first = max(places, key=lambda at: len(asked & set(_WORD.findall(sentences[at].casefold()))), default=0)
    last, room = first, tokens - about_tokens(passage.title)
    while True:
        wider = [(first - 1, last), (first, last + 1)]
        fitting = [
            (start, end)
            for start, end in wider
            if start >= 0 and end < len(sentences) and about_tokens(" ".join(sentences[start : end + 1])) <= room
        ]
        if not fitting:
            return " ".join(sentences[first : last + 1])
        first, last = fitting[0]
