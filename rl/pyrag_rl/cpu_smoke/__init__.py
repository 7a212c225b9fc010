"""Support for verl 0.9.1 on a machine without an accelerator, for small models (profile `cpu`) and tests (`cpu-smoke`).

`platform` and `rollout` use verl's own extension points (`VERL_PLATFORM`, `VERL_USE_EXTERNAL_MODULES`, registries).
Five functions of verl and vLLM also have to be replaced, each through `replaced`, which fails if the function no longer
exists. The profile `gpu` never loads this package. It cannot show speed, bf16 kernels, NCCL or sleep mode.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

# Modules that verl has to import, in this order, because engine and rollout need the platform.
MODULES = ("pyrag_rl.cpu_smoke.platform", "pyrag_rl.cpu_smoke.engine", "pyrag_rl.cpu_smoke.rollout")
ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    "OMP_NUM_THREADS": "1",
    "RAY_worker_niceness": "0",  # Ray's default of 15 starves its workers if the cores have other work
    "RAY_prestart_worker_first_driver": "0",  # avoids idle processes for all the logical CPUs that Ray is given
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


TCMALLOC = tuple(
    f"/usr/lib/{folder}/libtcmalloc_minimal.so.4" for folder in ("x86_64-linux-gnu", "aarch64-linux-gnu", ".")
)
"""Places of the allocator in Debian's package libtcmalloc-minimal4."""


def threads(count: int) -> dict[str, str]:
    """Return environment variables for the threads of a training process, and for its memory allocator.

    Args:
        count: Number of threads; 0 for one per core.
    """
    # Waiting threads must sleep. If they spin while another process has their core, each small operation of the model
    # takes a time slice of the scheduler.
    variables = {"OMP_NUM_THREADS": str(count or os.cpu_count() or 1), "OMP_WAIT_POLICY": "passive"}
    # glibc returns each large block to the system, which clears it again, and its tunables make it search long lists.
    # With tcmalloc, training steps take about half the time.
    library = next((path for path in map(Path, TCMALLOC) if path.is_file()), None)
    if library is not None and "LD_PRELOAD" not in os.environ:
        variables["LD_PRELOAD"] = str(library)
    return variables


def replaced(owner: Any, name: str, value: Any) -> Any:
    """Replace an attribute, and return its former value.

    Args:
        owner: Module or class of verl or vLLM.
        name: Name of the attribute, which must exist.
        value: The new value.

    Raises:
        AttributeError: The attribute does not exist, so verl or vLLM has another version.
    """
    if not hasattr(owner, name):
        raise AttributeError(f"{owner!r} has no {name}: cpu_smoke was written for another verl or vLLM")
    before = getattr(owner, name)
    setattr(owner, name, value)
    return before
