"""Answers from passages that begin with fields: contacts, events, publications, mails and other lines `Label: value`."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyrag.agents.protocol import Reading
from pyrag.embedded.lexicon import words
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.words import STOPWORDS, fold
from pyrag.trace.model import Passage

_CONFIDENCE = 0.8
_UNSURE = 0.4  # of the values of several records with the same name
_MAX_VALUES = 5  # of such records
_MAX_LINES = 100
_LINE = re.compile(r"(?P<label>[^\W\d_][\w-]*(?: [\w-]+){0,3}(?: \([^()]{1,60}\))?): +(?P<value>\S.*)")
_SAME = {
    **dict.fromkeys(("telephone", "tel", "phones"), "phone"),
    **dict.fromkeys(("cell", "cellphone", "handy"), "mobile"),
    **dict.fromkeys(("email", "mail", "e mail", "emails", "mails"), "e-mail"),
    **dict.fromkeys(("organization", "company", "employer", "firm", "affiliation"), "organisation"),
    **dict.fromkeys(("location", "venue"), "place"),
    **dict.fromkeys(("organizer", "host"), "organiser"),
    **dict.fromkeys(("attendee", "participant", "participants", "guests"), "attendees"),
    **dict.fromkeys(("authors", "writer", "writers"), "author"),
    **dict.fromkeys(("homepage", "url", "webpage"), "website"),
    **dict.fromkeys(("birthdate", "birth"), "birthday"),
    **dict.fromkeys(("recipient", "recipients", "receiver", "addressee"), "to"),
    **dict.fromkeys(("job", "position", "occupation", "profession"), "role"),
    "sender": "from", "beginning": "start", "editors": "editor", "deadline": "due",
}  # fmt: skip
_FILLING = words("number numbers address date full official the a an of main")  # in names of fields
_PLAIN = frozenset(("optional", "tentative"))  # words of labels that a question need not have
_THINGS = words(
    "e mail mails email emails message messages letter meeting event appointment book article paper work publication "
    "entry contact task called titled named entitled concerning regarding"
)
_MAIL = re.compile(
    r"\b(?:e-?mails?|mails?|messages?|letters?|senders?|recipients?|addressees?|cop(?:y|ied))\b", re.IGNORECASE
)
_ABOUT = re.compile(r"\b(?:about|on|concerning|regarding)\b", re.IGNORECASE)
_DEFINITE = re.compile(r"\b(?:the|our|my|your|their|this|that)\b|['’]s?\b", re.IGNORECASE)
_AFTER_HEAD = frozenset(["of", "to", "with", "for", "in", "at", "on", "from", "by", "about", "and"])
_INSTEAD = "Instead of"  # label of an event that replaces another of a series
_TIMES = frozenset(("start", "end"))
_BE = r"(?:is|are|was|were|will be)"
_FIELD = r"(?P<field>[\w-]+(?: [\w-]+){0,3}?)"
_WHAT = rf"(?:(?:what|which|who|when|where)(?:['’]s| {_BE})|(?:give|tell|show) me|find)"
_NAMED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_WHAT} (?P<subject>.+?)['’]s? {_FIELD}",
        rf"{_WHAT} the {_FIELD} (?:of|for|from) (?P<subject>.+)",
        rf"(?:what|which) {_FIELD} (?:does|do|did|has) (?P<subject>.+?)(?: (?:have|use|work (?:for|at)|belong to))?",
        rf"(?:at|in|on|for|by) (?:what|which) {_FIELD} (?:does|do|did|is|was|will) (?P<subject>.+?)(?: (?:work|held|take place|published|be held|appear))?",
    )
)
_SENT = r"(?:sent|send|sends|mailed|e-mailed|emailed)"
_STARTS = (
    r"(?:start|starts|begin|begins|started|began|take place|takes place|took place|happen|scheduled|planned|held|on)"
)
_WHEN = r"(?:when|(?:at |on |in )?(?:what|which) (?:time|day|date|month|year))"
_WORDED = tuple(
    (re.compile(pattern, re.IGNORECASE), labels)
    for pattern, labels in (
        (rf"{_WHEN} (?:is|was) (?P<subject>.+) due", ("due",)),
        (rf"{_WHEN} (?:is|was) (?P<subject>.+?) born", ("birthday",)),
        (rf"{_WHEN} (?:does|did|will|is|was) (?P<subject>.+?) (?:end|ends|finish|over|ended)", ("end",)),
        (rf"{_WHEN} (?:was|were|did) (?P<subject>.+?) (?:published|appear|released|printed|come out)", ("date", "year")),
        (rf"{_WHEN} (?:was|were|is) (?P<subject>.+?) (?:{_SENT}|written|received)(?: .*)?", ("date",)),
        (rf"{_WHEN} did (?P<subject>.+?) (?:send|write|arrive|come)(?P<more>.*)", ("date",)),
        (rf"{_WHEN} (?:does|did|will|is|was|are|were) (?P<subject>.+?)(?: {_STARTS})?", ("start", "date", "due")),
        (r"where (?:does|did) (?P<subject>.+?) work", ("organisation",)),
        (r"where (?:does|did) (?P<subject>.+?) live", ("address",)),
        (r"where (?:was|were|is) (?P<subject>.+?) (?:published|printed|released)", ("place",)),
        (rf"where (?:does|did|will|is|was|are|were) (?P<subject>.+?)(?: {_STARTS})?", ("place",)),
        (
            r"who(?:m)? (?:all )?(?:attends?|attended|is attending|are attending|(?:takes?|took) part in|participates? in|participated in"
            r"|(?:is|are|was|were) (?:invited|coming) to|comes? to|joins?|joined) (?P<subject>.+)",
            ("attendees",),
        ),
        (r"who (?:organi[sz]e[sd]?|hosts?|hosted|runs?|leads?|called) (?P<subject>.+)", ("organiser",)),
        (r"who (?:wrote|authored|has written) (?P<subject>.+)", ("author", "from")),
        (rf"(?:by )?who(?:m)? (?:has |was )?{_SENT} (?P<subject>.+)", ("from",)),
        (rf"(?:by who(?:m)?|who) (?:is|was) (?P<subject>.+?) (?:{_SENT}|written)(?: by)?", ("from", "author")),
        (r"(?:from )?who(?:m)? (?:is|was) (?P<subject>.+?) from", ("from",)),
        (r"who (?:received|got|gets|receives) (?P<subject>.+)", ("to",)),
        (rf"(?:to )?who(?:m)? (?:is|was|were) (?P<subject>.+?) (?:{_SENT}|addressed|written)(?: to)?", ("to",)),
        (r"how often (?:does|is|do|did) (?P<subject>.+?)(?: (?:repeat|recur|take place|held|repeated|happen))?", ("repeats",)),
        (r"who(?:m)? (?:is|was|were|got) (?:in|on|a)? ?cop(?:y|ied) (?:of|on|in) (?P<subject>.+)", ("cc",)),
        (r"who edited (?P<subject>.+)", ("editor",)),
        (r"who published (?P<subject>.+)", ("publisher",)),
        (r"(?:for )?(?:which|what) (?:\w+ )?(?:company|organi[sz]ation|firm) (?:does|did) (?P<subject>.+?) work(?: (?:for|at|in))?", ("organisation",)),
        (r"(?:for )?who(?:m)? (?:does|did) (?P<subject>.+?) work(?: for)?", ("organisation",)),
    )
)  # fmt: skip
_ADDRESS = re.compile(r"\s*<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Field that a question asks for.

    Attributes:
        names: Names of the field, in the order of preference, each as words.
        subject: Words of the thing whose field it is.
        is_mail: Whether the question mentions a mail.
        is_about: Whether the question describes a thing by what it is about.
        is_definite: Whether the question describes a thing, as in "the audit", instead of naming it.
    """

    names: tuple[frozenset[str], ...]
    subject: frozenset[str]
    is_mail: bool = False
    is_about: bool = False
    is_definite: bool = False


def by_record(analysis: QuestionAnalysis, passages: Sequence[Passage]) -> Reading | None:
    """Return the field that a question names, of the only record that it names.

    Args:
        analysis: Analysis of the question.
        passages: Passages, some of which begin with fields.

    Returns:
        The answer, or None if the question names no field or no record. The values of several records with the same
        name are a weak answer.
    """
    wanted = list(_wanted(analysis.question.strip(" ?!.")))
    if not wanted:
        return None
    records = [(place, passage, fields) for place, passage in enumerate(passages) if (fields := _fields(passage))]
    for want in wanted:
        answers = [
            (match, place, value)
            for place, passage, fields in records
            if (match := _match(want, passage, fields)) and (value := _value(want, fields))
        ]
        best = max((match for match, _, _ in answers), default=0)
        places = [place for match, place, _ in answers if match == best]
        series = [place for place in places if all(label != _INSTEAD for label, _ in _fields(passages[place]))]
        shown = {value: place for _, place, value in reversed(answers) if place in (series or places)}
        if shown:
            is_person = analysis.wh in ("who", "whom")
            return _reading(
                {_ADDRESS.sub("", value).strip() if is_person else value: at for value, at in shown.items()}, passages
            )
    return None


def _reading(places: dict[str, int], passages: Sequence[Passage]) -> Reading:
    """Return the answer of one record, or a weak answer of several.

    Args:
        places: Positions of records by their values, the last record first.
        passages: All passages.
    """
    values = dict(list(reversed(places.items()))[:_MAX_VALUES])
    titles = "; ".join(f"field of “{passages[place].title}” in [{place + 1}]" for place in values.values())
    because = titles if len(places) == 1 else f"{len(places)} records fit: {titles}"
    confidence = _CONFIDENCE if len(places) == 1 else _UNSURE
    return Reading("; ".join(values), True, tuple(dict.fromkeys(values.values())), because, confidence)


def _fields(passage: Passage) -> tuple[tuple[str, str], ...]:
    """Return the fields with which a passage begins: at least two lines with a label."""
    fields: list[tuple[str, str]] = []
    for line in passage.text.splitlines()[:_MAX_LINES]:
        match = _LINE.fullmatch(line.strip())
        if match is None:
            break
        fields.append((match["label"], match["value"].strip()))
    return tuple(fields) if len(fields) > 1 else ()


def _wanted(question: str) -> Iterator[Wanted]:
    is_mail, is_about = bool(_MAIL.search(question)), bool(_ABOUT.search(question))
    for want in _wordings(question):
        is_definite = bool(_DEFINITE.search(question))
        yield replace(want, is_mail=is_mail, is_about=is_about, is_definite=is_definite)


def _wordings(question: str) -> Iterator[Wanted]:
    for pattern in _NAMED:
        if match := pattern.fullmatch(question):
            field = _field_words(match["field"])
            if field:
                yield Wanted((field,), _subject_words(match["subject"]))
    for pattern, labels in _WORDED:
        if match := pattern.fullmatch(question):
            more = match.groupdict().get("more") or ""
            yield Wanted(tuple(frozenset((label,)) for label in labels), _subject_words(f"{match['subject']} {more}"))


def _field_words(text: str) -> frozenset[str]:
    """Return the words of a field's name, in which synonyms are equal."""
    lowered = (word for word in re.findall(r"\w[\w-]*", text.lower()))
    names = frozenset(_SAME.get(word, word) for word in lowered)
    if "role" in names:
        names -= {"title"}  # of a job
    return (names - _FILLING) or names - {"the"}


def _subject_words(text: str) -> frozenset[str]:
    every = fold(text).split()
    return frozenset(word for word in every if word not in STOPWORDS and word not in _THINGS and word != "s")


def _match(wanted: Wanted, passage: Passage, fields: Sequence[tuple[str, str]]) -> int:
    """Return how well a record fits a subject: 3 for its title, 2 for words of its title, 1 for words of a mail."""
    title = frozenset(fold(passage.title).split())
    labels = {label for label, _ in fields}
    is_mail = {"Subject", "From"} <= labels
    if not wanted.subject or (is_mail and not wanted.is_mail):
        return 0  # a mail that mentions a ship is not what "When did the ship arrive?" is about
    if wanted.subject <= title:
        if wanted.subject == _subject_words(passage.title):
            return 3
        main_title, colon, _ = passage.title.partition(":")
        is_main = bool(colon) and wanted.subject == _subject_words(main_title)
        is_described = wanted.is_about or (wanted.is_definite and _head(passage.title) in wanted.subject)
        return 2 if is_mail or is_main or is_described or fields[0][0] == "Name" else 0
    return int(is_mail and wanted.subject <= title.union(fold(passage.text).split()))


def _head(title: str) -> str:
    """Return the noun on which a title rests: its last word before a preposition."""
    names = fold(title).split()
    end = next((place for place, word in enumerate(names) if place and word in _AFTER_HEAD), len(names))
    return names[end - 1] if names else ""


def _value(wanted: Wanted, fields: Sequence[tuple[str, str]]) -> str:
    """Return the value of the wanted field; several values if the question leaves open which.

    A time tells how it is repeated, and the time or place of a cancelled event that it is cancelled.
    """
    for name in wanted.names:
        if values := [value for label, value in fields if _fits(name, label)]:
            others = dict(fields)
            repeated = [others["Repeats"]] if name <= _TIMES and "Repeats" in others else []
            cancelled = " (cancelled)" if others.get("Status") == "cancelled" and "Event" in others else ""
            return ", ".join(dict.fromkeys([*values, *repeated])) + cancelled
    return ""


def _fits(name: frozenset[str], label: str) -> bool:
    """Return whether a label has the wanted words, and no others before its kind in brackets."""
    main, _, kind = label.partition(" (")
    main_words, kinds = _field_words(main), _field_words(kind)
    all_words = main_words | kinds | name.intersection(re.findall(r"\w[\w-]*", label.lower()))
    return name <= all_words and (main_words <= name | _PLAIN or bool(name & kinds))
