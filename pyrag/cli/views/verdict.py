"""Verdict on an answer, with advice that names options of the command line."""

from __future__ import annotations

from pyrag.trace import verdict
from pyrag.trace.confidence import confidence
from pyrag.trace.model import Trace
from pyrag.trace.verdict import is_weak

__all__ = ["confidence", "is_weak", "remark"]


def remark(trace: Trace) -> str:
    """Return one sentence about a weak or unknown answer; an empty text for other answers and for errors."""
    return verdict.remark(trace, verdict.COMMAND_LINE)
