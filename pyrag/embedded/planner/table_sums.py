"""Questions for sums, averages, shares and differences over a table."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterator

from pyrag.embedded.planner.table_patterns import (
    COMPARATIVES,
    PLACE,
    SPENDING,
    VERBS,
    TableQuestion,
    condition_of,
    name_of,
)

_THINGS = r"(?P<first>.+?) (?:and|from) (?P<second>.+)"
_DIFFERENCES = (
    re.compile(
        r"(?:by )?how much (?:more )?(?P<adjective>[a-z]+er|expensive) (?:is|are|was|were) (?P<first>.+?) than (?P<second>.+)",
        re.I,
    ),
    re.compile(
        r"by how much (?:is|are|was|were) (?P<first>.+?) (?:more )?(?P<adjective>[a-z]+er|expensive) than (?P<second>.+)",
        re.I,
    ),
    re.compile(
        r"how (?:much|many) (?P<more>more|less|fewer) (?P<column>[a-z][\w -]*?)? ?(?:do|does|did|has|have|is|are) (?P<first>.+?) (?P<verb>have|has|cost|earn|weigh|make|sell|pay|hold|use|need|seat|employ|carry|contain|get|take|win|score|lose|receive|produce|spend|collect|own|catch|count|deliver)?s? ?than (?P<second>.+)",
        re.I,
    ),
    re.compile(
        rf"(?:what is|what's|how (?:large|big|great|high) is|calculate|compute|give) the difference (?:in|of) (?:the )?(?P<column>[a-z][\w -]*?) (?:between|of) {_THINGS}",
        re.I,
    ),
    re.compile(
        rf"(?:what is|what's|how (?:large|big|great|high) is) the difference between the (?P<column>[a-z][\w -]*?)s? of {_THINGS}",
        re.I,
    ),
    re.compile(r"by how (?:many|much) (?P<column>[a-z]+ )?(?:do|does|did) (?P<first>.+?) exceed (?P<second>.+)", re.I),
)


def differences(text: str) -> Iterator[TableQuestion]:
    """Yield the differences between two rows that a question may ask for.

    Args:
        text: The question in one line, without a question mark.
    """
    for pattern in _DIFFERENCES:
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            adjective, verb = (parts.get("adjective") or "").lower(), (parts.get("verb") or "").lower()
            column = parts.get("column") or COMPARATIVES.get(adjective) or VERBS.get(verb, "")
            if not adjective or column:
                yield TableQuestion("difference", column.strip(), (name_of(match["first"]), name_of(match["second"])))


_SHARE = re.compile(
    r"(?:(?:what|which) (?:is|was) the )?(?:what |which )?(?:percentage|percent|per cent|share|proportion|fraction) of (?:the |our |all )*(?:total )?"
    r"(?P<whole>[a-z].*?) (?:is|are|was|were|has|have|had|do|does|did|comes?|came|goes|went|cost|costs|earns?|works?|belongs?|in|from|that)\b(?P<part>.+)",
    re.I,
)


def shares(text: str) -> Iterator[TableQuestion]:
    """Yield the shares that a question may ask for.

    Args:
        text: The question in one line, without a question mark.
    """
    if match := _SHARE.fullmatch(text):
        yield TableQuestion("share", name_of(match["whole"]), name_of(f"{match['whole']} {match['part']}"))


_PREPOSITION = r"(?:in|of|at|for|from|on|with|without|during|among|by|since|after|before|between|that|which|who|whose|per|over|under|above|below)\b"
_SUM = re.compile(
    rf"(?:what (?:is|was|are|were)|what's|calculate|compute|give(?: me)?|tell me|show(?: me)?|find) (?:the )?(?P<kind>(?:(?:sum )?total|sum|combined|overall)(?: (?:of|number of|amount of))?(?: (?:all|the))*|(?:average|mean|median)(?: (?:of|number of))?(?: the)?) (?P<column>[^\W\d_][\w-]*(?: (?!{_PREPOSITION})[\w-]+){{0,3}}(?: (?:for|on|in)$)?){PLACE}",
    re.I,
)
_AMOUNT_OF = re.compile(
    r"(?:what (?:is|was)|what's|calculate|compute|give(?: me)?|tell me|show(?: me)?|find) (?:the )?(?:total|overall|combined) (?P<column>amount|value|cost)(?P<where> of .+)",
    re.I,
)
_HOW_MUCH_SUM = re.compile(
    r"how (?:much|many) (?P<column>[a-z][\w-]*(?: [a-z]+)?) (?:do|does|did|have|has|is|are|was|were) (?P<where>.+?)(?: (?:have|cost|earn|weigh|seat|hold|sell|sold|use|need|carry|contain|employ|produce|produced|in))? (?P<kind>together|in total|altogether|combined|in all|in sum|on average)(?P<more> .*)?",
    re.I,
)
_DO_SUM = re.compile(
    r"how much (?:do|does|did) (?P<where>.+?) (?P<verb>cost|earn|weigh|pay|make) (?P<kind>together|in total|altogether|combined|in all|in sum|on average)",
    re.I,
)
_DID_SPEND = re.compile(
    r"how much (?:money )?(?:did|have|has|was|were) (?P<who>.*?) ?(?P<verb>spend|spent|pay|paid|invoice|invoiced|bill|billed|donate|donated|raise|raised|cost)(?: (?:in total|altogether|overall|in all))?(?P<where>(?: (?:in|on|for|to|at|with|from|by|since|after|before|during|between)\b.*)?)",
    re.I,
)
_HOW_MUCH = re.compile(
    r"how much (?P<column>[a-z][\w-]*) (?:did|have|has|was|were) (?:(?:we|you|they|i|there|made|generated|earned|sold|produced|harvested|used) ?)+(?:make|made|have|earn|earned|generate|generated|get|use|used|sell|sold|produce|produced|harvest|harvested)?(?P<where>(?: .*)?)",
    re.I,
)
_GOT = re.compile(
    r"how (?:much|many) (?P<column>(?!(?:times|years|months|weeks|days|minutes|more|fewer|less)\b)[a-z][\w-]*(?: [a-z]+)?) (?:did|do|does|have|has) (?P<who>(?!not\b|an?\b|no\b|been\b|their\b|there\b).+?) (?:get|got|win|won|score|scored|receive|received|count|counted|collect|collected|cast|raise|raised|lose|lost|concede|conceded|sell|sold|deliver|delivered|donate|donated|catch|caught|earn|earned|see|seen|use|used|eat|work|worked|produce|produced|have(?= (?:in|on|during|for)\b))(?P<where>(?: (?:in|on|for|at|with|from|by|since|after|before|during|between)\b.*)?)",
    re.I,
)
_DONE = frozenset(
    "won sold counted cast produced scored made used spent raised collected delivered received harvested caught".split()  # noqa: SIM905
)
_US = frozenset(("we", "you", "they", "i", "the company", "it", ""))


def sums(text: str) -> Iterator[TableQuestion]:
    """Yield the sums and averages that a question may ask for.

    Args:
        text: The question in one line, without a question mark.
    """
    if match := _AMOUNT_OF.fullmatch(text):
        yield TableQuestion("sum", match["column"], condition_of(match["where"]))
    if match := _SUM.fullmatch(text):
        kind = match["kind"].lower()
        how = "median" if kind.startswith("median") else "average" if re.match(r"average|mean", kind) else "sum"
        yield TableQuestion(how, match["column"].strip(), condition_of(match["where"]))
    for pattern in (_HOW_MUCH_SUM, _DO_SUM):
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            column = parts.get("column") or VERBS.get((parts.get("verb") or "").lower(), "")
            done = match["where"] if match["where"].lower() not in _DONE else ""
            where = f"{done}{parts.get('more') or ''}"
            yield TableQuestion("average" if "average" in match["kind"] else "sum", column, name_of(where))
    if match := _DID_SPEND.fullmatch(text):
        who = "" if match["who"].lower() in _US else match["who"]
        yield TableQuestion("sum", SPENDING[match["verb"].lower()], name_of(f"{who}{match['where']}"))
    if match := _GOT.fullmatch(text):
        who = "" if match["who"].lower() in _US else match["who"]
        yield TableQuestion("sum", match["column"], name_of(f"{who}{match['where']}"))
    if match := _HOW_MUCH.fullmatch(text):
        yield TableQuestion("sum", match["column"], condition_of(match["where"]))
