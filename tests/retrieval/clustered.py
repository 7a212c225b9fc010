"""Vectors that lie as those of passages do."""

from __future__ import annotations

from typing import Any

import numpy as np

D = 16


def vectors(count: int, seed: int = 0) -> Any:
    """Clustered, of length 1: random directions alone would defeat every approximate index."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(8, D))
    made = centres[random.integers(0, 8, count)] + 0.7 * random.normal(size=(count, D))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
