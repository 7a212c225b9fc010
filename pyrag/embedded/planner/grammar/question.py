"""Parses questions that ask for one thing: chains of relations, and questions with a description inside."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from pyrag.embedded.planner.grammar.inside import embed
from pyrag.embedded.planner.grammar.nested import hops, unnest
from pyrag.embedded.planner.grammar.phrase import fits, parse_phrase
from pyrag.embedded.planner.meaning import Chain, Meaning, Node, RelationStep, Whole
from pyrag.embedded.planner.question_readings import insert, join_apart, split_clauses, split_trailing
from pyrag.embedded.planner.wording import free_step, relation_step
from pyrag.embedded.relations.relation import Relation
from pyrag.embedded.relations.table import RELATIONS

_LEAD = re.compile(
    r"(?:(?:who|what|where|when|which|whom)(?: (?:city|country|person|place|year|date|day|nationality))? (?:is"
    r"|was|are|were|'s)|name|tell me)"
    r"(?: the name of)? (?P<phrase>.+)",
    re.IGNORECASE | re.DOTALL,
)


def parse_chain(question: str) -> Meaning:
    """A chain of any length, or the whole question in one step."""
    text = question.rstrip("?. \t\n")
    node = _by_clauses(text) or _by_joining(text) or _by_form(text) or _by_lead(text) or _by_trailing(text)
    nested = _by_nesting(text)
    described = None if node else _by_description(text, strict=True) or _by_description(text, strict=False)
    node = _deeper(node, nested) if node else _deeper(nested, described)
    if node is None:
        return Whole()
    return Chain(node) if hops(node) > 1 else Whole(sure=True)


def _deeper(first: RelationStep | None, second: RelationStep | None) -> RelationStep | None:
    """The reading with more steps; the first of two that have as many."""
    if first is None or second is None:
        return first or second
    return second if hops(second) > hops(first) else first


def _by_clauses(text: str) -> RelationStep | None:
    """A fact about something unnamed, then a question about it."""
    clauses = split_clauses(text)
    if clauses is None:
        return None
    fact, ask = clauses
    if fact.startswith("the "):
        first = parse_phrase(fact)
    else:
        phrase = f"the {fact.rpartition(' which ')[2]}"
        asked = _by_description(fact, strict=True)
        first = replace(asked, phrase=phrase) if asked else free_step(fact, phrase, "thing", ())
    if first is None:
        return None
    second = _by_form(ask) or _by_lead(ask) or _by_trailing(ask) or _by_description(ask, strict=True)
    second = second or free_step(ask, ask, "result", ())
    node = insert(second, first)
    return node if isinstance(node, RelationStep) else None


def _by_joining(text: str) -> RelationStep | None:
    """A description whose clause stands after the question's own verb."""
    parts = join_apart(text)
    first = parse_phrase(parts[0]) if parts else None
    if parts is None or not isinstance(first, RelationStep):
        return None
    node = insert(_by_form(parts[1]) or free_step(parts[1], parts[1], "result", ()), first)
    return node if isinstance(node, RelationStep) else None


def _by_trailing(text: str) -> RelationStep | None:
    """A fact about something unnamed, and in the same breath a question about it."""
    clauses = split_trailing(text)
    if clauses is None:
        return None
    fact, kind, ask = clauses
    first = _by_description(fact, strict=True) or free_step(
        fact, f"the {kind} that {fact.partition(' which ')[0]}", kind, ()
    )
    node = insert(_by_form(ask) or free_step(ask, ask, "result", ()), first)
    return node if isinstance(node, RelationStep) else None


def _by_lead(text: str) -> RelationStep | None:
    """ "Who is the father of X", "What is X's capital"; when and where only with a noun for a time or place."""
    match = _LEAD.fullmatch(text)
    node = parse_phrase(match["phrase"]) if match else None
    if not isinstance(node, RelationStep) or (node.relation is None and hops(node) == 1):
        return None
    wanted = _LEAD_TYPES.get(text.partition(" ")[0].lower())
    return node if wanted is None or (node.relation and node.relation.answer_type in wanted) else None


_LEAD_TYPES = {"when": ("date",), "where": ("place", "country", "organisation")}


def _by_form(text: str) -> RelationStep | None:
    """The wordings of whole questions in the table of relations."""
    for relation, pattern in _forms():
        match = pattern.fullmatch(text)
        of = parse_phrase(match["x"]) if match else None
        if match and of is not None and fits(relation, of):
            step = relation_step(relation, of)
            asked = _ASKED_KIND.match(text)
            if asked and relation.answer_type in ("place", "date", "country") and isinstance(of, RelationStep):
                return replace(step, question=f"{text[: match.start('x')]}{{0}}{text[match.end('x') :]}?")
            return step
    return None


# A country without a verb ("which country the director is from") is asked for as a nationality.
_ASKED_KIND = re.compile(
    r"(?:in |on |at |from |of )?(?:what|which) "
    r"(?!place|date|location|nationality|country(?! (?:is|was|did|does|do|were)\b))",
    re.IGNORECASE,
)


@cache
def _forms() -> tuple[tuple[Relation, re.Pattern[str]], ...]:
    return tuple(
        (relation, re.compile(form.replace("{x}", "(?P<x>.+?)"), re.IGNORECASE | re.DOTALL))
        for relation in RELATIONS
        for form in (*relation.forms, *_verb_forms(relation))
    )


def _verb_forms(relation: Relation) -> list[str]:
    if not relation.verbs:
        return []
    verbs = "|".join(relation.verbs)
    who = r"(?:who|whom|which \w+|what \w+)"
    return [
        rf"{who} (?:{verbs}) {{x}}",
        rf"{who} (?:is|was|were) {{x}} (?:{verbs}) by",
        rf"by {who} (?:is|was) {{x}} (?:{verbs})",
    ]


def _by_description(text: str, *, strict: bool) -> RelationStep | None:
    """A question in words of its own around descriptions: "How many people live in the city where X died"."""
    return _around(*embed(text, strict=strict))


def _by_nesting(text: str) -> RelationStep | None:
    """Parse by grammar alone a question that no table reads."""
    return _around(*unnest(text))


def _around(template: str, args: tuple[Node, ...]) -> RelationStep | None:
    """The step that a question with slots for its descriptions asks; the description's own where it asks just that."""
    if not args or not _ASKS.search(template):
        return None
    first, same = args[0], _ASKS_SAME.fullmatch(template)
    if isinstance(first, RelationStep) and (
        _ASKS_WHO.fullmatch(template) or (same and f" {same['noun']} " in first.phrase)
    ):
        return first if hops(first) > 1 or "," not in template else None
    if _ASKS_NOTHING.match(template):
        return _located(template, first) if isinstance(first, RelationStep) and template.endswith("{0}") else None
    noun = re.match(r"(?:in |at |on |of )?(?:what|which) ([a-z]+)", template, re.I)
    variable = noun[1] if noun and noun[1] not in ("is", "was", "are", "were", "did", "does", "do") else "result"
    return free_step(template, template, variable, args)


def _located(template: str, found: RelationStep) -> RelationStep | None:
    """ "Where is the mouth of the river that …" asks for the mouth; "Where is the guild that …" for its place."""
    if template.lower().startswith("where") and found.relation is None and _CLAUSE.search(found.phrase):
        return free_step(template, template, "place", (found,))
    return replace(found, question=f"{template.replace('{0}', found.phrase)}?") if hops(found) > 1 else None


_CLAUSE = re.compile(r"\b(?:that|which|who|where|whose)\b")
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how)\b|^(?:is|are|was|were|did|does|do)\b", re.IGNORECASE
)
_ASKS_WHO = re.compile(
    r"(?:[^,{}]+, )?(?:what|which|who) (?:is|was|are|were|can be)(?: considered)?"
    r" (?:the (?:names?|title|term) (?:of|for) |an example of |one of )?\{0\}(?: called| named)?",
    re.IGNORECASE,
)
_ASKS_SAME = re.compile(  # "Which language is the official language of Alpha?"
    r"(?:what|which) (?:[a-z]+ )*(?P<noun>[a-z]+) (?:is|was) \{0\}", re.IGNORECASE
)
_ASKS_NOTHING = re.compile(r"(?:who|what|where|when|name)(?: (?:is|was|are|were))? \{0\}(?:,|$)", re.IGNORECASE)
