"""Analysis of text into terms for BM25, for both index and queries. Changing it requires a new `VERSION`.

A text is folded and split (`forms`), put in lower case, and stemmed in the index's language. Additional forms of words
are indexed after the text, so that the words of the text remain adjacent: order matters in codes, around numbers and in
quotation marks. The index contains all words; queries drop common words, unless they have no others ("The Who").
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pyrag.retrieval.words.forms import (
    analysed,
    codes,
    folded,
    has_figure,
    humps,
    pieces,
    plain,
    query_forms,
    without_separators,
)
from pyrag.retrieval.words.languages import ENGLISH, STEMMED, WITH_STOP_WORDS
from pyrag.retrieval.words.spellings import (
    TRANSCRIBING,
    compounds,
    measures,
    mixed_words,
    tight_code,
    transcriptions,
)

if TYPE_CHECKING:
    import tantivy

VERSION = 3
MAX_WORD = 250  # bytes; more than a word of `forms.MAX_LENGTH` characters needs
MAX_TERMS = 512  # of a query
MAX_PHRASES = 32  # of a query

_COMMON = """
a an and are as at be but by did do does for how if in into is it no not of on or s such that the their then there
these they this to was were what when where which who whom whose why will with
"""
COMMON = frozenset(_COMMON.split())
_FIGURE = re.compile("[0-9]")
_QUOTED = re.compile('"([^"]+)"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|»([^«]+)«|「([^」]+)」|『([^』]+)』|《([^》]+)》')


class QueryTerms(NamedTuple):
    """Query in the form that the index searches for.

    Attributes:
        terms: Distinct terms, in order.
        alternatives: Sequences of terms that a text may have instead of a term: the parts of `camelCase` and of `utf8`,
            compounds and codes without their marks, and umlauts as two letters.
        codes: Terms of each code with digits, and pairs of these terms, whose order matters.
        quotations: Terms of each quotation and of other codes, such as domain names, whose order matters.
        pairs: Pairs of adjacent terms, at least one of which is a number.
        sequence: Terms of the query's words in order, without common words.
    """

    terms: list[str]
    alternatives: dict[str, list[tuple[str, ...]]]
    codes: list[tuple[str, ...]]
    quotations: list[tuple[str, ...]]
    pairs: list[tuple[str, str]]
    sequence: list[str]


class Analysis:
    """Analysis of texts and queries. The index itself analyses texts, with `stemming`.

    Args:
        language: Language of the texts; see `pyrag.retrieval.words.languages`.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        import tantivy

        self._language = language
        self.transcribes = language in TRANSCRIBING
        self._splitting = _builder().build()
        stemmer = tantivy.Filter.stemmer(language) if language in STEMMED else None
        self.stemming: tantivy.TextAnalyzer = (_builder().filter(stemmer) if stemmer else _builder()).build()

    def query_terms(self, query: str) -> list[str]:
        """Return the distinct terms of a query, in order."""
        return self.query(query).terms

    def passage_terms(self, text: str) -> list[str]:
        """Return the terms of a passage, including additional forms."""
        main, forms = analysed(text, transcribe=self.transcribes)
        return self.stemming.analyze(main) + self.stemming.analyze(forms)

    def query(self, query: str) -> QueryTerms:
        """Return the terms of a query, with the sequences whose order matters.

        Args:
            query: Any text.
        """
        text = folded(query)
        main = plain(without_separators(text))
        words = self._splitting.analyze(main)
        common = self._common(query, words)
        telling = [word for word in dict.fromkeys(words) if word not in common]
        main_terms = self.stemming.analyze(" ".join(telling[:MAX_TERMS]))
        forms = self.stemming.analyze(further)[:MAX_TERMS] if (further := query_forms(text)) else []
        code_texts, quotations = list(codes(text)), _quotations(text)
        figures = [code for code in code_texts if has_figure(code)]
        names = [code for code in code_texts if code not in figures]
        return QueryTerms(
            list(dict.fromkeys([*main_terms, *forms])),
            self._alternatives(self._other_spellings(query, text, figures, common)),
            _with_pairs(self._phrases(figures)) if figures else [],
            self._phrases([*quotations, *names]) if quotations or names else [],
            self._pairs(words[:MAX_TERMS], common),
            main_terms,
        )

    def _alternatives(self, pairs: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, ...]]]:
        """Return the terms of other spellings by each term of the words that they replace.

        Args:
            pairs: Words, and their other spelling.
        """
        alternatives: dict[str, list[tuple[str, ...]]] = {}
        for words, other in pairs:
            sequence = tuple(self.stemming.analyze(other))
            for term in self.stemming.analyze(words) if sequence else ():
                if sequence != (term,):
                    alternatives.setdefault(term, []).append(sequence)
        return alternatives

    def _other_spellings(
        self, query: str, text: str, figures: list[str], common: frozenset[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield words of a query with their other spellings.

        Args:
            query: The query.
            text: The folded query.
            figures: Its codes with digits.
            common: Its common words.
        """
        yield from ((word, " ".join(pieces(word))) for word in humps(text))
        yield from ((max(compound, key=len), "".join(compound)) for compound in compounds(text))
        if _FIGURE.search(text):
            yield from ((word, " ".join(parts)) for word, parts in mixed_words(text))
            yield from ((code, tight_code(code)) for code in figures)
            yield from ((f"{first} {second}", first + second) for first, second in measures(text, common))
        if self.transcribes and not query.isascii():
            yield from ((folded(word), other) for word, other in transcriptions(query))

    def _common(self, query: str, words: list[str]) -> frozenset[str]:
        """Return the common words of a query; an empty set if it has no other words."""
        if self._language == ENGLISH:
            common = COMMON
        elif self._stopping is None:
            return frozenset()
        else:
            telling = self._splitting.analyze(
                plain(" ".join(self._stopping.analyze(query.encode("utf-8", "replace").decode())))
            )
            common = frozenset(words).difference(telling)
        return common if any(word not in common for word in words) else frozenset()

    @cached_property
    def _stopping(self) -> tantivy.TextAnalyzer | None:
        import tantivy

        if self._language not in WITH_STOP_WORDS:
            return None
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
        return builder.filter(tantivy.Filter.stopword(self._language)).build()

    def _phrases(self, texts: Iterable[str]) -> list[tuple[str, ...]]:
        phrases = (tuple(self.stemming.analyze(plain(text))[:MAX_TERMS]) for text in texts)
        return list(dict.fromkeys(phrase for phrase in phrases if len(phrase) > 1))[:MAX_PHRASES]

    def _pairs(self, words: list[str], common: frozenset[str]) -> list[tuple[str, str]]:
        if not any(map(str.isdecimal, words)):
            return []
        terms = self.stemming.analyze(" ".join(words))
        pairs = [
            (terms[at], terms[at + 1])
            for at in range(len(words) - 1)
            if (words[at].isdecimal() or words[at + 1].isdecimal()) and not common.intersection(words[at : at + 2])
        ]
        return list(dict.fromkeys(pairs))[:MAX_PHRASES]


def _with_pairs(phrases: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return phrases, plus pairs of adjacent terms in longer phrases, since a text may contain only part of a code."""
    pairs = [pair for phrase in phrases if len(phrase) > 2 for pair in itertools.pairwise(phrase)]
    return list(dict.fromkeys([*phrases, *pairs]))[:MAX_PHRASES]


def _quotations(text: str) -> list[str]:
    return [next(filter(None, quotation)) for quotation in _QUOTED.findall(text)]


def _builder() -> tantivy.TextAnalyzerBuilder:
    import tantivy

    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(MAX_WORD))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )
