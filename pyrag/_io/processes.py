"""Child processes that end with their parent, and with everything that they started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
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
