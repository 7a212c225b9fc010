"""Answers from passages that begin with fields: contacts, events, publications, mails and other lines `Label: value`."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyrag.agents.protocol import Reading
from pyrag.embedded.lexicon import words
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.words import STOPWORDS, fold
from pyrag.trace.model import Passage

_CONFIDENCE = 0.8
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
    """

    names: tuple[frozenset[str], ...]
    subject: frozenset[str]


def by_record(analysis: QuestionAnalysis, passages: Sequence[Passage]) -> Reading | None:
    """Return the field that a question names, of the only record that it names.

    Args:
        analysis: Analysis of the question.
        passages: Passages, some of which begin with fields.

    Returns:
        The answer, or None if the question names no field, or no record or several with different values.
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
        values = {value: place for match, place, value in reversed(answers) if match == best}
        if len(values) == 1:
            ((value, place),) = values.items()
            shown = _ADDRESS.sub("", value) if analysis.wh in ("who", "whom") else value
            because = f"field of “{passages[place].title}” in [{place + 1}]"
            return Reading(shown.strip() or value, True, (place,), because, _CONFIDENCE)
    return None


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
    if not wanted.subject:
        return 0
    if wanted.subject <= title:
        return 3 if wanted.subject == _subject_words(passage.title) else 2
    is_mail = {"Subject", "From"} <= {label for label, _ in fields}
    return int(is_mail and wanted.subject <= title.union(fold(passage.text).split()))


def _value(wanted: Wanted, fields: Sequence[tuple[str, str]]) -> str:
    """Return the value of the wanted field; several values if the question leaves open which."""
    for name in wanted.names:
        if values := [value for label, value in fields if _fits(name, label)]:
            return ", ".join(dict.fromkeys(values))
    return ""


def _fits(name: frozenset[str], label: str) -> bool:
    """Return whether a label has the wanted words, and no others before its kind in brackets."""
    main, _, kind = label.partition(" (")
    main_words, kinds = _field_words(main), _field_words(kind)
    all_words = main_words | kinds | name.intersection(re.findall(r"\w[\w-]*", label.lower()))
    return name <= all_words and (main_words <= name | _PLAIN or bool(name & kinds))
