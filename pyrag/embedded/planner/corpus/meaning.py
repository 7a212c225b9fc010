"""Meaning of a question over all documents: which documents it selects, and what it asks about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pyrag.agents.python_text import literal
from pyrag.retrieval.filters.tree import Filter

Use = Literal["count", "list", "each", "extreme", "extreme value", "total", "average"]


@dataclass(frozen=True, slots=True)
class TextFact:
    """Fact that is looked up in each document.

    Attributes:
        question: Question about one document.
        test: Python expression over `row`, which is true for selected documents.
        returns: Type of the answers; empty for texts.
        absent: Whether documents without an answer are meant, whatever `test` is.
        is_judged: Whether the document must be judged as a whole, which no look-up settles.
        unit: Unit of the number that the answers are compared with; empty if the question names none.
    """

    question: str
    test: str = "row.value"
    returns: str = ""
    absent: bool = False
    is_judged: bool = False
    unit: str = ""

    @property
    def condition(self) -> str:
        """Python expression over `row` that is true for selected documents."""
        return "row.reached and not row.known" if self.absent else f"row.known and {self.test}"


@dataclass(frozen=True, slots=True)
class MetadataTest:
    """Test of a metadata field that no filter can express, as a Python expression over `doc`."""

    field: str
    expression: str
    is_negated: bool = False

    @property
    def condition(self) -> str:
        """Python expression over `doc` that is true for selected documents."""
        test = f"not ({self.expression})" if self.is_negated else self.expression
        return f"{literal(self.field)} in doc.metadata and {test}"

    def negated(self) -> MetadataTest:
        """Return the opposite test. Documents without the field pass neither test."""
        return replace(self, is_negated=not self.is_negated)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of a question: filters of metadata, and facts in the text."""

    filters: tuple[Filter, ...] = ()
    facts: tuple[TextFact, ...] = ()
    tests: tuple[MetadataTest, ...] = ()
    words: tuple[str, ...] = ()

    def __add__(self, other: Conditions) -> Conditions:
        return Conditions(
            self.filters + other.filters,
            self.facts + other.facts,
            self.tests + other.tests,
            self.words + other.words,
        )

    def negated(self) -> Conditions | None:
        """Return the opposite of a single condition; None for several."""
        if self.words or len(self.tests) > 1 or (self.tests and (self.filters or self.facts)):
            return None
        if self.tests:
            return Conditions(tests=(self.tests[0].negated(),))
        match self.filters, self.facts:
            case (where,), ():
                return Conditions((where.negated(),))
            case (), (fact,):
                denied = replace(fact, absent=True) if fact.test == "True" else replace(fact, test=f"not ({fact.test})")
                return None if fact.absent else Conditions(facts=(denied,))
        return None


@dataclass(frozen=True, slots=True)
class SelectedDocuments:
    """Documents that a question is about.

    Attributes:
        noun: Word for one document.
        where: Filter of metadata.
        words: Words that titles or paths must contain.
        tests: Tests of metadata that no filter can express.
        facts: Facts in the documents' text.
        base: Filter of the documents that the noun names, without the other conditions.
    """

    noun: str = "document"
    where: Filter | None = None
    words: tuple[str, ...] = ()
    tests: tuple[MetadataTest, ...] = ()
    facts: tuple[TextFact, ...] = ()
    base: Filter | None = None


@dataclass(frozen=True, slots=True)
class CorpusQuestion:
    """Meaning of a question over all documents.

    Attributes:
        asked: Question about each document; its answers are listed or compared.
        field: Metadata field that holds this answer; empty if the answer is read from the text.
        returns: Type of the answers; empty for texts.
        is_lowest: Whether the question asks for the lowest value, not the highest.
        value: Python expression over `doc` for the value of `field`.
        note: Remark on documents that lack the metadata; empty if there are none.
    """

    use: Use
    selection: SelectedDocuments
    asked: str = ""
    field: str = ""
    returns: str = ""
    is_lowest: bool = False
    value: str = ""
    note: str = ""
