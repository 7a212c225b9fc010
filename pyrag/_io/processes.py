"""Child processes that end with their parent, and the garbage collector of processes that answer many questions."""

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
    """For `preexec_fn`: should we be killed, the process is ended too, and what goes with it, as Ray's daemons."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end(process: subprocess.Popen[bytes], *signals: signal.Signals, patience: float = _PATIENCE) -> None:
    """End a process and its group.

    Args:
        process: the leader of its group.
        signals: sent one after the other until it ends; by default it is asked twice, then killed.
        patience: seconds that it has to end after each.
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
    """Leave all objects that exist now out of garbage collection, and collect less often.

    For commands that answer many questions, once they are ready: modules, models and indexes stay until the end.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
