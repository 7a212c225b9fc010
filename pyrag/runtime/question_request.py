"""A question before it is answered: its text, checked once, and the limits on what it may spend, derived once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrag.agents.typed.contract import Contract
from pyrag.episode.ledger import QuestionBudget
from pyrag.episode.program_values import MAX_QUERY_BYTES
from pyrag.episode.recovery import Ladder, calls_for, ladder_of
from pyrag.errors import UsageError
from pyrag.llm.protocol import Message
from pyrag.methods.method import Method
from pyrag.methods.own_program import MAX_CALLS, NAME, OwnProgram
from pyrag.methods.registry import get_method
from pyrag.retrieval.filters.language import filter_of, parsed
from pyrag.retrieval.filters.tree import Filter, all_of
from pyrag.settings import Settings

MAX_QUESTION_BYTES = MAX_QUERY_BYTES * 3 // 4  # a program's queries hold facts before the question
Where = str | Mapping[str, Any] | Filter | None


class QuestionError(UsageError):
    """Error for a question that cannot be answered.

    Args:
        message: The fault, and what to do.
        code: Name of the fault for programs, such as `empty_question`.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRequest:
    """A question or program of a caller, with everything that decides how it is answered.

    Attributes:
        text: The question, or the program's title.
        settings: The settings, with the request's limits and filter.
        method: Method that answers, or runs the program.
        ladder: Recovery ladder of its steps.
        budget: Limits on what it may spend.
        program: The caller's program; None for a question.
        gated: Whether a program is refused that would exceed the settings' limits even by its low estimate.
        earlier: Messages of the question's conversation, oldest first. An agent uses them to turn the question into
            one that stands on its own, within the question's limits.
        returns: Type of the final value; None for a text.
    """

    text: str
    settings: Settings
    method: Method
    ladder: Ladder
    budget: QuestionBudget
    program: OwnProgram | None = None
    gated: bool = False
    earlier: Sequence[Message] = ()
    returns: Contract | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """Plain data that tells this request from others, for a run that can be resumed."""
        if self.program is not None:
            return {"source": self.program.source, "inputs": self.program.inputs}
        typed = {} if self.returns is None else {"returns": self.returns.wanted}
        earlier = [[message.role, message.content] for message in self.earlier]
        return {"question": self.text, "earlier": earlier, **typed}

    def after(self, seconds: float) -> QuestionRequest:
        """Return the request with the time that remains after a wait of some seconds."""
        if self.settings.deadline is None:
            return self
        remaining = max(0.001, self.settings.deadline - seconds)
        budget = replace(self.budget, seconds=remaining)
        return replace(self, settings=replace(self.settings, deadline=remaining), budget=budget)


def request_of(
    subject: str | OwnProgram,
    settings: Settings,
    *,
    where: Where = None,
    limits: Mapping[str, Any] | None = None,
    lowers: bool = False,
    method: Method | None = None,
    earlier: Sequence[Message] = (),
    returns: Contract | None = None,
) -> QuestionRequest:
    """Check a question, and derive its limits.

    Args:
        subject: The question, or a program of the caller.
        settings: The settings; they name the method of a question.
        where: Filter of passages, which narrows the settings' own.
        limits: Limits of the request, by the names of settings; None for the settings' own.
        lowers: Whether the settings' limits are upper bounds of the request's limits.
        method: Method that replaces the settings' method.
        earlier: Messages of the question's conversation, oldest first.
        returns: Type of the final value; None for a text.

    Raises:
        QuestionError: The question is empty, too long or not a text.
        ConfigError: The method is unknown, or a limit makes no sense.
        FilterError: The filter cannot be parsed.
    """
    limits = {name: value for name, value in (limits or {}).items() if value is not None}
    settings = with_filter(settings, where)
    own = subject if isinstance(subject, OwnProgram) else None
    # A caller's own limits are spent as far as they go; the settings' limits refuse a program that exceeds them.
    gated = not (own and {"max_calls", "max_cost"} & limits.keys()) and _is_limited(settings)
    if isinstance(subject, OwnProgram):
        text, method = subject.title, subject.method
        settings = replace(settings, method=NAME)
    else:
        text, method = checked_text(subject), method or get_method(settings.method)
    ladder = ladder_of(method.recovery if settings.recovery == "auto" else settings.recovery, settings.boost_topk)
    calls = calls_for(ladder) if own is None else MAX_CALLS  # if the settings give no limit
    if lowers:
        limits = {name: _lower(settings, calls, name, value) for name, value in limits.items()}
    settings = replace(settings, **limits) if limits else settings
    return QuestionRequest(
        text=text,
        settings=settings,
        method=method,
        ladder=ladder,
        budget=_budget_of(settings, settings.max_calls or calls),
        program=own,
        gated=method.calls_tools and (gated if own else _is_limited(settings)),
        earlier=earlier,
        returns=returns,
    )


def checked_text(question: str) -> str:
    """Return a question without the blanks around it. Raises `QuestionError` if it cannot be answered."""
    if not isinstance(question, str):  # a library's callers are not type-checked
        raise QuestionError(f"the question must be a text, not {type(question).__name__}", "not_text")
    question = question.strip()
    if not any(map(str.isalnum, question)):
        raise QuestionError('the question is empty: ask something, such as "Who wrote Dracula?"', "empty_question")
    try:
        size = len(question.encode())
    except UnicodeEncodeError as error:  # bytes on the command line that its encoding cannot decode
        message = "the question holds bytes that are not UTF-8 text: convert it to UTF-8"
        raise QuestionError(message, "not_text") from error
    if size > MAX_QUESTION_BYTES:
        raise QuestionError(
            f"the question is too long: it has {size:,} bytes, and at most {MAX_QUESTION_BYTES:,} are possible; "
            "ask in fewer words, and index long texts instead",
            "question_too_long",
        )
    return question


def with_filter(settings: Settings, where: Where) -> Settings:
    """Return settings whose filter is narrowed by another one.

    Args:
        settings: The settings.
        where: The other filter; None for no filter.

    Raises:
        FilterError: The filter cannot be parsed.
    """
    if where is None:
        return settings
    joined = all_of(None if settings.where is None else parsed(settings.where), filter_of(where))
    return settings if joined is None else replace(settings, where=str(joined))


def _is_limited(settings: Settings) -> bool:
    return settings.max_calls is not None or settings.max_cost is not None


def _lower(settings: Settings, calls: int, name: str, value: Any) -> Any:
    """Return a limit, or the settings' upper bound of it if that is lower."""
    bound = getattr(settings, name)
    if name == "max_calls":
        bound = bound or calls
    elif name == "topk":
        bound = max(settings.topk, settings.boost_topk)
    return value if bound is None else min(bound, value)


def _budget_of(settings: Settings, calls: int) -> QuestionBudget:
    return QuestionBudget(
        calls=calls,
        retrievals=max(QuestionBudget().retrievals, calls),
        tokens=settings.max_tokens,
        seconds=settings.deadline,
        cost=settings.max_cost,
        price_in=settings.price_in,
        price_out=settings.price_out,
        patient=bool(settings.cache),
        tool_calls=settings.max_tool_calls,
    )
