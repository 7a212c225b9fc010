"""The choice of the entries that an orchestrator is shown: useful, not repeating each other (HERA, §3.2, algorithm 4).

    score(z) = λ · success_rate(z) + (1 − λ) · diversity(z)
    diversity(z) = ½ · (1 − max similarity(z, chosen)) + ½ · 1 / (1 + uses(z))

The paper names the two objectives, and for diversity "semantically distinct from those already chosen" and "lower prior
usage frequency", but no formula; this one is maximal marginal relevance over them. Similar(c', c) is the same question
type, Redundant(z, E_rel) a similarity of `REDUNDANT` or more: by the word stems that two insights share, common words
left out. No model, equal on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import Characterisation
from pyrag.retrieval.analysis import Analysis

SHOWN = 5  # insights an orchestrator is shown at most
UTILITY_WEIGHT = 0.7  # λ
REDUNDANT = 0.8  # two insights that share so many stems say the same
RELATED = 0.35  # those that share so many are worth comparing when the library is updated


def choose(
    entries: Iterable[Experience], profile: Characterisation, limit: int = SHOWN, weight: float = UTILITY_WEIGHT
) -> list[Experience]:
    """Return entries for a question, by id: what an orchestrator is shown changes only when the choice does.

    Args:
        entries: All entries.
        profile: The kind of the question.
        limit: Maximum number.
        weight: λ, from 0 (diversity alone) to 1 (success alone).
    """
    left = [one for one in entries if one.profile.type == profile.type]
    chosen: list[Experience] = []
    while left and len(chosen) < limit:
        best = max(left, key=lambda one: (_score(one, chosen, weight), -one.id))
        chosen.append(best)
        left = [one for one in left if one is not best and not _is_redundant(one.insight, chosen)]
    return sorted(chosen, key=lambda one: one.id)


def related(entries: Iterable[Experience], profile: Characterisation, insight: str) -> list[Experience]:
    """Return entries that a new insight may repeat, complete or contradict (Retrieve of algorithm 3).

    Args:
        entries: All entries.
        profile: The kind of question; entries of another type are left out.
        insight: The new insight.

    Returns:
        At most `SHOWN` entries with a similarity of `RELATED` or more, most similar first.
    """
    near = [(similarity(one.insight, insight), one) for one in entries if one.profile.type == profile.type]
    return [one for score, one in sorted(near, key=lambda pair: (-pair[0], pair[1].id)) if score >= RELATED][:SHOWN]


def _is_redundant(insight: str, chosen: Sequence[Experience]) -> bool:
    return any(similarity(insight, one.insight) >= REDUNDANT for one in chosen)


def _score(entry: Experience, chosen: Sequence[Experience], weight: float) -> float:
    nearest = max((similarity(entry.insight, one.insight) for one in chosen), default=0.0)
    diversity = ((1 - nearest) + 1 / (1 + entry.uses)) / 2
    return weight * entry.success_rate + (1 - weight) * diversity


def similarity(a: str, b: str) -> float:
    """Return the cosine of two texts' sets of stems, from 0 (none shared) to 1 (all).

    Args:
        a: A text.
        b: Another; the order does not matter.
    """
    return overlap(stems(a), stems(b))


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the cosine of two sets, in [0, 1]; 0 where one is empty.

    Args:
        a: Stems of a text, see `stems`.
        b: Stems of another.
    """
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


@lru_cache(maxsize=8192)
def stems(text: str) -> frozenset[str]:
    return frozenset(_analysis().query_terms(text))


@lru_cache(maxsize=1)
def _analysis() -> Analysis:
    return Analysis()
