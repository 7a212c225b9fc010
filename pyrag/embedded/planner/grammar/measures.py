"""Comparisons of two things by a measure: "is the A heavier than the B", "which is longer, A or B"."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from pyrag.embedded.lexicon import any_of
from pyrag.embedded.lexicon.measures import SCALES
from pyrag.embedded.lexicon.verbs import is_base, is_participle
from pyrag.embedded.lexicon.word_classes import BE, BE_FORM, DO, HAVE
from pyrag.embedded.planner.grammar.phrase import parse_phrase
from pyrag.embedded.planner.meaning import Choice, Entity, Node, RelationStep, Verdict
from pyrag.embedded.planner.wording import free_step, relation_step
from pyrag.embedded.relations.table import BY_NAME

_THAN = r"than (?P<second>.+)"
_DATED = {"older": ("inception", True), "newer": ("inception", False), "younger": ("inception", False)}
_OLDER = re.compile(rf"{BE_FORM} (?P<first>the .+?) (?P<word>older|newer|younger) {_THAN}", re.IGNORECASE | re.DOTALL)
_PROPERTY = re.compile(
    rf"(?P<be>{BE_FORM}) the (?P<noun>(?:[a-z-]+ ){{0,2}}[a-z-]+) of (?P<first>.+?)"
    r" (?P<word>higher|lower|larger|greater|bigger|smaller|longer|shorter|more|less|later|earlier) than"
    r" (?:that of |the (?P=noun) of |those of )(?P<second>.+)",
    re.IGNORECASE | re.DOTALL,
)
_VERB = re.compile(
    rf"(?P<aux>do|does|did) (?P<first>.+?) (?P<verb>weigh|cost|measure|last) (?P<word>more|less|longer|shorter) {_THAN}",
    re.IGNORECASE | re.DOTALL,
)
_COUNT = re.compile(
    rf"(?P<aux>do|does|did) (?P<first>.+?) (?P<verb>[a-z]+) (?P<word>more|fewer|less) (?P<noun>[a-z]+(?: [a-z]+)?) {_THAN}",
    re.IGNORECASE | re.DOTALL,
)
_ORDER = re.compile(
    r"(?P<aux>is|was|were|are|did) (?P<first>.+?) (?P<verb>[a-z]+) (?:any )?(?P<word>before|after|earlier than|later than)"
    r" (?P<second>.+)",
    re.IGNORECASE | re.DOTALL,
)
_LESS = frozenset(("lower", "smaller", "shorter", "less", "fewer", "earlier"))
_TRAILING = re.compile(rf" {any_of(BE | DO | HAVE)}$")


def parse_measured(question: str) -> Verdict | None:
    """Return the reading of a yes/no question that compares two things by a measure; None for other questions."""
    text = question.rstrip("?. ")
    return next(_readings(text), None)


_CHOSEN = r"(?:(?P<be>is|are|was|were) (?:the )?(?P<more>{0})|(?P<was>is|are|was|were) (?:the )?(?:{1}))(?: one)?$"
_CHOSEN_VERB = re.compile(
    r"(?:(?P<aux>do|does|did) )?(?P<verb>weigh|cost|last)(?P<past>ed|s)? (?:(?P<more>more|longer)|less|shorter)$",
    re.IGNORECASE,
)


def measured_choice(stem: str, options: tuple[Node, Node]) -> Choice | None:
    """Return the choice of the greater or smaller of two things by a measure; None if the question names no measure.

    Args:
        stem: The question without its options, such as "Which bell is heavier".
        options: The two things.
    """
    stem = stem.strip().rstrip(",:;-?. ")
    verb = _CHOSEN_VERB.search(stem)
    if verb:
        asks, noun = "How long" if verb["verb"].lower() == "last" else "How much", verb["verb"].lower()
        question = f"{asks} {'did' if verb['past'] == 'ed' else (verb['aux'] or 'does').lower()} {{0}} {noun}?"
        return _chosen(question, noun, options, smaller=not verb["more"])
    for adjective, more, less in SCALES:
        match = re.search(_CHOSEN.format(more, less), stem, re.IGNORECASE)
        if match:
            be = match["be"] or match["was"]
            question = f"How {adjective} {_singular(be)} {{0}}?"
            if adjective == "expensive":
                question = f"How much {_did(_singular(be))} {{0}} cost?"
            return _chosen(question, adjective, options, smaller=not match["more"])
    return None


def _chosen(question: str, noun: str, options: tuple[Node, Node], *, smaller: bool) -> Choice:
    """Return the choice between two options that compares the answers to a question about each.

    Args:
        question: Template of the question to ask for each option.
        noun: The measure, in a word.
        options: The two options.
        smaller: True if the option with the smaller value is the answer.
    """
    first, second = (_measure(question, noun, node) for node in options)
    return Choice(options, ((first,), (second,)), "quantity", smaller)


def _singular(be: str) -> str:
    """Return a form of "be" in the singular."""
    return {"are": "is", "were": "was"}.get(be.lower(), be.lower())


def _readings(text: str) -> Iterator[Verdict]:
    """Yield the readings of a comparison by property, age, verb, count, order in time or adjective."""
    if match := _PROPERTY.fullmatch(text):
        yield from _asked(match, f"What {match['be'].lower()} the {match['noun']} of {{0}}?", match["noun"])
    if match := _OLDER.fullmatch(text):
        nodes = _nodes(match)
        if nodes:
            name, smaller = _DATED[match["word"].lower()]
            yield Verdict(
                (relation_step(BY_NAME[name], nodes[0]), relation_step(BY_NAME[name], nodes[1])), "date", smaller
            )
    if match := _VERB.fullmatch(text):
        asks = "How long" if match["verb"] == "last" else "How much"
        yield from _asked(match, f"{asks} {match['aux'].lower()} {{0}} {match['verb']}?", match["verb"])
    if match := _COUNT.fullmatch(text):
        yield from _asked(
            match, f"How many {match['noun']} {match['aux'].lower()} {{0}} {match['verb']}?", match["noun"]
        )
    yield from _in_order(text)
    for adjective, more, less in SCALES:
        match = re.fullmatch(
            rf"(?P<be>{BE_FORM}) (?P<first>.+?) (?P<word>(?P<more>{more})|{less}) {_THAN}",
            text,
            re.IGNORECASE | re.DOTALL,
        )
        if match:
            asks = f"How much {_did(match['be'])} {{0}} cost?" if adjective == "expensive" else ""
            yield from _asked(
                match, asks or f"How {adjective} {match['be'].lower()} {{0}}?", adjective, smaller=not match["more"]
            )


def _in_order(text: str) -> Iterator[Verdict]:
    """Yield the reading of "Was the bridge built before the tower", which looks up both dates."""
    match = _ORDER.fullmatch(text)
    nodes = _nodes(match) if match else None
    if match is None or nodes is None or nodes[1] is None or re.search(r"\d{3}", match["second"]):
        return
    passive, verb = match["aux"].lower() != "did", match["verb"].lower()
    named = match["second"][0].isupper()
    if not (is_participle(verb) if passive else is_base(verb) and named) or not (
        named or match["second"].startswith("the ")
    ):
        return
    question = f"When {match['aux'].lower()} {{0}} {verb}?"
    first, second = (_measure(question, "date", node) for node in nodes)
    yield Verdict((first, second), "date", match["word"].lower() in ("before", "earlier than"))


def _did(be: str) -> str:
    """Return the form of "do" for a form of "be": "does" for "is", "did" for "was"."""
    return {"is": "does", "are": "do"}.get(be.lower(), "did")


def _asked(match: re.Match[str], question: str, noun: str, *, smaller: bool | None = None) -> Iterator[Verdict]:
    """Yield the comparison of two things by the answers to a question, unless the second is a number or a date.

    Args:
        match: Match with both things and the comparing word.
        question: Template of the question to ask about each thing.
        noun: The measure, in a word.
        smaller: True if the first value must be smaller. If None, the comparing word decides.
    """
    nodes = _nodes(match)
    if nodes is None:
        return
    key: Literal["date", "quantity"] = "date" if noun.endswith(("date", "year")) else "quantity"
    if smaller is None:
        smaller = match["word"].lower() in _LESS
    first, second = (_measure(question, noun, node) for node in nodes)
    yield Verdict((first, second), key, smaller)


def _measure(question: str, noun: str, node: Node) -> RelationStep:
    """Return the step that asks for a measure of a node's value."""
    return free_step(question, f"{question[0].lower()}{question[1:-1]}", noun, (node,))


def _nodes(match: re.Match[str]) -> tuple[Node, Node] | None:
    """Return the two things; None if the second is a number, a date or only a pronoun."""
    first, second = match["first"].strip(), _TRAILING.sub("", match["second"]).strip()
    if not re.search(r"[^\W\d_]{2}", second) or re.match(
        r"(?:about |the year )?[\d$€£]|(?:one|two|three|four|five|six|seven|eight|nine|ten|a|an|it|he|she|they|this|that|before|ever|usual|expected|average|planned)\b",
        second,
        re.I,
    ):
        return None
    nodes = parse_phrase(first), parse_phrase(second)
    return nodes[0] or Entity(first), nodes[1] or Entity(second)
