"""vLLM's build for CPUs: whether it is installed, its system library, and the compiler that it can use."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version

from pyrag.errors import ConfigError

LIBRARY = "libnuma.so.1"
WITHOUT_COMPILER = {"TORCHDYNAMO_DISABLE": "1"}  # with vLLM's --enforce-eager, torch then compiles nothing


def is_cpu_build() -> bool:
    """Return whether the installed vLLM, if any, is its build for CPUs."""
    try:
        return "cpu" in version("vllm")
    except PackageNotFoundError:
        return False


def has_compiler() -> bool:
    """Return whether there is a C++ compiler. torch uses it to compile a model's layers for a CPU."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def check_library() -> None:
    """Check that vLLM can load its compiled code: without the library, it fails much later with a long traceback.

    Raises:
        ConfigError: The installed vLLM is the build for CPUs, and the system lacks libnuma.
    """
    if not is_cpu_build() or sys.platform != "linux":
        return
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        raise ConfigError(
            f"vLLM's build for CPUs needs the system library {LIBRARY}, which is missing: "
            "install it, on Debian and Ubuntu with apt-get install libnuma1"
        ) from None
