"""Settings of evolving, with the paper's defaults where it has them."""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.methods.hera.coach.protocol import AXES, Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveConfig:
    """The paper leaves open G, the threshold of success, the sizes of buffers and the length limit C; those are ours.

    The temperature of group sampling (0.9, §4) is the orchestrator's own for samples above the first.
    """

    group: int = 4  # G, topologies a question (algorithm 2)
    success: float = 0.5  # least F1 of a trajectory that succeeded; one of 0 failed outright (algorithm 6)
    buffer: int = 5  # recent failures kept of each agent (algorithm 5, B_i)
    axes: tuple[Axis, ...] = AXES  # those of algorithm 5 and the two that §3.4.1 adds
    guidance: int = 1500  # characters an agent's rules and principles may have together (C in §3.4.2)
    epochs: int = 1  # times that the training questions are gone through
    topologies: bool = False  # learn which topologies suit which questions, and leave all prompts as they are
    # Ablations of figures 2 and 8, each by itself.
    library: bool = True  # insights are gained, kept and shown to the orchestrator
    prompt_evolution: bool = True  # agents at fault are taught
    mutation: bool = True  # topologies are mutated if all of a group fail

    @property
    def teaches(self) -> bool:
        """True if prompts may change."""
        return self.prompt_evolution and not self.topologies

    @property
    def mutates(self) -> bool:
        """True if topologies are mutated."""
        return self.mutation and not self.topologies
