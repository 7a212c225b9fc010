"""Conditions on documents: comparisons of metadata where a field holds them, and facts in the text otherwise."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from pyrag.agents.python_text import literal
from pyrag.embedded.planner.corpus.meaning import TextFact
from pyrag.embedded.planner.corpus.vocabulary import Vocabulary, equal, plain_words
from pyrag.retrieval.filters.tree import Comparison, Existence, Filter, Operator, all_of, any_of
from pyrag_helpers import HELPERS

_JOINED = re.compile(r",?\s+(?:and|but)\s+(?:(?:that|which|who)\s+)?|,\s+(?:(?:that|which|who)\s+)?", re.IGNORECASE)
_QUOTES = " \"“”'"
_AROUND = " ,;:?.!"
_OPENING = re.compile(r"(?:(?:that|which|who|and|,|and also|also|only)\s+)+", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:the|a|an|any|its|their)\s+", re.IGNORECASE)
_PLACING = re.compile(
    r"(?:(?:are|is|were|was|being)\s+)?(?:(?:from|in|of|dated|by|for|on|under|at|within|with|to|tagged|labelled|labeled"
    r"|marked|written by|authored by|belonging to|belong to|come from|written in|as)\s+)?",
    re.IGNORECASE,
)
_BE_IS = r"(?:(?:is|are|was|were)\s+)?"
_MORE = rf"{_BE_IS}(?:more than|greater than|higher than|larger than|later than|above|over|after|exceeding|>)"
_LESS = rf"{_BE_IS}(?:less than|fewer than|lower than|smaller than|earlier than|below|under|before|<)"
_NOT_LESS = rf"{_BE_IS}(?:at least|not less than|no less than|from|since|>=)"
_NOT_MORE = rf"{_BE_IS}(?:at most|not more than|no more than|up to|until|<=)"
_IS = r"(?:is not|are not|was not|!=|other than|is|are|was|were|equals|equal to|being|of|=|:)"
_OPERATOR_NAMES: tuple[tuple[str, Operator], ...] = (
    (r"(?:is not|are not|was not|!=|(?:is |are )?other than)(?=[\s\"'])", "!="),
    (_NOT_LESS, ">="),
    (_NOT_MORE, "<="),
    (_MORE, ">"),
    (_LESS, "<"),
    (r"(?:(?:is|are|was|were|being|of) (?:equal to )?|equals? (?:to )?|=|: ?)", "="),
)
_OPERATORS = tuple((re.compile(rf"{words}\s*(?=\S)", re.IGNORECASE), operator) for words, operator in _OPERATOR_NAMES)
_OPERATOR_WORDS = rf"(?:{_IS}|{_MORE}|{_LESS}|{_NOT_LESS}|{_NOT_MORE})"
_LINK = re.compile(
    rf"(?:of|that is|which is|is|are|was|were)\s+(?=(?:{_MORE}|{_LESS}|{_NOT_LESS}|{_NOT_MORE})\s)", re.IGNORECASE
)
_HELD = re.compile(
    r"(?:(?:have|has|having|with|state|states|specify|specifies|contain|contains|include|includes|set|sets|name|names)\s+)"
    r"(?:a|an|any|the)\s+(?P<what>[a-z][a-z-]*(?: [a-z][a-z-]*){0,3})"
)
_ADVERB = re.compile(r"\b(?:still|currently|now|already|also|only|presently)\s+", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"(?:with|has|have|having|had|whose|where|state|states|specify|specifies|set|sets|there is)\s+"
    r"(?:the |a |an |its |their )?(?P<name>[a-z][\w' -]{1,60}?)\s+"
    rf"(?P<rest>{_OPERATOR_WORDS}\s*\S.*)",
    re.IGNORECASE,
)
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_TIME = re.compile(
    rf"(?:(?:are|is|were|was)\s+)?(?:(?:from|in|of|dated|for|during)\s+)?(?:the )?(?:year )?(?P<year>{_YEAR})"
    rf"|(?:(?:are|is|were|was)\s+)?(?:dated\s+|from\s+)?(?P<side>before|after|since|until)\s+(?P<bound>{_YEAR})"
    rf"|(?:dated\s+)?(?:between|from)\s+(?P<start>{_YEAR})\s+(?:and|to)\s+(?P<end>{_YEAR})",
    re.IGNORECASE,
)
_NAME = r"[\"“']?[A-Z0-9][\w.&’'-]*(?:[ ](?:(?:of|and|the|de|von|van|&)[ ])*[A-Z0-9][\w.&’'-]*)*[\"”']?"
_NAMES = rf"(?:both )?{_NAME}(?:,? (?:and|or) {_NAME})*"
_QUOTED = r"[\"“][^\"”]+[\"”]|'[^']+'"
_LINKS = r"(?:and|or|but|that|which|who)\b"
_MENTION = re.compile(
    r"(?:(?:mention|name|cite|discuss)(?:s|ing)?|mentioned|refer(?:s|ring)? to|talks? about|(?:are |is )?about"
    r"|contain(?:s|ing)? the (?:word|words|name|term|phrase))\s+(?:the (?:word|words|name|term|phrase|company) )?"
    rf"(?P<what>{_QUOTED}|{_NAMES}|(?!{_LINKS})\S+(?: (?!{_LINKS})\S+){{0,5}})"
    rf"|(?:(?:contain|include)(?:s|ing)?|(?:are |is )?(?:with|between|involving))\s+(?P<name>{_QUOTED}|{_NAMES})"
)
_LAW = re.compile(
    r"(?:(?:that )?(?:are|is|were|was) )?(?:governed by|subject to|under|with|have|has|having)\s+(?:the )?"
    rf"(?:(?:governing |applicable )?laws? (?:of |is |= ?|: ?)?(?:the )?(?P<of>{_NAME})"
    rf"|(?P<before>{_NAME})(?:'s|’s)? laws?)"
)
_LAW_WORDS = r"(?i)\b(?:the |governing |substantive )*laws?\b(?: of\b)?"
_WHEN = re.compile(
    rf"(?:(?:are|is|were|was|have been|has been) )?(?P<verb>[a-z]+(?:ed|en|t|de|ade))\s+"
    rf"(?P<side>in|on|before|after|since|during)\s+(?P<time>(?:\d{{1,2}} )?(?:[A-Z][a-z]+ )?(?:\d{{1,2}},? )?{_YEAR})",
)
_MONTH = re.compile(rf"([A-Z][a-z]+) ({_YEAR})")
_MONTHS = tuple(calendar.month_name)
_ENDS = re.compile(
    rf"(?P<verb>expire|end|start|begin|terminate|lapse|renew)s?\s+(?P<side>in|before|after|since|during)\s+(?P<time>{_YEAR})"
)
_BY = re.compile(
    r"(?:(?:are|is|were|was|have been|has been) )?(?P<verb>[a-z]+(?:ed|en|t|de|ade))\s+(?:by|with)\s+"
    rf"(?P<who>{_NAME}(?: or {_NAME})*)"
)
_HAVE = re.compile(r"(?:with|have|has|having|contain|contains|include|includes)\s+(?P<what>.+)", re.IGNORECASE)
_LACK = re.compile(
    r"(?:without|with no|have no|has no|lacks?|lacking|(?:are |is )?missing)\s+(?P<what>.+)", re.IGNORECASE
)
_BE = re.compile(r"(?P<be>are|is|were|was)\s+(?P<what>.+)", re.IGNORECASE)
_PLACED = re.compile(r"(?:between|on|about|for|by|from|in|under|against|to|of|at|over|without)\s", re.IGNORECASE)
_DONE = re.compile(r"(?P<verb>[a-z]+ed)\s+(?P<what>.+)")
_VERB = re.compile(r"(?P<verb>[a-z]{3,})\s+(?P<what>.+)")
_AMOUNT = re.compile(
    r"[^\w\s]{0,3}\d[\d.,]*\s?%?(?:\s?(?!(?:and|or|that|which|who|with|in|by|from|of)\b)[^\W\d]+){0,2}"
)
_PROPER = re.compile(_NAME)
_FREE = re.compile(rf"{_NAMES}|(?!{_LINKS})\S+(?: (?!{_LINKS})\S+){{0,4}}")
_VALUE = re.compile(rf"{_NAME}|[\"“][^\"”]+[\"”]|'[^']+'|[\w.&’'/-]+")
_NOT = re.compile(r"(?:(?:do|does|did)(?: not|n't)|(?P<be>are|is|were|was)(?: not|n't))\s+(?P<what>.+)", re.IGNORECASE)
_UNREAD = re.compile(r"\b(?:or|each|every|per|than one|respectively)\b", re.IGNORECASE)
_NO_VERB = frozenset(("do", "does", "did", "can", "will", "would", "should", "by", "per", "for", "the", "than", "not"))


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of a question: filters of metadata, and facts in the text."""

    filters: tuple[Filter, ...] = ()
    facts: tuple[TextFact, ...] = ()

    def __add__(self, other: Conditions) -> Conditions:
        return Conditions(self.filters + other.filters, self.facts + other.facts)

    def negated(self) -> Conditions | None:
        """Return the opposite of a single condition; None for several."""
        match self.filters, self.facts:
            case (where,), ():
                return Conditions((where.negated(),))
            case (), (fact,):
                denied = replace(fact, absent=True) if fact.test == "True" else replace(fact, test=f"not ({fact.test})")
                return None if fact.absent else Conditions(facts=(denied,))
        return None


def conditions_of(text: str, noun: str, vocabulary: Vocabulary) -> Conditions | None:
    """Return the conditions in the words after a noun; None if they cannot be read.

    Args:
        text: Words such as "from 2021 that mention Acme"; may be empty.
        noun: Word for one document, for questions to it.
        vocabulary: Words of the metadata.
    """

    @cache  # the same words are read as the end of several beginnings
    def read(text: str) -> Conditions | None:
        text = _ADVERB.sub("", text).strip(_AROUND)
        text = text[match.end() :] if (match := _OPENING.match(text)) else text
        if not text:
            return Conditions()
        if (condition := single(text)) is not None:
            return condition
        joins = [(match.start(), match.end()) for match in _JOINED.finditer(text)]
        for start, end in (*joins, *_blanks(text)):  # "from 2021 and by Ada", "from 2021 that mention Acme"
            head = single(text[:start]) if (start, end) in joins else _metadata(text[:start], vocabulary)
            tail = None if head is None else read(text[end:])
            if head is not None and tail is not None:
                return head + tail
        return _judged(text, noun)

    def single(text: str) -> Conditions | None:
        if (denied := _NOT.fullmatch(text)) is not None:
            condition = single(f"{denied['be']} {denied['what']}" if denied["be"] else denied["what"])
            return None if condition is None else condition.negated()
        return _metadata(text, vocabulary) or _fact(text, noun)

    return read(text)


def _blanks(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\s+", text)][::-1]


def _metadata(text: str, vocabulary: Vocabulary) -> Conditions | None:
    """Return the comparison of a metadata field that a condition states; None if no field holds it."""
    for read in (_period, _compared, _placed, _existing):
        where = read(text, vocabulary)
        if where is not None:
            return Conditions((where,))
    return None


def _period(text: str, vocabulary: Vocabulary) -> Filter | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    if match["year"]:
        return vocabulary.period(match["year"], match["year"])
    if match["start"]:
        return vocabulary.period(match["start"], match["end"])
    year, side = int(match["bound"]), match["side"].lower()
    first = {"after": str(year + 1), "since": str(year)}.get(side, "")
    last = {"before": str(year - 1), "until": str(year)}.get(side, "")
    return vocabulary.period(first, last)


def _compared(text: str, vocabulary: Vocabulary) -> Filter | None:
    """Return the comparison in "with team = ops", "whose year is after 2020", "value above 1,000"."""
    plain = re.sub(r"^(?:with|whose|where|having|have|has|having|in which|and)\s+", "", text, flags=re.IGNORECASE)
    plain = _ARTICLE.sub("", plain, count=1) if _ARTICLE.match(plain) else plain
    for name, field in sorted(vocabulary.fields.items(), key=lambda pair: -len(pair[0])):
        width = _length_of(plain, name)
        if not width:
            continue
        rest = _without_link(plain[width:].strip())
        for pattern, operator in _OPERATORS:
            if match := pattern.match(rest):
                return _comparison(vocabulary, field.name, operator, rest[match.end() :])
        value = _ARTICLE.sub("", rest, count=1)
        unknown = equal(field, value) if _PROPER.fullmatch(value) and not field.is_number else None
        return vocabulary.having(value, field.name) or unknown
    return None


def _without_link(text: str) -> str:
    """Return a comparison without the "of" or "that is" before its operator, as in "of more than 5"."""
    match = _LINK.match(text)
    return text[match.end() :] if match else text


def _length_of(text: str, name: str) -> int:
    """Return the length of a field's name at the beginning of a text; 0 if it does not begin with it."""
    pattern = r"[\s_\-/]+".join(map(re.escape, name.split()))
    match = re.match(rf"{pattern}(?![\w-])", text, re.IGNORECASE)
    return match.end() if match else 0


def _comparison(vocabulary: Vocabulary, name: str, operator: Operator, text: str) -> Filter | None:
    field = next(field for field in vocabulary.overview.fields if field.name == name)
    value = _ARTICLE.sub("", text.strip(" \"“”'?.,"), count=1) if _ARTICLE.match(text) else text.strip(" \"“”'?.,")
    if between := re.fullmatch(r"between (\S+) and (\S+)", value, re.IGNORECASE):
        low, high = _number(between[1]), _number(between[2])
        if field.is_number and low is not None and high is not None:
            return all_of(Comparison(name, ">=", low), Comparison(name, "<=", high))
    if field.is_number:
        number = _number(value)
        return None if number is None else Comparison(name, operator, number)
    if all(isinstance(known, bool) for known, _ in field.values):
        truth = {"true": True, "yes": True, "false": False, "no": False}.get(value.casefold())
        return None if truth is None else Comparison(name, operator, truth)
    if operator in ("=", "!="):
        where = vocabulary.having(value, name) or (equal(field, value) if _VALUE.fullmatch(text.strip()) else None)
        return where if operator == "=" or where is None else where.negated()
    return Comparison(name, operator, value) if re.match(r"\d{4}", value) else None


def _number(text: str) -> int | float | None:
    """Return the number in a text of a number and its unit; None for other texts."""
    if not _AMOUNT.fullmatch(text.strip()):
        return None
    try:
        number = HELPERS["parse_number"](text)
    except ValueError:
        return None
    assert isinstance(number, int | float)
    return int(number) if float(number).is_integer() else number


def _placed(text: str, vocabulary: Vocabulary) -> Filter | None:
    """Return the filter of a value that is named with or without its field: "of team ops", "from the ops team"."""
    match = _PLACING.match(text)
    plain = plain_words(text[match.end() :] if match else text)
    plain = re.sub(r"^(?:the|a|an|our)\s+", "", plain).strip(_QUOTES)
    for name, field in vocabulary.fields.items():
        for value in (plain.removesuffix(f" {name}"), plain.removeprefix(f"{name} ")):
            if value != plain and (where := vocabulary.having(value, field.name)) is not None:
                return where
    if (where := vocabulary.having(plain)) is not None or " or " not in plain:
        return where
    parts = [_placed(part, vocabulary) for part in re.split(r",? or ", plain)]
    known = [part for part in parts if part is not None]
    return any_of(*known) if len(known) == len(parts) else None


def _existing(text: str, vocabulary: Vocabulary) -> Filter | None:
    for pattern, exists in ((_LACK, False), (_HAVE, True)):
        if match := pattern.fullmatch(text):
            name = plain_words(re.sub(r"^(?:the|a|an|any)\s+", "", match["what"], flags=re.IGNORECASE))
            if name in vocabulary.fields:
                where = Existence(vocabulary.fields[name].name)
                return where if exists else where.negated()
    return None


def _fact(text: str, noun: str) -> Conditions | None:
    """Return the fact in the text that a condition states in a form that one look-up settles; None for other forms."""
    for pattern, make in _FACTS:
        if match := pattern.fullmatch(text):
            fact = make(match, noun)
            if fact is not None:
                return Conditions(facts=(fact,))
    return None


def _mentioned(match: re.Match[str], noun: str) -> TextFact:
    what = (match["what"] or match["name"]).strip().removeprefix("both ")
    parts = [what] if what[0] in "\"“'" else re.split(r",? (and|or) (?=[A-Z0-9])", what)
    quoted = " ".join(part if part in ("and", "or") else f'"{part.strip(_QUOTES)}"' for part in parts)
    return TextFact(f"Does the {noun} mention {quoted}?", returns="bool")


def _governed(match: re.Match[str], _: str) -> TextFact:
    law = match["of"] or match["before"]
    place = f're.sub({literal(_LAW_WORDS)}, " ", str(row.value)).strip() or "law"'
    return TextFact("What is the governing law?", f"({_holds(law)} or same_entity({place}, {literal(law)}))")


def _dated(match: re.Match[str], noun: str) -> TextFact | None:
    month = _MONTH.fullmatch(match["time"])
    if month is not None and match["side"] in ("in", "during") and month[1].title() in _MONTHS:
        start = f"{month[2]}-{_MONTHS.index(month[1].title()):02}"
        return TextFact(f"When was it {match['verb']}?", f"row.value[:7] == {literal(start)}", "date")
    if not re.fullmatch(_YEAR, match["time"]):
        return TextFact(f"Was the {noun} {match['verb']} {match['side']} {match['time']}?", returns="bool")
    return TextFact(f"When was it {match['verb']}?", _in_year(match), returns="date")


def _ending(match: re.Match[str], _: str) -> TextFact:
    return TextFact(f"When does it {match['verb']}?", _in_year(match), returns="date")


def _in_year(match: re.Match[str]) -> str:
    compare = {"before": "<", "after": ">", "since": ">="}.get(match["side"], "==")
    return f"row.value[:4] {compare} {literal(match['time'])}"


def _done_by(match: re.Match[str], _: str) -> TextFact:
    asked = _PAST.get(match["verb"], match["verb"])
    return TextFact(f"Who {asked} it?", _holds(match["who"]))


_PAST = {"written": "wrote", "drawn": "drew", "given": "gave", "taken": "took", "chosen": "chose", "begun": "began"}


def _attribute(match: re.Match[str], _: str) -> TextFact | None:
    name, rest = match["name"], _without_link(match["rest"].strip())
    for pattern, operator in _OPERATORS:
        if linked := pattern.match(rest):
            return _attribute_fact(name, operator, rest[linked.end() :])
    return None


def _held(match: re.Match[str], _: str) -> TextFact:
    return TextFact(f"What is the {match['what']}?", "True")


def _lacking(match: re.Match[str], _: str) -> TextFact:
    what = re.sub(r"^(?:a|an|any|the)\s+", "", match["what"], flags=re.IGNORECASE)
    return TextFact(f"What is the {what}?", absent=True)


def _attribute_fact(name: str, operator: Operator, value: str) -> TextFact | None:
    value = value.strip(" \"“”'?.")
    question = f"What is the {name}?"
    if (number := _number(value)) is not None and (operator not in ("=", "!=") or re.fullmatch(r"[\d.,]+\D*", value)):
        return TextFact(question, f"row.value {'==' if operator == '=' else operator} {number!r}", returns="number")
    if operator in ("=", "!=") and _FREE.fullmatch(value):
        holds = _holds(value)
        return TextFact(question, holds if operator == "=" else f"not {holds}")
    return None


def _holds(value: str) -> str:
    """Return the test that a row's text holds a value as whole words."""
    value = re.sub(r"^(?:the|a|an)\s+", "", value.strip(_QUOTES), flags=re.IGNORECASE)
    words = "|".join(r"\s+".join(map(re.escape, part.split())) for part in value.split(" or "))
    pattern = rf"(?i)(?<!\w)(?:{words})(?!\w)"
    return f"re.search({literal(pattern)}, str(row.value))"


_FACTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], TextFact | None]], ...] = (
    (_LAW, _governed),
    (_MENTION, _mentioned),
    (_WHEN, _dated),
    (_ENDS, _ending),
    (_BY, _done_by),
    (_ATTRIBUTE, _attribute),
    (_LACK, _lacking),
    (_HELD, _held),
)


def _judged(text: str, noun: str) -> Conditions | None:
    """Return a condition as a yes/no question to each document; None if it has no verb."""
    if _UNREAD.search(text):
        return None
    question = ""
    if match := _BE.fullmatch(text):
        question = f"{'Was' if match['be'].lower() in ('was', 'were') else 'Is'} the {noun} {match['what']}?"
    elif _PLACED.match(text):
        question = f"Is the {noun} {text}?"
    elif match := _HAVE.fullmatch(text):
        question = f"Does the {noun} have {match['what']}?"
    elif match := _DONE.fullmatch(text):
        question = f"Was the {noun} {match['verb']} {match['what']}?"
    elif (match := _VERB.fullmatch(text)) and match["verb"] not in _NO_VERB:
        verb = match["verb"]
        base = verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb
        question = f"Does the {noun} {base} {match['what']}?"
    return Conditions(facts=(TextFact(question, returns="bool", is_judged=True),)) if question else None
