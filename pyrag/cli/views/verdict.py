"""The verdict on an answer, with advice in options of the command line."""

from __future__ import annotations

from pyrag.trace import verdict
from pyrag.trace.model import Trace
from pyrag.trace.verdict import confidence, is_weak

__all__ = ["confidence", "is_weak", "remark"]


def remark(trace: Trace) -> str:
    """Return one sentence on a weak or unknown answer; empty for others, and if there is an error."""
    return verdict.remark(trace, verdict.COMMAND_LINE)
