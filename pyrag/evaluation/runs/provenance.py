"""Provenance of a run: versions, commit, machine. No score depends on it."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyrag_runtime

_PACKAGES = ("tantivy", "RestrictedPython", "greenlet", "msgspec", "aiohttp")


def session(**more: Any) -> dict[str, Any]:
    """Return notes on this process for `config.json`."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {"pyrag": pyrag_runtime.version()} | {name: _version(name) for name in _PACKAGES},
        "host": {"name": platform.node(), "system": platform.platform(), "cpus": os.cpu_count()},
        **more,
    }


def commit() -> str:
    """Return the checkout's commit, marked if files have changed since; empty outside a checkout."""
    folder = Path(__file__).parent
    try:
        # git is found through PATH, and only examines our own folder
        command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
