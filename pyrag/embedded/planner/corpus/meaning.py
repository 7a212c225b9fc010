"""The meaning of a question over all documents: which of them, and what is wanted of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyrag.retrieval.filters.tree import Filter

Use = Literal["count", "list", "each", "extreme", "extreme value", "total", "average"]


@dataclass(frozen=True, slots=True)
class TextFact:
    """Fact that each document is asked for.

    Attributes:
        question: Question to one document.
        test: Python expression over `row`, which is true for documents that are meant.
        returns: Type of the answers; empty for texts.
        absent: Whether documents without an answer are meant, whatever `test` is.
        is_judged: Whether the document must be judged as a whole, which no look-up settles.
    """

    question: str
    test: str = "row.value"
    returns: str = ""
    absent: bool = False
    is_judged: bool = False

    @property
    def condition(self) -> str:
        """Python expression over `row` that is true for documents that are meant."""
        return "row.reached and not row.known" if self.absent else f"row.known and {self.test}"


@dataclass(frozen=True, slots=True)
class SelectedDocuments:
    """Documents that a question is about.

    Attributes:
        noun: Word for one document.
        where: Filter of metadata.
        word: Word that titles or folders must have; empty for none.
        facts: Facts in the documents' text.
    """

    noun: str = "document"
    where: Filter | None = None
    word: str = ""
    facts: tuple[TextFact, ...] = ()


@dataclass(frozen=True, slots=True)
class CorpusQuestion:
    """Meaning of a question over all documents.

    Attributes:
        asked: Question to each document whose answers are wanted or compared.
        field: Metadata field that holds this answer; empty if the texts are asked.
        returns: Type of the answers; empty for texts.
        is_lowest: Whether the lowest value is meant, not the highest.
    """

    use: Use
    selection: SelectedDocuments
    asked: str = ""
    field: str = ""
    returns: str = ""
    is_lowest: bool = False
