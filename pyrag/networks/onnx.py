"""ONNX networks, run by onnxruntime on the CPU without logging and telemetry.

On import, onnxruntime's wheels (1.31) write a device id to `~/.cache/Microsoft` and report to Microsoft. Only an
environment variable, set before the import, prevents this. `ORT_DISABLE_TELEMETRY=0` allows it again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def forbid_telemetry() -> None:
    """Set the environment variable that disables telemetry. Call this before onnxruntime is imported."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def open_network(path: Path, threads: int) -> Any:
    """Open an onnxruntime session on the CPU.

    Args:
        path: The `.onnx` file.
        threads: Number of threads that a run may use.

    Raises:
        ImportError: onnxruntime is not installed.
        Exception: The file is damaged; onnxruntime's errors derive directly from `Exception`.
    """
    forbid_telemetry()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
