"""Insights from groups of trajectories, and their addition to the experience library (HERA, algorithms 2 and 3)."""

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
    """Sort trajectories by F1, then by tokens (algorithm 2, line 13)."""
    return sorted(group, key=lambda trajectory: (-trajectory.f1, trajectory.tokens))


def is_mixed(group: Sequence[Trajectory], success: float) -> bool:
    """Return True if some trajectories succeeded and some failed, so that they can be compared (algorithm 2, line 10).

    Args:
        group: Trajectories of one question.
        success: Minimum F1 of a success.
    """
    return len({trajectory.f1 >= success for trajectory in group}) == 2


async def reflect(coach: Coach, profile: Characterisation, group: Sequence[Trajectory]) -> tuple[str, ...]:
    """Return insights, most important first (ReflectOnGroup).

    Args:
        coach: Coach that compares the trajectories.
        profile: The kind of question.
        group: Trajectories of the question.

    Raises:
        BadOutputError: The coach's reply has no insight.
    """
    return await coach.reflect(
        profile, [Seen(trajectory.topology, trajectory.f1, transcript(trajectory)) for trajectory in ranked(group)]
    )


async def consolidate(coach: Coach, draft: EntryDraft, profile: Characterisation, insights: Sequence[str]) -> list[str]:
    """Add insights to the library (algorithm 3, lines 3 to 15). Return the operations, one line each.

    PRUNE deletes contradicted entries of low utility. If it deletes all of them, the insight is added; the paper does
    not specify this.

    Args:
        coach: Coach that chooses the operation for an insight.
        draft: Draft of the library.
        profile: The kind of question.
        insights: Insights, most important first.
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
        named = [entry for entry in matches if entry.id in settled.entries]
        match settled.operation:
            case "ADD":
                done.append(_added(draft, profile, insight))
            case "MERGE":
                merged = draft.merge([entry.id for entry in named], settled.insight)
                done.append(f"MERGE {_ids(named)}: {merged.insight}")
            case "PRUNE":
                done += _pruned(draft, profile, insight, named)
            case "KEEP":
                done.append(f"KEEP: {insight}")
    return done


def _pruned(draft: EntryDraft, profile: Characterisation, insight: str, named: Sequence[Experience]) -> list[str]:
    low = low_utility(named)
    draft.prune([entry.id for entry in low])
    done = [f"PRUNE {_ids(low)}: {insight}"]
    return [*done, _added(draft, profile, insight)] if len(low) == len(named) else done


def low_utility(entries: Sequence[Experience]) -> list[Experience]:
    """Return the entries that succeeded in at most half of their uses, by the library's estimate (FilterLowUtility)."""
    return [entry for entry in entries if entry.success_rate <= 0.5]


def _added(draft: EntryDraft, profile: Characterisation, insight: str) -> str:
    return f"ADD {draft.add(profile, insight).id}: {insight}"


def _ids(entries: Sequence[Experience]) -> str:
    return ", ".join(str(entry.id) for entry in entries) or "nothing"
