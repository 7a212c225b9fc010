"""Role-aware Prompt Evolution: what an agent that failed is to be told from now on (HERA, §3.4 and algorithm 5).

Variants add rules to an agent's prompt and leave the prompt itself, with the form of its reply, as it is. The whole
trajectory is executed again with each variant; requests that stay the same are answered by the cache of replies.
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
from pyrag.methods.hera.experience.similarity import similarity
from pyrag.methods.hera.topology import Agent

_SAME = 0.9  # stems that two lines share when they say the same


@dataclass(frozen=True, slots=True)
class Variant:
    """ρ^var and what came of it."""

    axis: Axis
    rules: tuple[str, ...]
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class Taught:
    """What RoPE came to: all variants, and the new guidance where one of them did better."""

    variants: tuple[Variant, ...] = ()
    guidance: Guidance | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent to be taught: what it knows, and the prompts of all."""

    agent: Agent
    guidance: Guidance
    prompts: Prompts


async def teach(
    players: Players, coach: Coach, subject: Subject, failed: Trajectory, failures: Sequence[str], config: EvolveConfig
) -> Taught:
    """Algorithm 5 for one agent and the trajectory that it failed in.

    Rules are distilled only where a variant scored better than the trajectory did: without that there is no contrast to
    learn from.
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
        told = taught(subject, Guidance((*subject.guidance.rules, *rules), subject.guidance.principles))
        return Variant(axis, rules, await players.told(told).run(failed.question, failed.topology))

    made = await together((one(axis) for axis in config.axes), players.settings.concurrency)
    return tuple(variant for variant in made if variant)


def taught(subject: Subject, guidance: Guidance) -> Prompts:
    """The prompts of all with other guidance for the subject."""
    return subject.prompts.taught(f"hera.{subject.agent}", guidance.rules, guidance.principles)


def _result(variant: Variant) -> str:
    rules = "\n".join(f"- {rule}" for rule in variant.rules)
    return f"Additional rules ({variant.axis.replace('_', ' ')}):\n{rules}\n{transcript(variant.trajectory)}"


async def project(coach: Coach, subject: Subject, learned: Guidance, limit: int) -> Guidance:
    """ρ^{t+1} = Π_C(ρ^t ⊕ Δρ) (§3.4.2): lines that say the same are kept once; beyond `limit` characters the coach says
    it in fewer, and what is still too much is cut off at the end, where the least important lines are.

    What is new stands first: it mends a failure that what was known did not prevent.
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
    """At most `limit` characters: the last line of the longer list goes first."""
    rules, principles = list(guidance.rules), list(guidance.principles)
    while sum(map(len, (*rules, *principles))) > limit:
        (rules if len(rules) >= len(principles) else principles).pop()
    return Guidance(tuple(rules), tuple(principles))
