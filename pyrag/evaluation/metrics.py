"""Scores of an answer against its gold spellings, and of a trace's retrieval against the gold passages.

Normalisation and exact match are those of SQuAD's official script, which HotpotQA, 2Wiki, MuSiQue and the papers share.
Their F1 differ in two rules, which a `Script` holds. HoVer is scored by its label: see `as_label`.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyrag.trace.model import Trace

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
    """The rules in which the official scripts differ.

    `strict_words` score an F1 only by equality. `empty_agrees`: two texts without a token agree (F1 1, else 0).
    `blank_golds`: gold spellings that normalise to nothing stay; SQuAD 2.0 drops them.
    """

    strict_words: frozenset[str] = frozenset()
    empty_agrees: bool = True
    blank_golds: bool = True


SQUAD2 = Script(blank_golds=False)
HOTPOT = Script(HOTPOT_WORDS, empty_agrees=False)  # 2Wiki's script is adapted from it
MUSIQUE = Script()


def script_of(set_name: str) -> Script:
    """The official script of a set, by its name; MuSiQue's, the most general, for sets that have none."""
    marks = (("hotpot", HOTPOT), ("2wiki", HOTPOT), ("squad", SQUAD2))
    return next((script for mark, script in marks if mark in set_name.lower()), MUSIQUE)


def score_text(text: str, golds: Sequence[str], script: Script = MUSIQUE) -> tuple[float, float, float]:
    """EM, F1 and accuracy. No gold spelling means that the right answer is none (SQuAD 2.0's unanswerable ones)."""
    if is_claim(golds):
        text = as_label(text) or text
    kept = [gold for gold in golds if script.blank_golds or normalise(gold)] or [""]
    em = exact_match(text, kept)
    accuracy = contains_gold(text, kept) if any(map(normalise, kept)) else em
    return em, f1(text, kept, script.strict_words, empty_agrees=script.empty_agrees), accuracy


def is_claim(golds: Sequence[str]) -> bool:
    """Whether these are the gold spellings of a claim, which is supported or not (HoVer)."""
    return bool(golds) and set(golds) <= set(LABELS)


def as_label(text: str) -> str | None:
    """HoVer's label that an answer to "Is this claim true?" amounts to; None for anything else."""
    said = normalise(text)
    first = said.partition(" ")[0]
    return _LABEL_WORDS.get(said) or (_LABEL_WORDS[first] if first in ("yes", "no") else None)


def normalise(text: str) -> str:
    """Lower case, without punctuation and articles, single spaces (SQuAD 1.1, `normalize_answer`)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, golds: Iterable[str]) -> float:
    """1.0 if the prediction equals one of the gold spellings after normalisation."""
    said = normalise(prediction)
    return float(any(said == normalise(gold) for gold in golds))


def f1(
    prediction: str, golds: Iterable[str], strict_words: Collection[str] = (), *, empty_agrees: bool = True
) -> float:
    """Best token overlap (harmonic mean of precision and recall) with one of the gold spellings."""
    said = normalise(prediction)
    return max((_f1(said, normalise(gold), strict_words, empty_agrees) for gold in golds), default=0.0)


def _f1(said: str, gold: str, strict_words: Collection[str], empty_agrees: bool) -> float:
    if said != gold and (said in strict_words or gold in strict_words):
        return 0.0
    said_tokens, gold_tokens = said.split(), gold.split()
    if not said_tokens or not gold_tokens:
        return float(empty_agrees and said_tokens == gold_tokens)
    common = sum((Counter(said_tokens) & Counter(gold_tokens)).values())
    if not common:
        return 0.0
    precision, recall = common / len(said_tokens), common / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def contains_gold(prediction: str, golds: Iterable[str]) -> float:
    """1.0 if a gold spelling stands in the prediction, both normalised ("accuracy" in the papers)."""
    said = f" {normalise(prediction)} "
    return float(any(f" {normalise(gold)} " in said for gold in golds if normalise(gold)))


def retrieved(trace: Trace) -> list[str]:
    """Ids of all passages that the steps of a trace retrieved, in order of first appearance."""
    ids = [one for step in trace.steps if step.primitive == "retrieve" for one in step.passages]
    ids += [one for step in trace.steps for attempt in step.attempts for one in attempt.passages]
    return list(dict.fromkeys(ids))


def support_recall(
    found: Collection[str], supporting: Sequence[str], alternatives: Mapping[str, Sequence[str]] | None = None
) -> float:
    """Share of the gold passages among those found; an alternative of a gold passage counts as that passage."""
    if not supporting:
        return 0.0
    options = alternatives or {}
    hits = sum(any(one in found for one in (gold, *options.get(gold, ()))) for gold in supporting)
    return hits / len(supporting)


def ndcg(
    ranked: Sequence[str], supporting: Sequence[str], k: int, alternatives: Mapping[str, Sequence[str]] | None = None
) -> float:
    """NDCG@k of passages, best first, from 0 to 1: relevance is 1 at the first hit of each gold passage, 0 elsewhere.

    An alternative of a gold passage counts as that passage. 0 where no gold passage is known.
    """
    if not supporting or k <= 0:
        return 0.0
    left = [{gold, *(alternatives or {}).get(gold, ())} for gold in dict.fromkeys(supporting)]
    ideal = sum(_discount(rank) for rank in range(1, min(k, len(left)) + 1))
    gained = 0.0
    for rank, one in enumerate(ranked[:k], start=1):
        hit = next((accepted for accepted in left if one in accepted), None)
        if hit is not None:
            left.remove(hit)
            gained += _discount(rank)
    return min(gained / ideal, 1.0)  # sums in another order may differ in their last bit


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)
