"""CPU as one of verl's platforms, for tests. It counts as a fake Ray GPU, because verl places its workers on GPUs."""

from __future__ import annotations

import os
import types
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import verl.utils.distributed as distributed
from verl.plugin.platform import PlatformBase, PlatformRegistry
from verl.utils.device import get_device_name

from pyrag_rl.cpu_smoke import replaced


def _nothing(*args: object, **kwargs: object) -> None:
    return None


def _zero(*args: object, **kwargs: object) -> int:
    return 0


class _CpuDevice(types.ModuleType):
    """`torch.cpu`, with the additional functions that verl calls on its device module."""

    def __getattr__(self, name: str) -> Any:
        if name.endswith(("memory_allocated", "memory_reserved")):
            return _zero
        if name.startswith(("reset_", "manual_seed")) or name in ("empty_cache", "set_device", "ipc_collect"):
            return _nothing
        return getattr(torch.cpu, name)

    def is_available(self) -> bool:
        return False

    def mem_get_info(self, *_: object) -> tuple[int, int]:
        return 0, 0

    def get_device_name(self, *_: object) -> str:
        return "CPU"

    def get_rng_state(self, *_: object) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *_: object) -> None:
        torch.set_rng_state(state)


_DEVICE = _CpuDevice("torch_cpu_as_verl_device")


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):  # type: ignore[misc,unused-ignore]
    """Platform that is only used with `VERL_PLATFORM=cpu`, and never detected."""

    device_name = property(lambda self: "cpu")
    vendor_name = property(lambda self: "cpu")
    device_module = property(lambda self: _DEVICE)

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return False

    def current_device(self) -> str:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def set_device(self, index: object) -> None:
        return None

    def synchronize(self, index: object = None) -> None:
        return None

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: object) -> None:
        return None

    def empty_cache(self) -> None:
        return None

    def get_device_capability(self, index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, message: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        return None

    def profiler_stop(self) -> None:
        return None

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> None:
        return None


def _with_gloo_alone(timeout_second: int = 36000) -> tuple[int, int, int]:
    """Set up the process group without Ray, for the supervised trainer. Return local rank, rank and size."""
    torch.distributed.init_process_group("gloo", timeout=timedelta(seconds=timeout_second))
    return int(os.environ["LOCAL_RANK"]), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def _with_gloo(timeout_second: int | None = None, backend: str | None = None) -> Any:
    """Set up the process group with gloo, because torch refuses verl's "cpu:gloo,cpu:gloo" for a CPU."""
    return _initialize(timeout_second, backend or ("gloo" if get_device_name() == "cpu" else None))


replaced(distributed, "initialize_global_process_group", _with_gloo_alone)
_initialize = replaced(distributed, "initialize_global_process_group_ray", _with_gloo)
