"""The two options of a question, and the parts of "A and B", even if a name contains "and"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.word_classes import BE, DO, HAVE


@dataclass(frozen=True, slots=True)
class Pair:
    """The two options of a question.

    Args:
        first: First option.
        second: Second option.
        stem: The question without its options.
        kind: Kind of thing that the options are, such as "film". Empty if the question does not name it.
    """

    first: str
    second: str
    stem: str
    kind: str = ""


_HEAD = re.compile(r"(?:[Bb]etween|[Oo]f|[Oo]ut of) (?P<options>.+?), (?P<stem>(?:who|which|what)\b.+)", re.DOTALL)
_AUXILIARY = re.compile(rf"{any_of(BE | DO | HAVE)} (?P<options>.+)", re.IGNORECASE | re.DOTALL)
_ORDER = (
    r"(?:born|die|died|released|founded|formed|come out|published|established|older|younger|bigger|larger"
    r"|longer|taller|the)\b"
)
_KIND = re.compile(r"(?:which|what|whose)(?: of the(?: two| following)?)? (?P<kind>[a-z]+)", re.IGNORECASE)
_NO_KIND = BE | DO | words("has had of one came person man woman")


def choice_pair(question: str) -> Pair | None:
    """Return the options of a choice, such as "Which …, A or B?"; None for other questions."""
    text = question.rstrip("?. ")
    return _from_head(text) or _from_middle(text) or _from_verb(text) or _from_tail(text) or _from_end(text)


def _pair(options: tuple[str, str] | None, stem: str) -> Pair | None:
    """Return a pair of two options and a stem; None without two options."""
    if options is None or not all(options):
        return None
    kind = _KIND.match(stem.strip())
    name = kind["kind"].lower() if kind and kind["kind"].lower() not in _NO_KIND else ""
    return Pair(options[0], options[1], stem, name)


def _from_head(text: str) -> Pair | None:
    """Return the options before the question: "Between A and B, which …"."""
    match = _HEAD.fullmatch(text)
    return _pair(split_pair(match["options"]), match["stem"]) if match else None


def _from_middle(text: str) -> Pair | None:
    """Return the options inside the question: "Which of the two, A or B, was born first?" """
    match = re.fullmatch(
        r"(?P<lead>(?:who|which|what)\b[^,]{0,40}),? (?P<options>[^a-z\s,].* or .+), (?P<stem>(?:is|was|were|has"
        r"|had|did|died)\b.+)",
        text[:1].lower() + text[1:],
        re.DOTALL,
    )
    return _pair(split_pair(match["options"], "or"), f"{match['lead']} {match['stem']}") if match else None


def _from_verb(text: str) -> Pair | None:
    """Return the options after the verb of a question without a question word: "Was A or B born first?" """
    match = _AUXILIARY.fullmatch(text)
    if match is None or " or " not in text:
        return None
    order = re.search(rf" (?={_ORDER})", match["options"])
    if order is None:
        return None
    options = split_pair(match["options"][: order.start()], "or")
    return _pair(options, match["options"][order.start() :])


def _from_tail(text: str) -> Pair | None:
    """Return the options at the question's end, after a separator such as a comma: "Which is older, A or B?" """
    if not re.match(r"(?:who|which|what|whose|where|when|in|on|are|is)\b", text, re.IGNORECASE):
        return None
    for separator in re.finditer(r", | between | out of |: |\? | - ", text):
        options = text[separator.end() :]
        options = re.sub(r"^(?:either|between|out of) ", "", options)
        pair = split_pair(options, "or") or (
            split_pair(options) if separator[0].strip() in ("between", "out of") else None
        )
        if pair and " " in text[: separator.start()] and not re.match(r"(?:who|which|that|where)\b", options):
            return _pair(pair, text[: separator.start()])
    return None


def _from_end(text: str) -> Pair | None:
    """Return the options after a comparing word, without a separator: "Which band was formed first Alpha or Beta"."""
    match = re.fullmatch(
        r"(?P<stem>(?i:who|which|what)\b.*? (?:first|last|older|younger|earlier|later|larger|longer|taller"
        r"|oldest|recently))"
        r" (?P<options>(?:the [a-z]+ of |the |The )?[^a-z\s].* or .+)",
        text,
        re.DOTALL,
    )
    return _pair(split_pair(match["options"], "or"), match["stem"]) if match else None


def split_pair(text: str, word: str = "and") -> tuple[str, str] | None:
    """Return the two parts of "A and B"; None if it does not have two.

    Args:
        text: Text to split. If it holds the word more than once, the split into the most similar parts wins.
        word: Word between the parts, "and" or "or". If the text has no "and", "or" and "&" also count.
    """
    text = text.strip(" ,")
    cuts = list(re.finditer(rf",? {word} ", text))
    if not cuts and word == "and":
        cuts = list(re.finditer(r",? or |,? & ", text))
    best_cut = min(cuts, key=lambda cut: _unevenness(text[: cut.start()], text[cut.end() :]), default=None)
    if best_cut is None:
        return None
    first, second = text[: best_cut.start()].strip(" ,"), text[best_cut.end() :].strip(" ,")
    return (first, second) if first and second else None


def _unevenness(first: str, second: str) -> tuple[int, int, int]:
    """Return how unlike two parts are.

    Parts are alike if their first words are the same ("director of film …"), both begin like names, and their lengths
    are similar.
    """
    lower = sum(part.split(" ")[0][:1].islower() for part in (first, second) if part.strip())
    alike = first.split(" ")[:2] == second.split(" ")[:2]
    return (0 if alike else 1, lower, abs(len(first) - len(second)))
