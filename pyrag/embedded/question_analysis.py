"""Analysis of a question: the relation and entity it asks about, and the kind of its answer.

The wordings of relations are in `pyrag.embedded.relations`. This module adds the words around the entity, and the kinds
of answers that nouns ask for. It only looks at the question, not at passages.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from dataclasses import dataclass

from pyrag.agents.goals.goal_types import YES_NO
from pyrag.embedded.lexicon import words
from pyrag.embedded.lexicon.things import PERIODICAL_KINDS, WORK_KINDS
from pyrag.embedded.lexicon.word_classes import BE, DO, OPENING_AUXILIARY
from pyrag.embedded.relations.table import RELATIONS
from pyrag.embedded.words import fold, without_possessive
from pyrag.trace.sentences import UPPER_CLASS, tidy

_ASKED = tuple((each.name, each.kind, re.compile(each.asked, re.IGNORECASE)) for each in RELATIONS if each.asked)
_YESNO = re.compile(rf"^{OPENING_AUXILIARY}\b", re.I)
_SHAPE = re.compile(
    r"\b(?:who|whom|what|which(?: \w+)?|when|where|why|how(?: many| much| long| old)?(?: \w+)?)\s+(\w+)", re.I
)
_FACTS_MARK = re.compile(r"\s*+given:?", re.I)
_QUESTION = re.compile(r"answer the question:?", re.I)
_MAX_CHARACTERS = 2_000  # of a question, since the time that patterns take may grow with its square


@dataclass(frozen=True, slots=True)
class QuestionAnalysis:
    """Analysis of one question.

    Args:
        question: The question, tidied and shortened.
        relation: Name of the relation that it asks for. Empty if no known wording fits.
        kind: Kind of the answer, such as "person", "date", "choice" or "yesno".
        subject: Entity that it asks about. Empty if no known wording fits.
        wh: Question word in lower case, such as "who" or "how many". Empty without one.
        head: Noun after "which", "what" or "whose", in lower case. Empty without a noun.
        options: The two alternatives of an either-or question, else empty.
        year_only: True if the answer is a year, not a full date.
        shape: What the question asks for: the doer ("subject"), the thing done ("object"), what something is ("be"), or
            "other".
    """

    question: str
    relation: str
    kind: str
    subject: str
    wh: str
    head: str = ""
    options: tuple[str, ...] = ()
    year_only: bool = False
    shape: str = "other"

    @property
    def folded(self) -> str:
        """The question in the normal form of `fold`."""
        return fold(self.question)


def split_aggregation(query: str) -> tuple[str, str]:
    """Split "Given: … Answer the question: …" into facts and question.

    If the query has another form, the facts are empty.
    """
    facts_mark = _FACTS_MARK.match(query)
    question_mark = _QUESTION.search(query, facts_mark.end()) if facts_mark else None
    if facts_mark is None or question_mark is None:
        return "", query.strip()
    facts = query[facts_mark.end() : question_mark.start()].strip()
    return facts.removesuffix(".").strip(), query[question_mark.end() :].strip()


def analyse(question: str) -> QuestionAnalysis:
    """Return the analysis of a question, which may also have the form "X >> relation"."""
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
    if kind == "place" and re.search(r"\b(?:what|which) (?:\w+ ){0,2}?islands?\b", question, re.I):
        kind = "island"
    subject = subject.strip() if arrow else _subject(question, match)
    year_only = bool(
        re.search(r"\b(?:what|which) year\b|\byear of\b|\b(?:birth|death|release|founding) year\b", question, re.I)
    )
    return QuestionAnalysis(question, relation, kind, subject, wh, head, options, year_only, _shape(question))


def _shape(question: str) -> str:
    """Return the shape of a question: "subject", "object", "be" or "other"."""
    match = _SHAPE.search(question)
    word = match.group(1).lower() if match else ""
    if word in DO:
        return "object"
    if word in BE:
        return "be"
    return "subject" if word else "other"


def _mask(question: str) -> str:
    """Return a question with quoted and capitalised words blanked out, so that no title is mistaken for a relation."""
    blank = re.sub(r"[\"“][^\"”]+[\"”]", lambda match: "X" * len(match.group()), question)
    return re.sub(rf"(?<=\s)[{UPPER_CLASS}][\w'’.-]*\w(?<!['’]s)", lambda match: "X" * len(match.group()), blank)


def _relation(text: str) -> tuple[str, str, re.Match[str] | None]:
    """Return the first relation whose wording occurs in a text: its name, the kind of its answer, and the match."""
    for name, kind, pattern in _ASKED:
        match = pattern.search(text)
        if match:
            return name, kind, match
    return "", "", None


def _wh_word(question: str) -> str:
    """Return the question word in lower case; empty without a question word."""
    match = re.search(
        r"\b(who|whom|whose|what|which|when|where|why|how many|how much|how long|how old|how|name)\b", question, re.I
    )
    return match.group(1).lower() if match else ""


def _head_noun(question: str) -> str:
    """Return the noun after "which", "what" or "whose"; empty without a noun."""
    match = _HEAD.search(question)
    return match.group(1).split()[-1].lower() if match and match.group(1) else ""


def _plain_kind(wh: str, head: str, question: str) -> str:
    """Return the kind of answer that the question word or a noun asks for, ignoring relations."""
    if wh in _KIND_OF_WH:
        return _KIND_OF_WH[wh]
    head_phrase = re.search(
        r"\b(?:what|which) (?:is|was|are|were) the (?:name of the )?((?:[\w-]+ )?[\w-]+)", question, re.I
    )
    for word in (head, *(head_phrase.group(1).lower().split() if head_phrase else ())):
        singular = word.removesuffix("s") if word not in _KIND_OF_HEAD else word
        if singular in _KIND_OF_HEAD:
            return _KIND_OF_HEAD[singular]
    return "thing"


def choice_options(question: str) -> tuple[str, ...]:
    """Return the two alternatives of "…, A or B?"; empty if the question offers none."""
    if not re.search(r"\bor\b|\bbetween\b", question, re.I):
        return ()
    for pattern in _CHOICE:
        match = pattern.search(question)
        if match:
            left, right = (re.sub(r"^the (?=[a-z])", "", group.strip(' ,"“”')) for group in match.groups())
            return (left, right) if left and right else ()
    return ()


def _subject(question: str, match: re.Match[str] | None) -> str:
    """Return the entity that a question asks about.

    It is the text that remains without question words and the words of the relation. If text remains on both sides, the
    side with more capital letters is used.
    """
    if match is None:
        return ""
    words = re.sub(r"[\"“”]", " ", question).strip()
    if _LEAD.match(words[:1].lower() + words[1:]) or _NOUNS.match(words[:1].lower() + words[1:]):
        words = words[:1].lower() + words[1:]
    pieces = [words]
    inner = _NOUNS.search(words)
    if inner:
        pieces = [words[: inner.start()], words[inner.end() :]]
    stripped = [_TAIL.sub("", _LEAD.sub("", piece)).strip(" ?,.") for piece in pieces]
    longest = max(stripped, key=lambda text: (sum(word[:1].isupper() for word in text.split()), len(text)))
    longest = _CUT.sub("", longest) if _CUT.sub("", longest)[:1].isupper() else longest
    return without_possessive(_PLACE_OF.sub("", longest)).strip()


# Words that follow a name without being part of it: "X as a student", "X active in Y", "X king of Y".
_CUT = re.compile(
    r"\s+(?:as an? [a-z].*|(?:both )?(?:active|alive|in office|in power|on the throne|king|queen|emperor|empress"
    r"|president|prime minister|chancellor|pope|governor|mayor|reign|rule)\b.*)$"
)
_PLACE_OF = re.compile(r"^(?:island|city|town|village|river|state|country|province|municipality) (?:of )?(?=[^a-z\s])")
_KIND_OF_HEAD: dict[str, str] = {
    **dict.fromkeys(("year", "date", "day", "month", "decade", "century", "time", "period", "era"), "date"),
    **dict.fromkeys(words("""
        person man woman actor actress singer player president king queen author writer artist leader scientist
        character musician general emperor politician philosopher director composer queen pope coach architect
        explorer
    """), "person"),
    **dict.fromkeys(words("""
        city town place location region area village river lake mountain island street building stadium venue
        airport hotel church
    """), "place"),
    **dict.fromkeys(("country", "nation"), "country"),
    "state": "state", "county": "county", "continent": "continent", "province": "place", "language": "language", "nationality": "nationality",
    **dict.fromkeys(words("""
        company organization organisation university school college team band group club party agency studio network
    """), "organisation"),
    **dict.fromkeys(words("""
        number percentage percent amount population age rank ranking height length size temperature area code
        distance
    """), "number"),
    **dict.fromkeys(("award", "prize", "medal"), "award"),
    **dict.fromkeys(WORK_KINDS | PERIODICAL_KINDS | words("title work"), "work"),
}  # fmt: skip
# Words around the subject, in lower case only, since a capital belongs to a name. `_subject` lowers the first letter.
_LEAD = re.compile(
    r"^(?:(?:who|whom|whose|what|which|when|where|how|why|is|was|are|were|did|does|do|has|had|have|the|a|an|in|at|on|by|of|for|to|from|during|"
    r"name of|name|and|also|that|it|so|as|with|main|original|first|film|movie|song|album|band|book|novel|work|works|located|known|come|single|play|opera|"
    r"place|city|country|year|years|date|location|state|county|company|person|people|exactly|award|awards|prize|medal|political party|party|team|sports team|club|"
    r"instrument|sport|religion|language|official|native|manufacturer|published|released|publisher|screenplay|lyrics|lyricist|music|score|soundtrack|building|designed|painted|"
    r"edited|photographed|presented|distributed|developed|invented|discovered|owns|owned|started|formed|established|starred|stars|taught|editor|painter|presenter|teacher|student|"
    r"doctoral|academic|advis[eo]r|supervisor|supervised|mentored|tutored|advised|taught|under|whom|teacher|mentor|tutor|river|stream|runs?|flows?|passes|through|along|past|reign|high|tall|long|currency|money|used|pay|pays|people|today|now|currently|chairman|chairperson|president|ceo|university|school|college|degree|genre|type|kind|style|doctorates|position|record label|label|kind of|type of)\b[\s,]*|['’]s\s+|[\s,?.:;]+)+"
)
_TAIL = re.compile(  # one mark at a time: a run of n marks could otherwise match in 2^n ways
    r"(?:[\s,?.:;]|['’]s?$|\b(?:born|die|died|located|situated|in|at|on|by|from|of|to|who|whom|what|which|when|where|is|was|are|were|educated|named after|named for|based|"
    r"did|does|do|it|come|for|a|the|with|has|had|been|released|published|founded|established|formed|name|pass away|passed away|buried|member|hold|held|attend|attended|"
    r"work|works|worked|belong|originate|play|plays|played|win|won|receive|received|produced|made|film|movie|song|study|studied|graduate|graduated|created|started|active|reign|ruled?|run|flow|stand|used|lie|marry|married|speak|use)\b['’]?)+$"
)
_NOUNS = re.compile(
    r"\b(?:date of (?:birth|death|publication|release|burial)|place of (?:birth|death|burial)|cause of (?:\S+ )?death|birth ?place|birth ?date|birthday|death date|"
    r"release date|publication date|country of (?:origin|citizenship)|nationality|citizenship|citizen|occupation|profession|employer|educated at|"
    r"award received|capital(?: city)?|headquarters|record label|genre|population|director|composer|producer|screenwriter|performer|singer|author|writer|"
    r"founder|creator|owner|spouse|wife|husband|mother|father|parents?|child(?:ren)?|sons?|daughters?|siblings?|brothers?|sisters?|city of birth|parent company|"
    r"directed|composed|performed|wrote|written|produced|founded|created|married|sang|recorded|languages?|continent|religion|position|label)\b"
)
_CHOICE = (
    re.compile(r"\bbetween\s+(?:the\s+)?(?=(?-i:[A-Z\"]))([^,?]{2,80}?),?\s+(?:or|and)\s+([^,?]{2,80}?)\s*\?*$", re.I),
    re.compile(r"[,:]\s*([^,?]{2,80}?),?\s+or\s+([^,?]{2,80}?)\s*\?*$", re.I),
    re.compile(r",\s*([^?]{2,90}?)\s+or\s+([^?]{2,90}?)\s*\?*$", re.I),
    re.compile(r"^(?:between|of|out of)\s+([^,?]{2,80}?)\s+(?:or|and)\s+([^,?]{2,80}?),\s*(?:who|which|what)\b", re.I),
    re.compile(r"\b((?:[A-Z][\w'’.-]*\s+){1,6})or\s+([A-Z][^?]{1,80}?)\s*\?*$"),
    re.compile(r"\b(?:an?|the)\s+([\w-]+(?: [\w-]+)?)\s+or\s+(?:an?|the)\s+([\w-]+(?: [\w-]+)?)\s*\?*$", re.I),
)
_HEAD = re.compile(
    r"\b(?:what|which|whose)\s+((?:(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|has\b|had\b|have\b)[\w'’-]+\s+){0,3}?[\w'’-]+?)(?:\s+(?:is|are|was|were|do|does|did|has|had|have|of|in|on|that|who|can|would|will|for|from|to|at|by|with)\b|\s+\w+(?:ed|s)\b|\?|$)",
    re.I,
)


_KIND_OF_WH = {
    "who": "person", "whom": "person", "whose": "person", "when": "date", "where": "place", "how many": "number",
    "how much": "number", "how long": "number", "how old": "number", "why": "clause", "how": "clause",
}  # fmt: skip
_NAMED_KINDS = ("who", "whom", "when", "where", "how many")  # question words whose kind of answer has a name


def asked_for(question: str) -> str:
    """Return the kind of answer in one word; empty if the question does not name it.

    The word is the noun after "which" or "what", or a noun for other question words, such as "person" for "who".
    """
    analysis = analyse(question)
    if analysis.kind == "yesno":
        return YES_NO
    if analysis.wh not in ("what", "which"):
        return _KIND_OF_WH[analysis.wh] if analysis.wh in _NAMED_KINDS else ""
    is_named = analysis.head and re.search(
        rf"\b{analysis.wh} (?:(?:is|was|are|were) the )?(?:[\w-]+ )?{analysis.head}\b", question, re.IGNORECASE
    )
    return analysis.head if is_named else ""
