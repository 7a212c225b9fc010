"""Table of relations for the planner, the reader and the rewriter.

The first relation whose wording matches a question is used. Therefore, narrow relations come before wide ones, and the
order of the parts matters.
"""

from __future__ import annotations

from pyrag.embedded.relations.people import CAREER, KIN, LIFE, MEMBERSHIPS, PUPILS
from pyrag.embedded.relations.places import ORGANISATIONS, PLACES, SEATS
from pyrag.embedded.relations.relation import Kind, Relation, row
from pyrag.embedded.relations.works import BEGINNINGS, MAKERS, PUBLISHING

# Nouns for a person with a role, which are relations themselves.
_ROLE_NOUNS = (
    "winner|recipient|receiver|champion|captain|leader|ruler|commander|conqueror|narrator|hero|heroine|villain"
    "|protagonist|main character|title character|drummer|bassist|guitarist|lead guitarist|keyboardist"
    "|founding member|chancellor|dean|bishop|archbishop|builder|heir|successor|predecessor|translator|illustrator"
    "|choreographer|sponsor|killer|assassin"
)
_ROLES = tuple(
    row(role, role, ask=f"Who is the {role} of {{x}}?", find=f"{{x}} {role}") for role in _ROLE_NOUNS.split("|")
)
# Nouns for a thing that belongs to another thing, by kind of answer.
_THINGS: dict[Kind, str] = {
    "place": "highest point|lowest point|county seat|mountain range|residence|neighborhood|neighbourhood|sister city"
    "|twin city|twin town|largest city|stadium|home stadium|home ground|home venue|home arena|constituency",
    "organisation": "military branch|high school|dynasty|ethnic group"
    "|governing body|legislative body|central bank|religious order|noble house|royal house",
    "person": "patron saint|murderer|girlfriend|boyfriend|ancestor|boss|victim",
    "work": "sequel|prequel|anthem|national anthem",
    "thing": "constellation|genus|language family|writing system|ethnicity|military rank"
    "|architectural style|alphabet|industry|political ideology|voice type|denomination|species",
}
_OWNED = tuple(
    row(noun, noun, ask=f"What is the {noun} of {{x}}?", find=f"{{x}} {noun}", kind=kind)
    for kind, nouns in _THINGS.items()
    for noun in nouns.split("|")
)

RELATIONS: tuple[Relation, ...] = (
    *LIFE,
    *KIN,
    *BEGINNINGS,
    *CAREER,
    *SEATS,
    *MEMBERSHIPS,
    *PUBLISHING,
    *PLACES,
    *MAKERS,
    *PUPILS,
    *ORGANISATIONS,
    *_ROLES,
    *_OWNED,
)
BY_NAME: dict[str, Relation] = {relation.name: relation for relation in RELATIONS}
BY_NOUN: dict[str, Relation] = {noun: relation for relation in reversed(RELATIONS) for noun in relation.nouns}

# Relations that consist of others, applied from left to right. Further readings are for repairs.
COMPOSED: dict[str, tuple[tuple[str, ...], ...]] = {
    "paternal grandfather": (("father", "father"),),
    "paternal grandmother": (("father", "mother"),),
    "maternal grandfather": (("mother", "father"),),
    "maternal grandmother": (("mother", "mother"),),
    "grandfather": (("father", "father"), ("mother", "father")),
    "grandmother": (("father", "mother"), ("mother", "mother")),
    "great-grandfather": (("father", "father", "father"),),
    "great-grandmother": (("father", "father", "mother"),),
    "father-in-law": (("spouse", "father"),),
    "mother-in-law": (("spouse", "mother"),),
    "brother-in-law": (("spouse", "sibling"), ("sibling", "spouse")),
    "sister-in-law": (("spouse", "sibling"), ("sibling", "spouse")),
    "sibling-in-law": (("spouse", "sibling"), ("sibling", "spouse")),
    "son-in-law": (("child", "spouse"),),
    "daughter-in-law": (("child", "spouse"),),
    "child-in-law": (("child", "spouse"),),
    "co-husband": (("spouse", "spouse"),),
    "co-wife": (("spouse", "spouse"),),
    "stepfather": (("mother", "spouse"),),
    "stepmother": (("father", "spouse"),),
    "stepchild": (("spouse", "child"),),
    "stepson": (("spouse", "child"),),
    "stepdaughter": (("spouse", "child"),),
    "uncle": (("father", "sibling"), ("mother", "sibling")),
    "aunt": (("mother", "sibling"), ("father", "sibling")),
    "paternal uncle": (("father", "sibling"),),
    "paternal aunt": (("father", "sibling"),),
    "maternal uncle": (("mother", "sibling"),),
    "maternal aunt": (("mother", "sibling"),),
    "grandson": (("child", "child"),),
    "granddaughter": (("child", "child"),),
    "grandchild": (("child", "child"),),
    "nephew": (("sibling", "child"),),
    "niece": (("sibling", "child"),),
    "cousin": (("father", "sibling", "child"), ("mother", "sibling", "child")),
}
