"""Analysis of a question: the relation it asks for, the entity it asks about, and the kind of answer.

Reads the question only. Wordings are patterns over the question's text, tried in order; the first that fits wins, so
narrow relations come before wide ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.embedded.question_wordings import CHOICE, HEAD, KIND_OF_HEAD, LEAD, NOUNS, RELATIONS, TAIL
from pyrag.embedded.words import UPPER_CLASS, fold, tidy

_COMPILED = tuple((name, kind, re.compile(pattern, re.IGNORECASE)) for name, kind, pattern in RELATIONS)
_YESNO = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.I)
_SHAPE = re.compile(
    r"\b(?:who|whom|what|which(?: \w+)?|when|where|why|how(?: many| much| long| old)?(?: \w+)?)\s+(\w+)", re.I
)
_GIVEN = re.compile(r"\s*+given:?", re.I)
_ASKED = re.compile(r"answer the question:?", re.I)
_MAX_CHARACTERS = 2_000  # characters of a question; what patterns take may grow with the square of it


@dataclass(frozen=True, slots=True)
class QuestionAnalysis:
    """The analysis of one question. `relation` is "" and `subject` "" where no known wording fits."""

    question: str
    relation: str
    kind: str
    subject: str
    wh: str
    head: str = ""
    options: tuple[str, ...] = ()
    year_only: bool = False
    shape: str = (
        "other"  # what the question is after: the doer ("subject"), the thing done ("object"), what it is ("be")
    )

    @property
    def folded(self) -> str:
        return fold(self.question)


def split_aggregation(query: str) -> tuple[str, str]:
    """Facts and question of "Given: … Answer the question: …"; no facts where the query has another form."""
    given = _GIVEN.match(query)
    asked = _ASKED.search(query, given.end()) if given else None
    if given is None or asked is None:
        return "", query.strip()
    facts = query[given.end() : asked.start()].strip()
    return facts.removesuffix(".").strip(), query[asked.end() :].strip()


def analyse(question: str) -> QuestionAnalysis:
    question = tidy(question)[:_MAX_CHARACTERS]
    subject, arrow, relation_text = question.rpartition(">>")
    asked = relation_text.strip() if arrow else question
    relation, kind, match = _relation(_mask(asked) if not arrow else asked)
    wh = _wh_word(question)
    if kind == "person" and not arrow and wh in ("when", "where", "why", "how many", "how much", "how long"):
        relation = ""  # "how many films did he direct" does not ask for a director
    head = _head_noun(question)
    options = () if arrow else choice_options(question)
    if options:
        kind = "choice"
    elif not arrow and _YESNO.match(question) and wh in ("", "that"):
        kind = "yesno"
    elif not relation:
        kind = _plain_kind(wh, head, question)
    if kind == "place" and head in ("country", "state", "county"):
        kind = head
    subject = subject.strip() if arrow else _subject(question, match)
    year_only = bool(
        re.search(r"\b(?:what|which) year\b|\byear of\b|\b(?:birth|death|release|founding) year\b", question, re.I)
    )
    return QuestionAnalysis(question, relation, kind, subject, wh, head, options, year_only, _shape(question))


def _shape(question: str) -> str:
    match = _SHAPE.search(question)
    word = match.group(1).lower() if match else ""
    if word in ("do", "does", "did"):
        return "object"
    if word in ("is", "was", "are", "were"):
        return "be"
    return "subject" if word else "other"


def _mask(question: str) -> str:
    """The question with quoted and capitalised words blanked, so that a title is not read as a relation."""
    blank = re.sub(r"[\"“][^\"”]+[\"”]", lambda found: "X" * len(found.group()), question)
    return re.sub(rf"(?<=\s)[{UPPER_CLASS}][\w'’.-]*\w(?<!['’]s)", lambda found: "X" * len(found.group()), blank)


def _relation(text: str) -> tuple[str, str, re.Match[str] | None]:
    for name, kind, pattern in _COMPILED:
        match = pattern.search(text)
        if match:
            return name, kind, match
    return "", "", None


def _wh_word(question: str) -> str:
    found = re.search(
        r"\b(who|whom|whose|what|which|when|where|why|how many|how much|how long|how old|how|name)\b", question, re.I
    )
    return found.group(1).lower() if found else ""


def _head_noun(question: str) -> str:
    match = HEAD.search(question)
    return match.group(1).split()[-1].lower() if match and match.group(1) else ""


def _plain_kind(wh: str, head: str, question: str) -> str:
    if wh in ("who", "whom", "whose"):
        return "person"
    if wh == "when":
        return "date"
    if wh == "where":
        return "place"
    if wh in ("how many", "how much", "how long", "how old"):
        return "number"
    if wh in ("why", "how"):
        return "clause"
    named = re.search(r"\b(?:what|which) (?:is|was|are|were) the (?:name of the )?((?:[\w-]+ )?[\w-]+)", question, re.I)
    for word in (head, *(named.group(1).lower().split() if named else ())):
        singular = word.removesuffix("s") if word not in KIND_OF_HEAD else word
        if singular in KIND_OF_HEAD:
            return KIND_OF_HEAD[singular]
    return "thing"


def choice_options(question: str) -> tuple[str, ...]:
    """The two things offered by "…, A or B?"; none where the question offers no choice."""
    if not re.search(r"\bor\b|\bbetween\b", question, re.I):
        return ()
    for pattern in CHOICE:
        match = pattern.search(question)
        if match:
            left, right = (re.sub(r"^the (?=[a-z])", "", group.strip(' ,"“”')) for group in match.groups())
            return (left, right) if left and right else ()
    return ()


def _subject(question: str, match: re.Match[str] | None) -> str:
    """The entity asked about: the question less its wh-words and the words of the relation, longest side."""
    if match is None:
        return ""
    words = re.sub(r"[\"“”]", " ", question).strip()
    if LEAD.match(words[:1].lower() + words[1:]) or NOUNS.match(words[:1].lower() + words[1:]):
        words = words[:1].lower() + words[1:]
    pieces = [words]
    inner = NOUNS.search(words)
    if inner:
        pieces = [words[: inner.start()], words[inner.end() :]]
    stripped = [TAIL.sub("", LEAD.sub("", piece)).strip(" ?,.") for piece in pieces]
    best = max(stripped, key=lambda text: (sum(word[:1].isupper() for word in text.split()), len(text)))
    best = _CUT.sub("", best) if _CUT.sub("", best)[:1].isupper() else best
    return re.sub(r"['’]s?$", "", _PLACE_OF.sub("", best)).strip()


# What follows a name without being part of it: "X as a student", "X active in Y", "X king of Y".
_CUT = re.compile(
    r"\s+(?:as an? [a-z].*|(?:both )?(?:active|alive|in office|in power|on the throne|king|queen|emperor|empress"
    r"|president|prime minister|chancellor|pope|governor|mayor|reign|rule)\b.*)$"
)
_PLACE_OF = re.compile(r"^(?:island|city|town|village|river|state|country|province|municipality) (?:of )?(?=[^a-z\s])")
