"""Predicates of relative clauses, and their questions: "where Alpha died" gives "In which city did Alpha die?"."""

from __future__ import annotations

import re
from itertools import pairwise

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.word_classes import BE, CLAUSE_WORDS
from pyrag.embedded.planner.grammar.description_questions import inverted

COPULA = any_of(BE | {"will be"})
LAST_PREPOSITIONS = words("in of from to for at with by on under near into through")  # which may end a clause
LAST_PREPOSITION = any_of(LAST_PREPOSITIONS)
_VERB = (
    r"(?:[a-z]+ed|wrote|won|made|sang|led|ran|built|held|taught|comes?|came|goes|went|left|gave|sold|fought|got|met"
    r"|spent|plays?|belongs?|lives?|works?|competes?|coaches|represents?|became|took|took place|occurs?|occurred"
    r"|takes place|turns|flows|runs|lies|empties|broadcasts|applies|appears|stars|serves|begins|began)"
)
_ITS_OWN = r"(?: (?:his|her|its|their)(?: [a-z-]+){1,3})?"  # "got his doctorate"
_AT_THE_TIME = r"(?: when (?:he|she|it|they) (?:was |were )?[a-z]+)?"
PREDICATE = re.compile(
    rf"(?:(?:{COPULA}|has been|had been) (?:(?:an? |the )?(?:[a-z]+ )?(?:part|citizen|member|native|resident|student"
    rf"|graduate|alumnus|alumna|professor|subsidiary|capital)(?: of)?|{LAST_PREPOSITION}|(?:[a-z]+ )?(?:located"
    r"|situated|based|born|buried|found|set|held|known|headquartered|formed|fought|shot|[a-z]+ed)"
    rf"(?: {LAST_PREPOSITION})?)"
    rf"|(?:holds|held) citizenship|{_VERB}{_ITS_OWN}(?: (?:out|up|away|off|part|back))?(?: {LAST_PREPOSITION})?)"
    rf"{_AT_THE_TIME}"
)
AFTER_VERB = r"(?:by|in|for|as|on|at|to|from|of|with|after|under|during|into|around)"
_INTRANSITIVE = r"(?:occurred|happened|appeared|arrived|travel+ed|started|ended|died|lived|existed|emerged|remained)"
PAST_PARTICIPLE = (
    rf"(?!{_INTRANSITIVE}\b)(?:[a-z]+ed|born|known|written|sung|won|made|built|led|held|set|shot|found|given|taken|drawn"
    r"|spoken|sold|taught|chosen|driven|worn|run)"
)
FINITE = {  # participles that open a clause, and their finite forms
    "containing": "contains", "including": "includes", "bordering": "borders", "surrounding": "surrounds",
    "crossing": "crosses", "starring": "stars", "featuring": "features", "hosting": "hosted", "housing": "houses",
    "owning": "owns", "ruling": "ruled", "governing": "governed", "operating": "operates", "serving": "serves",
    "representing": "represents", "employing": "employs", "producing": "produces", "publishing": "publishes",
    "releasing": "releases", "premiering": "premiered", "performing": "performed", "making": "makes",
    "manufacturing": "manufactures", "ending": "ended", "linking": "links", "connecting": "connects",
}  # fmt: skip


def place_question(how: str, kind: str, predicate: str) -> str:
    """Return the question for a place or time, with `{0}` as its subject.

    Args:
        how: Words before the kind, such as "in which".
        kind: Kind of place or time. For "place", "location" and "area", the question word is "where".
        predicate: The verb and the words after it, such as "was born".
    """
    verb, _, rest = predicate.partition(" ")
    rest = re.sub(r"\b(?:in|at|on)$", "", rest).strip()
    lead = "where" if kind in ("place", "location", "area") else f"{how} {kind}"
    if re.fullmatch(COPULA, verb):
        return f"{lead} {verb} {{0}} {rest}?"
    words = re.sub(r" (?:in|at|on)$", "", predicate).split()
    return f"{inverted(lead, ['{0}', *words]) or f'{{0}} {predicate} {how} {kind}'}?"


def nested(clause: str) -> bool:
    """Return whether a clause contains another clause, other than a coordinated one ("and who …")."""
    clause = re.sub(r"\b(?:and|or|but) (?:who|whose|which|that|where)\b", "and", clause)
    return bool(re.search(rf"\b{any_of(CLAUSE_WORDS)}\b", clause))


_JOINS = re.compile(
    rf"(?:{LAST_PREPOSITION[3:-1]}|and|or|as|after|before|during|against|between|when|while|since|until|both|the|an?|his"
    rf"|her|its|their|le|la|de|von|van|der|du|del|el|{PAST_PARTICIPLE} {AFTER_VERB})\b"
)


def one_clause(text: str) -> bool:
    """Return whether a text is a single clause: no verb follows its first name, unlike "in Alpha married Beta"."""
    words = text.split(" ")
    return all(
        not word[:1].islower()
        or not before[:1].isupper()
        or before[-1:] == ","
        or _JOINS.match(" ".join(words[at : at + 2])) is not None
        for at, (before, word) in enumerate(pairwise(words), start=1)
    )
