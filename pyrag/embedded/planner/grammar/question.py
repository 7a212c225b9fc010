"""Questions that ask for a single thing: chains of relations, and questions with descriptions inside."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from pyrag.embedded.lexicon import any_of
from pyrag.embedded.lexicon.word_classes import BE, DO, QUESTION_WORDS
from pyrag.embedded.planner.grammar.known_descriptions import embed
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
    """Read a question as a chain of steps, or as a whole if it needs only one step or no rule can read it."""
    text = question.rstrip("?. \t\n")
    node = _by_clauses(text) or _by_joining(text) or _by_form(text) or _by_lead(text) or _by_trailing(text)
    nested = _by_nesting(text)
    described = None if node else _by_description(text, strict=True) or _by_description(text, strict=False)
    node = _deeper(node, nested) if node else _deeper(nested, described)
    if node is None:
        return Whole()
    return Chain(node) if hops(node) > 1 else Whole(sure=True)


def _deeper(first: RelationStep | None, second: RelationStep | None) -> RelationStep | None:
    """Return the reading with more steps, or the first one if both have the same number."""
    if first is None or second is None:
        return first or second
    return second if hops(second) > hops(first) else first


def _by_clauses(text: str) -> RelationStep | None:
    """Return the reading of two clauses: "Alpha was born on an island; what is spoken on that island?" """
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
    return insert(second or free_step(ask, ask, "result", ()), first)


def _by_joining(text: str) -> RelationStep | None:
    """Return the reading of a question whose verb splits a description: "Where was the king born who lost Alpha"."""
    parts = join_apart(text)
    first = parse_phrase(parts[0]) if parts else None
    if parts is None or not isinstance(first, RelationStep):
        return None
    return insert(_by_form(parts[1]) or free_step(parts[1], parts[1], "result", ()), first)


def _by_trailing(text: str) -> RelationStep | None:
    """Return the reading of a fact that ends in a question: "Alpha is a hall in a college founded by whom"."""
    clauses = split_trailing(text)
    if clauses is None:
        return None
    fact, kind, ask = clauses
    first = _by_description(fact, strict=True) or free_step(
        fact, f"the {kind} that {fact.partition(' which ')[0]}", kind, ()
    )
    return insert(_by_form(ask) or free_step(ask, ask, "result", ()), first)


def _by_lead(text: str) -> RelationStep | None:
    """Return the reading of "Who is the father of X" or "What is X's capital".

    "When" and "where" need a noun for a time or a place.
    """
    match = _LEAD.fullmatch(text)
    node = parse_phrase(match["phrase"]) if match else None
    if not isinstance(node, RelationStep) or (node.relation is None and hops(node) == 1):
        return None
    wanted = _LEAD_TYPES.get(text.partition(" ")[0].lower())
    return node if wanted is None or (node.relation and node.relation.answer_type in wanted) else None


_LEAD_TYPES = {"when": ("date",), "where": ("place", "country", "organisation")}


def _by_form(text: str) -> RelationStep | None:
    """Return the reading of a question that matches a wording in the tables of relations."""
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


# Questions that name the kind of answer, such as "in which town". If they have no verb ("which country the director is
# from"), a country is asked for as a nationality.
_ASKED_KIND = re.compile(
    r"(?:in |on |at |from |of )?(?:what|which) "
    r"(?!place|date|location|nationality|country(?! (?:is|was|did|does|do|were)\b))",
    re.IGNORECASE,
)


@cache
def _forms() -> tuple[tuple[Relation, re.Pattern[str]], ...]:
    """Return pairs of a relation and the pattern of a question that asks for it."""
    return tuple(
        (relation, re.compile(form.replace("{x}", "(?P<x>.+?)"), re.IGNORECASE | re.DOTALL))
        for relation in RELATIONS
        for form in (*relation.forms, *_verb_forms(relation))
    )


def _verb_forms(relation: Relation) -> list[str]:
    """Return the patterns of questions that ask for a relation by its verbs."""
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
    """Return the reading of a question with descriptions that `embed` finds."""
    return _around(*embed(text, strict=strict))


def _by_nesting(text: str) -> RelationStep | None:
    """Return the reading of a question with descriptions that `unnest` finds."""
    return _around(*unnest(text))


def _around(template: str, args: tuple[Node, ...]) -> RelationStep | None:
    """Return the step of a question with slots; a description's own step if the question asks only for it."""
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
    variable = noun[1] if noun and noun[1] not in BE | DO else "result"
    return free_step(template, template, variable, args)


def _located(template: str, description: RelationStep) -> RelationStep | None:
    """Return the reading of "Where is …" with a description.

    "Where is the guild that …" asks for the guild's place; "Where is the mouth of the river that …" asks for the mouth.
    """
    if template.lower().startswith("where") and description.relation is None and _CLAUSE.search(description.phrase):
        return free_step(template, template, "place", (description,))
    return (
        replace(description, question=f"{template.replace('{0}', description.phrase)}?")
        if hops(description) > 1
        else None
    )


_CLAUSE = re.compile(r"\b(?:that|which|who|where|whose)\b")
_ASKS = re.compile(rf"\b{any_of(QUESTION_WORDS)}\b|^{any_of(BE | DO)}\b", re.IGNORECASE)
_ASKS_WHO = re.compile(
    r"(?:[^,{}]+, )?(?:what|which|who)(?: person)? (?:is|was|are|were|can be)(?: considered)?"
    r" (?:the (?:names?|title|term) (?:of|for) |an example of |one of )?\{0\}(?: called| named)?",
    re.IGNORECASE,
)
_ASKS_SAME = re.compile(  # "Which language is the official language of Alpha?"
    r"(?:what|which) (?:[a-z]+ )*(?P<noun>[a-z]+) (?:is|was) \{0\}", re.IGNORECASE
)
_ASKS_NOTHING = re.compile(r"(?:who|what|where|when|name)(?: (?:is|was|are|were))? \{0\}(?:,|$)", re.IGNORECASE)
