"""Questions whose answer is computed over the rows of a table: counts, sums, shares, extremes and groups.

Only the wording is known here, so that a program first looks whether the passages belong to a table that has the
question's words; otherwise it continues as without tables. If the table has the words and does not give the value, the
answer is unknown with the reason, since a single row would not be the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from textwrap import indent

from pyrag.agents.python_text import literal
from pyrag.embedded.planner.table_patterns import TableQuestion
from pyrag.embedded.planner.table_wordings import readings
from pyrag.trace.model import UNKNOWN
from pyrag_helpers.tables.vocabulary import KINDS

_MAX_READINGS = 4
_MAX_CHARACTERS = 300
_MIN_TOPK = 20  # rows of one table may fill a shorter list


def with_table(question: str, program: str, topk: int) -> str:
    """Return a program that computes over a table if the passages belong to one, and otherwise runs the given program.

    Args:
        question: The question.
        program: Program for the question without tables.
        topk: Number of passages to retrieve.
    """
    computations = read_table_question(question)
    if not computations:
        return program
    for reading in reversed(computations):
        program = (
            f"try:\n    {_assignment(reading)}\n"
            f'except TableError as error:\n    final_answer = f"{UNKNOWN}: {{error}}"\n'
            f"except ValueError:\n{indent(program, '    ')}"
        )
    query = literal(_search(question, computations))
    return f"tables = read_tables(retrieve({query}, topk={max(topk, _MIN_TOPK)}), partial=True)\n{program}"


def _assignment(reading: TableQuestion) -> str:
    if reading.by and not reading.rank:
        return (
            f"groups = {_call(reading)}\n"
            '    final_answer = "; ".join([f"{name}: {value}" for name, value in groups.items()])'
        )
    return f"final_answer = {_call(reading)}"


def _call(reading: TableQuestion) -> str:
    """Return the call of the helper `table_value`."""
    arguments = ["tables", literal(reading.how)]
    if reading.column:
        arguments.append(f"column={literal(reading.column)}")
    if isinstance(reading.where, tuple):
        arguments.append(f"where=({', '.join(map(literal, reading.where))})")
    elif reading.where:
        arguments.append(f"where={literal(reading.where)}")
    named = (("show", reading.show), ("by", reading.by), ("rank", reading.rank))
    arguments += [f"{name}={literal(value)}" for name, value in named if value]
    if reading.top:
        arguments.append(f"top={reading.top}")
    return f"table_value({', '.join(arguments)})"


def _search(question: str, computations: Sequence[TableQuestion]) -> str:
    """Return the search text for tables: the question, plus the column's name and other words for the rows."""
    asked = set(re.findall(r"[a-z]+", question.lower()))
    more = [word for reading in computations for word in reading.column.split()]
    more += [word for kind in KINDS if asked.intersection(kind) for word in kind]
    return " ".join((question, *dict.fromkeys(word for word in more if word.lower() not in asked)))


@lru_cache(maxsize=512)
def read_table_question(question: str) -> tuple[TableQuestion, ...]:
    """Return the computations that a question may ask for, likeliest first; empty if its wording asks for none.

    Args:
        question: The question.
    """
    text = " ".join(question.split()).strip().rstrip("?.! ")
    return tuple(dict.fromkeys(readings(text)))[:_MAX_READINGS] if len(text) < _MAX_CHARACTERS else ()
