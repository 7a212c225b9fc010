"""Causes of wrong answers, derived from the trace and the gold passages without a model.

The classes come from the PyRAG paper's failure analysis (section 3.4). A wrong answer gets the first class that
applies; causes come before their consequences:

    service_error         a model, retriever or sandbox failed, or the runner itself
    budget                the question's calls, tokens or seconds were spent
    program_error         no program ran to an answer; `detail` is the exception's type
    no_retrieval          the method searched for nothing (direct, cot)
    under_decomposition   gold passages are missing, and the program retrieves fewer times than there are hops
    intermediate_error    a step had gold evidence but answered wrongly or not at all, and later searches failed
    retrieval_missing     the retriever did not return gold passages although they were searched for
    final_refusal         all gold passages were retrieved; the answer is "unknown"
    misreading            all gold passages were retrieved; the answer is wrong

An intermediate answer cannot be judged if the set has no decomposition and the title of the next gold page is unknown;
the class is then retrieval_missing or misreading. If a set names no gold passages, they count as found if retrieved
passages contain every hop's answer (or, if unknown, the final answer).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyrag.errors import BadOutputError, BudgetExceededError, FlowError, ProgramFailedError, RepeatedEffectError
from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.metrics import contains_gold, normalise
from pyrag.evaluation.opera_errors import opera_error
from pyrag.evaluation.retrieval_recall import Hop, is_retrieval, retrievals
from pyrag.trace.model import Answer, Step, Trace, TraceError

KINDS = {
    "retrieval_missing": "retrieval missing",
    "under_decomposition": "under-decomposition",
    "intermediate_error": "intermediate error propagated",
    "misreading": "misreading of present evidence",
    "final_refusal": "final refusal",
    "program_error": "program error",
    "no_retrieval": "nothing retrieved",
    "budget": "budget spent",
    "service_error": "service error",
}
_BUDGETS = (BudgetExceededError.kind, "deadline")
_ENDS = {"refused": "refused", "check": "plan check", "no_answer": "no final answer"}
_PARENTHESES = re.compile(r"\s*\([^)]*\)\s*$")
_CLOSED = frozenset({"yes", "no", "noanswer", "supported", "notsupported"})


@dataclass(frozen=True, slots=True)
class WrongAnswerCause:
    """Class of a wrong answer.

    Attributes:
        detail: Short details: an exception's type, or the number of missing passages.
        opera: Line of OPERA's table 11 that it belongs to (`pyrag.evaluation.opera_errors`), or empty.
    """

    kind: str
    detail: str = ""
    opera: str = field(default="", compare=False)


def failure_of(question: Question, trace: Trace, hops: Sequence[Hop], titles: Mapping[str, str]) -> WrongAnswerCause:
    """Return the cause of a wrong answer.

    Args:
        question: Question with gold answers and passages.
        trace: Trace of the answer.
        hops: Gold passages, and whether they were found.
        titles: Titles of gold passages by id, if known.
    """
    failure = _failure(question, trace, hops, titles)
    return replace(failure, opera=opera_error(failure.kind, question, trace, hops, titles))


def _failure(question: Question, trace: Trace, hops: Sequence[Hop], titles: Mapping[str, str]) -> WrongAnswerCause:
    if trace.error is not None:
        return _of_error(trace.error)
    if not any(is_retrieval(step, trace) for step in trace.steps) and planned_retrievals(trace) == 0:
        return WrongAnswerCause("no_retrieval")
    if _missing(question, trace, hops):
        return _of_missing(question, trace, hops, titles)
    if _wrong_before_the_end(question, trace):
        return WrongAnswerCause("intermediate_error", "all gold passages found")
    absent = "" if _said_somewhere(question.answers, _texts(trace)) else "no gold spelling in any passage"
    return WrongAnswerCause("misreading" if trace.answer.known else "final_refusal", absent)


def _of_error(error: TraceError) -> WrongAnswerCause:
    if error.kind in _BUDGETS:
        return WrongAnswerCause("budget", error.kind)
    if error.kind == BadOutputError.kind:
        return WrongAnswerCause("program_error", "bad output")
    if error.kind == RepeatedEffectError.kind:
        return WrongAnswerCause("program_error", "repeated effect")
    if error.kind == FlowError.kind:
        return WrongAnswerCause("program_error", "refused effect")
    if error.kind != ProgramFailedError.kind:
        return WrongAnswerCause("service_error", error.kind)
    if error.cause[:1].isupper():  # the type of an exception
        return WrongAnswerCause("program_error", error.cause)
    return WrongAnswerCause("program_error", _ENDS.get(error.cause, "limit" if error.cause else "other"))


def _of_missing(question: Question, trace: Trace, hops: Sequence[Hop], titles: Mapping[str, str]) -> WrongAnswerCause:
    missing = [hop.gold for hop in hops if not hop.is_found]
    detail = f"{len(missing)} of {len(hops)} gold passages" if hops else "no gold answer in any passage"
    wanted = question.hops or len(question.decomposition) or len(hops)
    if planned_retrievals(trace) < wanted:
        return WrongAnswerCause("under_decomposition", detail)
    if any(hop.is_found for hop in hops) and _lost_on_the_way(question, trace, hops, titles):
        return WrongAnswerCause("intermediate_error", detail)
    return WrongAnswerCause("retrieval_missing", detail)


def _missing(question: Question, trace: Trace, hops: Sequence[Hop]) -> bool:
    if hops:
        return not all(hop.is_found for hop in hops)
    texts = _texts(trace)
    wanted = [hop.answers for hop in question.decomposition] or [question.answers]
    return not all(_said_somewhere(golds, texts) for golds in wanted)


def _texts(trace: Trace) -> list[str]:
    return [f"{passage.title} {passage.text}" for passage in trace.passages.values()]


def _said_somewhere(golds: Sequence[str], texts: Sequence[str]) -> bool:
    """Return True if a text contains one of the spellings. Yes, no and labels always count as contained."""
    if not golds or any(normalise(gold) in _CLOSED for gold in golds):
        return True
    return any(contains_gold(text, golds) for text in texts)


def planned_retrievals(trace: Trace) -> int:
    """Return the number of retrievals of the last program, as written or (with loops) as run, whichever is larger."""
    queries = {step.query for step in trace.steps if is_retrieval(step, trace)}
    return max(len(queries), _written(trace.program))


def _written(source: str) -> int:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source.count("retrieve(")
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(isinstance(name, ast.Name) and name.id == "retrieve" for name in calls)


def _lost_on_the_way(question: Question, trace: Trace, hops: Sequence[Hop], titles: Mapping[str, str]) -> bool:
    """Return True if a wrong answer that had its evidence led later queries away from the missing passages."""
    queries = normalise(" | ".join(step.query for step in trace.steps if is_retrieval(step, trace)))
    named = [_page(titles[hop.gold]) for hop in hops if not hop.is_found and titles.get(hop.gold)]
    if named and all(f" {name} " in f" {queries} " for name in named if name):
        return False  # the right pages were searched for, so the retriever missed them
    steps_found = {hop.step for hop in hops if hop.is_found}
    return any(
        _had_evidence(step, trace, steps_found) and not (answer.known and _right(question, answer))
        for step, answer in _answers_used(trace)
    )


def _page(title: str) -> str:
    return normalise(_PARENTHESES.sub("", title))


def _answers_used(trace: Trace) -> list[tuple[Step, Answer]]:
    """Return the answers of the last round that a later step depends on, and those that are unknown."""
    last = max((step.round for step in trace.steps), default=0)
    steps = [step for step in trace.steps if step.round == last]
    used = {source for step in steps for source in step.depends_on}
    return [
        (step, step.answer)
        for step in steps
        if step.answer and step.mode != "aggregation" and (step.id in used or not step.answer.known)
    ]


def _had_evidence(step: Step, trace: Trace, steps_found: set[int | None]) -> bool:
    """Return True if the step read a passage of a retrieval that found a gold passage."""
    seen = {
        passage for retrieval in retrievals(trace) if retrieval.step in steps_found for passage in retrieval.passages
    }
    return any(passage in seen for passage in step.passages)


def _right(question: Question, answer: Answer) -> bool:
    """Return True if an answer is right for some hop or for the question. Without a decomposition, hops are unknown."""
    golds = [*question.answers, *(text for hop in question.decomposition for text in hop.answers)]
    return bool(contains_gold(answer.text, golds) or contains_gold(" ".join(golds), [answer.text]))


def _wrong_before_the_end(question: Question, trace: Trace) -> bool:
    """Return True if an answer that a later query depends on is not in the decomposition."""
    if not question.decomposition:
        return False
    used = [answer for step, answer in _answers_used(trace) if _feeds_a_query(step, trace)]
    return any(not _right(question, answer) for answer in used)


def _feeds_a_query(step: Step, trace: Trace) -> bool:
    return any(step.id in later.depends_on and is_retrieval(later, trace) for later in trace.steps)
