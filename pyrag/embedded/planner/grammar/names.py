r"""Detection of names by spelling: "Alpha (1951 Film)", "film The Last Beta", "\"Gamma\""."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.people import PARTICLES
from pyrag.embedded.lexicon.things import ORGANISATION_KINDS, PERIODICAL_KINDS, SCHOOL_KINDS, WORK_KINDS
from pyrag.embedded.lexicon.word_classes import BE, CLAUSE_WORDS, HAVE
from pyrag.embedded.planner.meaning import Entity
from pyrag.embedded.words import without_article

_KIND_WORDS = (
    WORK_KINDS
    | ORGANISATION_KINDS
    | SCHOOL_KINDS
    | PERIODICAL_KINDS
    | words(
        "village town city river airport mountain lake singer actor actress rapper footballer politician television"
    )
)
_KIND_WORD = any_of(_KIND_WORDS)
_DEMONYM = re.compile(
    r"[A-Z][a-z]+(?:ish|ese|nian|lian|sian|xian|dian|gian|rian|can)|French|Dutch|Greek|Swiss|Welsh|German|Czech"
    r"|Roman|Thai"
)
_KIND = re.compile(rf"(?:the |The )?(?P<kind>{_KIND_WORD}),? (?P<name>.+)", re.DOTALL)
_OTHER = r"(?!(?:of|in|on|at|by|for|to|from|with|and|or|that|which|who|whom|whose|where|when|is|was|are|were|as)\b)"
_DESCRIBED = re.compile(
    rf"[Tt]he (?P<kind>(?:{_OTHER}[a-z][a-z-]* ){{0,2}}?{_OTHER}[a-z][a-z-]*"
    r"(?: called| named|(?<=city) of|(?<=town) of|(?<=village) of|(?<=film) of|(?<=island) of|(?<=book) of"
    r"|(?<=state) of)?)"
    r" (?P<name>[^a-z\s].*)",
    re.DOTALL,
)
_ROLE = re.compile(rf"(?:er|or|ist|ian|man|ess|king|queen|poet|artist|\b{_KIND_WORD}(?: of| called| named)?)$")
SMALL = PARTICLES | words("""
    & a a' am an and at by das die et feat. for from ft. i im in is las los no o' och on or the's to vs vs. with zum zur
""")
_QUOTED = re.compile(r"[\"“][^\"“”]+[\"”]|'[A-Z][^']+'(?=$|\W)")
_CLAUSE = re.compile(rf"\b{any_of(CLAUSE_WORDS | BE | HAVE | {'while'})}\b")


_VERB_LAST = re.compile(
    r" (?:born|died|die|buried|founded|located|situated|released|published|live|lived|from|in|of|by"
    r"|[a-z]+ed (?:with|to|for|as|at|on))$|[a-z]\S* (?:located|situated|based|found) in\b"
)


def is_name(text: str) -> bool:
    """Return whether a whole text looks like one name: its first and last words are capitalised, numbers or quoted."""
    text = without_article(text.strip())
    text = _QUOTED.sub("X", re.sub(r"\s*\([^()]*\)$", "", text))
    words = text.replace(",", " ").split()
    if not words or not starts_name(words[0]) or not starts_name(words[-1]):
        return False
    if len(words) == 1 and _DEMONYM.fullmatch(words[0]):
        return False  # after "the Swedish", a noun follows: artist, city
    return all(starts_name(word) or word in SMALL or word in _KIND_WORDS for word in words)


def starts_name(word: str) -> bool:
    """Return whether a word may begin a name: its first letter or digit is not in lower case."""
    letter = next((character for character in word if character.isalnum()), "")
    capital = not letter.islower() or re.match(r"[a-z]{1,2}['’-][A-Z]", word)  # "d'Or"
    return bool(letter) and bool(capital) and not re.search(r"[?;:]$", word)


def read_name(text: str, *, strict: bool = False) -> Entity | None:
    """Return the name in a phrase, without its kind and quotes; None if the phrase is a description.

    Args:
        text: The phrase.
        strict: True only reads names that are spelled like names. False also reads phrases that have no clause and no
            verb at the end.
    """
    kind, name = "", text
    described = _DESCRIBED.fullmatch(text)
    if described and is_name(described["name"]) and not _ROLE.search(described["kind"]):
        return Entity(text)
    if described and is_name(described["name"]):
        return Entity(_unquote(described["name"]), re.sub(r" (?:of|called|named)$", "", described["kind"]))
    match = _KIND.fullmatch(text)
    if match and not match["name"].startswith(("of ", "in ", "that ", "which ", "who ", "is ", "was ", "by ")):
        kind, name = match["kind"], match["name"]
    if kind and not strict and not _VERB_LAST.search(name) and not _CLAUSE.search(_QUOTED.sub("X", name)):
        return Entity(_unquote(name), kind)
    if is_name(name):
        return Entity(_unquote(name), kind)
    if strict or _VERB_LAST.search(text) or _CLAUSE.search(_QUOTED.sub("X", text)) or not _name_like(text):
        return None
    return Entity(_unquote(text))


def _name_like(text: str) -> bool:
    """Return whether a phrase may be a name: it begins with a capital, or is short and has no "of"."""
    first = without_article(text)[:1]
    return not first.islower() or (" of " not in text and len(text.split()) <= 3)


def _unquote(text: str) -> str:
    """Return a text without quotes around it."""
    match = re.fullmatch(r"[\"“'](.+)[\"”']", text.strip())
    return match[1].strip() if match and not re.search(r"[\"“”]", match[1]) else text.strip()
