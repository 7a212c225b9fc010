"""Descriptions inside a question that the tables of relations can read.

Examples are "How many people live in | the city where Alpha died" and "When was | the company that made Beta | sold".
Descriptions have no other marks of their start and end, so the longest text that can be read as one is used.
"""

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.verbs import is_participle
from pyrag.embedded.lexicon.word_classes import ARTICLES, BE, BE_FORM, DO, DO_FORM, OPENING_AUXILIARIES, QUESTION_WORDS
from pyrag.embedded.planner.grammar.description_questions import is_kind, is_person
from pyrag.embedded.planner.grammar.names import is_name, starts_name
from pyrag.embedded.planner.grammar.phrase import is_bare_clause, is_reduced, parse_phrase
from pyrag.embedded.planner.grammar.predicate import PAST_PARTICIPLE
from pyrag.embedded.planner.meaning import Node, RelationStep
from pyrag.embedded.relations.table import RELATIONS
from pyrag.embedded.words import is_possessive

_MAX_WORDS = 60  # of a question


def embed(text: str, *, strict: bool = True) -> tuple[str, tuple[Node, ...]]:
    """Return a question with its longest descriptions replaced by slots, and the descriptions' nodes.

    Args:
        text: Question. One of more than 60 words is returned unchanged.
        strict: False also reads descriptions at the question's end that have no clear end, except after an auxiliary.
    """
    words = text.split()
    if len(words) > _MAX_WORDS:
        return text, ()
    parts: list[str] = []
    args: list[Node] = []
    at = 0
    while at < len(words):
        description = _longest_at(words, at, strict) if _may_start(words, at) else None
        if description is None:
            parts.append(words[at])
            at += 1
            continue
        node, end = description
        tail = re.search(r"[,;:]+$", words[end - 1])
        asks = end < len(words) and words[end] in QUESTION_WORDS
        keep = tail and (tail[0] != "," or "," in " ".join(words[:at]) or asks)  # else it separates subject and verb
        parts.append(f"{{{len(args)}}}{tail[0] if tail and keep else ''}")
        args.append(node)
        at = end
    return " ".join(parts), tuple(args)


def _may_start(words: list[str], at: int) -> bool:
    """Return whether a description may begin with the word at a position."""
    word = words[at]
    if _IDENTITY.fullmatch(" ".join(words[:at])):
        return False  # "Who was the king when …" asks for the king
    first = next((i for i in range(at, 0, -1) if words[i - 1][:1].islower()), 0)  # start of a name of several words
    if " ".join(words[max(first - 2, 0) : first]).lower() in _SOME_OF:
        return False
    if word.lower() in ("the", "that"):
        return at + 2 < len(words)
    if word in ("a", "an"):
        return at > 0 and words[at - 1].lower() in _BEFORE_INDEFINITE
    if word in _FIRST_WORDS:
        return words[at - 1].lower() in _BEFORE_NOUN
    return at > 0 and not word[:1].islower()


_FIRST_WORDS = frozenset(noun.split()[0] for relation in RELATIONS for noun in relation.nouns)
_BEFORE_NOUN = words("is was are were did does do of in by for to at with from on and has had")
_BEFORE_INDEFINITE = words("by of from featuring starring did does do")
_IDENTITY = re.compile(rf"(?:who|what) {BE_FORM}", re.IGNORECASE)
_SOME_OF = ("one of", "some of", "which of", "two of", "many of", "any of")


def _longest_at(words: list[str], at: int, strict: bool) -> tuple[RelationStep, int] | None:
    """Return the node of the longest description that begins at a position, and the position after its end."""
    for end in range(len(words), at + 1, -1):
        phrase = " ".join(words[at:end])
        phrase = phrase[:1].lower() + phrase[1:] if phrase.startswith(("The ", "That ")) else phrase
        if not _bounded(words, at, end, strict) or not _describes(phrase, words[:at], words[end:]):
            continue
        node = parse_phrase(phrase, strict=not _closed(phrase, words, at, end, strict))
        is_number = isinstance(node, RelationStep) and node.relation and node.relation.answer_type == "number"
        if isinstance(node, RelationStep) and not is_number and _has_name(node, phrase):
            return node, end
    return None


def _has_name(node: RelationStep, phrase: str) -> bool:
    """Return whether a described thing can be looked up: its words contain a name, or things of its kind have names."""
    kind = node.variable.rpartition("_")[2]
    return bool(re.search(r"[A-Z\d\"]", phrase)) or is_kind(kind) or is_person(kind)


def _bounded(words: list[str], at: int, end: int, strict: bool) -> bool:
    """Return whether a description may end before a position.

    Args:
        words: Words of the question.
        at: Position of the description's first word.
        end: Position after its last word.
        strict: Whether the end must be clear, as in `embed`.
    """
    before = words[at - 1].lower() if at else ""
    if end == len(words):  # unless the question's own verb is still missing
        return at > 0 and before not in DO and not (before in OPENING_AUXILIARIES and not strict)
    goes_on = words[end] == "of" or _inside_name(words, end) or _has_object(words, end) or _goes_on(words, at, end)
    return not goes_on and _may_end(words[end - 1], words[end])


def _describes(phrase: str, before: list[str], after: list[str]) -> bool:
    """Return whether a phrase may be a description.

    Args:
        phrase: The phrase.
        before: Words of the question before it.
        after: Words of the question after it.
    """
    if phrase.count('"') % 2:
        return False
    if phrase.startswith(("a ", "an ")) and not re.search(r" [^a-z\s]", phrase):
        return False  # "a man who sings" is nobody in particular
    # In "Where is the stone found in Alpha", the verb is the question's own.
    is_verbal = is_reduced(phrase) or ("".join(before[-1:]) in BE and is_bare_clause(phrase))
    return is_participle("".join(after[:1])) or not is_verbal or not _lacks_verb(before)


def _closed(phrase: str, words: list[str], at: int, end: int, strict: bool) -> bool:
    """Return whether a description certainly ends before a position.

    Certain ends are the question's end, a comma after a clause, and the question's own verb after a clause.
    """
    before = words[at - 1].lower() if at else ""
    if end == len(words):
        return not strict or _ends_in_noun(words, before)
    if _BETWEEN_COMMAS.fullmatch(phrase):
        return True
    return words[end] in OPENING_AUXILIARIES and before not in OPENING_AUXILIARIES and _CLAUSE.match(phrase) is not None


_BETWEEN_COMMAS = re.compile(r"[^,]+, (?:who|which|whose) [^,]+,")
_CLAUSE = re.compile(r"(?:the|that|an?) (?:[\w.'-]+ ){1,5}?(?:(?:who|that|which) (?!the |an? )[a-z]|with )")


def _ends_in_noun(words: list[str], before: str) -> bool:
    """Return whether the last word belongs to the name before it, as in "by the truce that ended the Iran-Iraq war"."""
    return (
        before not in OPENING_AUXILIARIES
        and len(words) > 1
        and words[-2][:1].isupper()
        and not is_possessive(words[-2])
        and words[-1].islower()
        and not is_participle(words[-1])
    )


def _lacks_verb(before: list[str]) -> bool:
    """Return whether a question's beginning still needs its participle, as in "When were most problems of"."""
    start = " ".join(before)
    waiting = None if _COPULA.fullmatch(start) else _WAITING.search(start)
    return waiting is not None and (not waiting["subject"] or not _COPULA.match(start))


_COPULA = re.compile(rf"how [a-z]+ {BE_FORM}|(?:who|what) {BE_FORM} .+", re.IGNORECASE)
_WAITING = re.compile(rf"\b{BE_FORM}(?P<subject>(?: (?!(?:{DO_FORM}|{BE_FORM}|{PAST_PARTICIPLE})\b)[^\s,]+)*)$")


def _has_object(words: list[str], end: int) -> bool:
    """Return whether the word before a position is a preposition whose object follows: "is located in | the city"."""
    return words[end - 1] in ("in", "on", "at", "to", "by", "for") and (
        words[end] in ARTICLES or not words[end][:1].islower()
    )


def _inside_name(words: list[str], end: int) -> bool:
    """Return whether a position is between two words of a name."""
    return starts_name(words[end]) and words[end - 1][:1].isupper() and words[end - 1][-1:].isalnum()


def _goes_on(words: list[str], at: int, end: int) -> bool:
    """Return whether the word after a position seems to belong to the same name: "the Hong Kong | duo Twins"."""
    last, word = words[end - 1], words[end]
    if not (word.isalpha() and word.islower()) or word in _JOINING:
        return False
    if (
        is_possessive(last)
        or (last.isdigit() and words[end - 2] == "the")
        or word in _FIRST_WORDS
        or re.search(r"(?:er|or|ist|ian)$", word)
    ):
        return True
    if end + 1 == len(words) and _ends_in_noun(words, words[at - 1].lower()):
        return True
    followed = end + 1 < len(words) and words[end + 1][:1].isupper()
    return followed and words[at - 1].lower() not in OPENING_AUXILIARIES and not re.search(r"(?:ed|s|ing|en)$", word)


_JOINING = words(
    "in on at by for to from with and or of the is was are were did as after before during become over under ever "
    "either later earlier enter discover conquer offer star host coach"
)


def _may_end(word: str, after: str) -> bool:
    """Return whether a description may end between two words.

    Args:
        word: Last word of the description.
        after: Word after it.
    """
    return (
        word.endswith(",")
        or after in OPENING_AUXILIARIES
        or is_name(word.strip(",;:"))
        or word.rstrip(",;:") in _ENDS
        or bool(re.search(r"(?:ed|[)\"”'])[;:]?$", word))
    )


_ENDS = words(
    "from in of for at by on born died is was located birth death father mother wife husband spouse son daughter"
    " child brother "
    "sister team birthplace director author singer performer composer producer writer publisher country state"
    " city town "
    "continent county mater university school college employer founder capital owner label company religion"
    " party held citizen member fought built set found taught made won wrote sang led "
    "ran left gave sold met plays works lives owns runs"
)
