"""Noun of a description: "city" in "the largest city in Alpha", "body of water" in "the body of water near Beta"."""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.verbs import is_base, is_participle, present_of
from pyrag.embedded.lexicon.word_classes import DETERMINERS, NEAR, PREPOSITIONS, RELATIVE_PRONOUNS
from pyrag.embedded.planner.grammar.bounds import Waiting, is_noun, plain, takes_complement
from pyrag.embedded.planner.grammar.description_questions import is_ranking, is_role
from pyrag.embedded.planner.grammar.names import starts_name
from pyrag.embedded.planner.grammar.predicate import PAST_PARTICIPLE
from pyrag.embedded.words import is_possessive, singular

NO_HEADS = words(
    "name names number amount percentage percent type types kind kinds part parts fact way reason time times day date"
    " year years case result rest lot majority most first last same beginning end start purpose idea belief claim one"
    " word term title extent rate level total many"
)


def head_end(tokens: list[str], at: int, waiting: Waiting) -> int | None:
    """Return the position after the noun of a description; None if there is no noun that can be described.

    Args:
        tokens: Words of the question.
        at: Position of the first word after the article. At most six words are read.
        waiting: Form of the question's own verb that is still missing.
    """
    start, limit = at, min(at + 6, len(tokens))
    while (
        at < limit and _is_in_head(tokens, at, start) and not (waiting == "base" and at > start and is_base(tokens[at]))
    ):
        at += 1
        if tokens[at - 1].endswith(","):
            break
        if _is_of_kind(tokens, at):
            return at + 2
    head = tokens[at - 1]
    if at == start or at >= len(tokens) or not is_noun(head) or not plain(head).isalpha() or is_ranking(head):
        return None
    if singular(head) != head and not (tokens[at] == "of" and is_role(head[:-1]) and not _some_of(tokens, start - 1)):
        return None
    is_described = plain(head) in _ONLY_WITH_CLAUSE and plain(tokens[at]) in RELATIVE_PRONOUNS
    return at if is_described or plain(head) not in NO_HEADS else None


def _some_of(tokens: list[str], at: int) -> bool:
    """Return whether "which of", "some of" or the like comes before a position."""
    return (
        at > 1 and tokens[at - 1] == "of" and plain(tokens[at - 2]) in ("which", "one", "some", "many", "any", "most")
    )


def _is_in_head(tokens: list[str], at: int, start: int) -> bool:
    """Return whether a word belongs to the described noun: an adjective, a name before the noun, or the noun itself."""
    word = tokens[at]
    if at > start and takes_complement(tokens[at : at + 2]):
        return False  # "the state | west of Alpha": the modifier begins
    if at > start and is_noun(tokens[at - 1]) and (starts_name(word) or _is_verbal(tokens, at)):
        return False
    named = (starts_name(word) and not is_possessive(word)) or word[:1].isdigit()
    return named or is_noun(word) or word in ("first", "last", "only")


_ONLY_WITH_CLAUSE = words("one year month day date")
_ING_NOUNS = words(
    "building painting recording meeting opening ending beginning setting funding founding finding ruling training"
    " writing reading crossing landing hearing offering standing drawing shooting killing fishing manufacturing living"
    " broadcasting publishing racing understanding warning wedding testing feeling holding feeding spending going"
)
_LIKE_PREPOSITIONS = words("following regarding concerning including according")


def _is_of_kind(tokens: list[str], at: int) -> bool:
    """Return whether "of" and a second noun belong to the described noun, as in "the body of water near Alpha"."""
    noun, of, kind, after = ([*tokens[at - 1 : at + 3], "", "", ""])[:4]
    is_singular = is_noun(noun) and singular(noun) == noun and noun not in NO_HEADS
    if not is_singular or of != "of" or not is_noun(kind):
        return False
    subject = kind == "water" and (starts_name(after) or after == "the")
    return (
        subject
        or after in NEAR | RELATIVE_PRONOUNS | {"of"}
        or is_participle(after)
        or takes_complement(tokens[at + 2 :][:2])
    )


def _is_verbal(tokens: list[str], at: int) -> bool:
    """Return whether a participle opens a clause ("recorded by") and is not an adjective ("the best known book")."""
    word, after = plain(tokens[at]), tokens[at + 1] if at + 1 < len(tokens) else ""
    if word.endswith("ing"):
        if plain(after) in PREPOSITIONS:
            return after != "of" and bool(present_of(word)) and word not in _ING_NOUNS
        return word not in _LIKE_PREPOSITIONS and (plain(after) in DETERMINERS or starts_name(after))
    passive = re.fullmatch(PAST_PARTICIPLE, word) if word.endswith("ed") else is_participle(word)
    return bool(passive) and not is_noun(after)
