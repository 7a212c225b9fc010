"""Scores of an answer against its gold spellings, and of retrieved passages against gold passages.

Normalisation and exact match follow SQuAD's official script, which HotpotQA, 2Wiki, MuSiQue and the papers share. The
scripts compute F1 differently, by the rules in `Script`. HoVer is scored by its label: see `as_label`.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
HOTPOT_WORDS = frozenset({"yes", "no", "noanswer"})
LABELS = ("SUPPORTED", "NOT_SUPPORTED")
_LABEL_WORDS = {
    "yes": "SUPPORTED", "true": "SUPPORTED", "supported": "SUPPORTED", "correct": "SUPPORTED",
    "no": "NOT_SUPPORTED", "false": "NOT_SUPPORTED", "notsupported": "NOT_SUPPORTED",
    "not supported": "NOT_SUPPORTED", "unsupported": "NOT_SUPPORTED", "refuted": "NOT_SUPPORTED",
    "incorrect": "NOT_SUPPORTED", "not true": "NOT_SUPPORTED",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Script:
    """Rules that differ between the official scripts.

    Attributes:
        strict_words: Normalised texts that have a nonzero F1 only if they are equal.
        empty_agrees: Whether two texts without tokens have F1 1 rather than 0.
        blank_golds: Whether gold spellings that normalise to nothing are kept; SQuAD 2.0 drops them.
    """

    strict_words: frozenset[str] = frozenset()
    empty_agrees: bool = True
    blank_golds: bool = True


SQUAD2 = Script(blank_golds=False)
HOTPOT = Script(HOTPOT_WORDS, empty_agrees=False)  # 2Wiki's script is adapted from it
MUSIQUE = Script()


def script_of(set_name: str) -> Script:
    """Return the official script of a set; MuSiQue's, which is the most general, for sets without a script."""
    marks = (("hotpot", HOTPOT), ("2wiki", HOTPOT), ("squad", SQUAD2))
    return next((script for mark, script in marks if mark in set_name.lower()), MUSIQUE)


def score_text(text: str, golds: Sequence[str], script: Script = MUSIQUE) -> tuple[float, float, float]:
    """Return EM, F1 and accuracy, each from 0 to 1.

    Args:
        text: The answer.
        golds: Gold spellings; empty if there is no right answer (SQuAD 2.0's unanswerable questions).
        script: Rules of the set's script.
    """
    if is_claim(golds):
        text = as_label(text) or text
    spellings = [gold for gold in golds if script.blank_golds or normalise(gold)] or [""]
    em = exact_match(text, spellings)
    accuracy = contains_gold(text, spellings) if any(map(normalise, spellings)) else em
    return em, f1(text, spellings, script.strict_words, empty_agrees=script.empty_agrees), accuracy


def is_claim(golds: Sequence[str]) -> bool:
    """Return True for the gold spellings of a claim (HoVer), which is either supported or not."""
    return bool(golds) and set(golds) <= set(LABELS)


def as_label(text: str) -> str | None:
    """Return HoVer's label for an answer to "Is this claim true?"; None for any other text."""
    answer = normalise(text)
    first = answer.partition(" ")[0]
    return _LABEL_WORDS.get(answer) or (_LABEL_WORDS[first] if first in ("yes", "no") else None)


def normalise(text: str) -> str:
    """Return a text in lower case, without punctuation and articles, with single spaces.

    This is SQuAD 1.1's `normalize_answer`.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, golds: Iterable[str]) -> float:
    """Return 1.0 if the prediction equals a gold spelling after normalisation, else 0.0.

    Args:
        prediction: The answer.
        golds: Gold spellings.
    """
    answer = normalise(prediction)
    return float(any(answer == normalise(gold) for gold in golds))


def f1(
    prediction: str, golds: Iterable[str], strict_words: Collection[str] = (), *, empty_agrees: bool = True
) -> float:
    """Return the best token overlap (harmonic mean of precision and recall) with a gold spelling, from 0 to 1.

    Args:
        prediction: The answer.
        golds: Gold spellings.
        strict_words: Normalised texts that score only if equal.
        empty_agrees: Whether two texts without tokens score 1.0.
    """
    answer = normalise(prediction)
    return max((_f1(answer, normalise(gold), strict_words, empty_agrees) for gold in golds), default=0.0)


def _f1(answer: str, gold: str, strict_words: Collection[str], empty_agrees: bool) -> float:
    if answer != gold and (answer in strict_words or gold in strict_words):
        return 0.0
    answer_tokens, gold_tokens = answer.split(), gold.split()
    if not answer_tokens or not gold_tokens:
        return float(empty_agrees and answer_tokens == gold_tokens)
    common = sum((Counter(answer_tokens) & Counter(gold_tokens)).values())
    if not common:
        return 0.0
    precision, recall = common / len(answer_tokens), common / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def contains_gold(prediction: str, golds: Iterable[str]) -> float:
    """Return 1.0 if the prediction contains a gold spelling, both normalised ("accuracy" in the papers), else 0.0.

    Args:
        prediction: The answer, or a passage.
        golds: Gold spellings; empty ones are ignored.
    """
    text = f" {normalise(prediction)} "
    return float(any(f" {normalise(gold)} " in text for gold in golds if normalise(gold)))


def support_recall(
    ids: Collection[str], supporting: Sequence[str], alternatives: Mapping[str, Sequence[str]] | None = None
) -> float:
    """Return the share of gold passages that were retrieved, from 0 to 1; 0 if there are no gold passages.

    Args:
        ids: Ids of retrieved passages.
        supporting: Ids of the gold passages.
        alternatives: Ids that also count as a gold passage.
    """
    if not supporting:
        return 0.0
    options = alternatives or {}
    hits = sum(any(key in ids for key in (gold, *options.get(gold, ()))) for gold in supporting)
    return hits / len(supporting)


def ndcg(ranked: Sequence[str], supporting: Sequence[str], k: int) -> float:
    """Return NDCG@k from 0 to 1; the first hit of each gold passage has relevance 1. 0 without gold passages.

    Args:
        ranked: Ids of passages, best first.
        supporting: Ids of the gold passages.
        k: Rank to cut at.
    """
    if not supporting or k <= 0:
        return 0.0
    remaining = set(supporting)
    ideal = sum(_discount(rank) for rank in range(1, min(k, len(remaining)) + 1))
    gained = 0.0
    for rank, passage in enumerate(ranked[:k], start=1):
        if passage in remaining:
            remaining.remove(passage)
            gained += _discount(rank)
    return min(gained / ideal, 1.0)  # sums in another order may differ in their last bit


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)
