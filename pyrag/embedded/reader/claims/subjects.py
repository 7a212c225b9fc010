"""Check of whether a clause is about the subject of a claim.

A clause may name the subject, refer to it by a pronoun, or be on its page.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.reader.claims.claim import Claim, content_words
from pyrag.embedded.reader.claims.clauses import Clause
from pyrag.embedded.reader.claims.opposites import is_among
from pyrag.embedded.reader.claims.values import is_named_among, same_name, values_of
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import STOPWORDS, Sentence
from pyrag.trace.sentences import UPPER_CLASS

_OPENING = re.compile(
    rf"(?:(?:In|On|At|By|Since|After|From) [^,]{{1,40}}, )?(?:The |A |An )?(?P<name>[{UPPER_CLASS}][\w'’.-]*(?: (?:of |the |de |von )*[{UPPER_CLASS}0-9][\w'’.-]*)*)"
)
_NOUN = re.compile(
    r"(?:and |but )?(?:The|Its|His|Her|Their|An?|the|its|his|her|their|an?) (?P<noun>(?:[\w-]+ ){0,3}?[\w-]+?)"
    r"(?:'s| of | for | is\b| was\b| are\b| were\b| has\b| have\b| had\b| can\b| cannot\b| will\b| does\b| did\b| [a-z]+s\b"
    r"| [a-z]+ed\b)"
)
_SAME_SENTENCE = 0.97  # weight of a clause if words of the subject are only in other clauses of the sentence
_FAR = 0.9  # weight of a clause if words of the subject are only elsewhere on the page


@dataclass(frozen=True, slots=True)
class SubjectMatch:
    """Relation of a clause to the subject of a claim.

    Args:
        weight: Nearness of the subject's words, in [0, 1].
        is_named: True if the clause has all names of the subject, or any of its words if it has no names.
        has_words: True if the clause names the subject or has any of its words.
        is_other: True if the clause is about another thing on the page.
        title_words: Words and numbers of the page's title.
        title_names: Names in the page's title.
    """

    weight: float
    is_named: bool
    has_words: bool
    is_other: bool
    title_words: tuple[str, ...]
    title_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubjectTraces:
    """Traces of a claim's subject on a page, collected once for all clauses.

    Args:
        page: Page that was searched.
        title_words: Words and numbers of the page's title.
        title_names: Names in the page's title.
        names_in_title: Names of the subject that the title covers.
        names_on_page: Names of the subject that occur in the page's sentences.
        words_on_page: Other words of the subject that occur in the page's sentences.
    """

    page: View
    title_words: tuple[str, ...]
    title_names: tuple[str, ...]
    names_in_title: frozenset[str]
    names_on_page: frozenset[str]
    words_on_page: frozenset[str]


def subject_traces(claim: Claim, page: View) -> SubjectTraces:
    """Return the traces of a claim's subject on a page.

    Args:
        claim: Claim whose subject is searched for.
        page: Page to search.
    """
    title, subject = values_of(page.title), claim.subject_values
    title_names = (*title.names, *values_of(page.base).names)
    numbers = (amount.text for amount in title.amounts)
    title_words = (*numbers, *content_words(title.rest), *content_words(" ".join(name.lower() for name in title.names)))
    names = {name for sentence in page.sentences for name in values_of(sentence.text).names} if subject.names else set()
    page_words = {word for sentence in page.sentences for word in sentence.lowers}
    return SubjectTraces(
        page,
        title_words,
        title_names,
        frozenset(name for name in subject.names if _is_titled(name, title_names, names)),
        frozenset(name for name in subject.names if is_named_among(name, names)),
        frozenset(word for word in content_words(subject.rest) if is_among(word, page_words)),
    )


def match_subject(claim: Claim, clause: Clause, traces: SubjectTraces, sentence: Sentence) -> SubjectMatch | None:
    """Return how a clause relates to the subject of a claim, or None if it cannot be about the subject.

    Args:
        claim: Claim to decide.
        clause: Clause of the sentence.
        traces: Traces of the subject on the page.
        sentence: Sentence of the page.
    """
    page, subject = traces.page, claim.subject_values
    missing = [name for name in subject.names if not is_named_among(name, clause.values.names)]
    is_named, has_strangers = not missing, False
    for name in missing:
        if name not in traces.names_in_title and not _refers(name, clause, page, sentence):
            if name not in traces.names_on_page or not _strangers(claim, clause, ()):
                return None
            has_strangers = True
    is_other = has_strangers or (bool(missing) and _about_other(claim, clause, sentence, traces.title_names))
    weight = _nearness(claim, clause, traces, sentence)
    if weight is None or not _has_numbers(claim, clause, page, sentence):
        return None
    words = content_words(subject.rest)
    has_words = claim.subject.lower() == "there" or any(is_among(word, clause.words) for word in words)
    if not is_other and not is_named and not has_words and _foreign_noun(claim, clause, traces.title_words, page):
        return None
    if not subject.names:
        is_named = has_words
        if not has_words and (
            _foreign_noun(claim, clause, traces.title_words, page) or not _has_pronoun(clause, sentence)
        ):
            return None
    return SubjectMatch(weight, is_named, is_named or has_words, is_other, traces.title_words, traces.title_names)


def _is_titled(name: str, title_names: tuple[str, ...], names: set[str]) -> bool:
    """Return whether a title covers a name of the subject.

    It contains the name itself, or the name without its number: "Zephyr fan" covers "Zephyr 200" if the page has no
    other Zephyr.
    """
    if is_named_among(name, title_names):
        return True
    without_number = re.sub(r"\s+\S*\d\S*$", "", name)
    numbered = {other for other in names if other.startswith(f"{without_number} ")}
    return without_number != name and numbered == {name} and is_named_among(without_number, title_names)


def _about_other(claim: Claim, clause: Clause, sentence: Sentence, title_names: tuple[str, ...]) -> bool:
    """Return whether the clause starts with a name that neither the claim nor the page's title has."""
    known_names = (*claim.subject_values.names, *claim.values.names, *title_names)
    text = clause.text if _has_subject(clause.text) else sentence.text
    opening = _OPENING.match(text)
    opening_name = opening["name"] if opening and opening["name"].split()[0].lower() not in STOPWORDS else ""
    if (
        opening_name
        and " by " not in f" {claim.predicate} "
        and (
            " " in opening_name
            or not text.startswith(opening_name)
            or text is not sentence.text
            or len(opening_name) > 3
        )
    ):
        is_known = any(same_name(name, opening_name) or same_name(opening_name, name) for name in known_names)
        if (
            not is_known
            and values_of(opening_name).names
            and opening_name.lower() not in {word.lower() for word in _small_words(sentence)}
        ):
            return True
    is_office = re.match(r"the ", claim.predicate) is not None
    return is_office and bool(_strangers(claim, clause, title_names))


def _strangers(claim: Claim, clause: Clause, title_names: tuple[str, ...]) -> list[str]:
    """Return the names of a clause that neither the claim nor the page's title has."""
    known_names = (*claim.subject_values.names, *claim.values.names, *title_names)
    return [
        name
        for name in clause.values.names
        if not any(same_name(known, name) or same_name(name, known) for known in known_names)
    ]


_OPENS_WITH_PRONOUN = re.compile(r"(?:It|He|She|They|His|Her|Its|Their)\b")


def _refers(name: str, clause: Clause, page: View, sentence: Sentence) -> bool:
    """Return whether a clause may refer to the subject without naming it.

    The sentence must name the subject before the clause. If the clause starts with a pronoun, the last sentence before
    it that does not start with a pronoun may name it instead.
    """
    start = sentence.text.find(clause.text)
    before = sentence.text[: max(start, 0)]
    if re.match(r"(?:and |but )?(?:it|he|she|they|his|her|its|their)\b", clause.text, re.IGNORECASE) and sentence.index:
        at = sentence.index - 1
        while at and _OPENS_WITH_PRONOUN.match(page.sentences[at].text):
            at -= 1
        before = f"{page.sentences[at].text} {before}"
    return is_named_among(name, values_of(before).names)


def _has_numbers(claim: Claim, clause: Clause, page: View, sentence: Sentence) -> bool:
    """Return whether the numbers of the subject, as in "proposal 7", occur in the clause or earlier on the page."""
    if not claim.subject_values.amounts:
        return True
    text = " ".join((page.title, *(line.text for line in page.sentences[: sentence.index]), clause.text))
    return all(
        re.search(rf"(?<![\w.,]){re.escape(amount.text)}(?![\w%])(?!\.\d)", text)
        for amount in claim.subject_values.amounts
    )


def _small_words(sentence: Sentence) -> set[str]:
    return {word for word in sentence.words[1:] if word.islower()}


def _has_subject(text: str) -> bool:
    """Return whether a clause starts with a subject: a name, a pronoun, or an article."""
    return bool(
        re.match(rf"(?:and |but )?(?:[{UPPER_CLASS}]|the |its |his |her |their |it |he |she |they |an? )", text)
    )


def _nearness(claim: Claim, clause: Clause, traces: SubjectTraces, sentence: Sentence) -> float | None:
    """Return a weight for the distance between the subject's words and a clause, or None if a word is missing.

    It is 1 if all words are in the clause or the page's title. Names do not count.
    """
    weight = 1.0
    before = sentence.text[: max(sentence.text.find(clause.text), 0)].lower()
    for word in content_words(claim.subject_values.rest):
        if is_among(word, (*clause.words, *traces.title_words)):
            continue
        if is_among(word, sentence.lowers):
            if _has_subject(clause.text) or not is_among(word, content_words(before)):
                return None  # a run of clauses will have the word
            weight = min(weight, _SAME_SENTENCE)
        elif word in traces.words_on_page:
            weight = min(weight, _FAR)
        else:
            return None
    return weight


def _has_pronoun(clause: Clause, sentence: Sentence) -> bool:
    """Return whether a clause starts with a pronoun, or has no subject of its own."""
    return bool(
        re.match(r"(?:and |but )?(?:it|he|she|they|we|i|you|this|these|which|who)\b", clause.text, re.IGNORECASE)
    ) or not (clause.is_opening and _has_subject(sentence.text))


def _foreign_noun(claim: Claim, clause: Clause, title_words: tuple[str, ...], page: View) -> bool:
    """Return whether a clause is about a thing or part that the claim does not name: "The battery is removable"."""
    match = _NOUN.match(clause.text)
    if match is None:
        return False
    nouns = [word for word in match["noun"].split() if word[0].islower()]
    if not nouns:
        return False
    noun = nouns[-1]
    lead = page.lead.lowers if page.lead else ()
    claimed = content_words(f"{claim.subject} {claim.predicate}".lower())
    known_words = (*claimed, *title_words, *lead[:14])
    return not is_among(noun, known_words)
