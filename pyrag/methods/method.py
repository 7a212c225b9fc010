"""Object by which a method is registered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyrag.episode.episode import Episode
from pyrag.episode.recovery import Recovery
from pyrag.methods.agent_counts import AgentCounts
from pyrag.methods.program_result import Result
from pyrag.settings import Settings
from pyrag.trace.model import Trace
from pyrag.trace.view import ViewItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Method, which is a way from a question to an answer.

    Attributes:
        name: The method's name in settings, traces and reports.
        answer: Answers the episode's question.
        variants: Names of variants, the default first. `settings.method` is NAME or NAME:VARIANT.
        recovery: Recovery ladder for unknown steps, used if the settings leave the choice to the method.
        needs_writer: Whether a language model must write free text, so that the embedded engine cannot run the method.
        calls_tools: Whether the method runs programs that may call tools.
        plans: Whether the engine's planner writes the programs.
        view: Returns the method's own view of a trace; None for the general view.
        count: Returns the counts of the method's agents in a trace; None to count programs, steps and attempts.
        reading_primitives: Names of the method's own primitives that read passages without searching.
        open_shared: Opens the state that the method keeps between questions as `episode.shared`; None for no state. The
            engines call its `close()`.
    """

    name: str
    answer: Callable[[Episode, Settings], Awaitable[Result]]
    variants: tuple[str, ...] = ()
    recovery: Recovery = "boost"
    needs_writer: bool = False
    calls_tools: bool = False
    plans: bool = True
    view: Callable[[Trace], Sequence[ViewItem]] | None = None
    open_shared: Callable[[Settings], Any] | None = None
    count: Callable[[Trace], AgentCounts] | None = None
    reading_primitives: frozenset[str] = frozenset()
