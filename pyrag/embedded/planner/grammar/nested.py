"""Takes a question apart by grammar alone: every description in it that can be looked up is a step of its own.

A description is a noun with a clause or a phrase behind it that holds a name, a number or a further description. Its
clause may have any noun and verb; `parse_bounds` tells where it ends, `parse_asked` what it asks. The tables of
relations read first what they know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.lexicon import words
from pyrag.embedded.planner.grammar.asked import NEAR, has_pronoun, is_ranking, question_of, tells_relation
from pyrag.embedded.planner.grammar.bounds import (
    ASKING,
    AUXILIARY,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVE,
    Bounds,
    Waiting,
    is_noun,
    owns,
    plain,
)
from pyrag.embedded.planner.grammar.head import NO_HEADS, head_end
from pyrag.embedded.planner.grammar.names import read_name, starts_name
from pyrag.embedded.planner.grammar.phrase import parse_phrase, possession
from pyrag.embedded.planner.grammar.verbs import is_base, is_participle, is_past, is_present
from pyrag.embedded.planner.meaning import Node, RelationStep
from pyrag.embedded.planner.wording import PLACE_KINDS, free_step

_MAX_WORDS = 80  # words
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class _Found:
    """A description: what it gives, and one past its last word."""

    step: RelationStep
    end: int


def unnest(text: str, depth: int = 0) -> tuple[str, tuple[Node, ...]]:
    """Return the text with its outermost descriptions replaced by slots, and their nodes.

    Args:
        text: A question or clause; one of more than 80 words is left as it is.
        depth: Number of descriptions around it; beyond 6 it is left as it is.
    """
    tokens = text.split()
    parts: list[str] = []
    args: list[Node] = []
    at = 0
    while at < len(tokens) and len(tokens) <= _MAX_WORDS and depth <= _DEEPEST:
        found = _at(tokens, at, parts, depth) if at or tokens[0] == "The" else None
        if found is None:
            parts.append(tokens[at])
            at += 1
            continue
        found = _owning(tokens, found)
        last = tokens[found.end - 1]
        tail = re.search(r"(?:['’]s|['’])?[,;:]*$", last)
        parts.append(f"{{{len(args)}}}{tail[0] if tail else ''}")
        args.append(found.step)
        at = found.end
    return (" ".join(parts), tuple(args)) if at >= len(tokens) else (text, ())


def _at(tokens: list[str], at: int, before: list[str], depth: int) -> _Found | None:
    """The description that begins at a word; `before` is what stands in front of it, descriptions as slots."""
    word = plain(tokens[at])
    last = plain(tokens[at - 1]) if at else ""
    starts = word == "the" or (word == "that" and last in PREPOSITIONS | AUXILIARY)  # else it is a relative pronoun
    starts |= word in ("a", "an") and depth > 0 and last not in _BE
    if starts and last not in _NO_START and not (at and _equates(tokens, at)):
        found = _described(tokens, at, _waiting(before, tokens[at:], depth), depth)
        if found:
            return found
    if word == "the" and at and [plain(one) for one in tokens[at + 1 : at + 2]] == ["same"]:
        return _same_as(tokens, at, before, depth)
    if word == "where" and (last in PREPOSITIONS or last == "like" or is_past(last) or _is_verb(last)):
        return _place(tokens, at, _waiting(before, tokens[at:], depth), depth)
    return _owned(tokens, at)


def _is_verb(word: str) -> bool:
    return is_base(word) and word not in PLACE_KINDS


def _place(tokens: list[str], at: int, waiting: Waiting, depth: int) -> _Found | None:
    """ "to | where Alpha was written": the place is not named."""
    bounds = Bounds(tokens, waiting)
    end = bounds.end(at) if bounds.opens(at) else None
    step = _read(["the", "place", *tokens[at:end]], 2, depth) if end else None
    return _Found(step, end) if step and end else None


def _same_as(tokens: list[str], at: int, before: list[str], depth: int) -> _Found | None:
    """ "Who was born in | the same city as Alpha": what is asked of the one is asked of the other first."""
    link = next((place for place in range(at + 3, min(at + 6, len(tokens))) if tokens[place] == "as"), None)
    kind, predicate = " ".join(tokens[at + 2 : link]), _predicate(before)
    if link is None or not all(map(is_noun, kind.split())) or kind.split()[-1] in NO_HEADS:
        return None
    other, end = _named(tokens, link + 1, depth)
    if other is None:
        return None
    if not predicate:
        owned = possession(kind, other)
        return _Found(owned, end) if owned else None
    return _Found(free_step(f"{{0}} {predicate} which {kind}", f"the {kind} {{0}} {predicate}", kind, (other,)), end)


def _predicate(before: list[str]) -> str:
    """Return the question's predicate, as far as it goes: "was born in"."""
    told = next((at for at, word in enumerate(before) if at and _is_told(plain(word))), None)
    if told is None or before[told] in _DO:
        return ""
    if any(starts_name(word) or word.startswith("{") for word in before[told + 1 :]):  # the subject stands behind it
        return f"is {before[-1]}" if before[-1] in PREPOSITIONS else ""
    return " ".join(before[told:])


def _named(tokens: list[str], at: int, depth: int) -> tuple[Node | None, int]:
    """The description or name that begins at a word, and one past its end."""
    found = _described(tokens, at, "nothing", depth) or _owned(tokens, at) if at < len(tokens) else None
    if found:
        return found.step, found.end
    end = at + (tokens[at : at + 1] == ["the"])
    while end < len(tokens) and starts_name(tokens[end]):
        end += 1
    return read_name(" ".join(tokens[at:end]).rstrip(",;:"), strict=True), end


def _is_told(word: str) -> bool:
    return word in AUXILIARY or is_past(word) or is_present(word)


_DO = words("do does did")
_BE = words("is was are were")
_NO_START = words("all both as become became considered")


def _equates(tokens: list[str], at: int) -> bool:
    """ "When was Alpha | the largest city …", "that is | the capital of Beta": it says what something is."""
    before = [plain(word) for word in tokens[:at]]
    if starts_name(tokens[at - 1]):
        return not _BE.isdisjoint(before)
    told = before[-1] in _BE and ASKING.isdisjoint(before)
    if at == 2 and _strands_participle(tokens[at:]):
        return False
    return told or (len(before) > 1 and before[-1] in _BE and before[-2] in PRONOUNS | {"who", "which", "that"})


_SAID_OF = words("called known named considered nicknamed titled married associated related")


def _waiting(before: list[str], rest: list[str], depth: int) -> Waiting:
    """Return the verb that a question (or a clause inside it) with this beginning still lacks."""
    plains = [plain(word) for word in before]
    if depth:
        return "finite" if _lacks_verb(before) else "nothing"
    place = max((at for at, word in enumerate(plains) if word in AUXILIARY), default=None)
    if place is None:
        told = any(is_past(one) or is_present(one) or is_base(one) for one in plains[1:])
        return "nothing" if told or plains[:1] in (["who"], ["whose"]) else "finite"
    if plains[-1] in RELATIVE:
        return "finite"
    word, since = plains[place], plains[place + 1 :]
    if plains[0] == "how" and place == 2 and plains[1] not in ("many", "much"):
        return "nothing"  # "how old was"
    if word in ("did", "does", "do", "will", "can", "could", "would", "might", "may", "must", "should"):
        return "nothing" if any(is_base(one) for one in since) else "base"
    if any(is_participle(one) for one in since) or (since and since[0] in PREPOSITIONS):
        return "nothing"
    if plains[:place] in (["who"], ["what"]) and not _is_said(rest):
        return "nothing"
    return "participle"


def _is_said(rest: list[str]) -> bool:
    """Return whether a question ends in what something is called or known as, and not in what a noun is named after."""
    for at, word in enumerate(rest):
        later = [plain(one) for one in rest[at + 1 : at + 3]]
        told = len(later) > 1 and later[0] in ("after", "for", "as", "to", "with") and later[1] not in PREPOSITIONS
        if plain(word) in _SAID_OF and not told and not (later and starts_name(rest[at + 1])):
            return True
    return _strands_participle(rest)


def _strands_participle(rest: list[str]) -> bool:
    """ "Who was | the mother of Alpha | betrothed to?", but not "the city Alpha lived in"."""
    if len(rest) < 4 or not is_participle(plain(rest[-2])) or plain(rest[-1]) not in PREPOSITIONS:
        return False
    at = len(rest) - 3
    while at and starts_name(rest[at]):
        at -= 1
    return plain(rest[at]) in PREPOSITIONS or (at < len(rest) - 3 and is_past(plain(rest[at])))


def _lacks_verb(before: list[str]) -> bool:
    """Return whether a description's clause has its verb still to come: "the land that Alpha and |", "the land |"."""
    plains = [plain(word) for word in before]
    opened = max((at for at, word in enumerate(plains) if word in RELATIVE), default=0)
    bare = not opened and len(before) > 1 and not (plains[1] in DETERMINERS or starts_name(before[1]))
    return not bare and not any(map(_is_told, plains[opened + 1 :]))


def _owned(tokens: list[str], at: int) -> _Found | None:
    """ "Alpha's birthplace": what the tables of relations know."""
    name = at + (plain(tokens[at]) == "the")
    if not at or name >= len(tokens) or not starts_name(tokens[name]) or starts_name(tokens[at - 1]):
        return None
    end = name
    while end < len(tokens) and starts_name(tokens[end]) and not owns(tokens[end]):
        end += 1
    least = end + (end < len(tokens) and owns(tokens[end]))
    for last in range(min(end + 4, len(tokens)), least, -1):
        step = parse_phrase(" ".join(tokens[at:last]).rstrip(",;:"), strict=True)
        if isinstance(step, RelationStep) and step.relation and step.relation.answer_type not in ("number", "date"):
            return None if _is_asked(tokens, at, last) else _Found(step, last)
        step = _told_apart(tokens[at:least], tokens[least:last]) if least > end else None
        if step:
            return _Found(step, last)
    return None


def _told_apart(owner: list[str], noun: list[str]) -> RelationStep | None:
    """ "Alpha's former team", "Alpha's state of birth": one of several that a relation or a kind would name."""
    kind = " ".join(noun).rstrip(",;:")
    ranked = len(noun) > 1 and (is_ranking(noun[0]) or noun[0] in _HOME) and all(map(is_noun, noun))
    if not (ranked and tells_relation(kind)) and not re.fullmatch(r"\w+ of (?:birth|death|origin|residence)", kind):
        return None
    name = read_name(re.sub(r"['’]s?$", "", " ".join(owner)), strict=True)
    return free_step(f"What is the {kind} of {{0}}", f"the {kind} of {{0}}", kind, (name,)) if name else None


_HOME = words("home birth native lead main founding host chief")


def _owning(tokens: list[str], found: _Found) -> _Found:
    """ "the band that made Alpha|'s founder|'s birthplace": steps of what a description owns."""
    ends = range(min(found.end + 3, len(tokens)), found.end, -1) if owns(tokens[found.end - 1]) else ()
    for end in ends:
        noun = " ".join([*tokens[found.end : end - 1], re.sub(r"['’]s$", "", plain(tokens[end - 1]))])
        step = possession(noun, found.step)
        if step:
            return _owning(tokens, _Found(step, end))
    return found


def _is_asked(tokens: list[str], at: int, end: int) -> bool:
    """Return whether it is what the question asks for: "Who was | the Alpha drummer | in 1990"."""
    after = plain("".join(tokens[end : end + 1]))
    compound = tokens[at] == "the" and not any(map(owns, tokens[at:end]))
    return compound and at == 2 and plain(tokens[1]) in _BE and (not after or after in PREPOSITIONS | RELATIVE)


_TELLING = words("of in for at from to on with behind") | NEAR  # tell a thing from its like


def _described(tokens: list[str], at: int, waiting: Waiting, depth: int) -> _Found | None:
    head = head_end(tokens, at + 1, waiting)
    if head is None:
        return None
    bounds = Bounds(tokens, waiting)
    if plain(tokens[head]) in PREPOSITIONS - _TELLING and not has_pronoun(tokens[head:]):
        return None
    if not bounds.opens(head):
        return None
    end = _owner_end(tokens, at, head, bounds)
    if end is None:
        end = bounds.end(head)
    if end is None or end <= head + (0 if bounds.clauses else 1):
        return None
    step = _read(tokens[at:end], head - at, depth)
    return _Found(step, end) if step else None


def _owner_end(tokens: list[str], at: int, head: int, bounds: Bounds) -> int | None:
    """Return the end of a whole description that owns something: "What was | the land that invaded Alpha|'s
    currency".
    """
    before = [plain(word) for word in tokens[:at]]
    if not before or not (before[-1] == "of" or (before[-1] in AUXILIARY and len(before) == 2)):
        return None
    owners = [place for place in range(head + 1, len(tokens) - 1) if owns(tokens[place]) and not _of(tokens, place)]
    for place in reversed(owners):
        inner = Bounds(tokens[: place + 1], "nothing")
        clause = plain(tokens[head]) not in PREPOSITIONS or has_pronoun(tokens[head:])
        if inner.opens(head) and clause and inner.end(head) == place + 1:
            return place + 1
    return None


def _of(tokens: list[str], at: int) -> bool:
    """Return whether a name stands behind "of": "one of Alpha's cities" is about Alpha's."""
    while at and starts_name(tokens[at]):
        at -= 1
    return plain(tokens[at]) == "of"


def _read(tokens: list[str], head: int, depth: int) -> RelationStep | None:
    """A description whose bounds are known, by the tables of relations where they can, else by its own words."""
    text = re.sub(r"(?:['’]s|(?<=s)['’])?[,;:]*$", "", " ".join(tokens))
    own = _own_words(text.split(), head, depth)
    listed = parse_phrase(text[:1].lower() + text[1:])
    if not isinstance(listed, RelationStep) or (listed.relation and listed.relation.answer_type == "number"):
        return own
    deeper = own is None or hops(listed) > hops(own)
    return listed if deeper or (listed.relation and own and hops(listed) == hops(own)) else own


def hops(node: Node) -> int:
    return 1 + sum(hops(arg) for arg in node.args) if isinstance(node, RelationStep) else 0


def _own_words(tokens: list[str], head: int, depth: int) -> RelationStep | None:
    kind = " ".join(tokens[1:head]).strip(",").removeprefix("same ")
    rest, args = unnest(" ".join(tokens[head - 1 :]), depth + 1)
    clause = rest.split()[1:]
    if not clause or not (args or any(starts_name(word.strip('"“”(')) for word in clause)):
        return None
    asked = question_of(kind, clause, nested=bool(args))
    return free_step(asked, f"the {kind} {' '.join(clause)}", kind, args) if asked else None
