"""Networks that onnxruntime runs, opened in one place: on the CPU, without its log, and without its telemetry.

onnxruntime's wheels (1.31) write a device id to `~/.cache/Microsoft` and report to Microsoft as soon as they are
imported. The environment can forbid it before that, and here it does; `ORT_DISABLE_TELEMETRY=0` allows it again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def forbid_telemetry() -> None:
    """To be called before onnxruntime is imported: its own switch comes too late."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def open_network(path: Path, threads: int) -> Any:
    """Open an onnxruntime session, on the CPU.

    Args:
        path: The `.onnx` file.
        threads: The number that one run takes.

    Raises:
        ImportError: onnxruntime is not installed.
        Exception: onnxruntime's own error, derived from `Exception` alone: the file is damaged.
    """
    forbid_telemetry()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
