"""Noun phrases: "the father of the director of film Alpha", "Alpha's wife", "the city where Beta died".

The longest reading is tried first. If a phrase is part of a question and its end is therefore uncertain, `strict` only
accepts names that are spelled like names. A phrase that no rule can read gives None, never a guess.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.people import PERSON_NOUNS
from pyrag.embedded.lexicon.things import NAMED_KINDS, ORGANISATION_KINDS, PLACE_KINDS, SCHOOL_KINDS, WORK_KINDS
from pyrag.embedded.lexicon.verbs import is_base
from pyrag.embedded.lexicon.word_classes import CLAUSE_WORDS
from pyrag.embedded.planner.grammar.description_questions import inverted, is_kind, is_role, owned_question
from pyrag.embedded.planner.grammar.names import is_name, read_name
from pyrag.embedded.planner.grammar.predicate import (
    AFTER_VERB,
    COPULA,
    FINITE,
    LAST_PREPOSITION,
    LAST_PREPOSITIONS,
    PAST_PARTICIPLE,
    PREDICATE,
    nested,
    one_clause,
    place_question,
)
from pyrag.embedded.planner.meaning import Entity, Node, RelationStep
from pyrag.embedded.planner.wording import free_step, relation_step
from pyrag.embedded.relations.relation import Relation
from pyrag.embedded.relations.table import BY_NAME, BY_NOUN, COMPOSED
from pyrag.embedded.words import without_possessive

_NOT_PERSONS = NAMED_KINDS | WORK_KINDS | words("ship airline")
_NOUNS = any_of((*BY_NOUN, *COMPOSED))
_OF = re.compile(rf"(?:the |an? )?(?P<noun>{_NOUNS})(?: and (?:{_NOUNS}))? (?:of|for|behind) (?P<rest>.+)", re.DOTALL)
_POSSESSIVE = re.compile(rf"(?P<rest>.+?(?:['’]s|s['’])) (?P<noun>{_NOUNS})", re.DOTALL)
_CLAUSE_OF_NAME = re.compile(r"the [a-z ]+? (?:that|which|who|where) .+ [^a-z\s]\S*['’]s [a-z ]+$", re.DOTALL)
_COMPOUNDED = "|".join(  # nouns that may follow a name: "the Alpha director", "the Beta birthplace"
    noun
    for noun, relation in BY_NOUN.items()
    if (relation.answer_type == "person" and relation.domain != "person")
    or (relation.answer_type == "place" and (relation.domain == "person" or noun.startswith("headquarters")))
    or (relation.answer_type == "organisation" and noun.endswith(("er", "or")))
)
_COMPOUND = re.compile(rf"the (?P<name>[^a-z\s](?:.* [^a-z\s]\S*|\S*)) (?P<noun>{_COMPOUNDED})", re.DOTALL)
_PLACES = r"(?P<type>(?:home |birth )?(?:state|city|town|village|province|district|region|municipality|territory))"
_PLACE_OF = re.compile(rf"(?:the )?{_PLACES} of (?P<rest>.+)", re.DOTALL)
_PLACE_AFTER = re.compile(rf"(?P<rest>.+?(?:['’]s|s['’])) {_PLACES}", re.DOTALL)

_NO_TYPE = (
    r"(?!(?:who|whom|that|which|whose|where|when|is|was|are|were|of|in|on|at|for|to|by|from|with|and|or|the|as|had|has"
    r"|behind|about|after|before|near|under|over|like|an?|be|been|have|may|might|must|can|could|would|should|will|not"
    r"|more|most|so|such|than|his|her|its|their|some|any|what|how"
    r"|time|way|reason|form|start|begin|become|win|die|open|make|get|last|first time)\b)"
)
_LAST_WORD = rf"{_NO_TYPE}[a-z][a-z-]*(?<![a-z]{{3}}ed)(?<!born)(?<!ially)"
_ADJECTIVE = rf"(?:[A-Z][\w.-]*|\d{{4}}|{_NO_TYPE}[a-z][a-z-]*)"  # "the Welsh singer", "a 1968 album"
_TYPE = rf"(?:(?:the|an?) (?:same )?|that (?=[a-z]))(?P<type>(?:{_ADJECTIVE} ){{0,4}}?{_LAST_WORD})"
_SUBJECT_CLAUSE = re.compile(rf"{_TYPE},? (?:that|which|who) (?P<clause>(?!the |an? )[a-z].*)", re.DOTALL)
_PLACE_CLAUSE = re.compile(
    rf"{_TYPE},? (?P<how>where|when|(?:in|on|at|from|to|for|by|under) (?:which|whom)) (?P<clause>.+)", re.DOTALL
)
_WHOSE = re.compile(rf"{_TYPE},? whose (?P<clause>.+)", re.DOTALL)
_PARTICIPLE = re.compile(
    rf"{_TYPE},? (?P<verb>(?:[a-z]+ly )?(?:{PAST_PARTICIPLE} {AFTER_VERB}|considered|called|named)) (?P<rest>.+)",
    re.DOTALL,
)

_GERUND = re.compile(rf"{_TYPE} (?P<verb>{'|'.join(FINITE)}) (?P<rest>(?:the |an? |[^a-z\s]).*)", re.DOTALL)
_WITH = re.compile(rf"{_TYPE} with (?P<rest>(?:the|an?|its|his|her) .+)", re.DOTALL)
_OBJECT_CLAUSE = re.compile(
    rf"{_TYPE},? (?P<pronoun>(?:that|which|whom|who) )?(?P<clause>[^a-z\s].*|the .+)",
    re.DOTALL,
)

_PERSONS = PERSON_NOUNS | {"author", "artist"}
_OWNERS = PLACE_KINDS | ORGANISATION_KINDS | SCHOOL_KINDS | words("planet person man woman player language")
_PLAIN = re.compile(
    rf"(?:(?![a-z]+ed\b)[\w'’.-]+ ){{1,8}}?{COPULA} (?:[a-z]+ly )?{PAST_PARTICIPLE}"
)  # a subject and its passive verb: "the first case was reported"
_HAVE_CONTENT = words("claim idea fact belief view notion theory argument statement news rumour rumor evidence opinion")
_LATER_VERB = re.compile(rf"(?<!^)(?<!\band )(?<!\bor )(?<!\bwho )(?<!\bthat )\b(?:{COPULA})\b")
_BESIDE = re.compile(r"\b(?:and|but) (?:who|which|that|whose)\b.*", re.DOTALL)
_MAX_DEPTH = 6


@lru_cache(maxsize=4096)  # a question has the same phrases parsed again and again
def parse_phrase(text: str, *, strict: bool = False, depth: int = 0) -> Node | None:
    """Return the node of a noun phrase; None if no rule reads it.

    Args:
        text: The phrase.
        strict: True only accepts names that are spelled like names.
        depth: Number of enclosing phrases. Beyond 6, the result is None.
    """
    text = text.strip().rstrip(",;").strip()
    if not text or depth > _MAX_DEPTH:
        return None
    for read in (_by_noun, _by_place_noun, _by_clause):
        node = read(text, strict, depth + 1)
        if node is not None:
            return node
    return read_name(text, strict=strict)


def compose(noun: str, of: Node, reading: int = 0) -> Node:
    """Return the step for a relation noun; for a noun that combines several relations, return the last step.

    Args:
        noun: Noun in `BY_NOUN` or `COMPOSED`.
        of: Node to ask about.
        reading: Number of the reading, from 0, if the noun has several. Larger numbers mean the last reading.
    """
    if noun == "country" and isinstance(of, RelationStep) and of.relation and of.relation.answer_type == "person":
        return relation_step(BY_NAME["country of citizenship"], of, noun)
    if noun not in COMPOSED:
        return relation_step(BY_NOUN[noun], of, noun)
    readings = COMPOSED[noun]
    for name in readings[min(reading, len(readings) - 1)]:
        of = relation_step(BY_NAME[name], of)
    return of


def is_reduced(text: str) -> bool:
    """Return whether a phrase may also be a subject and its verb, as in "the stone found in Alpha"."""
    return bool(_PARTICIPLE.fullmatch(text) or _GERUND.fullmatch(text))


def is_bare_clause(text: str) -> bool:
    """Return whether a phrase may also be a kind, a name and a verb, as in "the hall Alpha led"."""
    clause = _OBJECT_CLAUSE.fullmatch(text)
    return clause is not None and clause["pronoun"] is None


def fits(relation: Relation | None, node: Node) -> bool:
    """Return whether a relation makes sense for a node's value. For example, a wife has no director.

    Args:
        relation: Relation to ask for. None fits everything.
        node: Node to ask about. A name fits everything.
    """
    if relation is None or not isinstance(node, RelationStep):
        return True
    if relation.domain == "any":  # but a person is not founded: "when did the manager of Alpha start"
        return relation.name != "inception" or not (node.relation and node.relation.answer_type == "person")
    if node.relation is None:
        others = {"person": _NOT_PERSONS, "work": PLACE_KINDS, "place": frozenset[str]()}[relation.domain]
        return node.variable.rpartition("_")[2] not in others
    wanted = {"person": {"person"}, "work": {"work", "thing"}, "place": {"place", "country"}}[relation.domain]
    return node.relation.answer_type in wanted


def _by_noun(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of "the NOUN of X" or "X's NOUN"; if both match, the one that makes sense."""
    readings = []
    if _CLAUSE_OF_NAME.match(text) and (clause := _by_clause(text, strict, depth)):
        return clause
    for pattern in (_OF, _POSSESSIVE):
        if (match := pattern.fullmatch(text)) is None:
            continue
        owned = pattern is _POSSESSIVE
        of = parse_phrase(
            without_possessive(match["rest"]).rstrip() if owned else match["rest"], strict=strict, depth=depth
        )
        is_unnamed = owned and isinstance(of, Entity) and of.text.removeprefix("the ")[:1].islower()
        if of is not None and not is_unnamed:
            readings.append((match["noun"], of))
    if not readings:
        maker = _COMPOUND.fullmatch(text)
        name = read_name(maker["name"], strict=maker["name"].count(" ") < 2) if maker else None
        return compose(maker["noun"], name) if maker and name else None
    sensible = next((reading for reading in readings if fits(_first_relation(reading[0]), reading[1])), None)
    return compose(*sensible) if sensible else None


def _first_relation(noun: str) -> Relation | None:
    """Return the relation that a noun asks for, or the first of several that it combines."""
    return BY_NAME[COMPOSED[noun][0][0]] if noun in COMPOSED else BY_NOUN[noun]


def _by_place_noun(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of "X's state" or "the city of X", a question for the place of X."""
    match = _PLACE_AFTER.fullmatch(text)
    rest = without_possessive(match["rest"]).rstrip() if match else ""
    if match is None and (match := _PLACE_OF.fullmatch(text)):
        rest = match["rest"]
        if isinstance(parse_phrase(rest, strict=strict, depth=depth), Entity):
            return None  # "the city of Paris" is a name
    of = parse_phrase(rest, strict=strict, depth=depth) if match else None
    if match is None or of is None:
        return None
    return _located(match["type"], of)


def _located(kind: str, of: Node) -> RelationStep:
    """Return the step that asks where something is located, such as "In which city is Alpha located?"."""
    kind = kind.rpartition(" ")[2]
    return free_step(f"In which {kind} is {{0}} located?", f"the {kind} of {{0}}", kind, (of,))


def possession(noun: str, of: Node) -> RelationStep | None:
    """Return the step for a thing that a node owns, as in "the founder of (the band that made Alpha)".

    Args:
        noun: Thing owned.
        of: Its owner.

    Returns:
        The step; None if the thing has no name of its own, such as a number or a date.
    """
    if noun not in BY_NOUN and noun not in COMPOSED:
        if re.fullmatch(_PLACES, noun):
            return _located(noun, of)
        has_name = is_kind(noun) or is_role(noun)
        return free_step(f"What is the {noun} of {{0}}?", f"the {noun} of {{0}}", noun, (of,)) if has_name else None
    owned = compose(noun, of) if fits(_first_relation(noun), of) else None
    if not isinstance(owned, RelationStep) or not owned.relation:
        return None
    return None if owned.relation.answer_type in ("number", "date") else owned


def _by_clause(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of a noun with a clause or a phrase after it."""
    indefinite = text.startswith(("a ", "an "))
    if not (text.startswith(("the ", "that ")) or (indefinite and re.search(r" [^a-z\s]", text))):
        return None
    return (
        _place_clause(text, strict, depth)
        or _whose_clause(text, strict, depth)
        or _participle_clause(text, strict, depth)
        or _object_clause(text, depth)
        or _subject_clause(text, strict, depth)
        or _with_clause(text, strict, depth)
    )


def _split(clause: str, depth: int, *, bare: bool = False) -> tuple[Node, str] | None:
    """Return subject and predicate of a clause such as "the author of Alpha was born".

    Args:
        clause: Words of the clause.
        depth: Number of enclosing phrases.
        bare: Whether to accept a predicate that is only a form of "be".
    """
    words = clause.split(" ")
    for at in range(1, len(words)):
        predicate = " ".join(words[at:])
        if words[at][:1].islower() and (PREDICATE.fullmatch(predicate) or (bare and re.fullmatch(COPULA, predicate))):
            text = " ".join(words[:at])
            subject = parse_phrase(text, strict=True, depth=depth)
            if subject is not None:
                return subject, predicate
            loose = parse_phrase(text, depth=depth) if one_clause(text) else None  # it ends before the predicate
            if isinstance(loose, RelationStep):
                return loose, predicate
    return None


def _place_clause(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of "the city where Alpha died" or "the year in which Beta began"."""
    match = _PLACE_CLAUSE.fullmatch(text)
    if match is None:
        return None
    kind, how = match["type"], match["how"]
    how = f"{how.split()[0]} which" if " " in how else "in which"
    parts = _split(match["clause"], depth, bare=True)
    if parts is not None:
        subject, predicate = parts
        asked = place_question(how, kind, predicate)
        return free_step(asked, f"the {kind} {match['how']} {{0}} {predicate}", kind, (subject,))
    clause = match["clause"]
    if nested(clause) or len(re.findall(rf"\b{COPULA}\b", clause)) > 1 or (strict and not _PLAIN.fullmatch(clause)):
        return None
    asked = inverted(f"{how} {kind}", clause.split()) or f"{clause} {how} {kind}?"
    return free_step(asked, text, kind, ())


def _whose_clause(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of "the king whose army destroyed Alpha"."""
    match = _WHOSE.fullmatch(text)
    filled = _filled(match["clause"], strict, depth, verbs=1) if match else None
    if match is None or filled is None:
        return None
    clause, args = filled
    asked = owned_question(f"Which {match['type']}'s", clause.split())
    return free_step(f"{asked}?", f"the {match['type']} whose {clause}", match["type"], args)


def _participle_clause(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of "the film shot in Alpha" or "the country bordering Beta"."""
    for pattern in () if text.startswith("that ") else (_PARTICIPLE, _GERUND):  # "that" may be a conjunction
        match = pattern.fullmatch(text)
        filled = _filled(match["rest"], strict, depth) if match else None
        if match is None or filled is None:
            continue
        kind, verb, (rest, args) = match["type"], match["verb"], filled
        if verb in ("containing", "including") and kind.rpartition(" ")[2] in PLACE_KINDS:
            question = f"In which {kind} is {rest} located?"
        else:
            question = f"Which {kind} {FINITE.get(verb) or f'was {verb}'} {rest}?"
        return free_step(question, f"the {kind} {verb} {rest}", kind, args)
    return None


def _with_clause(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of "the country with the largest port in Alpha"."""
    match = _WITH.fullmatch(text)
    if match is None or match["type"].rpartition(" ")[2] not in _OWNERS:
        return None
    filled = _filled(match["rest"], strict, depth)
    if filled is None:
        return None
    return free_step(
        f"Which {match['type']} has {filled[0]}?", f"the {match['type']} with {filled[0]}", match["type"], filled[1]
    )


def _filled(clause: str, strict: bool, depth: int, verbs: int = 0) -> tuple[str, tuple[Node, ...]] | None:
    """Return a clause with its last phrase replaced by a slot, and the phrase's node; None if its end is unclear.

    Args:
        clause: Words of the clause.
        strict: Whether to accept only names that are spelled like names.
        depth: Number of enclosing phrases.
        verbs: Maximum number of forms of "be" after the first word.
    """
    words = clause.split(" ")
    for at, word in enumerate(words):
        if word in CLAUSE_WORDS:
            break
        rest = " ".join(words[at:])
        if word not in ("the", "that", "a", "an") and not word[:1].isupper() and word[:1] not in '"“':
            continue
        node = parse_phrase(rest, strict=True, depth=depth)
        if isinstance(node, RelationStep) or (node is not None and is_name(rest)):
            before = " ".join([*words[:at], "{0}"])
            return (before, (node,)) if _later_verbs(before) <= verbs and (not strict or one_clause(before)) else None
    if (
        nested(clause)
        or _later_verbs(clause) > verbs
        or (strict and not (_ends_in_name(clause) and one_clause(clause)))
    ):
        return None
    return clause, ()


def _object_clause(text: str, depth: int) -> Node | None:
    """Return the reading of "the city (that) Alpha lived in", a clause whose object is the described noun."""
    match = _OBJECT_CLAUSE.fullmatch(text)
    parts = _split(match["clause"], depth) if match else None
    if match is None or parts is None:
        return None
    kind, (subject, predicate) = match["type"], parts
    if is_base(predicate.partition(" ")[0]) and not match["pronoun"]:
        return None  # "does the hall Alpha exceed …": the verb is the question's own
    if kind in _HAVE_CONTENT and match["pronoun"] == "that ":
        return None
    if match["pronoun"] is None and (kind.rpartition(" ")[2] in WORK_KINDS or match["clause"][0] in '"“'):
        return None  # "the novel Alpha transported to": Alpha names the work and is not a clause's subject
    phrase = f"the {kind} {{0}} {predicate}"
    if kind.endswith(("year", "date", "month", "decade")):
        return free_step(place_question("in what", kind, predicate), phrase, kind, (subject,))
    verb, _, rest = predicate.partition(" ")
    if (
        kind.rpartition(" ")[2] in PLACE_KINDS
        and not re.search(rf"\b{LAST_PREPOSITION}$", predicate)
        and re.match(COPULA, verb)
    ):
        return free_step(place_question("in which", kind, predicate), phrase, kind, (subject,))
    if re.fullmatch(COPULA, verb) and (rest.split() or [""])[-1] in LAST_PREPOSITIONS:
        return free_step(f"Which {kind} {verb} {{0}} {rest}?", phrase, kind, (subject,))
    asked = inverted(f"which {kind}", ["{0}", *predicate.split()]) or f"{{0}} {predicate} which {kind}"
    return free_step(asked, phrase, kind, (subject,))


def _later_verbs(clause: str) -> int:
    """Count the forms of "be" after a clause's first word, without coordinated clauses ("and who …")."""
    return len(_LATER_VERB.findall(_BESIDE.sub("", clause)))


def _subject_clause(text: str, strict: bool, depth: int) -> Node | None:
    """Return the reading of "the man who wrote Alpha", a clause whose subject is the described noun."""
    match = _SUBJECT_CLAUSE.fullmatch(text)
    filled = _filled(match["clause"], strict, depth) if match else None
    if match is None or filled is None:
        return None
    kind, (clause, args) = match["type"], filled
    lead = "Who" if kind in _PERSONS else f"Which {kind}"
    return free_step(f"{lead} {clause}?", f"the {kind} {'who' if kind in _PERSONS else 'that'} {clause}", kind, args)


def _ends_in_name(text: str) -> bool:
    """Return whether a text's last word is a name."""
    return is_name(text.split(" ")[-1])
