"""Facts that encyclopaedic passages state in set phrases, found by patterns, as noisy labels for the training corpora.

Precision matters more than recall: "X (born 5 June 1961 in Ålesund) is a Norwegian footballer" gives four facts, and a
sentence that matches no pattern gives none. A fact is a relation with the position of its answer in the text.
"""

# ruff: noqa: E501  tables of patterns read better one entry a line

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyrag.embedded.lexicon.regions import COUNTRIES, PEOPLES, STATES
from recipes.reader.layout import Text

MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = rf"(?:\d{{1,2}} {MONTH},? \d{{4}}|{MONTH} \d{{1,2}}, \d{{4}})"
_WORD = r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w'’-]*"
_INITIAL = r"(?:[A-Z]\.\s?)"
_INNER = r"(?:de|van|von|der|den|la|le|di|da|du|dos|del|della|bin|ibn|al|of|the)"
NAME = rf"{_INITIAL}*{_WORD}(?: (?:{_INITIAL}+|(?:{_INNER} ){{1,2}})?{_WORD})*"
_PLACE = rf"{_WORD}(?:[ -](?:(?:de|del|la|di|upon|am|of|the|on) )?{_WORD})*"
_PEOPLE = "|".join(sorted(map(re.escape, PEOPLES), key=len, reverse=True))
_STATE = "|".join(sorted(map(re.escape, STATES), key=len, reverse=True))
_COUNTRY = "|".join(sorted(map(re.escape, COUNTRIES), key=len, reverse=True))
_TRADE = (
    r"actor|actress|singer|songwriter|singer-songwriter|musician|composer|politician|writer|author|novelist|poet|journalist|painter|artist|"
    r"footballer|player|cricketer|swimmer|cyclist|boxer|wrestler|golfer|athlete|racing driver|driver|skier|skater|rower|runner|sprinter|"
    r"director|producer|screenwriter|filmmaker|historian|philosopher|scientist|physicist|chemist|biologist|mathematician|economist|"
    r"lawyer|judge|jurist|diplomat|engineer|architect|photographer|sculptor|businessman|businesswoman|entrepreneur|executive|banker|"
    r"officer|soldier|general|admiral|theologian|priest|bishop|missionary|physician|surgeon|psychologist|psychiatrist|botanist|zoologist|"
    r"coach|manager|comedian|dancer|choreographer|model|rapper|guitarist|pianist|drummer|violinist|conductor|presenter|broadcaster|"
    r"academic|professor|linguist|astronomer|geologist|archaeologist|anthropologist|sociologist|critic|editor|translator|playwright|"
    r"activist|illustrator|cartoonist|designer|dramatist|nobleman|statesman|explorer|inventor|cosmonaut|astronaut|aviator|cinematographer"
)
_ILLNESS = "cancer|heart attack|attack|disease|failure|poisoning|fever|stroke|overdose|hemorrhage|haemorrhage|accident|tuberculosis|pneumonia|leukemia|cholera|typhus|dysentery|smallpox|plague|suicide|diabetes|sclerosis|malaria|influenza|AIDS|aneurysm|complications"
_DESCRIBED = rf"(?:(?:the )?(?:{_PEOPLE}|\w+ed|pop|rock|country|folk|hip hop|R&B|jazz|soul|indie|heavy metal|punk|recording|veteran|fellow|debutant)[ -])*(?:(?:singers?|bands?|rappers?|artists?|groups?|musicians?|duo|author|writer|novelist|composers?|actress|actor|director|songwriter|singer-songwriter|filmmaker|producer|DJ)[ ,]+)?"

# For each relation the patterns to search for in the whole text; group 1 is the answer.
_ANYWHERE: dict[str, tuple[str, ...]] = {
    "director": (rf"\bdirected(?: and (?:co-)?\w+| by [^.,]*? and)? by {_DESCRIBED}({NAME})", rf"\b(?:written|produced|edited) and directed by {_DESCRIBED}({NAME})", rf"\bdirector ({NAME})"),
    "screenwriter": (rf"\b(?:screenplay|script)(?: was)?(?: written)? by ({NAME})", rf"\bdirected by [^.]{{3,40}}?(?:,| and) written by ({NAME})"),
    "producer": (rf"(?<!and )\bproduced by ({NAME})",),
    "composer": (rf"\b(?:music|score|soundtrack)(?: (?:is|was|were))?(?: (?:composed|written|scored|provided))? by {_DESCRIBED}({NAME})", rf"\b(?:composed|scored) by {_DESCRIBED}({NAME})"),
    "performer": (rf"\b(?:song|single|studio album|album|EP|live album|compilation album)(?: recorded| performed| released)? by (?:the )?{_DESCRIBED}({NAME})", rf"\b(?:performed|recorded|sung) by (?:the )?{_DESCRIBED}({NAME})"),
    "author": (rf"\b(?:novel|book|play|poem|short story|memoir|story)(?: written)? by (?:the )?{_DESCRIBED}({NAME})",),
    "cast": (rf"\b(?:starring|stars) (?:actors? |actress )?({NAME})",),
    "place of birth": (rf"\b(?:was )?born(?: on)?(?: {DATE})?,? in (?:the (?:city|town|village) of )?({_PLACE})", rf"\bBorn and raised in ({_PLACE})"),
    "place of death": (rf"\b[Dd]ied(?: (?:suddenly|on {DATE}|in \d{{4}}|at his home|at her home))* in (?!\d)({_PLACE})",),
    "place of burial": (rf"\bburied (?:in|at) (?:the )?({_PLACE})",),
    "cause of death": (rf"\b(?:died|death) (?:suddenly )?(?:of|from|by) (?:an? |the )?((?:[a-z-]+ ){{0,2}}?(?:{_ILLNESS}))\b",),
    "spouse": (rf"\b(?:He|She|[a-z]+) (?:was |is )?married(?: to)? (?:(?:his|her|the|fellow|actress|actor|singer|writer|director|producer) )*({NAME})", rf"\b(?:wife|husband|widow|consort) of (?:[A-Z][a-z]+ )?({NAME})"),
    "father": (rf"\b(?:son|daughter) of (?:the )?(?:{_TRADE}|\w+er)? ?({NAME})",),
    "mother": (rf"\b(?:son|daughter) of {NAME}(?: \([^)]*\))? and (?:his (?:\w+ )?wife,? )?({NAME})",),
    "educated at": (rf"\b(?:graduated from|educated at|studied at|attended|graduate of|alumnus of) (?:the )?({_WORD}(?: (?:(?:of|the|for|and|at) )*{_WORD})*)",),
    "founded by": (rf"\b(?:founded|established|formed|created)(?: in \d{{4}})? by {_DESCRIBED}({NAME})",),
    "inception": (r"\b(?:founded|formed|established|incorporated|created)(?: \w+)? in ((?:[A-Z][a-z]+ )?\d{4})\b",),
    "headquarters": (rf"\b(?:headquartered|based) in (?:the )?({_PLACE})",),
    "record label": (rf"\b(?:released|issued|distributed)[^.]{{0,60}}? (?:by|on|through|via) ({_WORD}(?: {_WORD})* Records)\b",),
    "publication date": (rf"\breleased (?:\w+ )?(?:on|in) ({DATE}|{MONTH} \d{{4}}|\d{{4}})\b",),
    "population": (r"\bpopulation (?:was|of|is)(?: about| approximately| around)? (\d[\d,]*\d)\b",),
    "team": (rf"\b(?:plays|played|playing)(?: \w+)? for (?:the )?({_WORD}(?: {_WORD})*(?: F\.?C\.?)?)",),
    "award received": (rf"\b(?:won|received|awarded) (?:the|an?) (?:\d{{4}} )?({_WORD}(?: (?:(?:of|the|for|in) )*{_WORD})* (?:Award|Prize|Medal)s?(?: for {_WORD}(?: {_WORD})*)?)",),
}  # fmt: skip

_PERSONAL = re.compile(rf"^[^.]{{0,160}}?\b(?:is|was) (?:an? |the )?(?:(?:former|retired|late|professional|prominent|noted|renowned|famous) )*(?P<nation>{_PEOPLE})\b(?!-)[^.]*?\b(?:{_TRADE})\b")  # fmt: skip
_WORK = re.compile(rf"^[^.]{{0,160}}?\b(?:is|was) (?:an? |the )(?:(?P<year>\d{{4}}) )?(?:(?P<nation>{_PEOPLE})(?!-)\b[ -])(?:[\w-]+ ){{0,7}}?(?:film|series|movie|band|album|song|novel|magazine|documentary|comedy|drama|thriller|western|serial|duo|newspaper|company)\b")  # fmt: skip
_YEAR = re.compile(r"^[^.]{0,160}?\b(?:is|was) (?:an? |the )(\d{4}) (?:[\w-]+ ){0,9}?(?:film|series|movie|album|song|novel|documentary|comedy|drama|thriller|single)\b")  # fmt: skip
_LIVED = re.compile(rf"^[^.()]{{2,80}}\(\s?(?:[^()]*?\bborn\b[^()]*?,? ?(?:on )?)?(?:[^()]{{0,60}}?[;,] )?({DATE})(?:[^()–]{{0,60}}?)(?:\s?[–-]\s?({DATE}|\d{{4}})[^()]{{0,60}})?\)")  # fmt: skip
_BIRTHPLACE = re.compile(
    rf"^[^.()]{{2,80}}\(\s?(?:born )?(?:[^()]{{0,40}}; )?{DATE},? (?:in )?({_PLACE})[^()]{{0,60}}\)"
)
_TRADE_OF = re.compile(rf"\b((?:(?:film|television|stage|association football|football|ice hockey|tennis|basketball|baseball|rugby union|chess|voice|opera|jazz|record|record producer|theatre|visual|military|army|racing|hockey|cricket|badminton|volleyball|soccer) )?(?:{_TRADE}))\b")  # fmt: skip
_IN_COUNTRY = re.compile(rf"^[^.]{{0,80}}?\b(?:is|was) (?:an?|the) [^.]*?\b(?:village|town|city|municipality|commune|river|lake|district|suburb|hamlet|settlement|mountain|county|province|island|school|university|station|census|township|community)[^.]*? in [^.]*?\b({_COUNTRY})\b\.?(?:,|\.|$)")  # fmt: skip
_IN_STATE = re.compile(rf"^[^.]{{0,80}}?\b(?:is|was) (?:an?|the) [^.]*? in [^.]*?, ({_STATE})(?:,|\.)")
_IN_COUNTY = re.compile(rf"^[^.]{{0,160}}?\bin ({_WORD}(?: {_WORD})* County)\b")
_COMPILED = {relation: tuple(re.compile(each) for each in patterns) for relation, patterns in _ANYWHERE.items()}
OF_WORKS = frozenset(
    (
        "director",
        "screenwriter",
        "producer",
        "composer",
        "performer",
        "author",
        "cast",
        "publication date",
        "record label",
    )
)
OF_PEOPLE = frozenset(
    (
        "place of birth",
        "place of death",
        "place of burial",
        "cause of death",
        "date of birth",
        "date of death",
        "spouse",
        "father",
        "mother",
        "child",
        "sibling",
        "educated at",
        "team",
    )
)
_STOP_NAMES = frozenset(["The", "He", "She", "It", "They", "His", "Her", "In", "On", "At", "A", "An", "This", "I", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """Fact that a passage states.

    Args:
        relation: Name of the relation.
        start: Position of the answer's first character in the text.
        end: Position after its last character.
    """

    relation: str
    start: int
    end: int


def kind_of(text: Text) -> str:
    """Return "person" or "work" for the subject of a passage; empty if the first sentence does not show it."""
    if _PERSONAL.match(text.text) or _LIVED.match(text.text):
        return "person"
    return "work" if _WORK.match(text.text) or _YEAR.match(text.text) else ""


def facts(text: Text) -> list[Fact]:
    """Return the facts that a passage states about its own subject, at most one per relation."""
    kind = kind_of(text)
    alien = {"person": OF_WORKS, "work": OF_PEOPLE}.get(kind, frozenset())
    by_relation: dict[str, Fact] = {}
    for fact in (*_lead(text.text), *_anywhere(text.text)):
        if fact.relation not in alien and _sound(text, fact):
            by_relation.setdefault(fact.relation, fact)
    return list(by_relation.values())


def _sound(text: Text, fact: Fact) -> bool:
    """Return whether a fact's answer is plausible: complete, not the subject itself, and of the right kind."""
    answer = text.text[fact.start : fact.end]
    people = answer in PEOPLES and fact.relation not in ("country of citizenship", "country of origin")
    itself = answer.lower() in text.title.lower() or text.title.lower() in answer.lower()
    cut_off = answer.endswith(("'s", "’s")) or bool(re.search(r"\b[A-Z]$", answer))
    return len(answer) > 1 and answer not in _STOP_NAMES and not (people or itself or cut_off)


def _group(relation: str, match: re.Match[str] | None, group: int | str = 1) -> Iterator[Fact]:
    """Yield a fact with a group of a match as its answer; nothing if the group did not match."""
    if match is not None and match.group(group):
        yield Fact(relation, *match.span(group))


def _lead(text: str) -> Iterator[Fact]:
    """Yield the facts in the first sentence."""
    lived = _LIVED.match(text)
    yield from _group("date of birth", lived)
    yield from _group("date of death", lived, 2)
    person = _PERSONAL.match(text)
    yield from _group("country of citizenship", person, "nation")
    if person is not None or lived is not None:
        yield from _group("place of birth", _BIRTHPLACE.match(text))
    if person is not None:
        yield from _group("occupation", _TRADE_OF.search(text, person.end("nation")))
        return
    work = _WORK.match(text)
    yield from _group("country of origin", work, "nation")
    yield from _group("publication date", _YEAR.match(text))
    if lived is None:
        yield from _group("country", _IN_COUNTRY.match(text))
        yield from _group("state", _IN_STATE.match(text))
        yield from _group("county", _IN_COUNTY.match(text))


def _anywhere(text: str) -> Iterator[Fact]:
    """Yield the first fact of each relation in the whole text."""
    for relation, patterns in _COMPILED.items():
        for pattern in patterns:
            match = pattern.search(text)
            if match is not None:
                yield from _group(relation, match)
                break
