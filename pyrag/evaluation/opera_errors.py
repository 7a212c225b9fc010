"""Wrong answers by OPERA's table 11: three sources of errors, each with several kinds.

    planning    incorrect decomposition    too few searches for the hops, or no program that runs
                missing dependencies       no search waits for an answer, though the question omits a missing page
    retrieval   despite rewrite            gold passages were searched for, also with a rewritten query, and not found
                without rewrite            the same, without a rewritten query
    reasoning   incorrect YES decision     an answer was given from passages without the evidence
                misextraction              the evidence was present, and another answer was read from it
                incorrect NO decision      the evidence was present, and no answer was given (not in the paper)

The paper gives figures without rules; the rules are ours. All but the first line need gold passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrag.evaluation.datasets.layout import Question
from pyrag.evaluation.metrics import contains_gold, normalise
from pyrag.evaluation.retrieval_recall import Hop, accepted_of, is_retrieval
from pyrag.trace.model import Step, Trace

DECOMPOSITION, DEPENDENCIES = "incorrect decomposition", "missing dependencies"
DESPITE_REWRITE, WITHOUT_REWRITE = "retrieval despite rewrite", "retrieval without rewrite"
YES, MISEXTRACTION, NO = "incorrect YES decision", "misextraction from context", "incorrect NO decision"
SOURCES = {
    "planning": (DECOMPOSITION, DEPENDENCIES),
    "retrieval": (DESPITE_REWRITE, WITHOUT_REWRITE),
    "reasoning": (YES, MISEXTRACTION, NO),
}


def opera_error(kind: str, question: Question, trace: Trace, hops: Sequence[Hop], titles: Mapping[str, str]) -> str:
    """Return the line of the table for a wrong answer; empty if it has none (services, budgets).

    Args:
        kind: Class of the wrong answer by `pyrag.evaluation.failures`.
        question: Question with gold answers and passages.
        trace: Trace of the answer.
        hops: Gold passages, and whether they were found.
        titles: Titles of gold passages by id, if known.
    """
    match kind:
        case "under_decomposition" | "retrieval_missing" if _lacks_dependencies(question, trace, hops, titles):
            return DEPENDENCIES
        case "under_decomposition" | "program_error":
            return DECOMPOSITION
        case "retrieval_missing":
            return DESPITE_REWRITE if _rewritten(trace) else WITHOUT_REWRITE
        case "intermediate_error" | "misreading":
            return _misread(question, trace)
        case "final_refusal":
            return NO
    return ""


def _lacks_dependencies(question: Question, trace: Trace, hops: Sequence[Hop], titles: Mapping[str, str]) -> bool:
    """Return True if none of several searches depends on an answer, and the question does not name a missing page."""
    searches = [step for step in _last_round(trace) if is_retrieval(step, trace)]
    answered = {step.id for step in trace.steps if step.answer is not None}
    if len(searches) < 2 or any(not answered.isdisjoint(step.depends_on) for step in searches):
        return False
    asked = f" {normalise(question.question)} "
    missing = [normalise(titles[hop.gold]) for hop in hops if not hop.is_found and titles.get(hop.gold)]
    return any(title and f" {title} " not in asked for title in missing)


def _rewritten(trace: Trace) -> bool:
    return any(tried.policy == "rewrite" for step in trace.steps for tried in step.attempts)


def _misread(question: Question, trace: Trace) -> str:
    """Return the error of the first step that answered without evidence or did not answer despite evidence."""
    read = [(step, step.answer) for step in _last_round(trace) if step.answer is not None and step.mode == "evidence"]
    if any(answer.known and not _has_evidence(step, question, trace) for step, answer in read):
        return YES
    if trace.answer.known or all(answer.known for _, answer in read):
        return MISEXTRACTION
    return NO


def _has_evidence(step: Step, question: Question, trace: Trace) -> bool:
    """Return True if the step read a gold passage or, if none are known, a passage with some hop's answer."""
    gold = set[str]().union(*(ids for _, ids in accepted_of(question, trace)))
    if gold:
        return not gold.isdisjoint(step.passages)
    passages = [trace.passages[key] for key in step.passages if key in trace.passages]
    spellings = [*question.answers, *(text for hop in question.decomposition for text in hop.answers)]
    return not spellings or any(contains_gold(f"{passage.title} {passage.text}", spellings) for passage in passages)


def _last_round(trace: Trace) -> list[Step]:
    last = max((step.round for step in trace.steps), default=0)
    return [step for step in trace.steps if step.round == last]
