"""Comparisons of two things: which has the greater value, whether one comes before the other, how many years apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.people import MAKER_NOUNS
from pyrag.embedded.lexicon.things import WORK_KINDS
from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.lexicon.verbs import FOUNDED
from pyrag.embedded.planner.grammar.measures import measured_choice
from pyrag.embedded.planner.grammar.nested import unnest
from pyrag.embedded.planner.grammar.pair import Pair, choice_pair
from pyrag.embedded.planner.grammar.phrase import compose, parse_phrase
from pyrag.embedded.planner.meaning import Choice, Difference, Entity, Gather, Meaning, Node, RelationStep, Verdict
from pyrag.embedded.planner.wording import relation_step
from pyrag.embedded.relations.table import BY_NAME


@dataclass(frozen=True, slots=True)
class Scale:
    """Comparison that a word such as "older" asks for.

    Args:
        pattern: Matches the comparing word.
        relation: Relation to look up for both things, or "life" for start and end of a life.
        key: Way of comparing values.
        smaller: True if the thing with the smaller or earlier value is the answer.
    """

    pattern: re.Pattern[str]
    relation: str
    key: Literal["date", "number", "quantity", "span"] = "date"
    smaller: bool = True


_FIRST = r"(?:first|earlier|earliest|before|sooner)"
_LAST = r"(?:last|later|latest|after|more recently|most recently|recently)"
_OUT = r"(?:released|come out|came out|published|issued|aired|premiered|made|produced|debuted)"
_MADE = any_of(FOUNDED)


def _scale(
    pattern: str, relation: str, key: Literal["date", "number", "quantity", "span"] = "date", *, smaller: bool = True
) -> Scale:
    """Return a scale for a pattern of comparing words."""
    return Scale(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), relation, key, smaller)


_SCALES = (
    _scale(rf"born (?:\w+ )?{_FIRST}|older|oldest|elder|{_FIRST} born|came into the world {_FIRST}", "date of birth"),
    _scale(rf"born (?:\w+ )?{_LAST}|younger|youngest|{_LAST} born", "date of birth", smaller=False),
    _scale(rf"(?:die|died|passed away|death) {_FIRST}|first to die|{_FIRST} (?:die|died|death)", "date of death"),
    _scale(rf"(?:die|died|passed away|death) {_LAST}|last to die|{_LAST} (?:die|died|death)", "date of death",
           smaller=False),
    _scale(r"lived? (?:a )?longer|longer lived|longer life|longest life", "life", "span", smaller=False),
    _scale(r"lived? (?:a )?shorter|shorter life", "life", "span"),
    _scale(rf"{_OUT} (?:\w+ )?{_FIRST}|{_FIRST} {_OUT}|first to be {_OUT}", "publication date"),
    _scale(rf"{_OUT} (?:\w+ )?{_LAST}|more recent|newer|newest", "publication date", smaller=False),
    _scale(rf"{_MADE} (?:\w+ )?{_FIRST}|{_FIRST} {_MADE}|first to be {_MADE}", "inception"),
    _scale(rf"{_MADE} (?:\w+ )?{_LAST}", "inception", smaller=False),
    _scale(r"more people|more populous|(?:larger|higher|bigger|greater) population|more inhabitants", "population",
           "number", smaller=False),
    _scale(r"fewer people|less populous|smaller population|lower population|fewer inhabitants", "population", "number"),
    _scale(r"(?:larger|greater|bigger) area", "area", "quantity", smaller=False),
    _scale(r"taller|tallest|higher|highest", "height", "quantity", smaller=False),
)  # fmt: skip
_CAME_FIRST = _scale("came first|comes first|came earlier", "publication date")
_LONGER = _scale("longer", "length", "quantity", smaller=False)

MAKERS = any_of(MAKER_NOUNS)
MAKER = rf"(?P<maker>{MAKERS})"
MAKER_OF = re.compile(
    rf"\b(?:has|have|had|whose|with|'s|by)(?: an?| the)? {MAKER}s?\b|^(?:the )?(?P<first>{MAKERS})s? of\b",
    re.IGNORECASE,
)


def parse_comparison(question: str) -> Meaning | None:
    """Read a question with two options as a comparison or as a search for both; None for other questions."""
    pair = choice_pair(question)
    if pair is None:
        return None
    if (events := _events(pair)) is not None:
        return events
    options = (option(pair.first), option(pair.second))
    scale = _scale_of(pair)
    if scale is None and any(
        isinstance(option, RelationStep) or ", " in text or unnest(f"of {text}")[1]
        for option, text in zip(options, (pair.first, pair.second), strict=True)
    ):
        return None  # a list, or options that are descriptions to look up first
    if scale is None and options[0] is not None and options[1] is not None and not MAKER_OF.search(pair.stem):
        measured = measured_choice(pair.stem, (with_kind(options[0], pair.kind), with_kind(options[1], pair.kind)))
        if measured is not None:
            return measured
    if scale is None or None in options:
        return Gather((Entity(pair.first, pair.kind), Entity(pair.second, pair.kind)))
    first, second = (with_kind(option, pair.kind) for option in options if option is not None)
    maker = MAKER_OF.search(pair.stem)
    if maker:
        noun = (maker["maker"] or maker["first"]).lower()
        compared: tuple[Node, Node] = (compose(noun, first), compose(noun, second))
    else:
        compared = (first, second)
    return Choice((first, second), (_values(scale, compared[0]), _values(scale, compared[1])), scale.key, scale.smaller)


_EVENT = re.compile(
    r"the (?P<event>birth|death|founding|foundation|forming|formation|establishment|creation|release|publication"
    r"|premiere|opening|construction) of (?P<of>.+)",
    re.DOTALL,
)
_DATE_OF = {"birth": "date of birth", "death": "date of death", "release": "publication date",
            "publication": "publication date", "premiere": "publication date"}  # fmt: skip


def _events(pair: Pair) -> Choice | None:
    """Return the reading of "Which came first, the founding of Alpha or the birth of Beta?"; None for others."""
    events = [_EVENT.fullmatch(text) for text in (pair.first, pair.second)]
    things = [parse_phrase(event["of"]) for event in events if event]
    dates = [
        relation_step(BY_NAME[_DATE_OF.get(event["event"], "inception")], of)
        for event, of in zip(events, things, strict=False)
        if event and of
    ]
    if len(dates) < 2 or things[0] is None or things[1] is None:
        return None
    smaller = not re.search(rf"\b{_LAST}\b", pair.stem)
    return Choice((things[0], things[1]), ((dates[0],), (dates[1],)), "date", smaller)


def _values(scale: Scale, of: Node) -> tuple[Node, ...]:
    """Return the steps that look up a thing's value on a scale."""
    if scale.key == "span":
        return relation_step(BY_NAME["date of birth"], of), relation_step(BY_NAME["date of death"], of)
    return (relation_step(BY_NAME[scale.relation], of),)


def option(text: str) -> Node | None:
    """Return the node of an option. A text that no rule can read is treated as a name; an empty text gives None."""
    return parse_phrase(text) or (Entity(text) if text else None)


def with_kind(node: Node, kind: str) -> Node:
    """Return a node with a kind added if it is a name without one.

    Args:
        node: Option of a comparison.
        kind: Noun that the question uses for its options, such as "film".
    """
    return Entity(node.text, kind) if isinstance(node, Entity) and kind and not node.kind else node


def _scale_of(pair: Pair) -> Scale | None:
    """Return the scale that a question compares by; None if it has no comparing word.

    "Older" compares dates of birth of people, and dates of publication or founding of other things.
    """
    scale = next((scale for scale in _SCALES if scale.pattern.search(pair.stem)), None)
    if scale is None:
        if pair.kind in _LONG and re.search(r"\blong(?:er|est)\b", pair.stem):
            return _LONGER
        return _CAME_FIRST if pair.kind in WORK_KINDS and _CAME_FIRST.pattern.search(pair.stem) else None
    person = not pair.stem.lower().startswith("which") or _PERSON.search(pair.kind) or MAKER_OF.search(pair.stem)
    if scale.relation == "date of birth" and not person and "born" not in pair.stem:
        return replace(scale, relation="publication date" if pair.kind in WORK_KINDS else "inception")
    return scale


_LONG = words("river bridge road tunnel canal highway railway coastline border")
_PERSON = re.compile(
    r"(?:er|or|ist|ian|man|ess|person|king|queen|poet|athlete|president|monarch|architect|saint|pope)$"
)


_IS_BEFORE = re.compile(
    r"(?:is|was|were|did|does|are) (?P<first>.+?) (?:(?P<scale>older|younger|higher|taller|longer) than|(?P<verb>born"
    r"|die|come out|released|founded|published|formed|established) (?:\w+ )?(?P<order>before|after|earlier than"
    r"|later than)) (?P<second>.+)",
    re.IGNORECASE | re.DOTALL,
)
_OF_SCALE = {"older": "date of birth", "younger": "date of birth", "higher": "height", "taller": "height",
             "longer": "length"}  # fmt: skip
_OF_VERB = {"born": "date of birth", "die": "date of death", "come out": "publication date",
    "released": "publication date",
            "published": "publication date"}  # fmt: skip


def parse_verdict(question: str) -> Meaning | None:
    """Return the reading of "Is Alpha older than Beta?" or "Did Alpha die before Beta?"; None for other questions."""
    match = _IS_BEFORE.fullmatch(question.rstrip("?. "))
    if match is None:
        return None
    second = re.sub(r" (?:was|did|were|is|does)(?: \w+)?$", "", match["second"])
    nodes = parse_phrase(match["first"]), parse_phrase(second)
    if nodes[0] is None or nodes[1] is None or any(isinstance(node, Entity) and _is_unnamed(node) for node in nodes):
        return None
    if match["scale"] and match["scale"].lower() in ("older", "younger") and any(map(_is_thing, nodes)):
        return None  # "the Kell Bridge" was not born: `parse_measured` reads it
    word = (match["scale"] or match["order"]).lower()
    relation = _OF_SCALE.get(word) or _OF_VERB.get((match["verb"] or "").lower(), "inception")
    key: Literal["date", "quantity"] = "quantity" if relation in ("height", "length") else "date"
    return Verdict(each(relation, (nodes[0], nodes[1])), key, smaller=word in ("older", "before", "earlier than"))


def _is_unnamed(entity: Entity) -> bool:
    """Return whether a text is a number, a date or plain words, and so not a name that can be looked up."""
    return entity.text.islower() or bool(_ONLY_DATE.fullmatch(entity.text))


def _is_thing(node: Node | None) -> bool:
    """Return whether a node is a name with an article, which people have not."""
    return isinstance(node, Entity) and node.text.lower().startswith("the ")


_ONLY_DATE = re.compile(rf"(?:\d{{1,2}} )?(?:(?:{MONTHS}) )?(?:\d{{1,2}},? )?(?:\d{{1,4}}s?)?", re.IGNORECASE)


def each(relation: str, nodes: tuple[Node, Node]) -> tuple[Node, Node]:
    """Return the steps that look up the same relation for two nodes.

    Args:
        relation: Name of the relation, as in `BY_NAME`.
        nodes: The two nodes.
    """
    return relation_step(BY_NAME[relation], nodes[0]), relation_step(BY_NAME[relation], nodes[1])


_APART = re.compile(
    r"how many years (?:older|younger|earlier|later|before|after|apart|passed between|are there between)?.*?"
    r"(?:is|was|were|are|did) (?P<first>.+?)(?: born| die| released| founded)?(?: older| younger| earlier| later"
    r"| before| after)* than (?P<second>.+)",
    re.IGNORECASE | re.DOTALL,
)


def parse_difference(question: str) -> Meaning | None:
    """Return the reading of "How many years older is Alpha than Beta?"; None for other questions."""
    match = _APART.fullmatch(question.rstrip("?. "))
    nodes = (parse_phrase(match["first"]), parse_phrase(match["second"])) if match else (None, None)
    if nodes[0] is None or nodes[1] is None:
        return None
    relation = (
        "date of death" if " die" in question else "publication date" if "released" in question else "date of birth"
    )
    return Difference(each(relation, (nodes[0], nodes[1])))
