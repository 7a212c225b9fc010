"""Training over packs of rows without flash-attn: on a CPU (`pyrag_rl.cpu_smoke`), and on GPUs without that package."""

from __future__ import annotations

from importlib.util import find_spec

from pyrag_rl.config import TrainConfig

MODULE = "pyrag_rl.packed.engine"
"""What verl is to import for the engine on a GPU."""


def replaces_flash_attention(config: TrainConfig) -> bool:
    """Return whether verl's attention is ours: verl asks for flash-attn everywhere, and computes what it does in loops
    over tokens where that is missing.

    Args:
        config: the run.
    """
    return config.on_cpu or find_spec("flash_attn") is None
