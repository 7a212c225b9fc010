"""Shortfalls of an answer: the question asks for more than a single value in one passage.

A reader marks one span of one passage. If a question asks for a sum, a difference, an average, a count, all of several
things, the rest after an exclusion, or a number in a certain unit, a span is right only if its passage states the
result. The checks look for words of such questions that are missing from the answer's evidence.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.embedded.lexicon import words
from pyrag.embedded.question_analysis import QuestionAnalysis
from pyrag.embedded.reader.checks.asked_form import other_form
from pyrag.embedded.reader.checks.quantity_asked import other_unit, uncounted
from pyrag.embedded.reader.claims.figures import other_subject
from pyrag.embedded.words import fold
from pyrag.trace.sentences import split_sentences
from pyrag_helpers.measures.amounts import read_amounts
from pyrag_helpers.measures.units import NO_UNIT

_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?|thousands?)\b", re.I
)
_ASKS_NUMBER = r"(?:how (?:many|much)|what number|total|sum|amount|number)"
_MEASURES = (
    "longer|taller|higher|heavier|wider|deeper|older|younger|larger|bigger|smaller|shorter|lower|lighter|faster|slower"
    "|thicker|thinner|warmer|colder|hotter|cheaper|dearer|later|earlier|closer|farther|further|greater|narrower|shallower"
)
# Words of a question, and the words by which evidence states the result itself.
_COMBINING = (
    (
        "a sum",
        re.compile(
            rf"\b{_ASKS_NUMBER}\b.*\b(?:together|combined|altogether|in (?:total|sum|all)|overall|jointly|both|added up|summed)\b"
            rf"|\b(?:together|combined|altogether|in (?:total|sum|all)|overall|jointly|adding|summing)\b.*\b{_ASKS_NUMBER}\b"
            r"|\b(?:together|combined|altogether|in (?:total|sum|all)|jointly)\b"
            rf"|\b{_ASKS_NUMBER}\b.*\b(?:the|these|those|our|all) (?:two|three|four|five|six|seven|eight|nine|ten)\b"
            r"|\b(?:sum|totals?) of\b|\btotal (?:[a-z]+ ){1,3}of\b.*\band\b|\btotal (?:number|amount|sum|cost|costs|price|expenses?|spending|sales|revenue|hours|time)\b"
            r"|\bcombined (?:[a-z]+ )?[a-z]+ of\b|\b(?:add up|adds up|amounts?) to\b.*\btogether\b|\bgrand total\b",
            re.I,
        ),
        re.compile(r"\b(?:totals?|totall?ed|sum|together|combined|altogether|in all|overall|jointly|both|grand|adds? up|two|three|four|five|six|seven|eight|nine|ten)\b", re.I),
    ),
    (
        "a difference",
        re.compile(
            rf"\bhow (?:many|much) (?:[a-z-]+ ){{0,3}}?(?:more|fewer|less|{_MEASURES})\b|\bby how (?:many|much)\b|\bhow (?:many|much)\b.*\bexceeds?\b"
            r"|\b(?:difference|gap|margin) (?:between|in|of|from)\b|\bhow (?:many|much) .*\b(?:left over|remain(?:s|ing)?|are left|is left|still missing|saved?)\b"
            r"|\bhow (?:many (?:days|weeks|months|years|hours|minutes)|long) .*\b(?:after|before|between|lie|passed|elapsed|apart)\b.*\b(?:and|did|was|were|is|are)\b",
            re.I,
        ),
        re.compile(rf"\b(?:more|fewer|less|difference|gap|margin|exceed(?:s|ed)?|than|{_MEASURES}|left|remain\w*|saved?|missing|after|before|later|earlier|apart|within|between|ago|lasted|took|takes)\b", re.I),
    ),
    (
        "an average",
        re.compile(r"\bon average\b|\b(?:the|an?) (?:[a-z]+ )?(?:average|mean|median)\b|\baverage (?:number|[a-z]+) (?:of|per)\b", re.I),
        re.compile(r"\b(?:average|averages|averaging|averaged|mean|median|typically)\b", re.I),
    ),
    (
        "a share",
        re.compile(r"\b(?:percentage|per cent|percent|proportion|share|fraction|ratio) (?:of|in)\b|\bwhat (?:percentage|percent|per cent|proportion|fraction)\b", re.I),
        re.compile(r"%|\b(?:percent\w*|per cent|half|third|quarters?|fifth|tenth|of the|ratio|share|all|none|majority)\b|\d ?: ?\d|\d/\d", re.I),
    ),
)  # fmt: skip
_RANKED = re.compile(
    r"\b(?:most|least|fewest|highest|lowest|largest|smallest|biggest|greatest|longest|shortest|tallest|deepest|heaviest|lightest|cheapest|oldest|youngest|newest"
    r"|fastest|slowest|widest|dearest|maximum|minimum|first by|latest|earliest|(?:second|third)[- ][a-z]+est)\b(?! (?:of all|common|famous|popular|important|notable|likely|recent|well))",
    re.I,
)
_STATES_RANK = re.compile(
    r"\b(?:most|least|fewest|[a-z]{2,}est|maximum|minimum|first|last|top|record|worst|only|main|chief|leading|more than any|unmatched|foremost|peak)\b",
    re.I,
)
_LIMITED = re.compile(
    r"\b(?:more than|fewer than|less than|at least|at most|over|under|above|below|exceeding|up to|no more than) (?:[$€£] ?)?(?P<limit>\d[\d,.]*\d|\d)",
    re.I,
)
_EXCLUDING = re.compile(
    r"\b(?:[Nn]either|nor|[Nn]one of|[Nn]obody|[Nn]o one|[Ee]xcept(?:ing)?(?: for)?|[Oo]ther than|[Aa]part from|[Bb]esides|[Aa]side from|excluding"
    r"|instead of|but not|not only|[Ww]ithout)\b"
)
_STATES_EXCLUSION = re.compile(
    r"\b(?:neither|nor|none|nobody|no|not|never|except\w*|other|apart|besides|without|excluding|only|instead|but|un\w+|in\w+ible)\b|n't\b",
    re.I,
)
_NEGATED = re.compile(r"\b(?:not|never|cannot)\b|(?<=[a-z])n't\b")
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|nor|neither|none|without|lack(?:s|ed|ing)?|fail(?:s|ed)?|refused?|declin(?:es|ed)|missing|missed|absent|absence|apologies|except|only"
    r"|reject(?:s|ed)?|cancel\w*|open|pending|un[a-z]{3,}|in(?:complete|active|valid)|still|yet|to do|todo|outstanding|excused|sorry|out of|dropped|removed|stopped|sick|ill)\b|n't\b",
    re.I,
)
_ALL = re.compile(r"\b(?:all|every|everyone|everybody|everything|each|any|anyone|anybody)\b", re.I)
_STATES_ALL = re.compile(
    r"\b(?:all|every|everyone|everybody|everything|each|both|none|no|nobody|any|always|whole|entire|complete\w*|unanimous\w*)\b",
    re.I,
)
_LISTING = re.compile(
    r"(?:please )?(?:list|name|give|enumerate|mention|tell me|show)(?: me)? (?:all|every|each|both|the (?:[a-z-]+ ){0,3}(?-i:[a-z]*[a-rt-z]s\b(?<!us)))|\bwhat are (?:all|the names of)\b|\bwhich (?:ones|of (?:the|these|those|them) [a-z ]*(?:are|were|have|do)\b)|\bwho all\b|\bwho are (?:all|the)\b",
    re.I,
)
_PLURAL = re.compile(
    r"(?:which|what) (?:two |three |four |five |several |other |of the |of our )?(?:[a-z-]+ )?(?P<noun>people|men|women|children|persons|[a-z-]*[a-rt-z]s) (?:(?:in|of|at|from|on|for|by|with) (?:the |our )?[\w' ]{1,40}? )?(?:are|were|have|do|did not|don't|need|belong|come|lie|stand|work|use|cost|weigh|contain)\b",
    re.I,
)
_NAME = re.compile(r"(?<=\s)[A-Z][\w'’.-]*(?<![.])")
_ASKS_HOW_MANY = re.compile(r"\b(?:how (?:many|much)|number of)\b", re.I)
_PAIR = re.compile(
    r"\b([A-Z][\w-]+)(?: and| plus|,| &| with)(?: the)?(?: [a-z]+)? ([A-Z][\w-]+)(?![^?]*\b(?:than|or)\b)"
)
_OURS = re.compile(r"\bdo (?:we|you|they) (?:have|own|keep|sell|list|employ|offer|stock)\b", re.I)
_STATES_OURS = re.compile(r"\b(?:we|our|us|total|all|altogether|they|there are)\b", re.I)
_OF_ALL = re.compile(r"\b(?:all|every|each)(?: of)?(?: the| our| my| your| these| those)? [a-z]", re.I)
_STATES_TOTAL = re.compile(r"\b(?:all|every|each|totals?|together|altogether|overall|both|whole|entire|per)\b", re.I)
_WITH_ALL = re.compile(r"\b(?:all|both|every|each)\b")
_STATES_MANY = re.compile(r"\b(?:all|both|every|each|and|entire|whole|any|throughout|together)\b|,", re.I)
_SINGULAR = words(
    "news species series always was has does this its process address status class access progress business success"
)
_SEVERAL = re.compile(r",|;|\band\b|&|\n|\ball\b|\bboth\b|\bnone\b|\bno\b|\bevery\b", re.I)
_EITHER = re.compile(
    r"^(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|should) .+? or (?:the |an? )?(?=(?:[a-z]+ ){0,2}(?-i:[^a-z\s]))",
    re.I,
)
_FIELDS = re.compile(r"; [^;:\n]{1,40}: ")  # in a record of "name: value; name: value"
_YES_NO = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.I)


def shortfall(analysis: QuestionAnalysis, text: str, answer: str, title: str = "") -> str:
    """Return what an answer lacks of what its question asks for, or "".

    Args:
        analysis: The question.
        text: Text of the passage that the answer was read from.
        answer: The answer.
        title: Title of the passage.
    """
    question = _NAME.sub("X", re.sub(r"[\"“][^\"”]*[\"”]", "X", analysis.question))
    evidence = evidence_of(text, answer)
    if _FIELDS.search(answer):
        return "it runs over several fields of a record"
    if analysis.kind in ("yesno", "choice"):
        return _of_verdict(question, text, answer)
    return (
        _uncombined(question, evidence, answer)
        or _of_one_name(analysis.question, evidence, answer)
        or _incomplete(question, evidence, answer)
        or other_unit(question, text, evidence, answer)
        or uncounted(question, text, evidence, answer)
        or _several_amounts(question, answer)
        or other_form(analysis.question, evidence, answer)
        or other_subject(analysis.question, title, text, evidence, answer)
    )


def evidence_of(text: str, answer: str) -> list[str]:
    """Return the sentences, split by line, that contain an answer; the whole text if there are none.

    Args:
        text: Text of the passage.
        answer: The answer as written in the text.
    """
    wanted = f" {fold(answer)} "
    lines = [line for line in text.splitlines() if line.strip()]
    pieces = [line[start:stop] for line in lines for start, stop in split_sentences(line)]
    return [piece for piece in pieces if wanted in f" {fold(piece)} "] or [text]


def _any(pattern: re.Pattern[str], evidence: Sequence[str]) -> bool:
    return any(pattern.search(piece) for piece in evidence)


def _uncombined(question: str, evidence: Sequence[str], answer: str) -> str:
    """Return the computation that the question asks for, if it was neither made nor stated."""
    for name, asked, stated in _COMBINING:
        if asked.search(question) and _NUMBER.search(answer) and not _any(stated, evidence):
            return f"{name} is asked for, and this is one value of it"
    return ""


def _several_amounts(question: str, answer: str) -> str:
    """Return a reason if an answer is not the single requested amount: "3 m long and 240 cm"."""
    if not re.match(r"how (?!many times|old)[a-z]+\b", question, re.I):
        return ""
    amounts = [amount for amount, _ in read_amounts(re.sub(r"\([^)]*\)", " ", answer))]
    counted = [amount for amount in amounts if amount.unit is not NO_UNIT or not 1500 <= amount.value <= 2100]
    return "one amount is asked for, and these are several" if len(counted) > 1 else ""


def _of_one_name(question: str, evidence: Sequence[str], answer: str) -> str:
    """Return a reason if a number is not about one of two named things, or not about everything that "we" have."""
    if not _ASKS_HOW_MANY.search(question) or not _NUMBER.search(answer):
        return ""
    pair = _PAIR.search(question)
    if pair and not any(all(name in piece for name in pair.groups()) for piece in evidence):
        return "the number of two things is asked for, and this is the number of one"
    if _OF_ALL.search(question) and not _any(_STATES_TOTAL, evidence):
        return "the number of all is asked for, and this may be the number of one"
    if _OURS.search(question) and not _any(_STATES_OURS, evidence):
        return "the number of all is asked for, and this may be the number of one"
    return ""


def _incomplete(question: str, evidence: Sequence[str], answer: str) -> str:
    """Return a reason if a name or value is not everything requested, or is excluded by the question."""
    limit = _LIMITED.search(question)
    if limit and fold(limit["limit"]) == fold(answer):
        return "it is the limit that the question names"
    if _RANKED.search(question) and _in_records(evidence):
        return "the question ranks things, and this is from one record"
    if _RANKED.search(question) and not _any(_STATES_RANK, evidence):
        return "the question ranks things, and the passage does not"
    if _EXCLUDING.search(question) and not _any(_STATES_EXCLUSION, evidence):
        return "the question excludes some, and the passage excludes nothing"
    if _NEGATED.search(question) and not _YES_NO.match(question) and not _any(_NEGATION, evidence):
        return "the question asks for what is not so, and the passage denies nothing"
    plural = _PLURAL.match(question)
    if _WITH_ALL.search(question) and not _any(_STATES_MANY, evidence):
        return "all of several things are asked about, and this may be about one of them"
    several = _LISTING.match(question) or (plural and plural["noun"].lower() not in _SINGULAR)
    if several and not _SEVERAL.search(answer):
        return "several things are asked for, and this may be one of them"
    if several and _in_records(evidence):
        return "several things are asked for, and this is from one record"
    return ""


def _in_records(evidence: Sequence[str]) -> bool:
    """Return whether the evidence is a row of a table or a record of fields."""
    return any(piece.count("|") > 2 or len(re.findall(r"[^\W\d_]: ", piece)) > 2 for piece in evidence)


def _of_verdict(question: str, text: str, answer: str) -> str:
    """Return a reason if "yes", "no" or a choice cannot be read from a passage."""
    is_verdict = answer.lower() in ("yes", "no")
    if is_verdict and _EITHER.search(question):
        return "one of two things is asked for"
    if is_verdict and _ALL.search(question) and not _STATES_ALL.search(_without_table(text)):
        return "all of several things are asked about, and this may be about one of them"
    return ""


def _without_table(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.count("|") < 2)
