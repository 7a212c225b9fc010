"""Answers that are the title of a page: the page says of its subject what the question asks the other way round.

"Y is a son of X" names a child of X; "the Dorr flows through X" names a river that runs through X.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pyrag.embedded.lexicon import PEOPLES
from pyrag.embedded.reader.people import PageFact, by_cue
from pyrag.embedded.reader.view import View
from pyrag.embedded.words import fold

_BY_CUE = {
    "child": ("father", "mother"),
    "father": ("child",),
    "mother": ("child",),
    "spouse": ("spouse",),
    "sibling": ("sibling",),
    "student": ("teacher",),
}
_TEACHES = (
    r"{x}\b[^.;]{0,80}\b(?:was|were) (?:among|one of|two of|some of)?[^.;]{0,40}\b(?:students?|pupils?|doctorands?)\b",
    r"\b(?:his|her|whose|notable|doctoral)\b[^.;]{0,25}\b(?:students?|pupils?)\b(?! (?:of|under|at))[^.;]{0,90}?{x}\b",
    r"\b(?:taught|supervised|mentored|tutored|advised)\b(?! (?:at|in|by|under))[^.;]{0,60}?{x}\b",
    r"\b(?:teacher|tutor|mentor|advis[eo]r|supervisor) (?:of|to) [^.;]{0,60}?{x}\b",
)
_WORDINGS: dict[str, tuple[str, ...]] = {
    "teacher": _TEACHES,
    "advisor": _TEACHES,
    "capital of": (r"\bcapital\b[^.;]{0,40}?(?:\bis|\bwas|\bat|,)(?: the (?:city|town) of)? {x}\b",),
    "capital": (r"\b(?:is|was|became|as)\b[^.;]{0,60}?\bcapital\b[^.;]{0,40}?\bof\b[^.;]{0,20}?{x}\b",),
    "river": (
        r"\b(?:flow(?:s|ed|ing)?|runs?|running|pass(?:es|ed|ing)?|cross(?:es|ed|ing)?|winds|goes)\b[^.;]{0,90}?{x}\b",
    ),
}
_MUST_BE = {"river": re.compile(r"\b(?:river|stream|creek|brook|canal|tributary|waterway)\b", re.IGNORECASE)}
_STRENGTH = 0.95


def by_inverse(relation: str, page: View, subject: str) -> Iterator[PageFact]:
    """Find the page's own title where the page says the converse of the relation about the subject.

    Args:
        relation: The relation that the question asks for; only some have a converse here.
        page: The page to read; nothing is found on the subject's own.
        subject: Name of the thing that the question is about.
    """
    if fold(page.base) == fold(subject) or page.lead is None:
        return
    for inverse in _BY_CUE.get(relation, ()):
        for found in by_cue(inverse, page):
            if fold(found.text) == fold(subject):
                yield PageFact(page.base, 0.85 * found.strength, found.sentence, found.cue)
    if relation in _WORDINGS and _is_kind(relation, page):
        yield from _by_wording(relation, page, subject)


def in_passing(relation: str, page: View, subject: str) -> Iterator[PageFact]:
    """Find what another page says beside the subject's name: "the Norwegian playwright X".

    Args:
        relation: The relation that the question asks for; only "nationality" finds anything.
        page: The page to read; nothing is found on the subject's own.
        subject: Name of the thing that the question is about; must begin with a capital.
    """
    if relation != "nationality" or not subject[:1].isupper() or fold(page.base) == fold(subject):
        return
    pattern = re.compile(rf"([A-Z][\w-]+(?: [A-Z]\w+)?) (?:[a-z][\w-]+,? (?:and )?){{1,4}}{re.escape(subject)}\b")
    for sentence in page.sentences:
        match = pattern.search(sentence.text)
        words = match.group(1).split() if match else []
        people = next((text for text in (" ".join(words), *reversed(words)) if text in PEOPLES), "")
        if people:
            yield PageFact(people, 0.6, sentence.index, people)


def _is_kind(relation: str, page: View) -> bool:
    pattern = _MUST_BE.get(relation)
    lead = page.lead.text if page.lead else ""
    return pattern is None or bool(pattern.search(f"{page.base} {lead[:120]}"))


def _by_wording(relation: str, page: View, subject: str) -> Iterator[PageFact]:
    for pattern in _compiled(relation, subject):
        for sentence in page.sentences:
            match = pattern.search(sentence.text)
            if match:
                yield PageFact(page.base, _STRENGTH - 0.02 * min(sentence.index, 6), sentence.index, match.group())


@lru_cache(maxsize=256)
def _compiled(relation: str, subject: str) -> tuple[re.Pattern[str], ...]:
    """The wordings about a subject, which may stand there by its last name or without what follows a comma."""
    short = subject.split(",")[0].strip()
    names = {subject, short} | ({short.split()[-1]} if relation in ("teacher", "advisor") and short else set())
    named = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if len(name) > 1)
    wordings = _WORDINGS[relation] if named else ()
    return tuple(re.compile(wording.replace("{x}", rf"\b(?:{named})")) for wording in wordings)
