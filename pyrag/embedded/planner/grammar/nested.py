"""Descriptions inside a question, found by grammar: each one that can be looked up becomes a step.

A description is a noun followed by a clause or a phrase that holds a name, a number or another description. `bounds`
finds its end, and `description_questions` the question that it answers. If the tables of relations know a description,
their step is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.things import PLACE_KINDS
from pyrag.embedded.lexicon.verbs import is_base, is_finite, is_participle, is_past, is_present
from pyrag.embedded.lexicon.word_classes import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    DO,
    MODALS,
    NEAR,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    RELATIVE_PRONOUNS,
    SUBJECT_PRONOUNS,
)
from pyrag.embedded.planner.grammar.bounds import Bounds, Waiting, is_noun, plain
from pyrag.embedded.planner.grammar.description_questions import (
    has_pronoun,
    is_ranking,
    is_role_of,
    question_of,
    tells_relation,
)
from pyrag.embedded.planner.grammar.head import NO_HEADS, head_end
from pyrag.embedded.planner.grammar.names import read_name, starts_name
from pyrag.embedded.planner.grammar.phrase import parse_phrase, possession
from pyrag.embedded.planner.meaning import Node, RelationStep
from pyrag.embedded.planner.wording import free_step
from pyrag.embedded.words import is_possessive, without_possessive

_MAX_WORDS = 80  # of a question
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class _Description:
    """Description in a question.

    Args:
        step: Step that looks up the described thing.
        end: Position after its last word.
    """

    step: RelationStep
    end: int


def unnest(text: str, depth: int = 0) -> tuple[str, tuple[Node, ...]]:
    """Return a text with its outermost descriptions replaced by slots, and the descriptions' nodes.

    Args:
        text: Question or clause. One of more than 80 words is returned unchanged.
        depth: Number of enclosing descriptions. Beyond 6, the text is returned unchanged.
    """
    tokens = text.split()
    parts: list[str] = []
    args: list[Node] = []
    at = 0
    while at < len(tokens) and len(tokens) <= _MAX_WORDS and depth <= _MAX_DEPTH:
        description = _at(tokens, at, parts, depth) if at or tokens[0] == "The" else None
        if description is None:
            parts.append(tokens[at])
            at += 1
            continue
        description = _owning(tokens, description)
        last = tokens[description.end - 1]
        tail = re.search(r"(?:['’]s|['’])?[,;:]*$", last)
        parts.append(f"{{{len(args)}}}{tail[0] if tail else ''}")
        args.append(description.step)
        at = description.end
    return (" ".join(parts), tuple(args)) if at >= len(tokens) else (text, ())


def _at(tokens: list[str], at: int, before: list[str], depth: int) -> _Description | None:
    """Return the description that begins at a position, if any.

    Args:
        tokens: Words of the question.
        at: Position of the first word.
        before: Words before it, with descriptions as slots.
        depth: Number of descriptions that enclose the text.
    """
    word = plain(tokens[at])
    last = plain(tokens[at - 1]) if at else ""
    starts = word == "the" or (word == "that" and last in PREPOSITIONS | AUXILIARIES)  # else "that" is a pronoun
    starts |= word in ("a", "an") and depth > 0 and last not in BE
    if starts and last not in _NO_START and not (at and _equates(tokens, at)):
        description = _described(tokens, at, _waiting(before, tokens[at:], depth), depth)
        if description:
            return description
    if word == "the" and at and [plain(following) for following in tokens[at + 1 : at + 2]] == ["same"]:
        return _same_as(tokens, at, before, depth)
    if word == "where" and (last in PREPOSITIONS or last == "like" or is_past(last) or _is_verb(last)):
        return _place(tokens, at, _waiting(before, tokens[at:], depth), depth)
    return _owned(tokens, at)


def _is_verb(word: str) -> bool:
    """Return whether a word is a verb in its base form and not also a noun for a place."""
    return is_base(word) and word not in PLACE_KINDS


def _place(tokens: list[str], at: int, waiting: Waiting, depth: int) -> _Description | None:
    """Return the place described by "where" and a clause, as in "near where Alpha was written"."""
    bounds = Bounds(tokens, waiting)
    end = bounds.end(at) if bounds.opens(at) else None
    step = _read(["the", "place", *tokens[at:end]], 2, depth) if end else None
    return _Description(step, end) if step and end else None


def _same_as(tokens: list[str], at: int, before: list[str], depth: int) -> _Description | None:
    """Return the value that a comparison refers to: "Who was born in the same city as Alpha" needs Alpha's city."""
    link = next((place for place in range(at + 3, min(at + 6, len(tokens))) if tokens[place] == "as"), None)
    kind, predicate = " ".join(tokens[at + 2 : link]), _predicate(before)
    if link is None or not all(map(is_noun, kind.split())) or kind.split()[-1] in NO_HEADS:
        return None
    other, end = _named(tokens, link + 1, depth)
    if other is None:
        return None
    if not predicate:
        owned = possession(kind, other)
        return _Description(owned, end) if owned else None
    return _Description(
        free_step(f"{{0}} {predicate} which {kind}", f"the {kind} {{0}} {predicate}", kind, (other,)), end
    )


def _predicate(before: list[str]) -> str:
    """Return the question's predicate so far, such as "was born in"; empty without a predicate."""
    verb = next((at for at, word in enumerate(before) if at and is_finite(plain(word))), None)
    if verb is None or before[verb] in DO:
        return ""
    if any(starts_name(word) or word.startswith("{") for word in before[verb + 1 :]):  # the subject follows the verb
        return f"is {before[-1]}" if before[-1] in PREPOSITIONS else ""
    return " ".join(before[verb:])


def _named(tokens: list[str], at: int, depth: int) -> tuple[Node | None, int]:
    """Return the description or name that begins at a position, and the position after it."""
    description = _described(tokens, at, "nothing", depth) or _owned(tokens, at) if at < len(tokens) else None
    if description:
        return description.step, description.end
    end = at + (tokens[at : at + 1] == ["the"])
    while end < len(tokens) and starts_name(tokens[end]):
        end += 1
    return read_name(" ".join(tokens[at:end]).rstrip(",;:"), strict=True), end


_NO_START = words("all both as become became considered")


def _equates(tokens: list[str], at: int) -> bool:
    """Return whether a noun phrase only restates a named thing, as in "When was Alpha | the largest city in Beta".

    Such a phrase is not looked up.
    """
    before = [plain(word) for word in tokens[:at]]
    if starts_name(tokens[at - 1]):
        return not BE.isdisjoint(before)
    follows_be = before[-1] in BE and QUESTION_WORDS.isdisjoint(before)
    if at == 2 and _strands_participle(tokens[at:]):
        return False
    return follows_be or (len(before) > 1 and before[-1] in BE and before[-2] in PRONOUNS | SUBJECT_PRONOUNS)


_NAMING = words("called known named considered nicknamed titled married associated related")


def _waiting(before: list[str], rest: list[str], depth: int) -> Waiting:
    """Return the form of the verb that a question, or a clause inside it, still lacks.

    Args:
        before: Words so far, with descriptions as slots.
        rest: Words from the description on.
        depth: Number of descriptions that enclose the text.
    """
    plains = [plain(word) for word in before]
    if depth:
        return "finite" if _lacks_verb(before) else "nothing"
    place = max((at for at, word in enumerate(plains) if word in AUXILIARIES), default=None)
    if place is None:
        has_verb = any(is_past(word) or is_present(word) or is_base(word) for word in plains[1:])
        return "nothing" if has_verb or plains[:1] in (["who"], ["whose"]) else "finite"
    if plains[-1] in RELATIVE_PRONOUNS:
        return "finite"
    auxiliary, since = plains[place], plains[place + 1 :]
    if plains[0] == "how" and place == 2 and plains[1] not in ("many", "much"):
        return "nothing"  # "how old was"
    if auxiliary in DO | MODALS:
        return "nothing" if any(is_base(word) for word in since) else "base"
    if any(is_participle(word) for word in since) or (since and since[0] in PREPOSITIONS):
        return "nothing"
    if plains[:place] in (["who"], ["what"]) and not _ends_in_naming(rest):
        return "nothing"
    return "participle"


def _ends_in_naming(rest: list[str]) -> bool:
    """Return whether a question asks what something is called or known as.

    In "the college named after Alpha", "named" belongs to the noun.
    """
    for at, word in enumerate(rest):
        later = [plain(later_word) for later_word in rest[at + 1 : at + 3]]
        linked = later[0] in ("after", "for", "as", "to", "with") if len(later) > 1 else False
        belongs_to_noun = linked and later[1] not in PREPOSITIONS
        if plain(word) in _NAMING and not belongs_to_noun and not (later and starts_name(rest[at + 1])):
            return True
    return _strands_participle(rest)


def _strands_participle(rest: list[str]) -> bool:
    """Return whether a question's last words are its own participle and preposition: "Who was Ada betrothed to?"

    In "the city Alpha lived in", they belong to a clause.
    """
    if len(rest) < 4 or not is_participle(plain(rest[-2])) or plain(rest[-1]) not in PREPOSITIONS:
        return False
    at = len(rest) - 3
    while at and starts_name(rest[at]):
        at -= 1
    return plain(rest[at]) in PREPOSITIONS or (at < len(rest) - 3 and is_past(plain(rest[at])))


def _lacks_verb(before: list[str]) -> bool:
    """Return whether a description's clause still lacks its verb, as in "the land that Alpha and"."""
    plains = [plain(word) for word in before]
    opened = max((at for at, word in enumerate(plains) if word in RELATIVE_PRONOUNS), default=0)
    bare = not opened and len(before) > 1 and not (plains[1] in DETERMINERS or starts_name(before[1]))
    return not bare and not any(map(is_finite, plains[opened + 1 :]))


def _owned(tokens: list[str], at: int) -> _Description | None:
    """Return a thing that a name owns, such as "Alpha's birthplace", if the tables of relations know the noun."""
    name = at + (plain(tokens[at]) == "the")
    if not at or name >= len(tokens) or not starts_name(tokens[name]) or starts_name(tokens[at - 1]):
        return None
    end = name
    while end < len(tokens) and starts_name(tokens[end]) and not is_possessive(tokens[end]):
        end += 1
    owner_end = end + (end < len(tokens) and is_possessive(tokens[end]))
    for last in range(min(end + 4, len(tokens)), owner_end, -1):
        step = parse_phrase(" ".join(tokens[at:last]).rstrip(",;:"), strict=True)
        if isinstance(step, RelationStep) and step.relation and step.relation.answer_type not in ("number", "date"):
            return None if _is_asked(tokens, at, last) else _Description(step, last)
        step = _selected(tokens[at:owner_end], tokens[owner_end:last]) if owner_end > end else None
        if step:
            return _Description(step, last)
    return None


def _selected(owner: list[str], noun: list[str]) -> RelationStep | None:
    """Return the step for one of several things that a name owns: "Alpha's former team", "Alpha's state of birth"."""
    kind = " ".join(noun).rstrip(",;:")
    ranked = len(noun) > 1 and (is_ranking(noun[0]) or noun[0] in _HOME) and all(map(is_noun, noun))
    if not (ranked and tells_relation(kind)) and not re.fullmatch(r"\w+ of (?:birth|death|origin|residence)", kind):
        return None
    name = read_name(without_possessive(" ".join(owner)), strict=True)
    return free_step(f"What is the {kind} of {{0}}", f"the {kind} of {{0}}", kind, (name,)) if name else None


_HOME = words("home birth native lead main founding host chief")


def _owning(tokens: list[str], description: _Description) -> _Description:
    """Return a description extended by its possessions, such as "'s founder's birthplace"; unchanged without any."""
    ends = (
        range(min(description.end + 3, len(tokens)), description.end, -1)
        if is_possessive(tokens[description.end - 1])
        else ()
    )
    for end in ends:
        noun = " ".join([*tokens[description.end : end - 1], without_possessive(plain(tokens[end - 1]))])
        step = possession(noun, description.step)
        if step:
            return _owning(tokens, _Description(step, end))
    return description


def _is_asked(tokens: list[str], at: int, end: int) -> bool:
    """Return whether a description is what the question asks for, as in "Who was the Alpha drummer in 1990"."""
    after = plain("".join(tokens[end : end + 1]))
    compound = tokens[at] == "the" and not any(map(is_possessive, tokens[at:end]))
    return compound and at == 2 and plain(tokens[1]) in BE and (not after or after in PREPOSITIONS | RELATIVE_PRONOUNS)


_IDENTIFYING = words("of in for at from to on with behind") | NEAR  # prepositions of phrases that identify a thing


def _described(tokens: list[str], at: int, waiting: Waiting, depth: int) -> _Description | None:
    """Return the description that begins with an article at a position, if any."""
    head = head_end(tokens, at + 1, waiting)
    if head is None:
        return None
    bounds = Bounds(tokens, waiting)
    if plain(tokens[head]) in PREPOSITIONS - _IDENTIFYING and not has_pronoun(tokens[head:]):
        return None
    if not bounds.opens(head):
        return None
    end = _owner_end(tokens, at, head, bounds)
    if end is None:
        end = bounds.end(head)
    if end is None or end <= head + (0 if bounds.clauses else 1):
        return None
    step = _read(tokens[at:end], head - at, depth)
    return _Description(step, end) if step else None


def _owner_end(tokens: list[str], at: int, head: int, bounds: Bounds) -> int | None:
    """Return the end of a description with a possessive, as in "What was the land that invaded Alpha's currency"."""
    before = [plain(word) for word in tokens[:at]]
    if not before or not (before[-1] == "of" or (before[-1] in AUXILIARIES and len(before) == 2)):
        return None
    owners = [
        place for place in range(head + 1, len(tokens) - 1) if is_possessive(tokens[place]) and not _of(tokens, place)
    ]
    for place in reversed(owners):
        inner = Bounds(tokens[: place + 1], "nothing")
        clause = plain(tokens[head]) not in PREPOSITIONS or has_pronoun(tokens[head:])
        if inner.opens(head) and clause and inner.end(head) == place + 1:
            return place + 1
    return None


def _of(tokens: list[str], at: int) -> bool:
    """Return whether the possessive at a position belongs only to a name after "of", as in "one of Alpha's cities"."""
    while at and starts_name(tokens[at]):
        at -= 1
    return plain(tokens[at]) == "of"


def _read(tokens: list[str], head: int, depth: int) -> RelationStep | None:
    """Return the step of a description with known bounds, by the tables of relations or else by its own words."""
    text = re.sub(r"(?:['’]s|(?<=s)['’])?[,;:]*$", "", " ".join(tokens))
    own = _own_words(text.split(), head, depth)
    listed = parse_phrase(text[:1].lower() + text[1:])
    if not isinstance(listed, RelationStep) or (listed.relation and listed.relation.answer_type == "number"):
        return own
    deeper = own is None or hops(listed) > hops(own)
    return listed if deeper or (listed.relation and own and hops(listed) == hops(own)) else own


def hops(node: Node) -> int:
    """Return the number of steps below and including a node."""
    return 1 + sum(hops(arg) for arg in node.args) if isinstance(node, RelationStep) else 0


def _own_words(tokens: list[str], head: int, depth: int) -> RelationStep | None:
    """Return the step of a description in its own words; None without a name, a role or another description."""
    kind = " ".join(tokens[1:head]).strip(",").removeprefix("same ")
    rest, args = unnest(" ".join(tokens[head - 1 :]), depth + 1)
    clause = rest.split()[1:]
    named = args or any(starts_name(word.strip('"“”(')) for word in clause)
    if not clause or not (named or is_role_of(kind, clause)):
        return None
    asked = question_of(kind, clause, nested=bool(args))
    return free_step(asked, f"the {kind} {' '.join(clause)}", kind, args) if asked else None
