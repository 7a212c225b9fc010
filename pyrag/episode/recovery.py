"""Recovery ladders: what is tried at a step whose answer is unknown, before anything consumes it.

PyRAG's ladder has one rung (its paper, section 2.6): the same step on more passages. OPERA's has another: a rewritten
query. A rung is plain data; `pyrag.episode.recovery_runner` climbs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Recovery = Literal["none", "boost", "rewrite", "boost+rewrite", "rewrite+boost"]


@dataclass(frozen=True, slots=True)
class Boost:
    """Retrieve again with a larger top-k, for the documents that were passed to the step."""

    topk: int

    def deeper(self, used: int) -> int:
        """The top-k to use where `used` was not enough; always more than `used`."""
        return self.topk if self.topk > used else 2 * used


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Retrieve with rewritten queries, as many as there are `topks` (OPERA: 5 at first, then 10 and 15)."""

    topks: tuple[int, ...] = (10, 15)


Rung = Boost | Rewrite
Ladder = tuple[Rung, ...]


_HOPS = 4  # of the longest questions that the QA sets ask
_MIN_CALLS = 20


def calls_for(ladder: Ladder) -> int:
    """Model calls enough for a plan of four hops that all climb the whole ladder, and for its revision likewise."""
    step = 1 + sum(1 if isinstance(rung, Boost) else 2 * len(rung.topks) for rung in ladder)
    return max(_MIN_CALLS, 2 * (1 + _HOPS * step))


def ladder_of(recovery: Recovery, boost_topk: int) -> Ladder:
    """The rungs that a recovery names, in its order; a `boost_topk` of 0 leaves out the boost."""
    rungs: dict[str, Ladder] = {"boost": (Boost(boost_topk),) if boost_topk else (), "rewrite": (Rewrite(),)}
    return tuple(rung for name in recovery.split("+") for rung in rungs.get(name, ()))
