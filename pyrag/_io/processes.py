"""Child processes that end with their parent, and garbage collection in processes that answer many questions."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
_YOUNG = 10_000  # objects made between two collections; 700 by default
_PATIENCE = 20.0  # seconds that a process has to end after a signal


def die_with_parent() -> None:
    """Make this child process end when its parent is killed. For `preexec_fn`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end(process: subprocess.Popen[bytes], *signals: signal.Signals, patience: float = _PATIENCE) -> None:
    """End a process and its group.

    Args:
        process: Leader of the process group.
        *signals: Signals to send one after the other until the process ends; by default SIGINT, SIGTERM and SIGKILL.
        patience: Seconds to wait after each signal.
    """
    for number in signals or (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def settle_collector() -> None:
    """Exclude all existing objects from garbage collection, and collect less often.

    Commands that answer many questions call this once they are ready, since modules, models and indexes then stay in
    memory until the end.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
