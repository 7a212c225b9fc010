"""Names that a cue ties to a page's subject: directors, spouses, parents, schools, employers, labels.

A cue is a pattern over the text of a sentence, and the answer is the name right after or before it. Other facts, such
as dates, nationalities and occupations, are in `facts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyrag.embedded.lexicon import names_of, words
from pyrag.embedded.lexicon.people import DROPPED_TITLES, FEMALE, HONORIFICS, RANKS, ROLES
from pyrag.embedded.lexicon.regions import PEOPLES
from pyrag.embedded.lexicon.times import MONTH_NAMES
from pyrag.embedded.reader.spans import is_name_word, name_run, strip_title_words
from pyrag.embedded.reader.view import View
from pyrag.embedded.relations.table import RELATIONS
from pyrag.embedded.words import STOPWORDS, Sentence, fold, without_possessive


@dataclass(frozen=True, slots=True)
class PageFact:
    """Answer that an extractor finds on a page.

    Args:
        text: The answer.
        strength: Reliability of the pattern, in [0, 1].
        sentence: Index of the sentence.
        cue: Words that the pattern matched, for the rationale.
        kind: Selector of the cue, such as "after". Empty for answers of other extractors.
    """

    text: str
    strength: float
    sentence: int
    cue: str
    kind: str = ""


_SKIP_STOPS = words("""
    by and in on at from with for to of who which that is was were are when while after before as
""") - {"of"}
_NO_PERSONS = names_of("""
    publisher; record label; educated at; employer; sports team; political party; owned by; part of; manufacturer;
    headquarters location; location; award received; place of burial; religion; border
""")  # relations whose answers are not people: a nationality may be part of the name


_CUES = {
    relation.name: tuple(
        (re.compile(pattern, re.IGNORECASE if "a-z" not in pattern else 0), selector, reliability)
        for pattern, selector, reliability in relation.cues
    )
    for relation in RELATIONS
}


def by_cue(relation: str, page: View) -> Iterator[PageFact]:
    """Find the names that a relation's cues point to, except the page's own title.

    Args:
        relation: Name of the relation. A relation without cues has no answers.
        page: Page to read.
    """
    for sentence in page.sentences:
        for pattern, selector, reliability in _CUES.get(relation, ()):
            for match in pattern.finditer(sentence.text):
                text = _name_at(sentence, match, selector, relation)
                if text and fold(text) != fold(page.base):
                    strength = reliability - 0.02 * min(sentence.index, 6)
                    yield PageFact(text, strength, sentence.index, match.group().strip(), selector)


def in_full(text: str, page: View) -> str:
    """Return the full name for a surname, if the page has it: "Tina Arena" for "Arena".

    Args:
        text: Name. A name of several words, or a word of the page's title, is returned unchanged.
        page: Page that the name is from.
    """
    if " " in text or not text or fold(text) in fold(page.base).split():
        return text
    for sentence in page.sentences:
        for at, word in enumerate(sentence.words):
            if (
                word == text
                and at
                and is_name_word(sentence.words[at - 1])
                and sentence.lowers[at - 1] not in STOPWORDS
            ):
                first = next(
                    (
                        i
                        for i in range(max(at - 4, 0), at)
                        if name_run(sentence, i) >= at + 1 and is_name_word(sentence.words[i])
                    ),
                    at,
                )
                return clean_name(sentence.span(strip_title_words(sentence, first, at + 1), at + 1))
    return text


def _name_at(sentence: Sentence, match: re.Match[str], selector: str, relation: str) -> str:
    """Return the name that a match points to, or "".

    Parents are often listed together, as in "the son of Ann and Bob". If the words or titles show that the first is a
    woman, she is the mother and the second is the father.
    """
    if selector == "before":
        return _name_before(sentence, match.start())
    names = names_after(sentence, match.end(), persons=relation not in _NO_PERSONS)
    if (
        relation in ("mother", "father")
        and len(names) > 1
        and not re.search(r"\b(?:and|&|by)\b", sentence.text[match.end() :].split(names[1])[0])
    ):
        names = names[:1]  # in "the son of A, B played …" B is another person
    if relation == "mother" and selector == "second":
        return _if_female(sentence, match.end(), names) or (names[1] if len(names) > 1 else "")
    if relation == "father" and names and _if_female(sentence, match.end(), names):
        return names[1] if len(names) > 1 else ""
    if selector == "second":
        return names[1] if len(names) > 1 else ""
    text = names[0] if names else ""
    return "" if selector == "place" and text.split()[:1] and text.split()[0] in MONTH_NAMES else text


def _if_female(sentence: Sentence, position: int, names: list[str]) -> str:
    """Return the first name after a position if its title or the words before it show a woman, else ""."""
    if not names:
        return ""
    words_before = sentence.text[position : position + 80].split(names[0])[0]
    words = set(re.findall(r"\w+", f"{words_before} {names[0].split()[0]}".lower()))
    return names[0] if words & FEMALE else ""


def _token_at(sentence: Sentence, position: int) -> int:
    """Return the first token that starts at or after a character of the text."""
    return next((i for i, start in enumerate(sentence.starts) if start >= position), len(sentence.starts))


def _skip_to_name(sentence: Sentence, index: int, limit: int = 8) -> int:
    """Return the token at which a name starts after articles, nationalities and roles, or -1 if other words come first.

    In "by the French filmmaker Jean Rollin" the name starts at "Jean".
    """
    for offset in range(limit):
        at = index + offset
        if at >= len(sentence.words):
            return -1
        word, lower = sentence.words[at], sentence.lowers[at]
        if is_name_word(word):
            stop = name_run(sentence, at)
            initial = at + 1 < len(sentence.words) and sentence.words[at + 1] == "." and len(word) == 1
            if (
                sentence.span(at, stop) in PEOPLES
                or (lower in ROLES and lower not in HONORIFICS)
                or (lower in STOPWORDS and not initial)
            ):
                continue
            return _after_role(sentence, at, stop)
        previous = sentence.lowers[at - 1] if at else ""
        if lower in ('"', "“", "'", ",", "-") and (lower != "," or (offset and previous.isalpha())):
            continue
        next_word = sentence.words[at + 1] if at + 1 < len(sentence.words) else ""
        joins_roles = lower == "and" and offset > 0 and next_word.islower() and next_word not in STOPWORDS
        if not lower.replace("-", "").isalpha() or (lower in _SKIP_STOPS and not joins_roles):
            return -1
    return -1


def _after_role(sentence: Sentence, first: int, stop: int) -> int:
    """Return the start of the name after a role, or `first` if the capitalised words are not followed by a role.

    It is "Moctezuma" in "the Aztec ruler Moctezuma II", and "Fatimah" in "Ali's daughter Fatimah".
    """
    index = stop
    while (
        index < len(sentence.words)
        and index - stop < 4
        and sentence.words[index].islower()
        and (sentence.lowers[index] not in STOPWORDS or sentence.lowers[index] == "and")
    ):
        index += 1
    if (
        index > stop
        and index < len(sentence.words)
        and is_name_word(sentence.words[index])
        and sentence.lowers[index - 1] in ROLES
    ):
        return index
    return first


def names_after(sentence: Sentence, position: int, *, persons: bool = True) -> list[str]:
    """Return up to three names that are listed after a position, as in "A, B and C".

    Args:
        sentence: Sentence to read.
        position: Character of the sentence's text. A name may start a few words later.
        persons: Whether to remove a nationality before each name.
    """
    listed: list[str] = []
    index = _token_at(sentence, position)
    while len(listed) < 3:
        first = _skip_to_name(sentence, index)
        if first < 0:
            break
        stop = _with_suffix(sentence, name_run(sentence, first))
        first = strip_title_words(sentence, first, stop) if persons else first
        listed.append(clean_name(sentence.span(first, stop)))
        index = _past_brackets(sentence, stop)
        if index >= len(sentence.words) or sentence.lowers[index] not in (",", "and", "&", "by"):
            break
        index += 1
        if index < len(sentence.words) and sentence.lowers[index - 1] == "," and sentence.lowers[index] == "and":
            index += 1
    return listed


def _past_brackets(sentence: Sentence, index: int) -> int:
    """Return the token after the brackets that open at a token, or this token if none open."""
    if index < len(sentence.words) and sentence.words[index] == "(":
        while index < len(sentence.words) and sentence.words[index] != ")":
            index += 1
        return index + 1
    return index


def _with_suffix(sentence: Sentence, stop: int) -> int:
    """Return the end of a name with its suffix: ", Jr.", ", Duke of Normandy", ", 5th Marquess of Lansdowne"."""
    rest = sentence.lowers[stop : stop + 3]
    if len(rest) > 1 and rest[0] == "," and rest[1] in ("jr", "sr", "jr.", "sr."):
        return stop + 2
    if len(rest) > 2 and rest[0] == "," and re.fullmatch(r"\d+(?:st|nd|rd|th)", rest[1]):
        return max(name_run(sentence, stop + 2), stop)
    if len(rest) > 2 and rest[0] == "," and rest[1] in RANKS and rest[2] == "of":
        return max(name_run(sentence, stop + 1), stop)
    if len(rest) > 2 and rest[0] == "," and rest[1:] == ("holy", "roman"):
        return name_run(sentence, stop + 1)
    return stop


def _name_before(sentence: Sentence, position: int) -> str:
    """Return the name that ends right before a position of the text, or ""."""
    stop = _token_at(sentence, position)
    name = ""
    for first in range(max(stop - 6, 0), stop):
        if (
            is_name_word(sentence.words[first])
            and sentence.lowers[first] not in STOPWORDS
            and name_run(sentence, first) == stop
        ):
            if first and is_name_word(sentence.words[first - 1]) and sentence.lowers[first - 1] not in STOPWORDS:
                continue
            name = sentence.span(strip_title_words(sentence, first, stop), stop)
            break
    return clean_name(name)


def clean_name(text: str) -> str:
    """Return a name without possessive, honorifics, and punctuation at its ends."""
    text = without_possessive(text.strip(' ,;:"“”'))
    words = text.split()
    while len(words) > 1 and words[0].lower().rstrip(".") in DROPPED_TITLES:
        words = words[1:]
    text = " ".join(words)
    return text if re.search(r"(?:^|[\s.])(?:[A-Z]|Jr|Sr|Inc|Ltd|Co)\.$", text) else text.rstrip(".")
