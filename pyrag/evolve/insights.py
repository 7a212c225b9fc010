"""From a group of trajectories to the experience library (HERA, algorithms 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence

from pyrag.errors import BadOutputError
from pyrag.evolve.trajectories import Trajectory
from pyrag.evolve.transcript import transcript
from pyrag.methods.hera.coach.protocol import Coach, Seen
from pyrag.methods.hera.experience.entry import Experience
from pyrag.methods.hera.experience.library import EntryDraft
from pyrag.methods.hera.topology import Characterisation


def ranked(group: Sequence[Trajectory]) -> list[Trajectory]:
    """Sort by F1, then by tokens (algorithm 2, line 13)."""
    return sorted(group, key=lambda one: (-one.f1, one.tokens))


def is_mixed(group: Sequence[Trajectory], success: float) -> bool:
    """Return True if some trajectories succeeded and some failed: only these can be compared (algorithm 2, line 10).

    Args:
        group: Trajectories of one question.
        success: Minimum F1 of a success.
    """
    return len({one.f1 >= success for one in group}) == 2


async def reflect(coach: Coach, profile: Characterisation, group: Sequence[Trajectory]) -> tuple[str, ...]:
    """Return insights, most important first (ReflectOnGroup).

    Args:
        coach: Compares the trajectories.
        profile: The question's.
        group: Trajectories of the question.

    Raises:
        BadOutputError: The coach's reply holds no insight.
    """
    return await coach.reflect(profile, [Seen(one.topology, one.f1, transcript(one)) for one in ranked(group)])


async def consolidate(coach: Coach, draft: EntryDraft, profile: Characterisation, insights: Sequence[str]) -> list[str]:
    """Update the library by insights (algorithm 3, lines 3 to 15); return the operations, one line each.

    PRUNE removes contradicted entries of low utility. If it removes all of them, the insight is added: the paper leaves
    this open.

    Args:
        coach: Chooses the operation for an insight.
        draft: The library under change.
        profile: The question's.
        insights: Most important first.
    """
    done = []
    for insight in insights:
        matches = draft.related(profile, insight)
        if not matches:
            done.append(_added(draft, profile, insight))
            continue
        try:
            settled = await coach.settle(insight, matches)
        except BadOutputError as error:
            done.append(f"KEEP: {insight} (undecided: {error})")
            continue
        named = [one for one in matches if one.id in settled.entries]
        match settled.operation:
            case "ADD":
                done.append(_added(draft, profile, insight))
            case "MERGE":
                merged = draft.merge([one.id for one in named], settled.insight)
                done.append(f"MERGE {_ids(named)}: {merged.insight}")
            case "PRUNE":
                done += _pruned(draft, profile, insight, named)
            case "KEEP":
                done.append(f"KEEP: {insight}")
    return done


def _pruned(draft: EntryDraft, profile: Characterisation, insight: str, named: Sequence[Experience]) -> list[str]:
    low = low_utility(named)
    draft.prune([one.id for one in low])
    done = [f"PRUNE {_ids(low)}: {insight}"]
    return [*done, _added(draft, profile, insight)] if len(low) == len(named) else done


def low_utility(entries: Sequence[Experience]) -> list[Experience]:
    """Return the entries that succeeded in at most half of their uses, as the library estimates it
    (FilterLowUtility)."""
    return [one for one in entries if one.success_rate <= 0.5]


def _added(draft: EntryDraft, profile: Characterisation, insight: str) -> str:
    return f"ADD {draft.add(profile, insight).id}: {insight}"


def _ids(entries: Sequence[Experience]) -> str:
    return ", ".join(str(one.id) for one in entries) or "nothing"
