"""Rows of the Answer agent from questions whose gold passage is known, with the replies to learn.

Most questions have only their gold passage. A share of them have several passages, including the gold one, and another
share only have other passages, so that the reply is unknown. The other passages are found by a search for the question,
so they are about the same things, and they keep the order of the search, as when the model is served.
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
_PROMPT = 80  # tokens of the prompt without passages and question, and of the reply
_SEARCHED = 8  # number of passages searched for, of which some are left out
_MIN_TOKENS = 24  # minimum tokens of a passage, because shorter pieces say nothing
OTHERS = (2, 3, 4)  # numbers of other passages
WHOLE = 5  # number of passages of a question that is read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingMix:
    """Shares of rows with several passages and of rows without the gold passage; `tokens` limits a row's length."""

    several: float = 0.2
    unknown: float = 0.1
    tokens: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.several, self.unknown) < 0 or self.several + self.unknown > 1:
            raise UsageError("the shares of rows with several passages and without an answer are 0 to 1, 1 together")


@dataclass(frozen=True, slots=True)
class GoldReading:
    """Passages and reply of a row; `sufficient` is set if a passage has the answer."""

    passages: tuple[Passage, ...]
    reply: str
    sufficient: bool


async def gold_reading(
    key: str, question: str, answers: Sequence[str], gold: Passage, retriever: Retriever, mix: ReadingMix
) -> GoldReading | None:
    """Return the passages and the reply of a question; None if its gold passage does not contain the answer.

    Args:
        key: Key of the question in the random draw.
        question: Question about the passages.
        answers: Gold spellings.
        gold: The gold passage.
        retriever: Retriever that finds the other passages.
        mix: Shares of the kinds of rows.
    """
    answer = next((spelling for spelling in answers if _holds(gold, spelling)), None)
    if answer is None:
        return None
    draw = random.Random(f"{mix.seed}:reading:{key}")  # noqa: S311  a draw, no secret
    place = draw.random()
    if place >= mix.several + mix.unknown:
        return _made([gold], gold, question, answer, mix)
    ranked = await retriever.retrieve(question, _SEARCHED)
    others = [passage for passage in ranked if passage.id != gold.id and passage.text != gold.text]
    if place < mix.unknown:
        unanswered = [passage for passage in others if not any(_holds(passage, spelling) for spelling in answers)]
        return _made(unanswered[: 1 + draw.choice(OTHERS)], None, question, UNKNOWN, mix) if unanswered else None
    passages = [gold, *others[: draw.choice(OTHERS)]]
    ranks: dict[str, float] = {passage.id: rank for rank, passage in enumerate(ranked)}
    ranks.setdefault(gold.id, draw.uniform(-1, max(OTHERS)))  # at a random place if the search missed it
    return _made(sorted(passages, key=lambda passage: ranks[passage.id]), gold, question, answer, mix)


async def whole_reading(
    key: str, question: str, answer: str, golds: Sequence[Passage], retriever: Retriever, mix: ReadingMix
) -> GoldReading:
    """Return the passages and the reply of a multi-hop question that is read at once, as vanilla RAG does.

    Args:
        key: Key of the question in the random draw.
        question: Question about the passages.
        answer: Gold answer, which the passages need not contain verbatim.
        golds: All gold passages of the question.
        retriever: Retriever that finds other passages, up to `WHOLE` together with the gold ones.
        mix: Mix whose seed and token limit are used.
    """
    ranked = await retriever.retrieve(question, _SEARCHED)
    ids = {passage.id for passage in golds}
    passages = [*golds, *(passage for passage in ranked if passage.id not in ids)][: max(WHOLE, len(golds))]
    random.Random(f"{mix.seed}:whole:{key}").shuffle(passages)  # noqa: S311  a draw, no secret
    cited = " ".join(f"Doc [{number}]" for number, passage in enumerate(passages, start=1) if passage.id in ids)
    if mix.tokens is not None:
        room = max((mix.tokens - _PROMPT - about_tokens(question)) // len(passages), _MIN_TOKENS)
        passages = [
            replace(passage, text=shortened(passage, answer if passage.id in ids else "", question, room))
            for passage in passages
        ]
    return GoldReading(tuple(passages), answer_reply(Answer(_bare(answer)), f"{cited} answer it."), True)


def reading_of_matches(answers: Sequence[str], passages: Sequence[Passage]) -> GoldReading:
    """Return a reading of the passages of a search, with the gold answer as reply even if no passage contains it.

    Args:
        answers: Gold spellings.
        passages: The passages, best first.
    """
    spellings = [answer for answer in answers if any(_holds(passage, answer) for passage in passages)]
    answer = spellings[0] if spellings else answers[0]
    numbers = [number for number, passage in enumerate(passages, start=1) if _holds(passage, answer)]
    rationale = (
        f"{' '.join(f'Doc [{number}]' for number in numbers)} answer it." if numbers else "No document states it."
    )
    return GoldReading(tuple(passages), answer_reply(Answer(_bare(answer)), rationale), bool(numbers))


def _holds(passage: Passage, answer: str) -> bool:
    """Return whether a passage contains an answer verbatim."""
    return f" {_plain(answer)} " in f" {_plain(f'{passage.title} {passage.text}')} "


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _made(
    passages: Sequence[Passage], gold: Passage | None, question: str, answer: str, mix: ReadingMix
) -> GoldReading | None:
    if mix.tokens is not None:
        room = (mix.tokens - _PROMPT - about_tokens(question)) // len(passages)
        passages = [
            replace(
                passage, text=shortened(passage, answer if passage is gold else "", question, max(room, _MIN_TOKENS))
            )
            for passage in passages
        ]
    if gold is None:
        return GoldReading(tuple(passages), answer_reply(Answer(UNKNOWN, False), "No document answers it."), False)
    number = next(number for number, passage in enumerate(passages, start=1) if passage.id == gold.id)
    reply = answer_reply(Answer(_bare(answer)), f"Doc [{number}] answers it.")
    return GoldReading(tuple(passages), reply, True)


def _bare(answer: str) -> str:
    """Return an answer without punctuation from the sentence in which it was marked."""
    answer = answer.strip().rstrip(",;:")
    return answer.removesuffix(".") if answer.count(".") == 1 else answer


def shortened(passage: Passage, answer: str, question: str, tokens: int) -> str:
    """Return neighbouring sentences of a passage: around its answer, or from its beginning.

    Args:
        passage: The passage.
        answer: Text that must be kept; empty if there is none.
        question: Question whose words are used to choose between several places of the answer.
        tokens: Approximate maximum for title and text; exceeded if a single sentence is longer.
    """
    sentences = _SENTENCE_END.split(passage.text)
    asked = set(_WORD.findall(question.casefold()))
    places = [number for number, sentence in enumerate(sentences) if answer and _plain(answer) in _plain(sentence)]
    if answer and not places and _holds(Passage("", "", passage.text), answer):
        return passage.text  # the answer crosses the end of a sentence
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
