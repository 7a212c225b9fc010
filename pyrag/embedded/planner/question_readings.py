"""Further readings of questions: words with several meanings, and questions of two clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.things import PLACE_KINDS
from pyrag.embedded.lexicon.word_classes import QUESTION_WORDS, SUBJECT_PRONOUNS
from pyrag.embedded.planner.meaning import Chain, Meaning, Node, RelationStep
from pyrag.embedded.planner.wording import relation_step
from pyrag.embedded.relations.table import BY_NAME, COMPOSED

_STAND_IN = "⟦0⟧"  # placeholder that the parsers read as a name
_TWO_CLAUSES = re.compile(
    r"(?P<fact>.+?\b(?P<verb>was|were|is|are|[a-z]+ed)\b.*?) (?:an?|some)"
    r" (?P<kind>(?:[A-Z][a-z]+ )?[a-z]+(?: [a-z]+){0,3})(?:;|\.|, and) (?P<ask>.+)",
    re.DOTALL,
)


_THERE_IS = re.compile(
    r"[Tt]here (?:is|was) an? (?P<kind>[\w' -]+?) (?P<clause>(?:where|that|which|who|whose|in which) .+?)(?:;|\.|,)"
    r" (?P<ask>.+)",
    re.DOTALL,
)


def other_readings(question: str, meaning: Meaning) -> Iterator[Meaning]:
    """Yield other readings of ambiguous words: an uncle may be the father's brother or the mother's brother.

    Args:
        question: The question as the user asked it.
        meaning: First reading of the question. Only a chain has other readings.
    """
    if not isinstance(meaning, Chain):
        return
    for noun, readings in COMPOSED.items():
        if len(readings) > 1 and re.search(rf"(?<![\w-]){noun}\b(?!-)", question):
            for other in readings[1:]:
                node = _reread(meaning.node, readings[0], other)
                if node != meaning.node:
                    yield Chain(node)


def _reread(node: Node, path: tuple[str, ...], other: tuple[str, ...]) -> Node:
    """Return a node in which a path of relations is replaced by another path."""
    value = _below(node, path)
    if value is not None:
        for name in other:
            value = relation_step(BY_NAME[name], value)
        return value
    if isinstance(node, RelationStep):
        return replace(node, args=tuple(_reread(arg, path, other) for arg in node.args))
    return node


def _below(node: Node, path: tuple[str, ...]) -> Node | None:
    """Return the node that a path of relations starts from; None if the node's last steps are not this path."""
    for name in reversed(path):
        if not isinstance(node, RelationStep) or node.relation is None or node.relation.name != name:
            return None
        node = node.args[0]
    return node


def split_clauses(question: str) -> tuple[str, str] | None:
    """Return both questions of "Alpha was born on an island; what is spoken on that island?"; None for other texts.

    The second question has a placeholder for the island; `insert` puts the first one's value there.
    """
    question = question.rstrip("?. ")
    match = _THERE_IS.fullmatch(question) or _TWO_CLAUSES.fullmatch(question)
    if match is None:
        return None
    head = match["kind"].rpartition(" ")[2]
    back = re.search(rf"\b(?:that|those|this|these|the) (?:same )?{re.escape(head)}\b", match["ask"])
    if back is None:
        return None
    ask = match["ask"][: back.start()] + _STAND_IN + match["ask"][back.end() :]
    if match.re is _THERE_IS:
        return f"the {match['kind']} {match['clause']}", ask
    return f"{match['fact']} which {match['kind']}", ask


_IS = words("located situated headquartered based known from in on")
_NO_KIND = r"(?!(?:that|which|who|whose|in|of|on|for|by|with|was|were|is|are|and|first)\b)"
_PLACED_VERB = any_of(_IS - words("in on"))
_TRAILING = re.compile(
    r"(?P<fact>[^a-z\s].*(?<! is)(?<! was)(?<! are)(?<! were))"
    rf" (?:an?|the|another) (?P<kind>(?:{_NO_KIND}[\w'-]+ ){{0,4}}?{_NO_KIND}[a-zU][a-z-]+)"
    rf",? (?P<link>that|which|who|whose|{_PLACED_VERB}|founded|created|produced|published|developed|born|directed"
    r"|written|owned|formed|established|named|hosted|built) (?P<ask>.+)",
    re.DOTALL,
)
_PLACED = re.compile(
    rf"(?P<fact>[^a-z\s].*) an? (?P<kind>{'|'.join(sorted(PLACE_KINDS))}) (?P<link>in|on) (?P<ask>(?:what|which) .+)",
    re.DOTALL,
)
_NO_SUBJECT = re.compile(r"(?:in|on|at|of|for|besides?|if|during|after|before|among|between) (?!\d)", re.IGNORECASE)
_ASKED = re.compile(rf"\b{any_of(QUESTION_WORDS - words('whose why'))}\b", re.IGNORECASE)
_TELLS = re.compile(
    r" (?:is|was|are|were|has|had|[a-z]+ed|[a-z]+[^s\W]s|hit|won|led|wrote|sang|made|took|held|set|built|ran"
    r"|beat|lost|met|became)\b"
)


def split_trailing(question: str) -> tuple[str, str, str] | None:
    """Return the parts of "Alpha is a hall in a college founded by whom"; None for other texts.

    The parts are "Alpha is a hall in which college", "college", and "⟦0⟧ was founded by whom" with a placeholder.
    """
    text = question.rstrip("?. ")
    match = _PLACED.fullmatch(text) or _TRAILING.fullmatch(text)
    if match is None or not _ASKED.search(match["ask"]) or _ASKED.search(match["fact"]):
        return None
    if not _TELLS.search(match["fact"]) or len(match["fact"].split()) < 3 or _NO_SUBJECT.match(match["fact"]):
        return None
    link = match["link"]
    if link in SUBJECT_PRONOUNS:
        ask = f"{_STAND_IN} {match['ask']}"
    elif link == "whose":
        ask = f"{_STAND_IN}'s {match['ask']}"
    else:
        ask = f"{_STAND_IN} {'is' if link in _IS else 'was'} {link} {match['ask']}"
    return f"{match['fact']} which {match['kind']}", match["kind"], ask


_APART = re.compile(
    r"(?P<lead>(?:where|when|(?:in |on |at )?(?:what|which) [a-z]+) (?:is|was|were|did)) "
    r"(?P<kind>the (?:[\w'-]+ ){0,3}?[a-z]+) (?P<verb>born|die|buried|founded|built|form|educated|released|published"
    r"|open|opened|finished|live|study|located) (?P<clause>(?:who|whose|that|which|(?:for|in|on) which) .+)",
    re.IGNORECASE | re.DOTALL,
)


def join_apart(question: str) -> tuple[str, str] | None:
    """Return the parts of "Where was the king born who lost Alpha"; None for other texts.

    The parts are the description "the king who lost Alpha" and the question about it, with a placeholder.
    """
    match = _APART.fullmatch(question.rstrip("?. "))
    if match is None:
        return None
    return f"{match['kind']} {match['clause']}", f"{match['lead']} {_STAND_IN} {match['verb']}"


def insert(step: RelationStep, value: Node) -> RelationStep:
    """Return a step with a value in place of the placeholder.

    Args:
        step: Reading of a question that holds the placeholder, as a name or in a step's own words.
        value: Node to insert.
    """
    args = tuple(
        insert(arg, value) if isinstance(arg, RelationStep) else value if arg.text == _STAND_IN else arg
        for arg in step.args
    )
    if _STAND_IN not in step.question:
        return replace(step, args=args)
    slot = f"{{{len(args)}}}"
    question, query, phrase = (text.replace(_STAND_IN, slot) for text in (step.question, step.query, step.phrase))
    return replace(step, question=question, query=query, phrase=phrase, args=(*args, value))
