"""Settings of learning, with the paper's defaults where it states them."""

from __future__ import annotations

from dataclasses import dataclass

from pyrag.methods.hera.coach.protocol import AXES, Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveConfig:
    """Settings of learning. The paper does not state G, the success threshold, the buffer size or the limit C.

    The orchestrator has the temperature of group sampling (0.9, §4), which applies to all samples but the first.
    """

    group: int = 4  # G, topologies per question (algorithm 2)
    success: float = 0.5  # minimum F1 of a success; a trajectory with an F1 of 0 failed outright (algorithm 6)
    buffer: int = 5  # number of recent failures kept per agent (algorithm 5, B_i)
    axes: tuple[Axis, ...] = AXES  # the axes of algorithm 5, and two more from §3.4.1
    guidance: int = 1500  # maximum characters of an agent's rules and principles together (C in §3.4.2)
    epochs: int = 1  # number of passes through the training questions
    topologies: bool = False  # learn only which topologies suit which questions, and leave all prompts unchanged
    # Ablations of figures 2 and 8, each independent of the others.
    library: bool = True  # gain insights, keep them and show them to the orchestrator
    prompt_evolution: bool = True  # teach agents at fault
    mutation: bool = True  # mutate topologies if a whole group fails

    @property
    def teaches(self) -> bool:
        """True if prompts may be changed."""
        return self.prompt_evolution and not self.topologies

    @property
    def mutates(self) -> bool:
        """True if topologies may be mutated."""
        return self.mutation and not self.topologies
