"""Training over packed rows without flash-attn: on a CPU (`pyrag_rl.cpu_smoke`), and on GPUs without that package."""

from __future__ import annotations

from importlib.util import find_spec

from pyrag_rl.config import TrainConfig

MODULE = "pyrag_rl.packed.engine"
"""Module that verl has to import for the engine on a GPU."""


def replaces_flash_attention(config: TrainConfig) -> bool:
    """Return whether to replace verl's attention, which requires flash-attn, or else loops over tokens.

    Args:
        config: Configuration of the run.
    """
    return config.on_cpu or find_spec("flash_attn") is None
