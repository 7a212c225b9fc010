"""Names tied to a subject by a cue: who directed, wrote, founded; spouses, parents; schools, employers, labels.

A cue is a pattern over a sentence's text; the answer is the name right after (or before) it. Facts that are no names
(dates, nationalities, occupations) are in `facts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyrag.embedded.lexicon import DROPPED_TITLES, FAMILY_FEMALE, HONORIFICS, MONTHS, PEOPLES, ROLES, words
from pyrag.embedded.reader.spans import is_name_word, name_run, strip_title_words
from pyrag.embedded.reader.view import View
from pyrag.embedded.relations.table import RELATIONS
from pyrag.embedded.words import STOPWORDS, Sentence, fold


@dataclass(frozen=True, slots=True)
class PageFact:
    """An answer found by a pattern. `strength` in [0, 1] is the pattern's own reliability; `cue` is for people."""

    text: str
    strength: float
    sentence: int
    cue: str
    kind: str = ""


_SKIP_STOPS = words("""
    by and in on at from with for to of who which that is was were are when while after before as
""") - {"of"}
_NO_PERSONS = frozenset(
    (
        "publisher",
        "record label",
        "educated at",
        "employer",
        "sports team",
        "political party",
        "owned by",
        "part of",
        "manufacturer",
        "headquarters location",
        "location",
        "award received",
        "place of burial",
        "religion",
        "border",
    )
)
_MONTHS = frozenset(MONTHS.split("|"))

_COMPILED = {
    relation.name: tuple(
        (re.compile(pattern, re.IGNORECASE if "a-z" not in pattern else 0), take, strength)
        for pattern, take, strength in relation.cues
    )
    for relation in RELATIONS
}


def by_cue(relation: str, page: View) -> Iterator[PageFact]:
    """Find the names that a cue of the relation points at, in every sentence; never the page's own title.

    Args:
        relation: Name of the relation; nothing is found for one without cues.
        page: The page to read.
    """
    for sentence in page.sentences:
        for pattern, take, strength in _COMPILED.get(relation, ()):
            for match in pattern.finditer(sentence.text):
                text = _take(sentence, match, take, relation)
                if text and fold(text) != fold(page.base):
                    yield PageFact(
                        text, strength - 0.02 * min(sentence.index, 6), sentence.index, match.group().strip(), take
                    )


def in_full(text: str, page: View) -> str:
    """Return a lone surname as the page gives it in full elsewhere: "Arena" becomes "Tina Arena".

    Args:
        text: A name; one of several words, or part of the page's title, stays as it is.
        page: The page on which the name was found.
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


def _take(sentence: Sentence, match: re.Match[str], take: str, relation: str) -> str:
    if take == "before":
        return _name_before(sentence, match.start())
    found = names_after(sentence, match.end(), persons=relation not in _NO_PERSONS)
    if (
        relation in ("mother", "father")
        and len(found) > 1
        and not re.search(r"\b(?:and|&|by)\b", sentence.text[match.end() :].split(found[1])[0])
    ):
        found = found[:1]  # "the son of A, B played …": B is somebody else
    if relation == "mother" and take == "second":
        return _if_female(sentence, match.end(), found) or (found[1] if len(found) > 1 else "")
    if relation == "father" and found and _if_female(sentence, match.end(), found):
        return found[1] if len(found) > 1 else ""
    if take == "second":
        return found[1] if len(found) > 1 else ""
    text = found[0] if found else ""
    return "" if take == "place" and text.split()[:1] and text.split()[0] in _MONTHS else text


def _if_female(sentence: Sentence, position: int, found: list[str]) -> str:
    """The first name after `position` if the words before it, or its own title, say it is a woman."""
    if not found:
        return ""
    gap = sentence.text[position : position + 80].split(found[0])[0]
    words = set(re.findall(r"\w+", f"{gap} {found[0].split()[0]}".lower()))
    return found[0] if words & (FAMILY_FEMALE | {"lady", "duchess", "countess", "empress", "singer-actress"}) else ""


def _token_at(sentence: Sentence, position: int) -> int:
    return next((i for i, start in enumerate(sentence.starts) if start >= position), len(sentence.starts))


def _skip_to_name(sentence: Sentence, index: int, limit: int = 8) -> int:
    """Return the place where a name begins, past articles, nationalities and roles: "by the French filmmaker Jean
    Rollin".
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
        following = sentence.words[at + 1] if at + 1 < len(sentence.words) else ""
        joins_roles = lower == "and" and offset > 0 and following.islower() and following not in STOPWORDS
        if not lower.replace("-", "").isalpha() or (lower in _SKIP_STOPS and not joins_roles):
            return -1
    return -1


def _after_role(sentence: Sentence, first: int, stop: int) -> int:
    """The name itself where a role stands between: "the Aztec ruler Moctezuma II", "Ali's daughter Fatimah"."""
    look = stop
    while (
        look < len(sentence.words)
        and look - stop < 4
        and sentence.words[look].islower()
        and (sentence.lowers[look] not in STOPWORDS or sentence.lowers[look] == "and")
    ):
        look += 1
    if (
        look > stop
        and look < len(sentence.words)
        and is_name_word(sentence.words[look])
        and sentence.lowers[look - 1] in ROLES
    ):
        return look
    return first


def names_after(sentence: Sentence, position: int, *, persons: bool = True) -> list[str]:
    """Return up to three names that are listed from a position of the text on: "A, B and C".

    Args:
        sentence: The sentence to read.
        position: Character of its text from which to look; a name may begin some words later.
        persons: Drop a leading nationality from each name.
    """
    found: list[str] = []
    index = _token_at(sentence, position)
    while len(found) < 3:
        first = _skip_to_name(sentence, index)
        if first < 0:
            break
        stop = _with_suffix(sentence, name_run(sentence, first))
        first = strip_title_words(sentence, first, stop) if persons else first
        found.append(clean_name(sentence.span(first, stop)))
        index = _past_brackets(sentence, stop)
        if index >= len(sentence.words) or sentence.lowers[index] not in (",", "and", "&", "by"):
            break
        index += 1
        if index < len(sentence.words) and sentence.lowers[index - 1] == "," and sentence.lowers[index] == "and":
            index += 1
    return found


def _past_brackets(sentence: Sentence, index: int) -> int:
    if index < len(sentence.words) and sentence.words[index] == "(":
        while index < len(sentence.words) and sentence.words[index] != ")":
            index += 1
        return index + 1
    return index


_RANKS = words("""
    duke duchess count countess earl king queen prince princess lord baron baroness marquess margrave landgrave elector
    emperor empress viscount
""")


def _with_suffix(sentence: Sentence, stop: int) -> int:
    """Past ", Jr.", ", Duke of Normandy" and ", 5th Marquess of Lansdowne", which belong to the name before them."""
    rest = sentence.lowers[stop : stop + 3]
    if len(rest) > 1 and rest[0] == "," and rest[1] in ("jr", "sr", "jr.", "sr."):
        return stop + 2
    if len(rest) > 2 and rest[0] == "," and re.fullmatch(r"\d+(?:st|nd|rd|th)", rest[1]):
        return max(name_run(sentence, stop + 2), stop)
    if len(rest) > 2 and rest[0] == "," and rest[1] in _RANKS and rest[2] == "of":
        return max(name_run(sentence, stop + 1), stop)
    if len(rest) > 2 and rest[0] == "," and rest[1:] == ("holy", "roman"):
        return name_run(sentence, stop + 1)
    return stop


def _name_before(sentence: Sentence, position: int) -> str:
    """The name that ends right before a position of the text."""
    stop = next((i for i, start in enumerate(sentence.starts) if start >= position), len(sentence.starts))
    best = ""
    for first in range(max(stop - 6, 0), stop):
        if (
            is_name_word(sentence.words[first])
            and sentence.lowers[first] not in STOPWORDS
            and name_run(sentence, first) == stop
        ):
            if first and is_name_word(sentence.words[first - 1]) and sentence.lowers[first - 1] not in STOPWORDS:
                continue
            best = sentence.span(strip_title_words(sentence, first, stop), stop)
            break
    return clean_name(best)


def clean_name(text: str) -> str:
    """A name without a possessive or stray punctuation at its ends."""
    text = re.sub(r"['’]s?$", "", text.strip(' ,;:"“”'))
    words = text.split()
    while len(words) > 1 and words[0].lower().rstrip(".") in DROPPED_TITLES:
        words = words[1:]
    text = " ".join(words)
    return text if re.search(r"(?:^|[\s.])(?:[A-Z]|Jr|Sr|Inc|Ltd|Co)\.$", text) else text.rstrip(".")
