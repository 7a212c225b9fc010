"""The meaning of a question to the embedded planner: trees of steps over names, and how their values are used.

Plain data. The parsers build it, `wording` puts it into words and `write_program` into Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyrag.embedded.relations.relation import Relation


@dataclass(frozen=True, slots=True)
class Entity:
    """A name as it stands in the question; `kind` is the word before it ("film", "song"), if any."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class RelationStep:
    """One question about the values of `args`, which stand for `{0}`, `{1}` … in the templates.

    `phrase` names the value ("the director of {0}"); `variable` is what a program calls it. `relation` is None where
    the question's own words were kept.
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
    """The answer is the value of the last step."""

    node: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer is one of two options: the one whose value is the least or the greatest.

    `pairs` hold for each option what is compared: one value, or start and end of a life where `key` is "span".
    """

    options: tuple[Node, Node]
    values: tuple[tuple[Node, ...], tuple[Node, ...]]
    key: Literal["date", "number", "quantity", "span"]
    least: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no: whether the first value comes before (`least`) or after the second."""

    values: tuple[Node, Node]
    key: Literal["date", "number", "quantity"]
    least: bool


@dataclass(frozen=True, slots=True)
class Same:
    """Yes or no: whether two values are the same thing; dates may be compared by "day" or "year"."""

    values: tuple[Node, Node]
    by: Literal["entity", "day", "year"] = "entity"


@dataclass(frozen=True, slots=True)
class Shared:
    """The common part of two values; periods share their overlap."""

    values: tuple[Node, Node]
    by: Literal["entity", "period"] = "entity"


@dataclass(frozen=True, slots=True)
class Difference:
    """The number of years between two dates."""

    values: tuple[Node, Node]


@dataclass(frozen=True, slots=True)
class Gather:
    """Evidence on each name is found on its own; the question is answered over all of it."""

    names: tuple[Entity, ...]  # names, or what a report tells in its own words


@dataclass(frozen=True, slots=True)
class Whole:
    """The question in one step."""

    sure: bool = False  # True: it is a question about one fact; False: nothing better was found


Meaning = Chain | Choice | Verdict | Same | Shared | Difference | Gather | Whole
