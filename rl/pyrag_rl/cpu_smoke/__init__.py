"""Lets verl 0.9.1 train on a machine without an accelerator: small models (profile `cpu`), tests (`cpu-smoke`).

`platform` and `rollout` go through verl's own extension points (`VERL_PLATFORM`, `VERL_USE_EXTERNAL_MODULES`,
registries); five functions of verl and vLLM have to be replaced as well, each through `replaced`, which fails where the
function is gone. Never loaded by the profile `gpu`. What it cannot show: speed, bf16 kernels, NCCL, sleep mode.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

# What verl is to import, in this order: the engine and rollout need the platform.
MODULES = ("pyrag_rl.cpu_smoke.platform", "pyrag_rl.cpu_smoke.engine", "pyrag_rl.cpu_smoke.rollout")
ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    "OMP_NUM_THREADS": "1",
    "RAY_worker_niceness": "0",  # Ray's 15 starves its workers where the two cores have other work
    "RAY_prestart_worker_first_driver": "0",  # sixteen idle processes, for the sixteen CPUs that it is told of
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


TCMALLOC = tuple(
    f"/usr/lib/{folder}/libtcmalloc_minimal.so.4" for folder in ("x86_64-linux-gnu", "aarch64-linux-gnu", ".")
)
"""Places of the allocator, by Debian's package libtcmalloc-minimal4."""


def threads(count: int) -> dict[str, str]:
    """Return the environment variables for the threads of a training process, and for their memory.

    Args:
        count: number of threads; 0: one a core.
    """
    # Threads that wait must sleep: where they spin and another process has their core, each small operation of the
    # model takes a time slice of the scheduler (four to nine times slower, beside a load of 5 on two cores).
    found = {"OMP_NUM_THREADS": str(count or os.cpu_count() or 1), "OMP_WAIT_POLICY": "passive"}
    # glibc gives each large block back to the system, which clears it anew; its tunables make it search long lists.
    # With tcmalloc a step of a 135M model took 8.3 s instead of 16, beside other work.
    library = next((path for path in map(Path, TCMALLOC) if path.is_file()), None)
    if library is not None and "LD_PRELOAD" not in os.environ:
        found["LD_PRELOAD"] = str(library)
    return found


def replaced(owner: Any, name: str, value: Any) -> Any:
    """Replace an attribute and return its former value.

    Args:
        owner: a module or class of verl or vLLM.
        name: the attribute, which must exist.
        value: the new value.

    Raises:
        AttributeError: the attribute does not exist, so verl or vLLM is another version.
    """
    if not hasattr(owner, name):
        raise AttributeError(f"{owner!r} has no {name}: cpu_smoke was written for another verl or vLLM")
    before = getattr(owner, name)
    setattr(owner, name, value)
    return before
