"""Questions about what two things share: the same country, a common teacher, years in which both were active."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.things import PERFORMER_KINDS, PLACE_KINDS, WORK_KINDS
from pyrag.embedded.lexicon.word_classes import BE, DO, HAVE, OPENING_AUXILIARY
from pyrag.embedded.planner.grammar.compare import MAKER, MAKERS, each, option, with_kind
from pyrag.embedded.planner.grammar.pair import split_pair
from pyrag.embedded.planner.grammar.phrase import compose, parse_phrase
from pyrag.embedded.planner.meaning import Entity, Gather, Meaning, Node, RelationStep, Same, Shared
from pyrag.embedded.planner.wording import free_step
from pyrag.embedded.relations.table import BY_NAME, BY_NOUN, RELATIONS
from pyrag.embedded.words import singular

_YES_NO = re.compile(rf"(?P<verb>{any_of(BE | DO | HAVE)}) (?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_LINKS = any_of(
    BE
    | HAVE
    | words("""
        share shares shared hold holding come came comes die died born originate originated located situated released
        made produced published founded formed buried work worked play played graduate graduated from of in on at by
        with a native based to belong both also hail attend attended study studied go goes went first directed written
        composed performed sung created designed set filmed
    """)
)
_SAME = re.compile(  # the words between two names and "the same NOUN"
    rf"(?:,? |^)(?:both |each )?(?:(?:who |that )?(?:{_LINKS}|(?!{MAKERS}|film|movie|song|album|band)[a-z]{{4,}}s) )*"
    r"(?:the )?(?:same|a common) (?P<property>[a-z]+(?: of [a-z]+| (?!as\b|with\b|for\b)[a-z]+)?)"
    r"(?: (?:as|with) (?P<other>.+)|,? .{0,20})?$",
    re.DOTALL,
)
_MADE_BY = re.compile(
    r"(?P<verb>directed|written|composed|produced|performed|sung|founded|published|created|designed) by the same"
)
_BOTH_MAKERS = re.compile(
    rf"(?:both )?(?:the )?(?:both )?{MAKER}s? of (?:the )?(?:both )?(?:(?P<kind>film|song|movie|album|book"
    rf"|novel|band)s?:?,? )?",
)
_HAVE_MAKERS = re.compile(rf",? ?(?:have|has|had|with) (?:the |a )?{MAKER}s?\b.*$|['’]s? (?P<owned>{MAKERS})s?\b.*$")
_PROPERTIES = {
    "nationality": "country of citizenship", "citizenship": "country of citizenship",
    "place of birth": "place of birth",
    "birthplace": "place of birth", "profession": "occupation", "occupation": "occupation", "job": "occupation",
    "day": "day", "year": "year", "date": "day", "age": "year", "decade": "year",
}  # fmt: skip
_WORKS = WORK_KINDS | PERFORMER_KINDS


def parse_same(question: str) -> Meaning | None:
    """Return the reading of "Are Alpha and Beta from the same country?"; None for other questions."""
    yes_no = _YES_NO.fullmatch(question.rstrip("?. "))
    match = _SAME.search(yes_no["rest"]) if yes_no else None
    if yes_no is None or match is None:
        return None
    subjects, maker, kind = yes_no["rest"][: match.start()], "", ""
    if match["other"]:
        pair: tuple[str, str] | None = (subjects, re.sub(r" (?:do|does|did|was|is)$", "", match["other"]))
    else:
        subjects, maker, kind = _subjects(subjects)
        pair = split_pair(subjects)
    nodes = _nodes(pair, kind, maker) if pair else None
    return _same_property(nodes, match, kind, bool(maker)) if nodes else None


def _subjects(text: str) -> tuple[str, str, str]:
    """Return the compared names, their maker's noun, and the kind of thing that they are.

    The maker and the kind are empty if the question does not name them.
    """
    maker = kind = ""
    if match := _HAVE_MAKERS.search(text):
        maker, text = match["maker"] or match["owned"], text[: match.start()]
    elif both := _BOTH_MAKERS.match(text):
        rest = text[both.end() :]
        if not re.search(rf"\b(?:and|or) (?:the )?{both['maker']} of\b", rest):
            maker, kind, text = both["maker"], both["kind"] or "", rest
    text = re.sub(r"^(?:both|the two)\b:? ?", "", text.strip())
    if plural := re.match(r"(?:the |both )*(?P<kind>[a-z]+(?: [a-z]+)?)s[:,]? (?=[^a-z\s]|the )", text):
        kind, text = singular(plural["kind"] + "s"), text[plural.end() :]
    elif after := re.search(r" (?P<kind>film|movie|song|album|band)s$", text):
        kind, text = after["kind"], text[: after.start()]
    return text.strip(" ,:"), maker, kind


def _nodes(pair: tuple[str, str], kind: str, maker: str) -> tuple[Node, Node] | None:
    """Return the nodes of a pair of names, or of their makers; None if a name is empty.

    Args:
        pair: The two names.
        kind: Kind of the named things. Empty if unknown.
        maker: Noun of their maker, such as "director". Empty to compare the things themselves.
    """
    nodes = []
    for text in pair:
        node = option(re.sub(r"^(?:both |the )?(?=director |performer |composer )", "", text.strip(" ,")))
        if node is None:
            return None
        node = with_kind(node, kind if kind in _WORKS | {"village", "river", "school", "airport"} else "")
        nodes.append(compose(maker, node) if maker else node)
    return nodes[0], nodes[1]


def _same_property(nodes: tuple[Node, Node], same: re.Match[str], kind: str, made: bool) -> Meaning:
    """Return the reading that compares a property of two nodes.

    Args:
        nodes: The two nodes.
        same: Match of the words that name the property.
        kind: Kind of thing that the nodes are.
        made: True if the nodes are the makers of the named things.
    """
    between, noun = same[0], same["property"]
    first_word = noun.split(" ")[0]
    name = _PROPERTIES.get(noun) or _PROPERTIES.get(first_word, "")
    if name in ("day", "year"):
        return Same(each(_dated(between), nodes), "year" if name == "year" else "day")
    if made_by := _MADE_BY.search(between):
        name = next(relation.name for relation in RELATIONS if made_by["verb"] in relation.verbs)
    elif first_word == "country" and not _LIFE_EVENT.search(between):
        name = _country_of(nodes, between, kind, made)
    if name:
        return Same(each(name, nodes))
    return Same(_same_place(nodes, between, first_word) or _same_noun(nodes, between, noun))


def _dated(between: str) -> str:
    """Return the relation (birth, death, …) whose dates are compared by a question with "on the same day"."""
    if re.search(r"\bdie", between):
        return "date of death"
    if re.search(r"\b(?:released|made|came|published)", between):
        return "publication date"
    return "inception" if re.search(r"\b(?:founded|formed)", between) else "date of birth"


_LIFE_EVENT = re.compile(r"\b(?:born|die|died|buried)\b")
_EVENT_PLACES = {
    "born": "place of birth",
    "buried": "place of burial",
    "die": "place of death",
    "died": "place of death",
}


def _same_place(nodes: tuple[Node, Node], between: str, noun: str) -> tuple[Node, Node] | None:
    """Return the steps for the place of birth, death or burial; None if no such place is meant."""
    event = _LIFE_EVENT.search(between)
    if event is None or noun not in PLACE_KINDS:
        return None
    if noun in ("place", "location"):
        return each(_EVENT_PLACES[event[0]], nodes)
    asked = "did {0} die" if event[0].startswith("die") else f"was {{0}} {event[0]}"
    return _ask_each(f"In which {noun} {asked}?", noun, nodes)


def _same_noun(nodes: tuple[Node, Node], between: str, noun: str) -> tuple[Node, Node]:
    """Return the steps for the property that a noun names."""
    first_word = noun.split(" ")[0]
    relation = BY_NOUN.get(noun) or BY_NOUN.get(first_word)
    if first_word in ("band", "group") and "members" in between:
        return _ask_each(f"Which {first_word} is {{0}} a member of?", first_word, nodes)
    if relation is not None:
        return each(relation.name, nodes)
    if re.search(r"\b(?:located|situated|in|from|based)\b", between):
        return _ask_each(f"In which {first_word} is {{0}} located?", first_word, nodes)
    return _ask_each(f"What is the {noun} of {{0}}?", first_word, nodes)


_PLACE = re.compile(r"\b(?:village|river|lake|mountain|town|cit(?:y|ie)|airport|school|universit(?:y|ie)|island)s?\b")


def _country_of(nodes: tuple[Node, Node], words: str, kind: str, made: bool) -> str:
    """Return the name of the relation to a country: a person's citizenship, a work's origin or a place's location."""
    if made or any(isinstance(node, RelationStep) for node in nodes):
        return "country of citizenship"
    if re.search(r"\b(?:located|situated|in)\b", words) or _PLACE.search(f"{kind} {words}"):
        return "country"
    names = " ".join(node.text for node in nodes if isinstance(node, Entity))
    is_work = (
        kind in _WORKS
        or re.search(r"\((?:[^()]* )?(?:film|band|song|album|series)\)", names, re.I)
        or "originate" in words
    )
    return "country of origin" if is_work else "country of citizenship"


def _ask_each(question: str, noun: str, nodes: tuple[Node, Node]) -> tuple[Node, Node]:
    """Return the steps that ask the same question about two nodes."""
    phrase = f"the {noun} of {{0}}"
    return free_step(question, phrase, noun, (nodes[0],)), free_step(question, phrase, noun, (nodes[1],))


_SHARE = re.compile(
    r"(?:what|which) (?P<noun>[a-z]+(?: [a-z]+)?) (?:do|did|does) (?:both )?(?P<pair>.+?) (?:both )?(?:share"
    r"|have in common|have)"
    r"|(?:what|which) (?P<noun2>[a-z]+(?: [a-z]+)?) (?:is|was) (?:shared by|common to) (?:both )?(?P<pair2>.+)"
    r"|(?:what|which) (?P<noun3>[a-z]+(?: [a-z]+)?) (?:are|were|(?:is|was)(?= both)) (?:both )?(?P<pair3>.+?)"
    r"(?: (?:both )?(?P<tail3>from|in|members? of|by))?",
    re.IGNORECASE | re.DOTALL,
)
_PERIOD = re.compile(
    r"(?:when|(?:during|in|over) (?:what|which) (?:years?|period|time|decades?)) (?:were|was|are|did) (?:both"
    r" )?(?P<pair>.+?)"
    r" (?:both |each )?(?:simultaneously |at the same time )?(?P<rest>active|alive|playing|play|working|work|in"
    r" office|live|living)\b(?P<tail>.*)",
    re.IGNORECASE | re.DOTALL,
)
_WHO_BOTH = re.compile(
    r"(?P<who>who|what|which [a-z ]+?|what [a-z ]+?) (?P<verb>[a-z]+(?:ed|t|d)?(?: (?:in|for|with|by|at|of"
    r"|on))?) both (?P<pair>.+)",
    re.IGNORECASE | re.DOTALL,
)
_BOTH_BY = re.compile(
    r"both (?P<pair>.+?) (?P<verb>were|are|was|is) (?P<rest>.+ (?:what|which|who|whom)\b.*)", re.IGNORECASE | re.DOTALL
)


_ALIKE = re.compile(
    r"(?:what|which) (?:do|did|does) (?:both )?(?P<pair>.+) (?:both )?(?:have in common|share)",
    re.IGNORECASE | re.DOTALL,
)
_ARE_BOTH = re.compile(
    rf"{OPENING_AUXILIARY} (?:(?P<first>.+?),? (?:both|all|each) .+"
    r"|(?:both|the two) (?:[a-z]+ )*[a-z]+s?, (?P<second>.+), .+)",
    re.IGNORECASE | re.DOTALL,
)


def parse_gathering(question: str) -> Meaning | None:
    """Read "Are Alpha and Beta both board games?" as a search for both names; return None for other questions."""
    text = question.rstrip("?. ")
    match = _ALIKE.fullmatch(text) or _ARE_BOTH.fullmatch(text)
    pair = split_pair(next(group for group in match.groups() if group)) if match else None
    if pair is None:
        return None
    first, second = (parse_phrase(part) for part in pair)
    return Gather((first, second)) if isinstance(first, Entity) and isinstance(second, Entity) else None


_DID_BOTH = re.compile(
    r"(?P<lead>(?:in |at |on |for |from )?(?:what|which|who|whom|where|when)\b.*?) (?P<aux>did|do|does)"
    r" (?:both (?P<pair>.+[^a-z\s]\S*),? |(?P<pair2>.+) both )(?P<rest>[a-z][^A-Z]*)",
    re.DOTALL,
)


def parse_shared(question: str) -> Meaning | None:
    """Return the reading of a question about what two things have in common, or when they overlap; None for others."""
    text = question.rstrip("?. ")
    return _shared_period(text) or _shared_noun(text) or _shared_object(text)


def _shared_period(text: str) -> Meaning | None:
    """Return the reading of "During which years were both Alpha and Beta active?" """
    match = _PERIOD.fullmatch(text)
    nodes = _pair_nodes(match["pair"]) if match else None
    if match is None or nodes is None:
        return None
    ask = f"During which years was {{0}} {match['rest']}{match['tail'].replace(' at the same time', '')}?"
    values = _ask_each(ask, "period", nodes)
    return Shared(values, "period")


def _shared_noun(text: str) -> Meaning | None:
    """Return the reading of "What profession do Alpha and Beta share?" """
    match = _SHARE.fullmatch(text)
    if match is None:
        return None
    nodes = _pair_nodes(match["pair"] or match["pair2"] or match["pair3"])
    noun = match["noun"] or match["noun2"] or match["noun3"]
    if nodes is None:
        return None
    name = _PROPERTIES.get(noun, "")
    relation = BY_NAME.get(name) or BY_NOUN.get(noun)
    if noun == "country" and match["tail3"] == "from":
        relation = BY_NAME["country of citizenship"]
    if relation is not None:
        return Shared(each(relation.name, nodes))
    return Shared(_ask_each(f"What is the {noun} of {{0}}?", noun, nodes)) if match["noun"] else None


def _shared_object(text: str) -> Meaning | None:
    """Return the reading of "Who taught both Alpha and Beta?" or "In which film did both Alpha and Beta play?" """
    if match := _DID_BOTH.fullmatch(text[:1].lower() + text[1:]):
        nodes = _pair_nodes(match["pair"] or match["pair2"])
        ask = f"{match['lead']} {match['aux']} {{0}} {match['rest']}?"
        return Shared(_ask_each(ask, match["lead"].split()[-1], nodes)) if nodes else None
    if match := _WHO_BOTH.fullmatch(text):
        tail = re.search(r" (?:as|in|for|with) (?![A-Z])[a-z].*$", match["pair"])
        pair = match["pair"][: tail.start()] if tail else match["pair"]
        nodes = _pair_nodes(pair)
        ask = f"{match['who']} {match['verb']} {{0}}{tail[0] if tail else ''}?"
        noun = match["who"].split()[-1].lower()
        return Shared(_ask_each(ask, "person" if noun == "who" else noun, nodes)) if nodes else None
    if match := _BOTH_BY.fullmatch(text):
        nodes = _pair_nodes(re.sub(r" (?:films|movies|songs|albums|books)$", "", match["pair"]))
        return (
            Shared(
                _ask_each(f"{{0}} {'was' if match['verb'] == 'were' else 'is'} {match['rest']}?", "shared_by", nodes)
            )
            if nodes
            else None
        )
    return None


def _pair_nodes(text: str) -> tuple[Node, Node] | None:
    """Return the nodes of "A and B"; None if there are not two names."""
    pair = None if " or " in text else split_pair(re.sub(r"^(?:the )?both ", "", text))
    return _nodes(pair, "", "") if pair else None
