"""Finds the two things that a question compares, and splits "A and B" where a name may hold an "and" of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """Two options, the rest of the question (`stem`) and the kind of thing they are, where it says so."""

    first: str
    second: str
    stem: str
    kind: str = ""


_HEAD = re.compile(r"(?:[Bb]etween|[Oo]f|[Oo]ut of) (?P<options>.+?), (?P<stem>(?:who|which|what)\b.+)", re.DOTALL)
_AUXILIARY = re.compile(r"(?:is|was|are|were|did|does|do|has|have) (?P<options>.+)", re.IGNORECASE | re.DOTALL)
_ORDER = (
    r"(?:born|die|died|released|founded|formed|come out|published|established|older|younger|bigger|larger"
    r"|longer|taller|the)\b"
)
_KIND = re.compile(r"(?:which|what|whose)(?: of the(?: two| following)?)? (?P<kind>[a-z]+)", re.IGNORECASE)
_NO_KIND = {
    "is",
    "was",
    "has",
    "had",
    "of",
    "one",
    "came",
    "are",
    "were",
    "did",
    "do",
    "does",
    "person",
    "man",
    "woman",
}


def choice_pair(question: str) -> Pair | None:
    """The options of "Which …, A or B?", "Was A or B born first?", "Between A and B, which …?"."""
    text = question.rstrip("?. ")
    return _from_head(text) or _from_middle(text) or _from_verb(text) or _from_tail(text) or _from_end(text)


def _pair(options: tuple[str, str] | None, stem: str) -> Pair | None:
    if options is None or not all(options):
        return None
    kind = _KIND.match(stem.strip())
    found = kind["kind"].lower() if kind and kind["kind"].lower() not in _NO_KIND else ""
    return Pair(options[0], options[1], stem, found)


def _from_head(text: str) -> Pair | None:
    match = _HEAD.fullmatch(text)
    return _pair(split_pair(match["options"]), match["stem"]) if match else None


def _from_middle(text: str) -> Pair | None:
    """ "Which of the two, A or B, was born first?" """
    match = re.fullmatch(
        r"(?P<lead>(?:who|which|what)\b[^,]{0,40}),? (?P<options>[^a-z\s,].* or .+), (?P<stem>(?:is|was|were|has"
        r"|had|did|died)\b.+)",
        text[:1].lower() + text[1:],
        re.DOTALL,
    )
    return _pair(split_pair(match["options"], "or"), f"{match['lead']} {match['stem']}") if match else None


def _from_verb(text: str) -> Pair | None:
    match = _AUXILIARY.fullmatch(text)
    if match is None or " or " not in text:
        return None
    order = re.search(rf" (?={_ORDER})", match["options"])
    if order is None:
        return None
    options = split_pair(match["options"][: order.start()], "or")
    return _pair(options, match["options"][order.start() :])


def _from_tail(text: str) -> Pair | None:
    """The options after the first separator whose rest can be split; the rest of the text is the stem."""
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
    """ "Which band was formed first Alpha or Beta": the options begin with a capital after a comparing word."""
    match = re.fullmatch(
        r"(?P<stem>(?i:who|which|what)\b.*? (?:first|last|older|younger|earlier|later|larger|longer|taller"
        r"|oldest|recently))"
        r" (?P<options>(?:the [a-z]+ of |the |The )?[^a-z\s].* or .+)",
        text,
        re.DOTALL,
    )
    return _pair(split_pair(match["options"], "or"), match["stem"]) if match else None


def split_pair(text: str, word: str = "and") -> tuple[str, str] | None:
    """Split "A and B" in two; None where that gives no two parts.

    Args:
        text: Where the word occurs more than once, the most even split into names wins.
        word: "and" or "or"; where there is no "and", "or" and "&" serve too.
    """
    text = text.strip(" ,")
    cuts = list(re.finditer(rf",? {word} ", text))
    if not cuts and word == "and":
        cuts = list(re.finditer(r",? or |,? & ", text))
    best = min(cuts, key=lambda cut: _unevenness(text[: cut.start()], text[cut.end() :]), default=None)
    if best is None:
        return None
    first, second = text[: best.start()].strip(" ,"), text[best.end() :].strip(" ,")
    return (first, second) if first and second else None


def _unevenness(first: str, second: str) -> tuple[int, int, int]:
    """Least for parts that both begin like names, start alike ("director of film …") and are of similar length."""
    lower = sum(part.split(" ")[0][:1].islower() for part in (first, second) if part.strip())
    alike = first.split(" ")[:2] == second.split(" ")[:2]
    return (0 if alike else 1, lower, abs(len(first) - len(second)))
