"""Faults of a caller's program, each as one message with the line, its text, the error, and a correction."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping

from pyrag.episode.plan_checks import RESULT, Problem
from pyrag.errors import ProgramFailedError
from pyrag_sandbox import Outcome, ProgramError

_MAX_LINE = 200  # characters of a quoted line
_CURES: Mapping[str, str] = {
    "AttributeError": "a passage has .id, .title, .text and .score; an answer is a str with .known, .citations and "
    ".confidence",
    "IndexError": "test the length first, or loop over the list",
    "KeyError": "use .get(key), or test `key in …` first",
    "ZeroDivisionError": "test the divisor first",
    "RecursionError": "use a loop",
    "UnboundLocalError": "assign the name on every path before it is read",
    "LimitExceeded": "make it do less, or raise the budget",
}
_WORDS: tuple[tuple[str, str], ...] = (
    ("could not convert string to float", "use parse_number(text)"),
    ("invalid literal for int()", "use parse_number(text)"),
    ("unsupported operand type(s)", "convert texts first: parse_number(text), parse_date(text), str(number)"),
    ("can only concatenate str", "use an f-string, or parse_number(text) to compute"),
    ("not supported between instances", "convert texts first: parse_number(text) or parse_date(text)"),
    ("must be real number", "use parse_number(text)"),
    ("strptime", "use parse_date(text)"),
    ("object is not callable", "a name of yours hides a function: rename it"),
)
_SYNTAX: tuple[tuple[str, str], ...] = (
    ("```", "leave out the Markdown fences"),
    ("await", "call retrieve() and answer() without await; independent calls run in parallel by themselves"),
    ("return", f"assign the result to {RESULT} instead of returning it"),
    ("yield", f"collect the items in a list and assign it to {RESULT}"),
)


def syntax_fault(source: str) -> ProgramFailedError | None:
    """Return the fault of a program that does not parse; None if it parses, or if only the sandbox can judge it."""
    try:
        compile(ast.parse(source, "<program>"), "<program>", "exec", dont_inherit=True)
    except SyntaxError as error:
        line = _text_of(source, error.lineno)
        words = line.split()
        cure = next((cure for word, cure in _SYNTAX if word in line if word == "```" or word in words), "")
        return _fault("SyntaxError", str(error.msg), error.lineno, line, cure)
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def undefined_name(source: str, problem: Problem, names: Iterable[str]) -> ProgramFailedError:
    """Return the fault for a problem that was found by the checks before a run.

    Args:
        source: Source code of the program.
        problem: The problem.
        names: Functions and inputs that the program may use.
    """
    kind, _, message = problem.message.partition(": ")
    if kind != "NameError":
        return ProgramFailedError(f"{problem.message}, as in {RESULT} = answer(query, docs)", cause="check")
    line = _text_of(source, problem.line)
    return _fault(kind, message, problem.line, line, _cure_of_name(message, names, line), cause="check")


def fault_of(outcome: Outcome, names: Iterable[str]) -> ProgramFailedError:
    """Return the fault for a run without a value.

    Args:
        outcome: Outcome whose status is not "ok".
        names: Functions and inputs that the program may use.
    """
    error = outcome.error
    assert error is not None, "a run without a value has an error"
    if outcome.status == "killed":
        return ProgramFailedError(f"the program was stopped: {error.message}", cause=outcome.reason)
    cause = "refused" if outcome.status == "blocked" else error.type
    if error.type == "MissingResult":
        cure = f"assign it on every path, as in {RESULT} = answer(query, docs)"
        return ProgramFailedError(f"the program ended without setting {RESULT}: {cure}", cause="no_answer")
    return _fault(error.type, error.message, error.line, error.source_line, _cure(error, names), cause=cause)


def _fault(
    kind: str, message: str, line: int | None, source_line: str, cure: str, *, cause: str = ""
) -> ProgramFailedError:
    quoted = source_line.strip()[:_MAX_LINE]
    place = f"line {line}: {quoted}\n" if line and quoted else f"line {line}: " if line else ""
    text = f"{place}{kind}: {message}" if message else f"{place}{kind}"
    if cure:
        text += f"\n{cure[0].upper()}{cure[1:]}{'' if cure.endswith('?') else '.'}"
    return ProgramFailedError(text, cause=cause or kind, line=line, source_line=quoted)


def _cure(error: ProgramError, names: Iterable[str]) -> str:
    """Return a correction; empty if the error's own message contains it."""
    if error.type == "NameError":
        return _cure_of_name(error.message, names, error.source_line)
    if "; there are: " in error.message:
        return ""
    worded = next((cure for words, cure in _WORDS if words in error.message), "")
    return worded or _CURES.get(error.type, "")


def _cure_of_name(message: str, names: Iterable[str], line: str) -> str:
    """Suggest the most similar name that the program may use, or list all of them."""
    known = list(names)
    wrong = message.split("'")[1] if message.count("'") >= 2 else ""
    if wrong and f"{{{wrong}}}" in line and re.search(r"\beach\(.*\bf[\"']", line):
        return f"leave out the f before the question: each() fills in {{{wrong}}} for every item"
    close = difflib.get_close_matches(wrong, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    input_ = f"assign it first, or pass it as an input (--input {wrong}=… on the command line); " if wrong else ""
    return f"{input_}programs may use: {', '.join(known)}"


def _text_of(source: str, line: int | None) -> str:
    lines = source.splitlines()
    return lines[line - 1] if line and 0 < line <= len(lines) else ""
