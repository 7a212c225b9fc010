"""Words in questions that refer to documents, and to values and fields of their metadata."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyrag.agents.corpus.overview import CorpusOverview, DocumentOverview, FieldOverview, Scalar, overview_of
from pyrag.embedded.words import singular
from pyrag.retrieval.filters.tree import Comparison, Containment, Filter, all_of, any_of

GENERIC = frozenset(("document", "doc", "file", "record", "entry", "item"))
"""Words for documents of any kind."""

_MAX_WORDS = 4  # of a value that a question may name
_MIN_TITLES = 3
_ALIASES = {
    "email": ("mail",),
    "e mail": ("mail", "email"),
    "mail": ("email",),
    "agreement": ("contract",),
    "contract": ("agreement",),
}
_TIMES = frozenset(("year", "date", "dated", "day", "published", "created"))  # fields that date a document
YEAR = r"(?:1[5-9]|20|21)\d\d"
_ISO = re.compile(r"\d{4}-\d\d(?:-\d\d.*)?", re.DOTALL)


@dataclass(frozen=True)
class Vocabulary:
    """Words that questions can use for documents, fields and values."""

    overview: CorpusOverview

    @cached_property
    def values(self) -> dict[str, list[tuple[FieldOverview, Scalar]]]:
        """Fields and values, keyed by the value's words in lower case."""
        values: dict[str, list[tuple[FieldOverview, Scalar]]] = {}
        for field in self.overview.fields:
            for value, _ in field.values:
                if not isinstance(value, bool) and len(words := plain_words(str(value)).split()) <= _MAX_WORDS:
                    values.setdefault(" ".join(words), []).append((field, value))
        return values

    @cached_property
    def fields(self) -> dict[str, FieldOverview]:
        """Fields, keyed by the words of their names in lower case."""
        return {plain_words(field.name): field for field in self.overview.fields}

    @cached_property
    def _title_words(self) -> frozenset[str]:
        """Words of at least `_MIN_TITLES` titles, in the singular."""
        titles = Counter(word for title in self.overview.titles for word in set(_words(title)))
        return frozenset(word for word, count in titles.items() if count >= _MIN_TITLES)

    @cached_property
    def _folder_words(self) -> frozenset[str]:
        """Names of folders, and of files with several documents, in the singular."""
        files = Counter(document.source for document in self.overview.documents)
        names = [posixpath.basename(source).partition(".")[0] for source, count in files.items() if count > 1]
        return frozenset(
            word for name in (*names, *(folder for folder, _ in self.overview.folders)) for word in _words(name)
        )

    def within(self, where: Filter | None, words: Iterable[str] = ()) -> Vocabulary:
        """Return the vocabulary of some of the documents, or this one if the overview lists none of them.

        Args:
            where: Filter of the documents.
            words: Words that their titles or paths must contain.
        """
        documents = self.matching(where, words)
        if not documents:
            return self
        return Vocabulary(
            overview_of(
                len(documents),
                [dict(document.fields) for document in documents],
                [document.source for document in documents],
                [document.title for document in documents],
            )
        )

    def matching(self, where: Filter | None, words: Iterable[str] = ()) -> list[DocumentOverview]:
        """Return the documents that pass a filter and whose titles or paths contain words.

        Args:
            where: Filter of the documents; None for all.
            words: Words that their titles or paths must contain.
        """
        patterns = [re.compile(naming_pattern(word)) for word in words]
        return [
            document
            for document in self.overview.documents
            if (where is None or where.matches(dict(document.fields)))
            and all(pattern.search(f"{document.title} {document.source}") for pattern in patterns)
        ]

    def folder_word(self, text: str) -> str:
        """Return the singular of a word that names a folder or a file of several documents; empty for other words."""
        word = singular(plain_words(text))
        return word if word in self._folder_words else ""

    def kind(self, phrase: str) -> tuple[str, Filter | None, str] | None:
        """Return noun, filter and title word for a phrase that names documents; None if it names none.

        Args:
            phrase: Noun in the singular or plural, of one or more words.
        """
        plain = plain_words(phrase)
        noun = singular(plain)
        if noun in GENERIC:
            return noun, None, ""
        for name in dict.fromkeys((plain, noun)):
            where = self.having(name) or self._spelled(name)
            if where is not None:
                return noun, where, ""
        for name in (noun, *_ALIASES.get(noun, ())):
            if name in self._folder_words or (noun != plain and name in self._title_words):
                return noun, None, name
        return None

    def _spelled(self, noun: str) -> Filter | None:
        """Return the filter for values whose singular is a noun, such as "contracts" for "contract"."""
        return next((self.having(value) for value in self.values if singular(value) == noun), None)

    def having(self, text: str, field: str = "") -> Filter | None:
        """Return the filter for documents with a value; None if no document has it.

        Args:
            text: The value's words.
            field: Name of the field; empty for the field that has the value most often.
        """
        plain = plain_words(text)
        pairs = [pair for pair in self.values.get(plain, ()) if not field or pair[0].name == field]
        if not pairs:
            return self._flag(plain) if not field else None
        best = max((each for each, _ in pairs), key=lambda each: each.documents)
        return any_of(*(equal(each, value) for each, value in pairs if each.name == best.name))

    def _flag(self, plain: str) -> Filter | None:
        """Return the filter for a true-or-false field, such as "signed", "unsigned" and "not signed"."""
        for name, field in self.fields.items():
            if field.values and all(isinstance(value, bool) for value, _ in field.values):
                if plain == name:
                    return Comparison(field.name, "=", True)
                if plain in (f"not {name}", f"un{name}", f"non {name}"):
                    return Comparison(field.name, "=", False)
        return None

    def period(self, start: str, end: str) -> Filter | None:
        """Return the filter for documents from a period of years, by a year or date field; None without such a field.

        Args:
            start: First year; empty for none.
            end: Last year; empty for none.
        """
        named = [field for field in self.overview.fields if plain_words(field.name) in _TIMES]
        parts = [where for field in named if (where := _within(field, start, end)) is not None]
        if not parts:
            others = sorted(self.overview.fields, key=lambda field: -field.documents)
            parts = [where for field in others if (where := _within(field, start, end)) is not None][:1]
        return any_of(*parts) if parts else None


def _within(field: FieldOverview, start: str, end: str) -> Filter | None:
    """Return the filter for documents whose year or date field is within a period; None for other kinds of fields."""
    if field.is_number and all(re.fullmatch(YEAR, str(value)) for value, _ in field.values):
        bounds: list[Filter] = [Comparison(field.name, ">=", int(start))] if start else []
        return all_of(*bounds, *([Comparison(field.name, "<=", int(end))] if end else []))
    if is_time(field):
        bounds = [Comparison(field.name, ">=", start)] if start else []
        return all_of(*bounds, *([Comparison(field.name, "<", str(int(end) + 1))] if end else []))
    return None


def is_time(field: FieldOverview) -> bool:
    """Return True if all values of a field are ISO dates, whose order as texts is their order in time."""
    return bool(field.values) and all(isinstance(value, str) and _ISO.fullmatch(value) for value, _ in field.values)


def equal(field: FieldOverview, value: Scalar) -> Filter:
    """Return the filter for documents whose field has a value.

    Args:
        field: The field.
        value: One of its values, or any other value.
    """
    return Containment(field.name, value) if field.listed else Comparison(field.name, "=", value)


def plain_words(text: str) -> str:
    """Return the words of a text in lower case, with blanks instead of underscores and hyphens."""
    return " ".join(re.sub(r"[_\-/]+", " ", text.casefold()).split())


def naming_pattern(word: str) -> str:
    """Return the regular expression for titles and paths that contain a word in the singular or plural.

    Args:
        word: Word in the singular.
    """
    forms = re.escape(word) if not word.endswith("y") else f"{re.escape(word[:-1])}(?:y|ie)"
    return rf"(?i)(?<![^\W_]){forms}(?:s|es)?(?![^\W_])"


def _words(text: str) -> list[str]:
    return [singular(word) for word in re.findall(r"[^\W_]+", plain_words(text))]


def is_plural(phrase: str) -> bool:
    """Return True if the last word of a phrase is a plural."""
    plain = plain_words(phrase)
    return singular(plain) != plain


def noun_phrases(words: Sequence[str], limit: int = 6) -> Iterator[tuple[int, int]]:
    """Yield start and end of phrases that may name documents: earlier phrases first, and longer ones before shorter.

    Args:
        words: Words of a question after its opening.
        limit: Number of words in which a phrase may begin.
    """
    for start in range(min(limit, len(words))):
        for end in range(min(start + _MAX_WORDS, len(words)), start, -1):
            yield start, end
