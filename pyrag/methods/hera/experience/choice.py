"""Choice of the entries to show to an orchestrator: useful, and different from each other (HERA, §3.2, algorithm 4).

    score(z) = λ · success_rate(z) + (1 − λ) · diversity(z)
    diversity(z) = ½ · (1 − max similarity(z, chosen)) + ½ · 1 / (1 + uses(z))

The paper names both objectives but no formula; for diversity, it asks for entries that are "semantically distinct from
those already chosen" and have a "lower prior usage frequency". The formula here is maximal marginal relevance.
Similar(c', c) means the same question type, and Redundant(z, E_rel) a similarity of at least `REDUNDANT`, measured by
the word stems that two insights share, ignoring common words. No model is involved, so the result is the same on every
machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.topology import Characterisation
from pyrag.retrieval.words.analysis import Analysis

SHOWN = 5  # maximum number of insights shown to an orchestrator
UTILITY_WEIGHT = 0.7  # λ
REDUNDANT = 0.8  # similarity from which two insights count as the same
RELATED = 0.35  # similarity from which two insights are compared when the library is updated


def choose(
    entries: Iterable[Experience], profile: Characterisation, limit: int = SHOWN, weight: float = UTILITY_WEIGHT
) -> list[Experience]:
    """Return entries for a question, in the order of their ids, so that a prompt changes only if the choice does.

    Args:
        entries: All entries.
        profile: The kind of question.
        limit: Maximum number of entries.
        weight: Weight λ of success, from 0 (only diversity) to 1 (only success).
    """
    remaining = [entry for entry in entries if entry.profile.type == profile.type]
    chosen: list[Experience] = []
    while remaining and len(chosen) < limit:
        best = max(remaining, key=lambda entry: (_score(entry, chosen, weight), -entry.id))
        chosen.append(best)
        remaining = [entry for entry in remaining if entry is not best and not _is_redundant(entry.insight, chosen)]
    return sorted(chosen, key=lambda entry: entry.id)


def related(entries: Iterable[Experience], profile: Characterisation, insight: str) -> list[Experience]:
    """Return entries that a new insight may repeat, complement or contradict (Retrieve of algorithm 3).

    Args:
        entries: All entries.
        profile: The kind of question; entries of another type are ignored.
        insight: The new insight.

    Returns:
        At most `SHOWN` entries with a similarity of at least `RELATED`, most similar first.
    """
    near = [(similarity(entry.insight, insight), entry) for entry in entries if entry.profile.type == profile.type]
    return [entry for score, entry in sorted(near, key=lambda pair: (-pair[0], pair[1].id)) if score >= RELATED][:SHOWN]


def _is_redundant(insight: str, chosen: Sequence[Experience]) -> bool:
    return any(similarity(insight, entry.insight) >= REDUNDANT for entry in chosen)


def _score(entry: Experience, chosen: Sequence[Experience], weight: float) -> float:
    nearest = max((similarity(entry.insight, other.insight) for other in chosen), default=0.0)
    diversity = ((1 - nearest) + 1 / (1 + entry.uses)) / 2
    return weight * entry.success_rate + (1 - weight) * diversity


def similarity(a: str, b: str) -> float:
    """Return the cosine of two texts' sets of stems, from 0 (none shared) to 1 (all).

    Args:
        a: First text.
        b: Second text.
    """
    return overlap(stems(a), stems(b))


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the cosine similarity of two sets, in [0, 1]; 0 if one of them is empty.

    Args:
        a: Stems of the first text, see `stems`.
        b: Stems of the second text.
    """
    return len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0


@lru_cache(maxsize=8192)
def stems(text: str) -> frozenset[str]:
    return frozenset(_analysis().query_terms(text))


@lru_cache(maxsize=1)
def _analysis() -> Analysis:
    return Analysis()
