"""Conditions on documents: comparisons of a metadata field if there is one, and facts in the text otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from pyrag.agents.python_text import literal
from pyrag.agents.typed.returns import unit_in
from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.lexicon.verbs import past_of
from pyrag.embedded.lexicon.word_classes import DO, MODALS, PREPOSITIONS
from pyrag.embedded.planner.corpus.comparisons import (
    NAME,
    OPERATOR_WORDS,
    OPERATORS,
    compared,
    number_in,
    without_link,
)
from pyrag.embedded.planner.corpus.meaning import Conditions, MetadataTest, TextFact
from pyrag.embedded.planner.corpus.roles import role_filter
from pyrag.embedded.planner.corpus.times import DONE, time_filter
from pyrag.embedded.planner.corpus.vocabulary import YEAR, Vocabulary, plain_words
from pyrag.embedded.words import without_article
from pyrag.retrieval.filters.tree import Comparison, Existence, Filter, Operator, any_of

_JOINED = re.compile(r",?\s+(?:and|but)\s+(?:(?:that|which|who)\s+)?|,\s+(?:(?:that|which|who)\s+)?", re.IGNORECASE)
_QUOTES = " \"“”'"
_AROUND = " ,;:?.!"
_OPENING = re.compile(r"(?:(?:that|which|who|and|,|and also|also|only)\s+)+", re.IGNORECASE)
_PLACING = re.compile(
    r"(?:(?:are|is|were|was|being)\s+)?(?:(?:from|in|of|dated|by|for|on|under|at|within|with|to|tagged|labelled|labeled"
    r"|marked|(?:located|based|held|situated) (?:in|at)|have|has|having"
    r"|written by|authored by|belonging to|belong to|come from|written in|as)\s+)?",
    re.IGNORECASE,
)
_FOLDER = re.compile(
    r"(?:(?:are|is|were|was|lie|lies) )?(?:stored )?(?:in|inside|from|under) (?:the )?(?:folder |directory |file )?"
    r"(?P<name>[\w-]+)(?: folder| directory| file)?",
    re.IGNORECASE,
)
_HELD = re.compile(
    r"(?:(?:have|has|having|with|state|states|specify|specifies|contain|contains|include|includes|set|sets|name|names)\s+)"
    r"(?:a|an|any|the)\s+(?P<what>[a-z][a-z-]*(?: [a-z][a-z-]*){0,3})"
)
_ADVERB = re.compile(r"\b(?:still|currently|now|already|also|only|presently)\s+", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"(?:with|has|have|having|had|whose|where|state|states|specify|specifies|set|sets|there is)\s+"
    r"(?:the |a |an |its |their )?(?P<name>[a-z][\w' -]{1,60}?)\s+"
    rf"(?P<rest>{OPERATOR_WORDS}\s*\S.*)",
    re.IGNORECASE,
)
_NAMES = rf"(?:both )?{NAME}(?:,? (?:and|or) {NAME})*"
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
    rf"(?:(?:governing |applicable )?laws? (?:of |is |= ?|: ?)?(?:the )?(?P<of>{NAME}(?: or {NAME})*)"
    rf"|(?P<before>{NAME}(?: or {NAME})*)(?:'s|’s)? laws?)"
)
_LAW_WORDS = r"(?i)\b(?:the |governing |substantive )*laws?\b(?: of\b)?"
_WHEN = re.compile(
    rf"{DONE}\s+"
    rf"(?P<side>in|on|before|after|since|during)\s+(?P<time>(?:\d{{1,2}} )?(?:[A-Z][a-z]+ )?(?:\d{{1,2}},? )?{YEAR})",
)
_MONTH = re.compile(rf"([A-Z][a-z]+) ({YEAR})")
_MONTHS = MONTHS.split("|")
_ENDS = re.compile(
    rf"(?P<verb>expire|end|start|begin|terminate|lapse|renew)s?\s+(?P<side>in|before|after|since|during)\s+(?P<time>{YEAR})"
)
_BY = re.compile(
    rf"(?!not\b){DONE}\s+(?:by|with)\s+"
    rf"(?P<who>{NAME}(?: or {NAME})*)"
)
_WORD = r"(?!(?:a|an|any|the|no|at)\b)[a-z][a-z-]*(?: (?!(?:and|or|for|in|of|by|with|that)\b)[a-z][a-z-]*)?"
_USED = re.compile(
    rf"(?:use|uses|using|contain|contains|containing|include|includes|including)\s+(?P<no>no )?"
    rf"(?P<what>{_WORD}(?:(?:, (?:or )?| or ){_WORD})*)"
    r"|(?P<lacked>without )(?P<single>(?!(?:a|an|any|the)\b)[a-z][a-z-]*)"
)
_HAVE = re.compile(r"(?:with|have|has|having|contain|contains|include|includes)\s+(?P<what>.+)", re.IGNORECASE)
_LACK = re.compile(
    r"(?:without|with no|have no|has no|lacks?|lacking|(?:are |is )?missing)\s+(?P<what>.+)", re.IGNORECASE
)
_BE = re.compile(r"(?P<be>are|is|were|was)\s+(?P<what>.+)", re.IGNORECASE)
_PLACED = re.compile(r"(?:between|on|about|for|by|from|in|under|against|to|of|at|over|without)\s", re.IGNORECASE)
_DONE = re.compile(r"(?P<verb>[a-z]+ed)\s+(?P<what>.+)")
_VERB = re.compile(r"(?P<verb>[a-z]{3,})\s+(?P<what>.+)")
_PROPER = re.compile(NAME)
_FREE = re.compile(rf"{_NAMES}|(?!{_LINKS})\S+(?: (?!{_LINKS})\S+){{0,4}}")
_NOT = re.compile(
    r"(?:(?:do|does|did)(?: not|n't)|(?P<be>are|is|were|was)(?: not|n't)|not)\s+(?P<what>.+)", re.IGNORECASE
)
_UNREAD = re.compile(r"\b(?:or|neither|nor|each|every|per|than one|respectively)\b", re.IGNORECASE)
_NO_VERB = DO | MODALS | PREPOSITIONS | {"the", "not"}


def conditions_of(text: str, noun: str, vocabulary: Vocabulary) -> Conditions | None:
    """Return the conditions in the words after a noun; None if they cannot be read.

    Args:
        text: Words such as "from 2021 that mention Acme"; may be empty.
        noun: Word for one document, used in questions about it.
        vocabulary: Words of the metadata.
    """

    @cache  # the same words are read as the end of several beginnings
    def read(text: str) -> Conditions | None:
        text = _ADVERB.sub("", text).strip(_AROUND)
        text = _OPENING.sub("", text, count=1) if _OPENING.match(text) else text
        condition = (_metadata(text, vocabulary) or split(text) or single(text)) if text else Conditions()
        if condition is not None:
            return condition
        joins = [(match.start(), match.end()) for match in _JOINED.finditer(text)]
        for start, end in (*joins, *_blanks(text)):  # "from 2021 and by Ada", "from 2021 that mention Acme"
            head = single(text[:start]) if (start, end) in joins else _metadata(text[:start], vocabulary)
            tail = None if head is None else read(text[end:])
            if head is not None and tail is not None:
                return head + tail
        return _judged(text, noun)

    def split(text: str) -> Conditions | None:
        for head, rest in _heads(text, vocabulary):  # "with Acme", "were signed by Ada"
            tail = read(rest)
            if tail is not None and not any(fact.is_judged for fact in tail.facts):
                return head + tail
        return None

    def single(text: str) -> Conditions | None:
        if (denied := _NOT.fullmatch(text)) is not None:
            condition = single(f"{denied['be']} {denied['what']}" if denied["be"] else denied["what"])
            return None if condition is None else condition.negated()
        return _metadata(text, vocabulary) or _fact(text, noun)

    return read(text)


def _blanks(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\s+", text)][::-1]


def _heads(text: str, vocabulary: Vocabulary) -> Iterator[tuple[Conditions, str]]:
    """Yield the metadata comparisons that a text may begin with, longest first, and the words after each."""
    for start, end in _blanks(text):
        head = _metadata(text[:start], vocabulary)
        if head is not None:
            yield head, text[end:]


def _metadata(text: str, vocabulary: Vocabulary) -> Conditions | None:
    """Return the comparison of a metadata field that a condition states; None if no field holds it."""
    for read in (time_filter, role_filter, compared, _placed, _existing):
        where = read(text, vocabulary)
        if isinstance(where, MetadataTest):
            return Conditions(tests=(where,))
        if where is not None:
            return Conditions((where,))
    match = _FOLDER.fullmatch(text)
    word = vocabulary.folder_word(match["name"]) if match else ""
    return Conditions(words=(word,)) if word else None


def _placed(text: str, vocabulary: Vocabulary) -> Filter | None:
    """Return the filter for a value that is named with or without its field: "of team ops", "from the ops team"."""
    match = _PLACING.match(text)
    plain = plain_words(text[match.end() :] if match else text)
    plain = re.sub(r"^our\s+", "", without_article(plain)).strip(_QUOTES)
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
            name = plain_words(re.sub(r"^any\s+", "", without_article(match["what"]), flags=re.IGNORECASE))
            if name in vocabulary.fields:
                field = vocabulary.fields[name]
                where = Existence(field.name)
                if field.is_number:  # "no attachments" are 0 attachments, too
                    none = any_of(Comparison(field.name, "<=", 0), where.negated())
                    return Comparison(field.name, ">", 0) if exists else none
                return where if exists else where.negated()
    return None


def _fact(text: str, noun: str) -> Conditions | None:
    """Return the fact in the text that a condition states, if one look-up can settle it; None for other forms."""
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


def _used(match: re.Match[str], noun: str) -> TextFact:
    """Read "use butter or eggs" and "without garlic" as conditions on words of the text."""
    words = re.split(r",? or |, ", match["what"] or match["single"])
    quoted = [f'"{word.strip()}"' for word in words]
    asked = f"Does the {noun} mention {' or '.join(quoted)}?"
    return TextFact(asked, "not (row.value)" if match["no"] or match["lacked"] else "row.value", returns="bool")


def _governed(match: re.Match[str], _: str) -> TextFact:
    law = match["of"] or match["before"]
    place = f're.sub({literal(_LAW_WORDS)}, " ", str(row.value)).strip() or "law"'
    return TextFact("What is the governing law?", f"({_holds(law)} or same_entity({place}, {literal(law)}))")


def _dated(match: re.Match[str], noun: str) -> TextFact | None:
    month = _MONTH.fullmatch(match["time"])
    if month is not None and match["side"] in ("in", "during") and month[1].title() in _MONTHS:
        start = f"{month[2]}-{_MONTHS.index(month[1].title()) + 1:02}"
        return TextFact(f"When was it {match['verb']}?", f"row.value[:7] == {literal(start)}", "date")
    if not re.fullmatch(YEAR, match["time"]):
        return TextFact(f"Was the {noun} {match['verb']} {match['side']} {match['time']}?", returns="bool")
    return TextFact(f"When was it {match['verb']}?", _in_year(match), returns="date")


def _by_year_of_verb(match: re.Match[str], _: str) -> TextFact:
    return TextFact(f"When does it {match['verb']}?", _in_year(match), returns="date")


def _in_year(match: re.Match[str]) -> str:
    compare = {"before": "<", "after": ">", "since": ">="}.get(match["side"], "==")
    return f"row.value[:4] {compare} {literal(match['time'])}"


def _done_by(match: re.Match[str], _: str) -> TextFact:
    return TextFact(f"Who {past_of(match['verb'])} it?", _holds(match["who"]))


def _attribute(match: re.Match[str], _: str) -> TextFact | None:
    name, rest = match["name"], without_link(match["rest"].strip())
    for pattern, operator in OPERATORS:
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
    if (number := number_in(value)) is not None and (operator not in ("=", "!=") or re.fullmatch(r"[\d.,]+\D*", value)):
        test = f"row.value {'==' if operator == '=' else operator} {number!r}"
        return TextFact(question, test, returns="number", unit=unit_in(value))
    if operator in ("=", "!=") and _FREE.fullmatch(value):
        holds = _holds(value)
        return TextFact(question, holds if operator == "=" else f"not {holds}")
    return None


def _holds(value: str) -> str:
    """Return the test that a row's text contains a value as whole words."""
    value = without_article(value.strip(_QUOTES))
    words = "|".join(r"\s+".join(map(re.escape, part.split())) for part in value.split(" or "))
    pattern = rf"(?i)(?<!\w)(?:{words})(?!\w)"
    return f"re.search({literal(pattern)}, str(row.value))"


_FACTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], TextFact | None]], ...] = (
    (_LAW, _governed),
    (_MENTION, _mentioned),
    (_WHEN, _dated),
    (_ENDS, _by_year_of_verb),
    (_BY, _done_by),
    (_ATTRIBUTE, _attribute),
    (_USED, _used),
    (_LACK, _lacking),
    (_HELD, _held),
)


def _judged(text: str, noun: str) -> Conditions | None:
    """Return a condition as a yes/no question about each document; None if the condition has no verb."""
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
