"""A yes/no question as a claim: what it is about, what it states of it, and whether it states or denies it."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.lexicon import words
from pyrag.embedded.planner.grammar.verbs import is_base, is_participle
from pyrag.embedded.reader.claims.opposites import DENIALS, has_opposite, plain_verbs
from pyrag.embedded.reader.claims.values import Amount, Values, When, is_unit, values_of
from pyrag.embedded.words import STOPWORDS
from pyrag.trace.sentences import UPPER_CLASS, tidy

_TRUE = re.compile(r"^is it (?:true|correct|right|the case) that (?P<claim>.+)$", re.IGNORECASE)
_AUXILIARY = re.compile(
    r"^(?P<aux>is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|must|might)(?P<not>n't)?\s+"
    r"(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_MAX_WORDS = 60  # of a question that states one thing
_BE = frozenset(("is", "are", "was", "were"))
_INSIDE = re.compile(r"\b(is|are|was|were|does|did|has|have|had|can|could|will|would)\b\s*(not\b)?", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?P<op>more than|over|above|at least|no fewer than|less than|fewer than|under|below|at most|up to|no more than"
    r"|older than|younger than|longer than|shorter than|higher than|lower than|before|after|since|later than|earlier than)"
    r" (?=(?:the year |about |\$|€|£)?(?:\d|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b|twelve\b"
    r"|twenty\b|thirty\b|fifty\b|a hundred|a thousand|(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December)\b))",
    re.IGNORECASE,
)
_ABOVE = frozenset(
    ("more than", "over", "above", "at least", "no fewer than", "older than", "longer than", "higher than", "after",
     "since", "later than")
)  # fmt: skip
_EQUAL_TOO = frozenset(("at least", "no fewer than", "at most", "up to", "no more than", "since"))
_ADVERBS = words("still ever already yet now currently really actually also indeed today always too even presently any")
_DETERMINERS = words("a an the his her its their our your my this that these those no any some")
_PREPOSITIONS = words(
    "in on at by from to with for of about into through during under over between near off against without"
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\w.,:%-]*")


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit that a value is held against: "more than 40 members", "before 1700"."""

    above: bool
    equal: bool

    def holds(self, difference: float) -> bool:
        """Return whether a value keeps to the limit.

        Args:
            difference: The value less the limit.
        """
        return (self.equal and difference == 0) or (difference > 0 if self.above else difference < 0)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim in two parts, each as text with its values; denials and adverbs are taken out of both."""

    question: str
    auxiliary: str
    subject: str
    predicate: str
    denied: bool
    still: bool
    bound: Bound | None

    @property
    def subject_values(self) -> Values:
        return values_of(self.subject)

    @property
    def values(self) -> Values:
        return values_of(self.predicate)

    @property
    def limit(self) -> Amount | When | None:
        """The value of the bound."""
        if self.bound is None:
            return None
        values = self.values
        return values.amounts[0] if values.amounts else values.dates[0] if values.dates else None


def read_claim(question: str) -> Claim | None:
    """Return the claim of a yes/no question about one thing, or None if it has no such form."""
    text = plain_verbs(tidy(question).rstrip(" ?.!"))
    text = _without_possessive(_inverted(text))
    match = _AUXILIARY.match(text)
    if match is None or not 2 <= len(match["rest"].split()) <= _MAX_WORDS:
        return None
    rest, auxiliary = match["rest"], match["aux"].lower()
    rest, denials = _without_denials(rest)
    tokens = list(re.finditer(r"\S+", rest))
    lowered = [token[0].lower().strip(",.") for token in tokens]
    at = _predicate_start(tokens, lowered, auxiliary)
    if not 0 < at < len(tokens):
        return None
    subject, predicate = rest[: tokens[at].start()].strip(), rest[tokens[at].start() :].strip()
    bound = _BOUND.search(predicate)
    op = bound["op"].lower() if bound else ""
    if bound:
        predicate = f"{predicate[: bound.start()]}{predicate[bound.end() :]}"
    denied = (denials + bool(match["not"])) % 2 == 1
    limit = Bound(op in _ABOVE, op in _EQUAL_TOO) if bound else None
    return Claim(
        text, auxiliary, _plain(subject), _plain(predicate), denied, "still" in lowered, limit,
    )  # fmt: skip


def _inverted(text: str) -> str:
    """ "Is it true that Alpha is not sold" as a question of its own: "is Alpha not sold"."""
    match = _TRUE.match(text)
    inner = _INSIDE.search(match["claim"]) if match else None
    if match is None or inner is None:
        return match["claim"] if match else text
    claim = match["claim"]
    return f"{inner[1]} {claim[: inner.start()]}{inner[2] or ''} {claim[inner.end() :]}".replace("  ", " ")


def _without_possessive(text: str) -> str:
    """ "Is Ivo Maric Ada Lind's brother" as "is Ivo Maric the brother of Ada Lind"."""
    match = _OWNED.fullmatch(text)
    if match is None:
        return text
    names = match["names"].split()
    middle = len(names) // 2 if len(names) % 2 == 0 else len(names) // 2 + 1
    return f"{match['be']} {' '.join(names[:middle])} the {match['noun']} of {' '.join(names[middle:])}"


_OWNED = re.compile(
    rf"(?P<be>is|was) (?P<names>[{UPPER_CLASS}][\w.-]*(?: [{UPPER_CLASS}][\w.-]*){{1,4}})['’]s (?P<noun>[a-z]+(?: [a-z]+)?)",
    re.IGNORECASE,
)


def _without_denials(text: str) -> tuple[str, int]:
    """The text less its denials, with a mark left where one stood; their number."""
    count = 0
    kept = []
    text = re.sub(r"\bno longer\b", "not", text, flags=re.IGNORECASE)
    for word in text.split():
        if word.lower().strip(",") in ("not", "never", "n't"):
            count += 1
            kept.append("still")  # it stands where an adverb may: before the predicate
        else:
            kept.append(word)
    return " ".join(kept), count


def _plain(text: str) -> str:
    return " ".join(word for word in text.split() if word.lower().strip(",") not in _ADVERBS).strip(" ,")


def _predicate_start(tokens: list[re.Match[str]], lowered: list[str], auxiliary: str) -> int:
    """The place of the first word of the predicate; 0 if there is none."""
    places = [at for at in range(1, len(tokens)) if lowered[at - 1] not in _DETERMINERS]
    small = [at for at in places if tokens[at][0][0].islower()]
    adverb = next((at for at in small if lowered[at] in _ADVERBS - {"any"} and at + 1 < len(tokens)), 0)
    if adverb:
        return adverb
    if auxiliary not in _BE:
        free = [
            at for at in small if lowered[at - 1] not in _PREPOSITIONS and not lowered[at - 1].endswith(("'s", "s'"))
        ]
        verb = is_participle if auxiliary in ("has", "have", "had") else is_base
        known = next((at for at in free if verb(lowered[at]) or lowered[at] == "be"), 0)
        return known or _after_name(tokens, free) or next((at for at in free if _ends_subject(tokens, at)), 0)
    return _after_be(tokens, lowered, small)


def _ends_subject(tokens: list[re.Match[str]], at: int) -> bool:
    """Return whether a word that no list knows stands where a verb does: in front of a preposition, an article or a name."""
    after = tokens[at + 1][0] if at + 1 < len(tokens) else ""
    return not after or not after[0].islower() or after.lower() in _PREPOSITIONS | _DETERMINERS


def _after_be(tokens: list[re.Match[str]], lowered: list[str], small: list[int]) -> int:
    verbs = [at for at in small if _is_state(lowered[at])]
    free = [at for at in small if lowered[at - 1] not in _PREPOSITIONS]
    article = next((at for at in free if lowered[at] in ("a", "an", "the") and not _is_joined(lowered, at)), 0)
    described = next((at for at in free if has_opposite(lowered[at]) and _describes(lowered, at)), 0)
    measured = next((at for at in range(1, len(tokens) - 1) if _is_measured(tokens, at)), 0)
    firsts = [at for at in (next(iter(verbs), 0), article, described, measured, _after_name(tokens, free)) if at]
    if firsts:
        return min(firsts)
    prepositions = [at for at in small if lowered[at] in _PREPOSITIONS and lowered[at] != "of"]
    return next(iter(prepositions), 0) or len(tokens) - 1


def _is_joined(lowered: list[str], at: int) -> bool:
    """Return whether an article continues the subject: "the hall and the gym", "the plan to paint the hall"."""
    return lowered[at - 1] in ("and", "or") or lowered[max(at - 2, 0)] == "to"


def _describes(lowered: list[str], at: int) -> bool:
    """Return whether a word with an opposite is no preposition here: "on by default", not "on the table"."""
    if lowered[at] not in _PREPOSITIONS | {"on", "off", "inside", "outside", "left", "right"}:
        return True
    return at + 1 == len(lowered) or lowered[at + 1] in _PREPOSITIONS | {"during", "when", "while", "again"}


def _is_measured(tokens: list[re.Match[str]], at: int) -> bool:
    """Return whether a number with a unit begins here: "88 m deep"."""
    return tokens[at][0][0].isdigit() and is_unit(tokens[at + 1][0]) and tokens[at - 1][0].lower() not in _PREPOSITIONS


def _is_state(word: str) -> bool:
    return is_participle(word.removeprefix("un")) or (word.startswith("un") and is_participle(word[2:]))


def _after_name(tokens: list[re.Match[str]], small: list[int]) -> int:
    """The first small word right behind a name, if it is no preposition or conjunction."""
    for at in small:
        before, word = tokens[at - 1][0], tokens[at][0].lower()
        if not before[0].islower() and word not in _PREPOSITIONS | {"and", "or", "who", "that", "which"}:
            return at
    capital = next((at for at in range(1, len(tokens)) if at not in small and tokens[at - 1][0][0].islower()), 0)
    return capital if not small else 0


def content_words(text: str) -> list[str]:
    """Return the words of a text in lower case, less stop words, denials and those inside values.

    Args:
        text: The text, values blanked.
    """
    found = (match[0].lower().strip("'’") for match in _WORD.finditer(text))
    return [*(word for word in found if _is_content(word)), *(match[0] for match in _SWITCH.finditer(text))]


# "on by default"; before a noun it is a preposition
_SWITCH = re.compile(r"\b(?:on|off)\b(?=$|[.,;!?]|\s+(?:by|at|in|during|when|while|for|again)\b)")


def _is_content(word: str) -> bool:
    return word not in STOPWORDS and word not in _ADVERBS and (word not in DENIALS or has_opposite(word))
