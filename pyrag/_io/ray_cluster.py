"""Connection to a Ray cluster. It needs `pip install '.[ray]'`."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from pyrag.errors import ConfigError, install_extra


def connected(address: str, count: int) -> Any:
    """Return the `ray` module, after connecting this process to a cluster at the first call.

    Args:
        address: Address of the cluster, or "local" for workers on this machine.
        count: Number of local workers.

    Raises:
        ConfigError: Ray is not installed, or the cluster cannot be reached.
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray's next version does; else it warns
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports to its maker otherwise
    try:
        ray: Any = import_module("ray")  # not a dependency, so type checkers need not know it
    except ImportError:
        raise ConfigError(f"--ray needs Ray: {install_extra('ray')}, or leave it out to use this machine") from None
    if not ray.is_initialized():
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if address == "local":
                ray.init(num_cpus=count, include_dashboard=False, **quiet)
            else:
                ray.init(address=address, **quiet)
        except Exception as error:  # Ray raises a plain one if its processes start too slowly
            cure = "try again when this machine is less busy" if address == "local" else "check --ray, or use local"
            reason = " ".join(str(error).split())
            raise ConfigError(f"cannot join the Ray cluster at {address} ({reason}): {cure}") from error
    return ray
