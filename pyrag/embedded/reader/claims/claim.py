"""Claims of yes/no questions: the subject, the predicate, and whether the predicate is denied."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.lexicon.verbs import is_base, is_participle
from pyrag.embedded.lexicon.word_classes import (
    ARTICLES,
    BE,
    DETERMINERS,
    DO,
    HAVE,
    MODALS,
    OPENING_AUXILIARY,
    PREPOSITIONS,
)
from pyrag.embedded.reader.claims.opposites import DENIALS, has_opposite, plain_verbs
from pyrag.embedded.reader.claims.values import Amount, Values, When, is_unit, values_of
from pyrag.embedded.words import STOPWORDS, is_possessive
from pyrag.trace.sentences import UPPER_CLASS, tidy

_TRUE = re.compile(r"^is it (?:true|correct|right|the case) that (?P<claim>.+)$", re.IGNORECASE)
_AUXILIARY = re.compile(
    rf"^(?P<aux>{any_of(BE | DO | HAVE | MODALS)})(?P<not>n't)?\s+"
    r"(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_MAX_WORDS = 60  # longer questions are not read as a claim
_INNER_AUXILIARY = re.compile(rf"\b({OPENING_AUXILIARY})\b\s*(not\b)?", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?P<op>more than|over|above|at least|no fewer than|less than|fewer than|under|below|at most|up to|no more than"
    r"|older than|younger than|longer than|shorter than|higher than|lower than|before|after|since|later than|earlier than)"
    r" (?=(?:the year |about |\$|€|£)?(?:\d|one\b|two\b|three\b|four\b|five\b|six\b|seven\b|eight\b|nine\b|ten\b|twelve\b"
    rf"|twenty\b|thirty\b|fifty\b|a hundred|a thousand|(?:{MONTHS})\b))",
    re.IGNORECASE,
)
_ABOVE = frozenset(
    ("more than", "over", "above", "at least", "no fewer than", "older than", "longer than", "higher than", "after",
     "since", "later than")
)  # fmt: skip
_EQUAL_TOO = frozenset(("at least", "no fewer than", "at most", "up to", "no more than", "since"))
_ADVERBS = words("still ever already yet now currently really actually also indeed today always too even presently any")
_DETERMINERS = DETERMINERS | words("our your my")
_WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\w.,:%-]*")


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound of a value in a claim: "more than 40 members", "before 1700".

    Args:
        above: True if the claim is about values above the bound, False if about values below it.
        equal: True if the bound itself is included.
    """

    above: bool
    equal: bool

    def holds(self, difference: float) -> bool:
        """Return whether a value is within the bound.

        Args:
            difference: The value minus the bound.
        """
        return (self.equal and difference == 0) or (difference > 0 if self.above else difference < 0)


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim of a yes/no question, without denials and adverbs.

    Args:
        question: Question to answer.
        auxiliary: Auxiliary verb that the question starts with.
        subject: Text of the subject.
        predicate: Text of the predicate, without the words of a bound.
        denied: True if the question has an odd number of denials.
        still: True if the question has "still" or a denial.
        bound: Bound on the value of the predicate. None if it has no bound.
    """

    question: str
    auxiliary: str
    subject: str
    predicate: str
    denied: bool
    still: bool
    bound: Bound | None

    @property
    def subject_values(self) -> Values:
        """Values in the subject."""
        return values_of(self.subject)

    @property
    def values(self) -> Values:
        """Values in the predicate."""
        return values_of(self.predicate)

    @property
    def limit(self) -> Amount | When | None:
        """Value of the bound, or None."""
        if self.bound is None:
            return None
        values = self.values
        return values.amounts[0] if values.amounts else values.dates[0] if values.dates else None


def read_claim(question: str) -> Claim | None:
    """Return the claim of a yes/no question about one thing, or None for a question of another form."""
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
    """Rewrite "Is it true that Alpha is not sold" as "is Alpha not sold"."""
    match = _TRUE.match(text)
    inner = _INNER_AUXILIARY.search(match["claim"]) if match else None
    if match is None or inner is None:
        return match["claim"] if match else text
    claim = match["claim"]
    return f"{inner[1]} {claim[: inner.start()]}{inner[2] or ''} {claim[inner.end() :]}".replace("  ", " ")


def _without_possessive(text: str) -> str:
    """Rewrite "Is Ivo Maric Ada Lind's brother" as "is Ivo Maric the brother of Ada Lind"."""
    match = _POSSESSIVE.fullmatch(text)
    if match is None:
        return text
    names = match["names"].split()
    middle = len(names) // 2 if len(names) % 2 == 0 else len(names) // 2 + 1
    return f"{match['be']} {' '.join(names[:middle])} the {match['noun']} of {' '.join(names[middle:])}"


_POSSESSIVE = re.compile(
    rf"(?P<be>is|was) (?P<names>[{UPPER_CLASS}][\w.-]*(?: [{UPPER_CLASS}][\w.-]*){{1,4}})['’]s (?P<noun>[a-z]+(?: [a-z]+)?)",
    re.IGNORECASE,
)


def _without_denials(text: str) -> tuple[str, int]:
    """Replace each denial in a text by "still", and count the denials.

    Like a denial, the adverb "still" marks the start of the predicate.
    """
    count = 0
    words = []
    text = re.sub(r"\bno longer\b", "not", text, flags=re.IGNORECASE)
    for word in text.split():
        if word.lower().strip(",") in ("not", "never", "n't"):
            count += 1
            words.append("still")
        else:
            words.append(word)
    return " ".join(words), count


def _plain(text: str) -> str:
    """Return a text without adverbs."""
    return " ".join(word for word in text.split() if word.lower().strip(",") not in _ADVERBS).strip(" ,")


def _predicate_start(tokens: list[re.Match[str]], lowered: list[str], auxiliary: str) -> int:
    """Return the position of the first word of the predicate, or 0 if it is not recognised."""
    positions = [at for at in range(1, len(tokens)) if lowered[at - 1] not in _DETERMINERS]
    lower_case = [at for at in positions if tokens[at][0][0].islower()]
    adverb = next((at for at in lower_case if lowered[at] in _ADVERBS - {"any"} and at + 1 < len(tokens)), 0)
    if adverb:
        return adverb
    if auxiliary not in BE:
        possible = [
            at for at in lower_case if lowered[at - 1] not in PREPOSITIONS and not is_possessive(lowered[at - 1])
        ]
        is_verb = is_participle if auxiliary in HAVE else is_base
        verb_at = next((at for at in possible if is_verb(lowered[at]) or lowered[at] == "be"), 0)
        return verb_at or _after_name(tokens, possible) or next((at for at in possible if _ends_subject(tokens, at)), 0)
    return _after_be(tokens, lowered, lower_case)


def _ends_subject(tokens: list[re.Match[str]], at: int) -> bool:
    """Return whether an unknown word is in a verb's position: before a preposition, an article or a name."""
    after = tokens[at + 1][0] if at + 1 < len(tokens) else ""
    return not after or not after[0].islower() or after.lower() in PREPOSITIONS | _DETERMINERS


def _after_be(tokens: list[re.Match[str]], lowered: list[str], lower_case: list[int]) -> int:
    """Return the position of the predicate after "is": its first participle, article, adjective or measure."""
    participles = [at for at in lower_case if _is_participle(lowered[at])]
    possible = [at for at in lower_case if lowered[at - 1] not in PREPOSITIONS]
    article = next((at for at in possible if lowered[at] in ARTICLES and not _is_joined(lowered, at)), 0)
    described = next((at for at in possible if has_opposite(lowered[at]) and _describes(lowered, at)), 0)
    measured = next((at for at in range(1, len(tokens) - 1) if _is_measured(tokens, at)), 0)
    starts = [
        at for at in (next(iter(participles), 0), article, described, measured, _after_name(tokens, possible)) if at
    ]
    if starts:
        return min(starts)
    prepositions = [at for at in lower_case if lowered[at] in PREPOSITIONS and lowered[at] != "of"]
    return next(iter(prepositions), 0) or len(tokens) - 1


def _is_joined(lowered: list[str], at: int) -> bool:
    """Return whether an article continues the subject, as in "the hall and the gym", "the plan to paint the hall"."""
    return lowered[at - 1] in ("and", "or") or lowered[max(at - 2, 0)] == "to"


def _describes(lowered: list[str], at: int) -> bool:
    """Return whether a word describes a state, as "on" in "on by default", rather than opening a phrase ("on the table")."""
    if lowered[at] not in PREPOSITIONS | {"on", "off", "inside", "outside", "left", "right"}:
        return True
    return at + 1 == len(lowered) or lowered[at + 1] in PREPOSITIONS | {"during", "when", "while", "again"}


def _is_measured(tokens: list[re.Match[str]], at: int) -> bool:
    """Return whether a number with a unit starts at a position, as in "88 m deep"."""
    return tokens[at][0][0].isdigit() and is_unit(tokens[at + 1][0]) and tokens[at - 1][0].lower() not in PREPOSITIONS


def _is_participle(word: str) -> bool:
    """Return whether a word is a participle, with or without "un-": "unpaid"."""
    return is_participle(word.removeprefix("un")) or (word.startswith("un") and is_participle(word[2:]))


def _after_name(tokens: list[re.Match[str]], candidates: list[int]) -> int:
    """Return the first candidate that follows a name and is neither a preposition nor a conjunction, or 0.

    Without candidates, return the position after the first lower-case word.
    """
    for at in candidates:
        before, word = tokens[at - 1][0], tokens[at][0].lower()
        if not before[0].islower() and word not in PREPOSITIONS | {"and", "or", "who", "that", "which"}:
            return at
    if candidates:
        return 0
    return next((at for at in range(1, len(tokens)) if tokens[at - 1][0][0].islower()), 0)


def content_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without stop words and denials.

    Args:
        text: Text whose values were replaced by spaces.
    """
    words = (match[0].lower().strip("'’") for match in _WORD.finditer(text))
    return [*(word for word in words if _is_content(word)), *(match[0] for match in _SWITCH.finditer(text))]


# "on" and "off" as in "on by default"; before a noun they are prepositions
_SWITCH = re.compile(r"\b(?:on|off)\b(?=$|[.,;!?]|\s+(?:by|at|in|during|when|while|for|again)\b)")


def _is_content(word: str) -> bool:
    """Return whether a word carries meaning: it is not a stop word, adverb or denial."""
    return word not in STOPWORDS and word not in _ADVERBS and (word not in DENIALS or has_opposite(word))
