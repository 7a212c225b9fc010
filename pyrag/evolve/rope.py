"""Role-aware Prompt Evolution: new rules for an agent that failed (HERA, §3.4 and algorithm 5).

Variants add rules to an agent's prompt and leave the rest of it unchanged. The whole trajectory is executed again with
each variant; requests that did not change are answered from the cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.prompts import Prompts
from pyrag.errors import BadOutputError
from pyrag.evolve.config import EvolveConfig
from pyrag.evolve.trajectories import Players, Trajectory, together
from pyrag.evolve.transcript import transcript
from pyrag.methods.hera.coach.protocol import Axis, Coach, Guidance
from pyrag.methods.hera.experience.choice import similarity
from pyrag.methods.hera.topology import Agent

_SAME = 0.9  # similarity from which two lines count as the same


@dataclass(frozen=True, slots=True)
class Variant:
    """Variant ρ^var of a prompt, and its trajectory."""

    axis: Axis
    rules: tuple[str, ...]
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class TeachingResult:
    """Result of RoPE: all variants, and new guidance if a variant did better."""

    variants: tuple[Variant, ...] = ()
    guidance: Guidance | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """Agent to teach, with its guidance and the prompts of all agents."""

    agent: Agent
    guidance: Guidance
    prompts: Prompts


async def teach(
    players: Players, coach: Coach, subject: Subject, failed: Trajectory, failures: Sequence[str], config: EvolveConfig
) -> TeachingResult:
    """Apply algorithm 5 to an agent and a trajectory in which it failed.

    Rules are only distilled if a variant scored better than the trajectory; otherwise, there is nothing to compare.

    Args:
        players: The agents.
        coach: Coach that formulates rules and principles.
        subject: Agent to teach.
        failed: The failed trajectory.
        failures: Transcripts of the agent's recent failures, ending with this one.
        config: Axes and length limit.
    """
    variants = await _variants(players, coach, subject, failed, failures, config)
    if not any(variant.trajectory.f1 > failed.f1 for variant in variants):
        return TeachingResult(variants, note=f"no variant of {subject.agent} did better")
    best_first = sorted(variants, key=lambda variant: (-variant.trajectory.f1, variant.trajectory.tokens))
    try:
        learned = await coach.distil(subject.agent, failures, [_result(variant) for variant in best_first])
    except BadOutputError as error:
        return TeachingResult(variants, note=f"{subject.agent} was not taught: {error}")
    return TeachingResult(variants, await project(coach, subject, learned, config.guidance))


async def _variants(
    players: Players, coach: Coach, subject: Subject, failed: Trajectory, failures: Sequence[str], config: EvolveConfig
) -> tuple[Variant, ...]:
    async def varied(axis: Axis) -> Variant | None:
        try:
            rules = await coach.vary(subject.agent, axis, failures)
        except BadOutputError:  # the other axes are still tried
            return None
        prompts = _taught(subject, Guidance((*subject.guidance.rules, *rules), subject.guidance.principles))
        return Variant(axis, rules, await players.with_prompts(prompts).run(failed.question, failed.topology))

    made = await together((varied(axis) for axis in config.axes), players.settings.concurrency)
    return tuple(variant for variant in made if variant)


def _taught(subject: Subject, guidance: Guidance) -> Prompts:
    """Return the prompts with different guidance for the subject."""
    return subject.prompts.taught(f"hera.{subject.agent}", guidance.rules, guidance.principles)


def _result(variant: Variant) -> str:
    rules = "\n".join(f"- {rule}" for rule in variant.rules)
    return f"Additional rules ({variant.axis.replace('_', ' ')}):\n{rules}\n{transcript(variant.trajectory)}"


async def project(coach: Coach, subject: Subject, learned: Guidance, limit: int) -> Guidance:
    """Return ρ^{t+1} = Π_C(ρ^t ⊕ Δρ) (§3.4.2), without duplicates, shortened by the coach or cut to the limit.

    New lines come first, because they address a failure that the known lines did not prevent.

    Args:
        coach: Coach that shortens guidance.
        subject: The agent.
        learned: New lines for the agent.
        limit: Maximum number of characters.
    """
    whole = _distinct(
        Guidance((*learned.rules, *subject.guidance.rules), (*learned.principles, *subject.guidance.principles))
    )
    if whole.characters <= limit:
        return whole
    with contextlib.suppress(BadOutputError):  # without a shorter version, it is cut
        whole = _distinct(await coach.shorten(subject.agent, whole, limit))
    return cut(whole, limit)


def _distinct(guidance: Guidance) -> Guidance:
    distinct: list[str] = []

    def once(lines: Sequence[str]) -> tuple[str, ...]:
        before = len(distinct)
        for line in lines:
            if all(line != other and similarity(line, other) < _SAME for other in distinct):
                distinct.append(line)
        return tuple(distinct[before:])

    return Guidance(once(guidance.rules), once(guidance.principles))


def cut(guidance: Guidance, limit: int) -> Guidance:
    """Remove last lines, from the longer list first, until the limit is met.

    Args:
        guidance: Guidance, most important lines first.
        limit: Maximum number of characters.
    """
    rules, principles = list(guidance.rules), list(guidance.principles)
    while sum(map(len, (*rules, *principles))) > limit:
        (rules if len(rules) >= len(principles) else principles).pop()
    return Guidance(tuple(rules), tuple(principles))
