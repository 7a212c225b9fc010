"""The planner's reading of a question: a tree of steps over names, and the use of the steps' values.

The module holds plain data. The parsers in `grammar` build it, `wording` turns it into words, and `program_text` into
Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyrag.embedded.relations.relation import Relation


@dataclass(frozen=True, slots=True)
class Entity:
    """Name in a question.

    Args:
        text: The name as written.
        kind: Kind of thing before the name, such as "film" or "song". Empty without a kind.
    """

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class RelationStep:
    """One lookup: a question about names or about the values of other steps.

    Templates have the slots `{0}`, `{1}` … for the values of `args`.

    Args:
        question: Template of the question to ask.
        query: Template of the search query.
        phrase: Template of a noun phrase for the value, such as "the director of {0}".
        variable: Name of the variable that holds the value in a program.
        args: Names and steps whose values fill the slots.
        relation: Relation that the step asks for. None if the step uses the question's own words.
    """

    question: str
    query: str
    phrase: str
    variable: str
    args: tuple[Node, ...]
    relation: Relation | None = None


Node = Entity | RelationStep


@dataclass(frozen=True, slots=True)
class Chain:
    """Reading whose answer is the value of the last step."""

    node: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """Reading whose answer is the option with the smaller or greater value.

    Args:
        options: The two options.
        values: Value to compare for each option; for the key "span", its start and end.
        key: Way of comparing values; "span" compares the number of years from start to end.
        smaller: True if the option with the smaller or earlier value is the answer.
    """

    options: tuple[Node, Node]
    values: tuple[tuple[Node, ...], tuple[Node, ...]]
    key: Literal["date", "number", "quantity", "span"]
    smaller: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Reading whose answer is yes or no: whether the first value is smaller or greater than the second.

    Args:
        values: The two values to compare.
        key: Way of comparing values.
        smaller: True to ask whether the first value is smaller or earlier. False to ask whether it is greater or later.
    """

    values: tuple[Node, Node]
    key: Literal["date", "number", "quantity"]
    smaller: bool


@dataclass(frozen=True, slots=True)
class Same:
    """Reading whose answer is yes or no: whether two values are the same entity, day or year."""

    values: tuple[Node, Node]
    by: Literal["entity", "day", "year"] = "entity"


@dataclass(frozen=True, slots=True)
class Shared:
    """Reading whose answer is what two values have in common: shared entities, or the overlap of two periods."""

    values: tuple[Node, Node]
    by: Literal["entity", "period"] = "entity"


@dataclass(frozen=True, slots=True)
class Difference:
    """Reading whose answer is the number of years between two dates."""

    values: tuple[Node, Node]


@dataclass(frozen=True, slots=True)
class Gather:
    """Reading that searches for each name on its own and answers the question from all retrieved passages.

    Args:
        names: Names, or statements in the question's own words.
    """

    names: tuple[Entity, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """Reading that asks the whole question in one step.

    Args:
        sure: True if the question asks for one fact. False if no rule can read the question.
    """

    sure: bool = False


Meaning = Chain | Choice | Verdict | Same | Shared | Difference | Gather | Whole
