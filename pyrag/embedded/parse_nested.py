"""Takes a question apart by grammar alone: every description in it that can be looked up is a step of its own.

A description is a noun with a clause or a phrase behind it that holds a name, a number or a further description. No
noun or verb is listed for it: `parse_bounds` tells where it ends. What the tables of relations read is left to them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.meaning import Node, Step
from pyrag.embedded.parse_bounds import (
    ADVERBS,
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
from pyrag.embedded.parse_name import starts_name
from pyrag.embedded.parse_phrase import parse_phrase
from pyrag.embedded.parse_predicate import PAST_PARTICIPLE
from pyrag.embedded.parse_verbs import base_of, is_base, is_participle, is_past, is_present
from pyrag.embedded.relations import BY_NOUN, COMPOSED
from pyrag.embedded.wording import free_step, words

_LONGEST = 80  # words
_DEEPEST = 6
_PERSONS = words("person man woman individual people one guy figure someone somebody boy girl")
_NO_HEADS = words(
    "name names number amount percentage percent type types kind kinds part parts fact way reason time times day date"
    " year years case result rest lot majority most first last same beginning end start purpose idea belief claim one"
    " word term title extent rate level total many title"
)
_KINDS = words(
    "country state city town village county province district region continent place location nation island area"
    " language religion company team club band group party university school river lake sea ocean mountain newspaper"
    " film movie song album book novel show series airport stadium museum church building bridge empire kingdom dynasty"
    " organization organisation planet species army tribe network station label award league"
)
_RANKING = re.compile(
    r"(?:[a-z]{3,}est|most|least|best|worst|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last"
    r"|only|main|dominant|predominant|official|current|former|legal|national|original|next|previous)$"
)
_NO_RANKING = words(
    "west east northwest northeast southwest southeast forest interest request conquest harvest rest test"
)
_ROLE = re.compile(r"[a-z]{3,}(?:ist|ian)$")


@dataclass(frozen=True, slots=True)
class _Found:
    """A description: what it gives, and one past its last word."""

    step: Step
    end: int


def unnest(text: str, depth: int = 0) -> tuple[str, tuple[Node, ...]]:
    """The text with its outermost descriptions replaced by slots, and what they stand for."""
    tokens = text.split()
    parts: list[str] = []
    args: list[Node] = []
    at = 0
    while at < len(tokens) and len(tokens) <= _LONGEST and depth <= _DEEPEST:
        found = _at(tokens, at, depth) if at or tokens[0] == "The" else None
        if found is None:
            parts.append(tokens[at])
            at += 1
            continue
        last = tokens[found.end - 1]
        tail = re.search(r"(?:['’]s|['’])?[,;:]*$", last)
        parts.append(f"{{{len(args)}}}{tail[0] if tail else ''}")
        args.append(found.step)
        at = found.end
    return (" ".join(parts), tuple(args)) if at >= len(tokens) else (text, ())


def _at(tokens: list[str], at: int, depth: int) -> _Found | None:
    """The description that begins at a word."""
    word = plain(tokens[at])
    before = plain(tokens[at - 1]) if at else ""
    if word in ("the", "that") and before not in _NO_START and not (at and _equates(tokens, at)):
        found = _described(tokens, at, _waiting(tokens[:at], tokens[at:], depth), depth)
        if found:
            return found
    return _owned(tokens, at)


_BE = words("is was are were")
_NO_START = words("all both as become became considered")


def _equates(tokens: list[str], at: int) -> bool:
    """ "When was Alpha | the largest city …", "that is | the capital of Beta": it says what something is."""
    before = [plain(word) for word in tokens[:at]]
    if starts_name(tokens[at - 1]):
        return not _BE.isdisjoint(before)
    told = before[-1] in _BE and ASKING.isdisjoint(before)
    return told or (len(before) > 1 and before[-1] in _BE and before[-2] in PRONOUNS | {"who", "which", "that"})


_SAID_OF = words("called known named considered nicknamed titled")


def _waiting(before: list[str], rest: list[str], depth: int) -> Waiting:
    """What verb a question, or deeper down a clause, that begins so still waits for."""
    plains = [plain(word) for word in before]
    if depth:
        return "finite" if len(plains) == 1 or plains[-1] in RELATIVE else "nothing"
    place = max((at for at, word in enumerate(plains) if word in AUXILIARY), default=None)
    if place is None:
        told = any(is_past(one) or is_present(one) or is_base(one) for one in plains[1:])
        return "nothing" if told or plains[:1] in (["who"], ["whose"]) else "finite"
    if set(plains[place:]) & (RELATIVE - {"when"}):
        return "finite"
    word, since = plains[place], plains[place + 1 :]
    if word in ("did", "does", "do", "will", "can", "could", "would", "might", "may", "must", "should"):
        return "nothing" if any(is_base(one) for one in since) else "base"
    if any(is_participle(one) for one in since) or (since and since[0] in PREPOSITIONS):
        return "nothing"
    if plains[:place] in (["who"], ["what"]) and not any(plain(one) in _SAID_OF for one in rest):
        return "nothing"
    return "participle"


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
        if isinstance(step, Step) and step.relation and step.relation.answer_type not in ("number", "date"):
            return _Found(step, last)
    return None


_NOT_TELLING = PREPOSITIONS - words(
    "of in for at from to on with near by along off beside outside"
)  # others tell no thing from its like


def _described(tokens: list[str], at: int, waiting: Waiting, depth: int) -> _Found | None:
    head = _head_end(tokens, at + 1, waiting)
    if head is None:
        return None
    bounds = Bounds(tokens, waiting)
    if (plain(tokens[head]) in _NOT_TELLING and not _has_pronoun(tokens[head:])) or not bounds.opens(head):
        return None
    end = _owner_end(tokens, at, head, bounds)
    if end is None:
        end = bounds.end(head)
    if end is None or end <= head + (0 if bounds.clauses else 1):
        return None
    step = _read(tokens[at:end], head - at, depth)
    return _Found(step, end) if step else None


def _head_end(tokens: list[str], at: int, waiting: Waiting) -> int | None:
    """One past the noun that is described; None where there is none."""
    start = at
    while at < len(tokens) and at - start < 6:
        word = tokens[at]
        inside = (
            is_noun(word)
            or word in ("first", "last", "only")
            or (starts_name(word) and not owns(word))
            or word[:1].isdigit()
        )
        if at > start and is_noun(tokens[at - 1]) and (starts_name(word) or _is_verbal(tokens, at)):
            break
        if not inside or (waiting == "base" and at > start and is_base(word)):
            break
        at += 1
        if tokens[at - 1].endswith(","):
            break
        if _is_of_kind(tokens, at):
            return at + 2
    head = tokens[at - 1] if at > start else ""
    if at >= len(tokens) or not is_noun(head) or not plain(head).isalpha() or _is_plural(head):
        return None
    if plain(head) == "one" and plain(tokens[at]) in RELATIVE:
        return at
    return None if plain(head) in _NO_HEADS or _is_ranking(head) else at


_LIKE_PREPOSITIONS = words("following regarding concerning including according")


def _is_of_kind(tokens: list[str], at: int) -> bool:
    """Whether a noun goes on as in "the body | of water near Alpha", "the state | of birth of Beta"."""
    noun, of, kind, after = ([*tokens[at - 1 : at + 3], "", "", ""])[:4]
    singular = is_noun(noun) and not _is_plural(noun) and noun not in _NO_HEADS
    return singular and of == "of" and is_noun(kind) and after in _NEAR | {"of"}


def _is_verbal(tokens: list[str], at: int) -> bool:
    """Whether a participle goes on with a clause ("recorded by"), and is no adjective ("the best known book")."""
    word, after = plain(tokens[at]), tokens[at + 1] if at + 1 < len(tokens) else ""
    if word.endswith("ing"):
        return word not in _LIKE_PREPOSITIONS and (plain(after) in DETERMINERS or starts_name(after))
    return bool(re.fullmatch(PAST_PARTICIPLE, word)) and not is_noun(after)


def _is_infinitive(clause: list[str]) -> bool:
    return len(clause) > 1 and plain(clause[0]) == "to" and is_base(plain(clause[1]))


def _is_plural(noun: str) -> bool:
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is", "series"))


def _owner_end(tokens: list[str], at: int, head: int, bounds: Bounds) -> int | None:
    """Where a whole description owns something: "What was | the land that invaded Alpha|'s currency"."""
    before = [plain(word) for word in tokens[:at]]
    if not before or not (before[-1] == "of" or (before[-1] in AUXILIARY and len(before) == 2)):
        return None
    owners = [place for place in range(head + 1, len(tokens) - 1) if owns(tokens[place]) and not _of(tokens, place)]
    for place in reversed(owners):
        inner = Bounds(tokens[: place + 1], "nothing")
        clause = plain(tokens[head]) not in PREPOSITIONS or _has_pronoun(tokens[head:])
        if inner.opens(head) and clause and inner.end(head) == place + 1:
            return place + 1
    return None


def _of(tokens: list[str], at: int) -> bool:
    """Whether a name stands behind "of": "one of Alpha's cities" is about Alpha's."""
    while starts_name(tokens[at]):
        at -= 1
    return plain(tokens[at]) == "of"


def _read(tokens: list[str], head: int, depth: int) -> Step | None:
    """A description whose bounds are known, by the tables of relations where they can, else by its own words."""
    text = re.sub(r"(?:['’]s|(?<=s)['’])?[,;:]*$", "", " ".join(tokens))
    tokens = text.split()
    listed = parse_phrase(text[:1].lower() + text[1:])
    own = _own_words(tokens, head, depth)
    if (
        isinstance(listed, Step)
        and not (listed.relation and listed.relation.answer_type == "number")
        and (own is None or hops(listed) > hops(own) or (listed.relation is not None and hops(listed) == hops(own)))
    ):
        return listed
    return own


def hops(node: Node) -> int:
    return 1 + sum(hops(arg) for arg in node.args) if isinstance(node, Step) else 0


def _own_words(tokens: list[str], head: int, depth: int) -> Step | None:
    kind = " ".join(tokens[1:head]).strip(",")
    rest, args = unnest(" ".join(tokens[head - 1 :]), depth + 1)
    clause = rest.split()[1:]
    if not clause or not (args or any(starts_name(word.strip('"“”(')) for word in clause)):
        return None
    asked = _asked(kind, clause, bool(args))
    return free_step(asked, f"the {kind} {' '.join(clause)}", kind, args) if asked else None


def _has_pronoun(clause: list[str]) -> bool:
    """Whether a clause begins with a preposition and its pronoun: "in which"."""
    return len(clause) > 1 and plain(clause[0]) in PREPOSITIONS and plain(clause[1]) in ("which", "whom")


def _asked(kind: str, clause: list[str], nested: bool) -> str:
    """The question that a description answers: "the city where Alpha died" gives "In which city did Alpha die?"."""
    which = "who" if kind in _PERSONS else f"which {kind}"
    first = plain(clause[0])
    if first == "to":
        ranked = any(map(_is_ranking, kind.split())) and not any(map(is_past, kind.split()))
        return (
            f"which {kind.rpartition(' ')[2]} was the {kind} {' '.join(clause)}"
            if ranked and _is_infinitive(clause)
            else ""
        )
    if _has_pronoun(clause):
        return _inverted(f"{first} {which}", clause[2:])
    if first in ("where", "when"):
        return _inverted(f"in which {kind}", clause[1:])
    if first == "whose":
        return f"{which}'s {' '.join(clause[1:])}"
    if first in PREPOSITIONS:
        return _asked_phrase(which, kind, clause, nested)
    if first in ("who", "that", "which", "whom"):
        rest = clause[1:]
        own = bool(rest) and (plain(rest[0]) in DETERMINERS | PRONOUNS or starts_name(rest[0]) or rest[0][:1] == "{")
        return _inverted(which, rest) if own or first == "whom" else f"{which} {' '.join(rest)}"
    if is_participle(first):
        return f"{which} was {' '.join(clause)}"
    if first.endswith("ing"):
        return f"{which} is {' '.join(clause)}"
    return _inverted(which, clause)


_NEAR = words("near by along off beside outside")


def _asked_phrase(which: str, kind: str, clause: list[str], nested: bool) -> str:
    last = kind.rpartition(" ")[2]
    if " of " in kind or (last in _KINDS and clause[0] in _NEAR):
        return f"{which} is {' '.join(clause)}" if clause[0] in _NEAR else f"what is the {kind} {' '.join(clause)}"
    role = last in COMPOSED or (last in BY_NOUN and BY_NOUN[last].answer_type == "person") or _is_role(last)
    if clause[0] == "with":
        return f"{which} has {' '.join(clause[1:])}" if clause[1] in ("the", "a", "an") else ""
    if any(plain(word) in RELATIVE for word in clause):
        return f"what is the {kind} {' '.join(clause)}"
    role = role and (clause[0] != "in" or any(map(_is_ranking, kind.split())))
    if not (role or _singles_out(kind, clause[0])):
        return ""
    if not nested and not any(re.match(r"[\"“(]*[A-Z]", word) for word in clause):
        return ""
    return f"{'who' if role else 'what'} is the {kind} {' '.join(clause)}"


def _is_role(noun: str) -> bool:
    return bool(_ROLE.match(noun)) or (
        noun.endswith(("er", "or")) and (is_base(noun[:-1]) or (is_base(noun[:-2]) and noun[-3] != "e"))
    )


def _singles_out(kind: str, prep: str) -> bool:
    """Whether "the KIND of Alpha" is one thing to look up: "the largest city", "the second album", "the official …"."""
    head = kind.split()
    ranked = any(map(_is_ranking, head[:-1]))
    if head[-1] in BY_NOUN:
        return (ranked or prep in ("of", "for")) and BY_NOUN[head[-1]].answer_type not in ("number", "date")
    return ranked and head[-1] in _KINDS


def _is_ranking(word: str) -> bool:
    return bool(_RANKING.match(word)) and word not in _NO_RANKING


def _inverted(lead: str, clause: list[str]) -> str:
    """Lead and clause as a question: "in which city", "Alpha worked until 1900"."""
    for at in range(1, len(clause)):
        word, before = plain(clause[at]), plain(clause[at - 1])
        if starts_name(clause[at]) or before in PREPOSITIONS | DETERMINERS | RELATIVE or word in ADVERBS:
            continue
        subject, rest = " ".join(clause[:at]), " ".join(clause[at + 1 :])
        if is_participle(word) and clause[at + 1 : at + 2] == ["by"]:
            continue  # "the team owned by Alpha | plays"
        if word in AUXILIARY:
            return f"{lead} {word} {subject} {rest}"
        if is_past(word) or is_present(word):
            return f"{lead} {'did' if is_past(word) else 'does'} {subject} {base_of(word)} {rest}"
        if is_base(word) and before.endswith("s"):
            return f"{lead} do {subject} {word} {rest}"
    return ""
