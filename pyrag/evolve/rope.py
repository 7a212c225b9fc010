"""Role-aware Prompt Evolution: new rules for an agent that failed (HERA, §3.4 and algorithm 5).

Variants add rules to an agent's prompt, and leave the rest of it unchanged. The whole trajectory is executed again with
each variant; the cache answers requests that did not change.
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

_SAME = 0.9  # stems that two lines share when they say the same


@dataclass(frozen=True, slots=True)
class Variant:
    """ρ^var and its trajectory."""

    axis: Axis
    rules: tuple[str, ...]
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class Taught:
    """The result of RoPE: all variants, and new guidance where one of them did better."""

    variants: tuple[Variant, ...] = ()
    guidance: Guidance | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent to teach: its guidance, and the prompts of all agents."""

    agent: Agent
    guidance: Guidance
    prompts: Prompts


async def teach(
    players: Players, coach: Coach, subject: Subject, failed: Trajectory, failures: Sequence[str], config: EvolveConfig
) -> Taught:
    """Apply algorithm 5 to one agent and a trajectory in which it failed.

    Rules are distilled only where a variant scored better than the trajectory: there is no contrast otherwise.

    Args:
        players: The agents.
        coach: Words rules and principles.
        subject: The agent.
        failed: The trajectory.
        failures: Transcripts of the agent's recent failures, this one last.
        config: Axes and length limit.
    """
    variants = await _variants(players, coach, subject, failed, failures, config)
    if not any(one.trajectory.f1 > failed.f1 for one in variants):
        return Taught(variants, note=f"no variant of {subject.agent} did better")
    best_first = sorted(variants, key=lambda one: (-one.trajectory.f1, one.trajectory.tokens))
    try:
        learned = await coach.distil(subject.agent, failures, [_result(one) for one in best_first])
    except BadOutputError as error:
        return Taught(variants, note=f"{subject.agent} was not taught: {error}")
    return Taught(variants, await project(coach, subject, learned, config.guidance))


async def _variants(
    players: Players, coach: Coach, subject: Subject, failed: Trajectory, failures: Sequence[str], config: EvolveConfig
) -> tuple[Variant, ...]:
    async def one(axis: Axis) -> Variant | None:
        try:
            rules = await coach.vary(subject.agent, axis, failures)
        except BadOutputError:  # the other axes remain
            return None
        told = _taught(subject, Guidance((*subject.guidance.rules, *rules), subject.guidance.principles))
        return Variant(axis, rules, await players.told(told).run(failed.question, failed.topology))

    made = await together((one(axis) for axis in config.axes), players.settings.concurrency)
    return tuple(variant for variant in made if variant)


def _taught(subject: Subject, guidance: Guidance) -> Prompts:
    """Return the prompts with other guidance for the subject."""
    return subject.prompts.taught(f"hera.{subject.agent}", guidance.rules, guidance.principles)


def _result(variant: Variant) -> str:
    rules = "\n".join(f"- {rule}" for rule in variant.rules)
    return f"Additional rules ({variant.axis.replace('_', ' ')}):\n{rules}\n{transcript(variant.trajectory)}"


async def project(coach: Coach, subject: Subject, learned: Guidance, limit: int) -> Guidance:
    """Return ρ^{t+1} = Π_C(ρ^t ⊕ Δρ) (§3.4.2): duplicates removed, shortened by the coach or cut to the limit.

    New lines come first: they repair a failure that the known ones did not prevent.

    Args:
        coach: Shortens guidance.
        subject: The agent.
        learned: Its new lines.
        limit: Maximum characters.
    """
    whole = _distinct(
        Guidance((*learned.rules, *subject.guidance.rules), (*learned.principles, *subject.guidance.principles))
    )
    if whole.characters <= limit:
        return whole
    with contextlib.suppress(BadOutputError):  # then it is cut
        whole = _distinct(await coach.shorten(subject.agent, whole, limit))
    return cut(whole, limit)


def _distinct(guidance: Guidance) -> Guidance:
    kept: list[str] = []

    def once(lines: Sequence[str]) -> tuple[str, ...]:
        before = len(kept)
        for line in lines:
            if all(line != one and similarity(line, one) < _SAME for one in kept):
                kept.append(line)
        return tuple(kept[before:])

    return Guidance(once(guidance.rules), once(guidance.principles))


def cut(guidance: Guidance, limit: int) -> Guidance:
    """Remove last lines, of the longer list first, until the limit holds.

    Args:
        guidance: Most important lines first.
        limit: Maximum characters.
    """
    rules, principles = list(guidance.rules), list(guidance.principles)
    while sum(map(len, (*rules, *principles))) > limit:
        (rules if len(rules) >= len(principles) else principles).pop()
    return Guidance(tuple(rules), tuple(principles))
