"""Questions that descriptions answer: "the city where Alpha died" answers "In which city did Alpha die?".

Every clause has a question. A phrase only has one if it describes a single thing: "the largest city in Alpha".
"""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.people import PERSON_NOUNS
from pyrag.embedded.lexicon.things import NAMED_KINDS
from pyrag.embedded.lexicon.verbs import base_of, is_base, is_finite, is_participle, is_past, is_present, present_of
from pyrag.embedded.lexicon.word_classes import (
    ADVERBS,
    AUXILIARIES,
    DETERMINERS,
    NEAR,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVE_PRONOUNS,
    SUBJECT_PRONOUNS,
)
from pyrag.embedded.planner.grammar.bounds import plain, takes_complement
from pyrag.embedded.planner.grammar.names import starts_name
from pyrag.embedded.relations.table import BY_NOUN, COMPOSED
from pyrag.embedded.words import is_possessive

_RANKING = re.compile(
    r"(?:[a-z]{3,}est|most|least|best|worst|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last"
    r"|only|main|dominant|predominant|official|current|former|legal|national|original|next|previous)$"
)
_NO_RANKING = words(
    "west east northwest northeast southwest southeast forest interest request conquest harvest rest test"
)
_TRADE = re.compile(r"[a-z]{3,}(?:ist|ian)$")
_ROLES = words("""
    head voice star host subject namesake patron actress chair chairwoman treasurer secretary deputy clerk agent guide
    captain coach warden caretaker janitor landlord landlady tenant sponsor contact lead boss chef cook nurse doctor
    accountant lawyer solicitor architect engineer plumber electrician principal referee umpire lodger guardian
    organiser organizer planter planner keeper holder helper cleaner beekeeper bookkeeper shopkeeper caregiver carer
    steward vet dentist conductor president director manager
""")


def question_of(kind: str, clause: list[str], *, nested: bool) -> str:
    """Return the question that the description "the KIND CLAUSE" answers; empty if there is nothing to look up.

    Args:
        kind: Noun of the description, with its adjectives.
        clause: Words after the noun, at least one. Descriptions among them are slots.
        nested: True if the clause has slots.
    """
    which = "who" if kind in PERSON_NOUNS else f"which {kind}"
    first, rest = plain(clause[0]), clause[1:]
    if first == "to":
        return f"which {kind.rpartition(' ')[2]} was the {kind} {' '.join(clause)}" if _is_first_to(kind, rest) else ""
    if has_pronoun(clause):
        return inverted(f"{first} {which}", rest[1:])
    if any(takes_complement(clause[at : at + 2]) for at in (0, 1)):
        return f"{which} is {' '.join(clause)}"
    if first in PREPOSITIONS:
        return _asked_phrase(which, kind, clause, nested)
    return _asked_clause(which, kind, first, clause)


def _asked_clause(which: str, kind: str, first: str, clause: list[str]) -> str:
    """Return the question that a noun with a clause answers.

    Args:
        which: Question word and noun, such as "which city" or "who".
        kind: Noun of the description, with its adjectives.
        first: First word of the clause, in lower case.
        clause: Words of the clause.
    """
    rest, later = clause[1:], " ".join(clause[1:])
    if first in ("where", "when"):
        return inverted(f"in which {kind}", rest)
    if first == "whose":
        return owned_question(f"{which}'s", rest)
    if first in SUBJECT_PRONOUNS | {"whom"}:
        own = bool(rest) and (plain(rest[0]) in DETERMINERS | PRONOUNS or starts_name(rest[0]) or rest[0][:1] == "{")
        return inverted(which, rest) if own or first == "whom" else f"{which}{clause[0][len(first) :]} {later}"
    if is_participle(first):
        return f"{which} was {' '.join(clause)}"
    if first.endswith("ing"):
        return f"{which} {present_of(first) or f'is {first}'} {later}"
    return inverted(which, clause)


def owned_question(whose: str, clause: list[str]) -> str:
    """Return the question that a "whose" clause answers, such as "which king's army did Ada destroy in 1309".

    Args:
        whose: Owner in the question, such as "which king's".
        clause: Words after "whose", such as "army Ada destroyed in 1309".
    """
    question = f"{whose} {' '.join(clause)}"
    name = next((at for at, word in enumerate(clause) if starts_name(word) or word[:1] == "{"), 0)
    verb = next((at for at in range(name + 1, len(clause)) if clause[at][:1].islower()), 0)
    is_object = name and verb and is_past(clause[verb]) and not is_past(plain(clause[name - 1]))
    if not is_object or plain("".join(clause[verb + 1 : verb + 2])) not in PREPOSITIONS | {""}:
        return question
    if plain(clause[name - 1]) in PREPOSITIONS | DETERMINERS | AUXILIARIES or is_present(plain(clause[name - 1])):
        return question
    thing, subject = " ".join(clause[:name]), " ".join(clause[name:verb])
    return " ".join([whose, thing, "did", subject, base_of(clause[verb]), *clause[verb + 1 :]])


def _asked_phrase(which: str, kind: str, clause: list[str], nested: bool) -> str:
    """Return the question that a noun with a phrase answers; empty if the phrase does not describe a single thing.

    Args:
        which: Question word and noun, such as "which city" or "who".
        kind: Noun of the description, with its adjectives.
        clause: Words of the phrase, a preposition first.
        nested: True if the phrase has slots.
    """
    prep, rest, last = clause[0], " ".join(clause[1:]), kind.rpartition(" ")[2]
    whole = f"what is the {kind} {' '.join(clause)}"
    if prep in NEAR:
        return f"{which} is {prep} {rest}" if " of " in kind or last in NAMED_KINDS else ""
    if prep == "with":
        owner = last in NAMED_KINDS or " as its " in f" {rest} " or rest.startswith(("the ", "a ", "an "))
        return f"{which} has {rest}" if owner else ""
    if " of " in kind or any(plain(word) in RELATIVE_PRONOUNS for word in clause):
        return whole
    if not nested and not any(re.match(r"[\"“(]*(?:[A-Z]|\d+[A-Z]?$)", word) for word in clause):
        return f"who is the {kind} {' '.join(clause)}" if is_role_of(kind, clause) else ""
    if last in PERSON_NOUNS and (prep == "behind" or rest.startswith("charge of ")):
        return f"who is {' '.join(clause)}"
    if is_role(kind) and (prep != "in" or any(map(is_ranking, kind.split()))):
        return whole.replace("what", "who", 1)
    return whole if _singles_out(kind, prep) else ""


def is_person(kind: str) -> bool:
    """Return whether a noun means a person."""
    return kind in PERSON_NOUNS or is_role(kind)


def is_role(kind: str) -> bool:
    """Return whether a noun names a role, such as an occupation or a function.

    Such nouns are in the tables of relations, come from a verb ("founder") or name a trade ("pianist").
    """
    known, noun = _known(kind), kind.rpartition(" ")[2].lower()
    if known in COMPOSED or (known in BY_NOUN and BY_NOUN[known].answer_type == "person"):
        return True
    if noun in _ROLES or _TRADE.match(noun):
        return True
    from_verb = is_base(noun[:-1]) or (is_base(noun[:-2]) and noun[-3:-2] != "e") or is_base(f"{noun[:-2]}e")
    return noun.endswith(("er", "or")) and from_verb


def is_role_of(kind: str, clause: list[str]) -> bool:
    """Return whether a description names somebody by a role in an unnamed thing: "the organiser of the offsite".

    Args:
        kind: Noun of the description, with its adjectives.
        clause: Words after the noun.
    """
    return len(clause) > 2 and clause[0] == "of" and plain(clause[1]) in _ITS and is_role(kind)


_ITS = words("the this our my your his her their its")


def _known(kind: str) -> str:
    """Return the longest end of a noun phrase in the tables: "prime minister" of "first prime minister"."""
    parts = kind.lower().split()
    ends = (" ".join(parts[at:]) for at in range(len(parts)))
    return next((end for end in ends if end in BY_NOUN or end in COMPOSED), "")


def is_kind(kind: str) -> bool:
    """Return whether a noun names a kind of thing that has a proper name, such as a place, a group or a work."""
    return kind.rpartition(" ")[2] in NAMED_KINDS


def tells_relation(kind: str) -> bool:
    """Return whether a noun names a relation to one thing, such as "father", or a kind of place, such as "county"."""
    known, last = _known(kind), kind.rpartition(" ")[2]
    if known in COMPOSED or last in ("state", "county", "town", "village", "province"):
        return True
    return known in BY_NOUN and BY_NOUN[known].answer_type not in ("number", "date", "thing")


def _singles_out(kind: str, prep: str) -> bool:
    """Return whether a noun and a preposition can describe a single thing, as "the largest city in" can."""
    head = kind.split()
    ranked = any(map(is_ranking, head[:-1]))
    if len(head) > 1 and is_kind(kind) and (ranked or prep in ("of", "for", "behind")):
        return True
    if prep == "in" and any(re.fullmatch(r"[a-z]{3,}est", word) and is_ranking(word) for word in head[:-1]):
        return True
    known = _known(kind)
    related = BY_NOUN[known].answer_type if known in BY_NOUN else "number"
    return (ranked or prep in ("of", "for")) and related not in ("number", "date")


def is_ranking(word: str) -> bool:
    """Return whether a word selects one of several things, such as "largest", "second" or "official"."""
    return bool(_RANKING.match(word)) and word not in _NO_RANKING


def _is_reduced(clause: list[str], at: int) -> bool:
    """Return whether the participle at a position belongs to the subject, since the clause's verb comes later."""
    later = [plain(word) for word in clause[at + 2 :]]
    return plain("".join(clause[at + 1 : at + 2])) in PREPOSITIONS and any(
        is_past(word) or is_present(word) for word in later
    )


def inverted(lead: str, clause: list[str]) -> str:
    """Return a clause as a question; empty if the clause's verb is not recognised.

    For example, "in which city" and "Alpha worked until 1900" give "in which city did Alpha work until 1900".

    Args:
        lead: Beginning of the question.
        clause: Words of the clause, starting with its subject.
    """
    if _is_coordinated(clause):
        return ""
    for at in range(1, len(clause)):
        word, before = plain(clause[at]), plain(clause[at - 1])
        if starts_name(clause[at]) or before in PREPOSITIONS | DETERMINERS | RELATIVE_PRONOUNS or word in ADVERBS:
            continue
        subject, rest = " ".join(clause[:at]), " ".join(clause[at + 1 :])
        if is_participle(word) and _is_reduced(clause, at):
            continue  # "the team owned by Alpha | plays": the verb follows
        if word in AUXILIARIES:
            return f"{lead} {word} {subject} {rest}"
        if is_past(word) or is_present(word):
            return f"{lead} {'did' if is_past(word) else 'does'} {subject} {base_of(word)} {rest}"
        if is_base(word) and before.endswith("s") and not is_possessive(clause[at - 1]):
            return f"{lead} do {subject} {word} {rest}"
    return ""


def _is_coordinated(clause: list[str]) -> bool:
    """Return whether a clause is two clauses with subjects of their own: "Alpha died and Beta was born"."""
    joint = clause.index("and") if "and" in clause[1:-2] else 0
    finite = [is_finite(plain(word)) for word in clause]
    return starts_name(clause[joint + 1]) and any(finite[:joint]) and any(finite[joint + 2 :]) if joint else False


def has_pronoun(clause: list[str]) -> bool:
    """Return whether a clause begins with a preposition and a relative pronoun, as in "in which"."""
    return len(clause) > 1 and plain(clause[0]) in PREPOSITIONS and plain(clause[1]) in ("which", "whom")


def _is_first_to(kind: str, rest: list[str]) -> bool:
    """Return whether a description is a ranked noun with an infinitive: "the first monarch to live in Alpha"."""
    ranked = any(map(is_ranking, kind.split())) and not any(map(is_past, kind.split()))
    return ranked and bool(rest) and is_base(plain(rest[0]))
