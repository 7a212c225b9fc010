"""Runs of programs, and the answer in a program's final value, for use by all methods."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyrag.episode.episode import Episode
from pyrag.episode.plan_checks import RESULT
from pyrag.episode.program_run import ProgramRun, run_program
from pyrag.episode.program_values import UNKNOWN_ERROR, is_no_answer, plain
from pyrag.errors import ProgramFailedError
from pyrag.methods.typed_result import CAUSE, MisfitError, typed_answer
from pyrag.methods.value_sources import ItemSources, item_sources
from pyrag.trace.events import Planned
from pyrag.trace.model import NO_VALUE, UNKNOWN, UNPLANNED, Answer, Program, shorten
from pyrag_sandbox import Outcome, ProgramError, Record, Text

_LISTED = "; "  # between rows and documents
_REASONED = re.compile(rf"{UNKNOWN}: (?P<reason>\S.*)", re.DOTALL)
_MAX_REASON = 300  # characters
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Result:
    """Final answer and the steps that it depends on.

    Attributes:
        value: Value as JSON, for a caller's own program, a program over all documents, or a requested type.
        items: Sources of each item of the value, if it is a list or a dict.
        typed: Whether the value has been checked against the requested type.
        reason: Reason for an unknown answer, if the program states it; nothing else is tried then.
        cites_searches: Whether searches whose passages no answer among `steps` read count as cited.
    """

    answer: Answer
    steps: tuple[int, ...] = ()
    value: Any = None
    items: Mapping[str, ItemSources] = field(default_factory=dict)
    cites_searches: bool = False
    typed: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason why a program has no result.

    Attributes:
        message: Message for the program's planner.
        summary: Message shortened to one line.
        unknown: Whether the reason is a lack of evidence.
        cause: Cause as in `pyrag.errors.ProgramFailedError`.
    """

    message: str
    summary: str
    unknown: bool = False
    cause: str = ""


async def execute(episode: Episode, program: Program) -> Result | Failure:
    """Run a program and return its result, or its failure. Errors of services and of the budget are raised.

    Args:
        episode: Episode of the question, to which the program's steps are added.
        program: The program.
    """
    outcome, program_run = await run_program(episode, program)
    if outcome.status != "ok" or not outcome.has_value:
        return _failure_of(outcome, lacking=program_run.is_unknown())
    try:
        return _result_of(outcome, program_run)
    except NoAnswerError as error:
        return Failure(str(error), str(error), cause="no_answer")
    except MisfitError as error:
        return Failure(str(error), str(error), cause=CAUSE)


async def answer_whole_question(episode: Episode, topk: int) -> Result:
    """Run a program of one retrieval and one answer, both with the user's question.

    Args:
        episode: Episode of the question.
        topk: Number of passages.

    Raises:
        ProgramFailedError: The program failed.
    """
    source = (
        f"question = {episode.question!r}\n"
        f"docs = retrieve(question, topk={topk})\n"
        "final_answer = answer(question, docs)\n"
    )
    program = Program(source, planner="vanilla", origin=UNPLANNED)
    episode.observer(Planned(program))
    result = await execute(episode, program)
    if isinstance(result, Failure):
        raise ProgramFailedError(result.summary, cause=result.cause)
    return result


def _result_of(outcome: Outcome, program_run: ProgramRun) -> Result:
    """Return the value of `final_answer` as an answer. Raises `NoAnswerError` or `MisfitError` if it has none.

    A text that contains "unknown" is an unknown answer if it depends on one, or if it is "unknown: REASON".
    """
    reasoned = _REASONED.fullmatch(outcome.value) if type(outcome.value) is str else None
    if reasoned:
        program_run.episode.warn(f"{NO_VALUE}{shorten(reasoned['reason'], _MAX_REASON)}")
        return replace(_result_of(replace(outcome, value=UNKNOWN), program_run), reason=reasoned["reason"])
    sources = outcome.provenance.get(RESULT, ())
    steps = tuple(program_run.step_ids(sources))
    contract = program_run.episode.contract
    over_all = bool(program_run.episode.hideable) and not isinstance(outcome.value, str | Text | None)
    if over_all:
        _warn_of_unknown(program_run)
    if over_all and contract is None:
        answer = answer_of(outcome.value) if outcome.value or outcome.value == 0 else _NONE
        items = item_sources(outcome, program_run, program_run.source)
        return Result(answer, steps, plain(outcome.value), items, cites_searches=True)
    is_container = contract is not None and isinstance(outcome.value, list | tuple | dict)
    answer = Answer("") if is_container else answer_of(outcome.value)
    if isinstance(outcome.value, str) and holds_unknown(outcome.value) and program_run.is_unknown(sources):
        answer = Answer(UNKNOWN, known=False)
    result = Result(answer, steps, cites_searches=over_all)
    if contract is None:
        return result
    answer, value = typed_answer(answer, outcome.value, contract)
    items = item_sources(outcome, program_run, program_run.source) if isinstance(value, dict | list) else {}
    return replace(result, answer=answer, value=value, items=items, typed=True)


def _warn_of_unknown(program_run: ProgramRun) -> None:
    """Warn of documents without an answer, since a number or a list does not show them."""
    for step in program_run.episode.steps[program_run.first :]:
        if step.coverage is not None and step.coverage.complete and step.coverage.unknown:
            program_run.episode.warn(f"{step.query!r}: {step.coverage}")


def _failure_of(outcome: Outcome, *, lacking: bool) -> Failure:
    """Return the reason why a run has no value."""
    error = outcome.error
    match outcome.status:
        case "ok":
            message = f"the program ended without setting {RESULT}: assign the answer to it"
            return Failure(message, message, cause="no_answer")
        case "blocked":
            problem = error.message if error else "not allowed"
            where = f" (line {error.line})" if error and error.line else ""
            return Failure(
                f"refused by the sandbox{where}: {problem}", f"refused by the sandbox: {problem}", cause="refused"
            )
        case "killed":
            problem = f"the program was stopped by a limit ({outcome.reason})"
            return Failure(f"{problem}: write a shorter one without long loops", problem, cause=outcome.reason)
    assert error is not None
    summary = f"{error.type}: {error.message}" + (f" (line {error.line})" if error.line else "")
    unknown = error.type == UNKNOWN_ERROR or (lacking and _comes_of_unknown(error, outcome.variables))
    return Failure(error.traceback or summary, summary, unknown=unknown, cause=error.type)


def _comes_of_unknown(error: ProgramError, variables: Mapping[str, Any]) -> bool:
    """Return True if an error after an unknown answer was caused by it.

    This is the case if no branch set the result, the program gave up by itself, or the failing line uses the answer or
    contains the word "unknown".
    """
    line = error.source_line.strip()
    if error.type == "MissingResult" or line.startswith(("raise ", "assert ")) or holds_unknown(error.message):
        return True
    read = [variables.get(name) for name in _NAME.findall(line)]
    return any(isinstance(value, Text) and value.absent is not None for value in read)


_NOT_KNOWN = Answer(UNKNOWN, known=False)
_NONE = Answer("none")  # of all documents
_ANSWER_KEYS = ("final_answer", "final answer", "answer", "result", "value", "text", "output", "response")
_UNKNOWN_WORD = re.compile(rf"\b{UNKNOWN}\b", re.IGNORECASE)


class NoAnswerError(Exception):
    """Error for a value that is not an answer, worded for the program's author."""


def answer_of(value: Any) -> Answer:
    """Return the answer in a program's final value. Raises `NoAnswerError` if it has none."""
    match value:
        case None:
            return _NOT_KNOWN
        case Text():
            known = bool(value.fields.get("known", True))
            return Answer(value.text, known, (), value.fields.get("confidence"))
        case bool():
            return Answer("yes" if value else "no")
        case str():
            return _NOT_KNOWN if is_no_answer(value) else Answer(value.strip())
        case float():
            return Answer(str(int(value)) if value.is_integer() else str(value))
        case list() | tuple():
            return _of_several(value)
        case Mapping():
            return _of_dict(value)
        case Record():
            return _of_record(value)
    return Answer(str(value))


def _of_record(record: Record) -> Answer:
    """Return the value of a row of `each`, or the title of a document. Raises `NoAnswerError` for other records."""
    match record.fields:
        case {"item": _, "value": value}:
            return answer_of(value)
        case {"title": title, "passages": _}:
            return Answer(str(title))
    raise NoAnswerError("final_answer is a document: ask answer(query, docs) for the answer in it")


def _of_several(values: Sequence[Any]) -> Answer:
    """Return all values as one answer, or unknown if one of them is unknown.

    A confidence, a flag or None beside a single text is not part of the answer.
    """
    if values and all(isinstance(value, Record) for value in values):
        return Answer(_LISTED.join(map(_named, values)))
    texts = [value for value in values if isinstance(value, str | Text)]
    if len(texts) == 1 and all(value is texts[0] or _is_remark(value) for value in values):
        return answer_of(texts[0])
    answers = [answer_of(value) for value in values]
    if not answers or not all(answer.known for answer in answers):
        return _NOT_KNOWN
    return Answer(", ".join(answer.text for answer in answers))


def _named(record: Record) -> str:
    """Return a row of `each` as item and value, and a document as its title. Raises `NoAnswerError` for others."""
    answer = answer_of(record)
    if "item" not in record.fields or isinstance(record.fields["value"], bool):
        return str(record.fields.get("item", answer.text))
    return f"{record.fields['item']}: {answer.text} {record.fields.get('unit', '')}".strip()


def _is_remark(value: Any) -> bool:
    return value is None or isinstance(value, bool) or (isinstance(value, float) and 0 <= value <= 1)


def _of_dict(values: Mapping[Any, Any]) -> Answer:
    """Return the entry whose name means the answer, or the only entry; otherwise all entries with their names."""
    named = {str(key).casefold().replace("_", " ").strip(): key for key in values}
    for key in _ANSWER_KEYS:
        if key.replace("_", " ") in named:
            return answer_of(values[named[key.replace("_", " ")]])
    if len(values) == 1:
        return answer_of(next(iter(values.values())))
    answers = {str(key): answer_of(entry) for key, entry in values.items()}
    if not answers or not all(entry_answer.known for entry_answer in answers.values()):
        return _NOT_KNOWN
    return Answer(", ".join(f"{key}: {entry_answer.text}" for key, entry_answer in answers.items()))


def holds_unknown(text: str) -> bool:
    """Return True if a text contains the word "unknown", so that it may contain an unknown answer."""
    return _UNKNOWN_WORD.search(text) is not None
