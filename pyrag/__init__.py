"""pyrag: executable multi-hop question answering. A question becomes a Python program over `retrieve` and `answer`.

from pyrag import PyRAG

with PyRAG() as rag:
    trace = rag.ask("Who is older, Jed Hoyer or John William Henry II?")
print(trace.answer.text)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyrag_runtime
from pyrag.errors import (
    BadOutputError,
    BudgetExceededError,
    ConfigError,
    ContextLengthError,
    DataError,
    FilterError,
    FlowError,
    MalformedReplyError,
    PermanentServiceError,
    ProgramFailedError,
    PyRAGError,
    RepeatedEffectError,
    ReplayError,
    RetryableServiceError,
    ServiceError,
    StorageError,
    UsageError,
)
from pyrag.settings import Settings
from pyrag.trace.events import (
    AgentFinished,
    AgentStarted,
    Answered,
    Decomposed,
    Drafting,
    Event,
    FollowUp,
    Observer,
    Planned,
    ProgramFinished,
    ProgramStarted,
    QuestionFinished,
    QuestionStarted,
    Recovering,
    Rejected,
    Searched,
    StepFinished,
    StepStarted,
    Warned,
)
from pyrag.trace.model import Answer, Citation, Passage, Program, Step, Trace, Usage

if TYPE_CHECKING:
    from pyrag.api import PyRAG
    from pyrag.methods.program_reference import program_reference
    from pyrag.runtime.own_program import Budget

__version__ = pyrag_runtime.version()
_HOMES = {  # imported when first used
    "PyRAG": "pyrag.api",
    "Budget": "pyrag.runtime.own_program",
    "program_reference": "pyrag.methods.program_reference",
}

__all__ = [
    "AgentFinished",
    "AgentStarted",
    "Answer",
    "Answered",
    "BadOutputError",
    "Budget",
    "BudgetExceededError",
    "Citation",
    "ConfigError",
    "ContextLengthError",
    "DataError",
    "Decomposed",
    "Drafting",
    "Event",
    "FilterError",
    "FlowError",
    "FollowUp",
    "MalformedReplyError",
    "Observer",
    "Passage",
    "PermanentServiceError",
    "Planned",
    "Program",
    "ProgramFailedError",
    "ProgramFinished",
    "ProgramStarted",
    "PyRAG",
    "PyRAGError",
    "QuestionFinished",
    "QuestionStarted",
    "Recovering",
    "Rejected",
    "RepeatedEffectError",
    "ReplayError",
    "RetryableServiceError",
    "Searched",
    "ServiceError",
    "Settings",
    "Step",
    "StepFinished",
    "StepStarted",
    "StorageError",
    "Trace",
    "Usage",
    "UsageError",
    "Warned",
    "program_reference",
]


def __getattr__(name: str) -> Any:
    """Import a member when it is first used. Members need asyncio, which is too slow to load for a command's help."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
