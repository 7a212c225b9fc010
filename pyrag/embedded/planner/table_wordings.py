"""Wordings of questions that are computed over a table, and the computations that they may ask for."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pyrag.embedded.planner.table_patterns import (
    ADJECTIVES,
    ASK,
    NOUN,
    ORIGINS,
    PLACE,
    RANK,
    SPENDING,
    SUPERLATIVES,
    VERBS,
    TableQuestion,
    condition_of,
    name_of,
)
from pyrag.embedded.planner.table_sums import differences, shares, sums

_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_NTH = {"second": -2, "2nd": -2, "third": -3, "3rd": -3, "fourth": -4, "4th": -4}
_NUMBER = rf"(?P<number>{'|'.join(_COUNTS)}|[1-9]\d?)"


_WHERE_FIRST = re.compile(r"^(?:on|in|at|from) (?=how many |(?:which|what) )", re.I)


def readings(text: str) -> Iterator[TableQuestion]:
    """Yield the computations that a question may ask for, likeliest first."""
    text = _WHERE_FIRST.sub("", text)
    for read in (differences, shares, _groups, _ranked_groups, _tops, _dates, sums, _extremes, _counts, _lists):
        yield from read(text)


_PER = r"(?P<per>per|by|for each|for every|in each|at each|from each|of each|in every|each)"
_PER_COUNT = re.compile(
    rf"(?:how many|{ASK}(?:the )?(?:total )?(?:number|count) of|(?:number|count) of) (?P<what>[a-z].*?)(?: (?:are|were|is) there| do we have| did we have| does| do| did)? {_PER} (?P<by>(?!the\b)[a-z][\w-]*(?: [a-z][\w-]*)?)(?: (?:have|has|had|get|got|place|placed|make|made))?{PLACE}",
    re.I,
)
_PER_VALUE = re.compile(
    rf"(?:{ASK})?(?:the )?(?P<how>average|mean|median|total|sum of|highest|lowest|maximum|minimum|total amount of|sum)(?: (?:number|amount))?(?: of)?(?: the)? (?P<column>[a-z][\w-]*(?: [a-z][\w-]*)?) {_PER} (?P<by>(?!the\b)[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}",
    re.I,
)
_PER_AMOUNT = re.compile(
    rf"(?:{ASK})(?:the )?(?P<column>revenue|sales|turnover|amount|units|spending|costs|expenses|income|profit|hours|yield|quantity) {_PER} (?P<by>(?!the\b)[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}",
    re.I,
)
_HOWS = {"average": "average", "mean": "average", "median": "median", "highest": "highest", "maximum": "highest",
         "lowest": "lowest", "minimum": "lowest"}  # fmt: skip


def _groups(text: str) -> Iterator[TableQuestion]:
    if match := _PER_COUNT.fullmatch(text):
        yield TableQuestion("count", where=f"{match['what']} {condition_of(match['where'])}".strip(), by=match["by"])
    if match := _PER_AMOUNT.fullmatch(text):
        yield TableQuestion("sum", match["column"], condition_of(match["where"]), by=match["by"])
    if match := _PER_VALUE.fullmatch(text):
        how = _HOWS.get(match["how"].lower(), "sum")
        yield TableQuestion(how, match["column"], condition_of(match["where"]), by=match["by"])
        if match["per"].lower() == "per":  # "Price per night" is a column
            yield TableQuestion(how, f"{match['column']} per {match['by']}", condition_of(match["where"]))


_DID = r"(?:with|[a-z]+(?: [a-z]+)?)"
_THE_MOST = re.compile(
    rf"(?:who|(?:which|what|in which|at which|for which|from which)(?: (?:of the |of our )?{NOUN})?)(?P<before>(?: in| of| from)? (?-i:[A-Z\d])[\w-]*)? (?:{_DID}|are|were|is|was|do we have|did we have|are there) (?:there )?the (?P<rank>most|fewest|least|highest number of|largest number of|lowest number of|smallest number of) (?P<what>[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}",
    re.I,
)
_SPENT_MOST = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{NOUN})? (?:has |have )?(?P<verb>{'|'.join(SPENDING)}) (?:us )?(?:the )?(?P<rank>most|least)(?: money)?(?: (?:in total|overall|altogether|in all|in sum))?{PLACE}",
    re.I,
)
_RANKED_VALUE = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{NOUN})? (?:has|have|had|shows?|with|is the {NOUN.replace('noun', 'noun_2')} with) the {RANK} (?P<how>average|mean|median|total|overall|combined) (?P<column>[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}",
    re.I,
)
_COMMON = re.compile(
    rf"(?:what|which) (?:is|was) the (?P<rank>most|least) (?:common|frequent|popular|used|ordered) (?P<by>[a-z][\w-]*){PLACE}"
    rf"|(?:which|what) (?P<noun>[a-z][\w-]*(?: [a-z][\w-]*)?) (?:is|was|appears|occurs|comes up) (?:the )?(?P<rank_2>most|least)(?: often| common| frequent| frequently| popular| ordered| used)+(?P<where_2> .*)?",
    re.I,
)


def _ranked_groups(text: str) -> Iterator[TableQuestion]:
    if match := _RANKED_VALUE.fullmatch(text):
        how = _HOWS.get(match["how"].lower(), "sum")
        noun = match["noun"] or match["noun_2"] or "name"
        rank = "highest" if match["high"] else "lowest"
        yield TableQuestion(how, match["column"], condition_of(match["where"]), by=noun, rank=rank)
        return
    if match := _SPENT_MOST.fullmatch(text):
        rank, column = _rank(match["rank"]), SPENDING[match["verb"].lower()]
        yield TableQuestion("sum", column, condition_of(match["where"]), by=match["noun"] or "name", rank=rank)
    if match := _THE_MOST.fullmatch(text):
        rank, noun = _rank(match["rank"]), match["noun"] or "name"
        where = condition_of(f"{match['before'] or ''}{match['where']}")
        yield TableQuestion("sum", match["what"], where, by=noun, rank=rank)
        yield TableQuestion("count", where=f"{match['what']} {where}".strip(), by=noun, rank=rank)
    if match := _COMMON.fullmatch(text):
        rank = _rank(match["rank"] or match["rank_2"])
        where = condition_of(match["where"] or match["where_2"])
        yield TableQuestion("count", where=where, by=match["by"] or match["noun"], rank=rank)


def _rank(word: str) -> str:
    return "highest" if word.lower().startswith(("most", "highest", "largest")) else "lowest"


_TOP_BY = re.compile(
    rf"(?:{ASK}|which )?(?:the |our )*(?:(?P<low>bottom|lowest|worst) |top |best |highest )?{_NUMBER} (?:top |best |highest )?(?P<noun>[a-z][\w-]*(?: [a-z][\w-]*)?) by (?:the )?(?P<column>[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}",
    re.I,
)
_TOP_ADJECTIVE = re.compile(
    rf"(?:{ASK}|which )?(?:are |were )?(?:the |our )*(?:{_NUMBER} (?P<adjective>{ADJECTIVES})|(?P<adjective_2>{ADJECTIVES}) (?P<number_2>{'|'.join(_COUNTS)}|[1-9]\d?)) (?P<noun>[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}",
    re.I,
)
_TOP_WITH = re.compile(
    rf"(?:{ASK}|which )?(?:are |were )?(?:the )?{_NUMBER} (?P<noun>[a-z][\w-]*(?: [a-z][\w-]*)?) (?:with|have|has|had|got) the {RANK}(?: (?:number|amount)s? of)? (?P<column>[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}",
    re.I,
)
_NTH_ADJECTIVE = re.compile(
    rf"(?:which|what|who)(?: {NOUN})? (?:is|are|was|were) the (?P<nth>{'|'.join(_NTH)})[ -](?P<adjective>{ADJECTIVES})(?: (?P<kind>[a-z][\w-]*))?{PLACE}",
    re.I,
)
_NTH_RANK = re.compile(
    rf"(?:which|what|who)(?: {NOUN})? (?:has|have|had|with) the (?P<nth>{'|'.join(_NTH)})[ -]{RANK}(?: (?:number|amount) of)? (?P<column>[a-z][\w -]*?){PLACE}",
    re.I,
)


def _tops(text: str) -> Iterator[TableQuestion]:
    if match := _TOP_BY.fullmatch(text):
        rank = "lowest" if match["low"] else "highest"
        where = condition_of(match["where"])
        yield TableQuestion("sum", match["column"], where, by=match["noun"], rank=rank, top=_count(match["number"]))
    if match := _TOP_WITH.fullmatch(text):
        rank = "highest" if match["high"] else "lowest"
        where, top = condition_of(match["where"]), _count(match["number"])
        yield TableQuestion("sum", match["column"], where, by=match["noun"], rank=rank, top=top)
    if match := _TOP_ADJECTIVE.fullmatch(text):
        adjective = (match["adjective"] or match["adjective_2"]).lower()
        top = _count(match["number"] or match["number_2"])
        yield from _best(adjective, condition_of(match["where"]), match["noun"], top)
    if match := _NTH_ADJECTIVE.fullmatch(text):
        noun, nth = match["noun"] or match["kind"] or "name", _NTH[match["nth"].lower()]
        yield from _best(match["adjective"], condition_of(match["where"]), noun, nth)
    if match := _NTH_RANK.fullmatch(text):
        how, nth = "highest" if match["high"] else "lowest", _NTH[match["nth"].lower()]
        yield TableQuestion(how, match["column"], condition_of(match["where"]), match["noun"] or "name", top=nth)


def _count(text: str) -> int:
    return _COUNTS.get(text.lower()) or int(text)


_FIRST = r"(?:(?P<early>first|earliest)|(?P<late>last|latest|most recent|most recently))"
_WHEN_FIRST = re.compile(
    rf"(?:when (?:is|was)|what (?:is|was) the date of) (?:the |our )(?:(?P<old>oldest)|(?P<new>newest)|{_FIRST}) (?P<what>[a-z].*)",
    re.I,
)
_MOVE = r"leave|depart|arrive|start|begin|open|close|end|finish"
_WHEN_DOES = re.compile(
    rf"(?:when|(?:at )?what time) (?:does|do|did|will) (?:the |our ){_FIRST} (?P<what>[a-z].*?) (?P<verb>{_MOVE})(?P<where>(?: .*)?)",
    re.I,
)
_HAS_FIRST = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{NOUN})?(?P<before> (?:in|from|of|for|to) (?-i:[A-Z])[\w-]*)? (?:has|have|had|with) the {_FIRST} (?P<column>[a-z][\w-]*(?: (?:date|day|time))?){PLACE}",
    re.I,
)
_FIRST_DATE = re.compile(
    rf"(?:what|which) (?:is|was) the {_FIRST} (?P<column>[a-z][\w-]*(?: (?!(?:in|of|at|for|from|to|on|by|with)\b)[a-z][\w-]*)?){PLACE}",
    re.I,
)
_WHICH_FIRST = re.compile(
    rf"(?:which|what)(?: (?:of the |of our )?{NOUN})(?P<before> (?:in|from|of|for) (?-i:[A-Z])[\w-]*)? (?:is|was|are) the {_FIRST}(?: one)?{PLACE}",
    re.I,
)
_DONE_FIRST = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{NOUN})? (?:(?:was|were|is|has been) )?(?P<verb>[a-z]+(?:ed|t|n)|began|came|left|(?:{_MOVE})s?)(?P<object> (?-i:[A-Z])[\w-]*)? (?:the )?{_FIRST}{PLACE}",
    re.I,
)
_DATE = re.compile(r" (?:date|day|time)$")
_NOT_DATES = frozenset("come came win won".split())  # noqa: SIM905


def _dates(text: str) -> Iterator[TableQuestion]:
    if match := _WHEN_FIRST.fullmatch(text):
        yield TableQuestion("earliest" if match["old"] else _side(match), where=name_of(match["what"]))
    if match := _WHEN_DOES.fullmatch(text):
        yield TableQuestion(_side(match), match["verb"], name_of(f"{match['what']}{match['where']}"))
    if match := _HAS_FIRST.fullmatch(text):
        where, column = condition_of(f"{match['before'] or ''}{match['where']}"), _DATE.sub("", match["column"])
        yield TableQuestion(_side(match), column, where, match["noun"] or "name")
    if match := _WHICH_FIRST.fullmatch(text):
        where = condition_of(f"{match['before'] or ''}{match['where']}")
        yield TableQuestion(_side(match), "", where, match["noun"])
    if (match := _DONE_FIRST.fullmatch(text)) and match["verb"].lower() not in _NOT_DATES:
        where = f"{match['object'] or ''} {condition_of(match['where'])}".strip()
        yield TableQuestion(_side(match), match["verb"], where, match["noun"] or "name")
    if match := _FIRST_DATE.fullmatch(text):
        column = _DATE.sub("", match["column"].lower())
        yield TableQuestion(_side(match), column, condition_of(match["where"]))
        yield TableQuestion(_side(match), "", f"{column} {condition_of(match['where'])}".strip(), column)


def _side(match: re.Match[str]) -> str:
    return "earliest" if match["early"] else "latest"


_HAS_RANK = re.compile(
    rf"(?:which|what|whose|who)(?: (?:of the |of our )?{NOUN})?{PLACE.replace('where', 'before')} (?:has|have|had|shows?|gets?|got|receives?|reached|with|earns?|sold|sells?|holds?|needs?|uses?|employs?|seats?|carries|contains?|lists?|makes?|costs?|weighs?|paid|pays) (?:the )?{RANK}(?: (?:number|amount|share) of)?(?: (?P<column>(?:[a-z]|(?:19|20)\d\d\b)[\w -]*?))?{PLACE}",
    re.I,
)
_WITH_RANK = re.compile(
    rf"(?:which|what|who) (?:is|are|was|were) the {NOUN} with the {RANK}(?: (?:number|amount) of)? (?P<column>[a-z][\w -]*?){PLACE}",
    re.I,
)
_IS_RANK = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{NOUN})?(?P<before> (?:in|of|at|from|on) .+?)? (?:is|are|was|were) the (?P<adjective>{ADJECTIVES})(?: (?P<kind>[a-z][\w-]*(?: [a-z][\w-]*)?))?{PLACE}",
    re.I,
)
_NAME_RANK = re.compile(
    rf"(?:name|give(?: me)?|tell me|find|show(?: me)?) (?:the |our )(?P<adjective>{ADJECTIVES}) (?P<noun>[a-z][\w-]*){PLACE}",
    re.I,
)
_OF_RANK = re.compile(
    rf"(?:what|which|who) (?:is|are|was|were) the (?P<show>[a-z][\w-]*(?: [a-z][\w-]*)?) of (?:the |our )(?P<adjective>{ADJECTIVES}) (?P<noun>[a-z][\w-]*){PLACE}"
    rf"|how (?P<how>old|tall|high|heavy|long|wide|deep|fast|large|big|expensive|hot|warm|cold) (?:is|are|was|were) (?:the |our )(?P<adjective_2>{ADJECTIVES}) (?P<noun_2>[a-z][\w-]*)(?P<where_2>(?: .*)?)"
    rf"|how much (?:does|do|did) (?:the |our )(?P<adjective_3>cheapest|dearest|priciest|(?:most|least) expensive) (?P<noun_3>[a-z][\w-]*) cost(?P<where_3>(?: .*)?)",
    re.I,
)
_TOOK = re.compile(
    rf"(?:which|what)(?: (?:of the |of our )?{NOUN}) (?:takes?|took|lasts?|lasted|runs?|ran) (?:the )?(?P<rank>longest|shortest){PLACE}",
    re.I,
)
_RANK_VALUE = re.compile(rf"(?:what|which) (?:is|was) the {RANK} (?P<column>[a-z][\w-]*(?: [a-z][\w-]*)?){PLACE}", re.I)
_VERB_RANK = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{NOUN})? (?P<verb>earns|costs|weighs) (?:the )?(?P<rank>most|least)(?P<where>(?: (?:in|of|at|for)\b.*)?)",
    re.I,
)


def _extremes(text: str) -> Iterator[TableQuestion]:
    if match := _VERB_RANK.fullmatch(text):
        how = _rank(match["rank"])
        yield TableQuestion(how, VERBS[match["verb"].lower()], condition_of(match["where"]), match["noun"] or "name")
        return
    if match := _WITH_RANK.fullmatch(text) or _HAS_RANK.fullmatch(text):
        parts = match.groupdict()
        if parts["column"]:
            where = condition_of(f"{parts.get('before') or ''}{parts['where']}")
            how = "highest" if match["high"] else "lowest"
            yield from _of_kind(TableQuestion(how, parts["column"], where, parts["noun"] or "name"))
    if match := _RANK_VALUE.fullmatch(text):
        yield TableQuestion("highest" if match["high"] else "lowest", match["column"], condition_of(match["where"]))
    if match := _TOOK.fullmatch(text):
        how = "highest" if match["rank"].lower() == "longest" else "lowest"
        yield from _of_kind(TableQuestion(how, "duration", condition_of(match["where"]), match["noun"]))
    if match := _NAME_RANK.fullmatch(text):
        yield from _best(match["adjective"], condition_of(match["where"]), match["noun"])
    if match := _OF_RANK.fullmatch(text):
        adjective, noun, where = (next(filter(None, match.group(*_ALTERNATIVES[name])), "") for name in _ALTERNATIVES)
        where = f"{noun} {condition_of(where)}".strip()
        show = match["show"] or _MEASURES.get((match["how"] or "").lower(), "")
        meaning = ORIGINS.get(adjective.lower()) or SUPERLATIVES[adjective.lower()]
        yield TableQuestion(*SUPERLATIVES[adjective.lower()], where, show)
        yield TableQuestion(*meaning, where, show)
    if (match := _IS_RANK.fullmatch(text)) and (match["noun"] or match["kind"]):
        where = condition_of(f"{match['before'] or ''}{match['where']}")
        yield from _best(match["adjective"], where, match["noun"] or match["kind"])


_MEASURES = {
    "old": "age", "tall": "height", "high": "height", "heavy": "weight", "long": "long", "wide": "width", "deep": "depth",
    "fast": "speed", "large": "area", "big": "area", "expensive": "price", "hot": "temperature", "warm": "temperature",
    "cold": "temperature",
}  # fmt: skip
_ALTERNATIVES = {name: (name, f"{name}_2", f"{name}_3") for name in ("adjective", "noun", "where")}


def _best(adjective: str, where: str, show: str, top: int = 0) -> Iterator[TableQuestion]:
    """Yield what an adjective such as "oldest" may ask for: the row with the highest age, or the earliest built."""
    for meanings in (SUPERLATIVES, ORIGINS):
        if meaning := meanings.get(adjective.lower()):
            yield from _of_kind(TableQuestion(*meaning, where, show, top=top))


def _of_kind(question: TableQuestion) -> Iterator[TableQuestion]:
    """Yield a question for the best row, also with its noun as a cell: "starter", "outdoor product"."""
    yield question
    if question.show not in ("", "name"):
        yield replace(question, where=f"{question.show} {question.where}".strip(), show="name")


_COUNT = re.compile(
    r"(?:how many|count(?: all| the)*|(?:what is|what's|what was|give(?: me)?|tell me) the (?:total )?number of) (?:of (?:the|our|all) )?(?P<where>[a-z].+)",
    re.I,
)
_DISTINCT = re.compile(
    r"how many (?:different|distinct|unique) (?P<column>[a-z][\w-]*)(?: (?:are|were|do|did|have|has|is)(?: there| we| you| they)?(?: have| had| sell| placed| ordered)?)?(?P<where>(?: .*)?)",
    re.I,
)
_COUNTED = re.compile(
    r"^(?P<noun>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?) (?:do|does|did|have|has) (?:we|you|i|they)\b(?: (?:have|had|list|listed|sell|sold|know|employ|offer|own|track|get|got|receive|received|make|made|ship|shipped|order|ordered|buy|bought|hire|hired|plant|planted|close|closed)\b)?",
    re.I,
)
_DONE_BY = re.compile(
    r"^(?P<noun>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?) (?:do|does|did|has|have) (?P<who>(?!we\b|you\b|they\b|not?\b|an?\b|been\b|their\b|any\b).+?) (?P<verb>place|placed|order|ordered|buy|bought|sell|sold|make|made|submit|submitted|report|reported|close|closed|complete|completed|receive|received|file|filed|handle|handled|book|booked|teach|lead|manage|own|run|write|visit|attend|plant|pick|drive|donate|win|score|lend|borrow|take|need|use|hold|offer|send|sent)\b(?P<rest>.*)$",
    re.I,
)
_OF_AGENTS = {
    "own": "owned", "write": "written", "lead": "led", "manage": "managed", "teach": "taught", "lend": "lent",
    "borrow": "borrowed", "drive": "driven", "run": "ran", "visit": "visited",
}  # fmt: skip
"""Verbs that a table must have a column for, such as "Owner"; others say only whose rows are counted."""
_VALUE_OF = re.compile(
    r"^[a-z][\w -]*? (?:(?:do|does|did|will|would|can) (?:the |our )?|(?:has|have|had) (?=(?-i:[A-Z])))(?!we\b|you\b|i\b|not\b|been\b|an?\b|no\b|their\b|its\b|his\b|her\b)",
    re.I,
)
_LIMITED = re.compile(r"\b(?:more|fewer|less|over|under|above|below|at least|at most)\b", re.I)


def _counts(text: str) -> Iterator[TableQuestion]:
    if match := _DISTINCT.fullmatch(text):
        yield TableQuestion("distinct", match["column"], condition_of(match["where"]))
        return
    match = _COUNT.fullmatch(text)
    if match is None:
        return
    where = _COUNTED.sub(lambda match: match["noun"], match["where"])
    if re.match(r"(?:more|fewer|less|times|years|hours|minutes)\b", where, re.I):
        return
    if done := _DONE_BY.match(where):
        verb = _OF_AGENTS.get(done["verb"].lower(), "")
        where = f"{done['noun']} {verb} by {done['who']} {done['rest']}"
        yield TableQuestion("count", where=name_of(re.sub(r"\s+", " ", where)))
        return
    asks_of_thing = _VALUE_OF.match(where) and not _LIMITED.search(where)
    if not asks_of_thing:
        yield TableQuestion("count", where=name_of(where))


_VERBS = (
    r"are|is|were|was|have|has|had|do|did|does|costs?|earns?|works?|weighs?|lives?|belongs?|started|joined|comes?|came|with|without|in|from"
    r"|won|wins?|lost|loses?|scored|scores?|gets?|got|received|receives?|sold|sells?|uses?|used|needs?|needed|takes?|took|opens?|opened"
    r"|closes?|closed|makes?|made|grew|spent|paid|pays?|arrived|arrives?|left|leaves?|departs?|departed|starts?|begins?|began|ends?"
    r"|finish(?:es)?|runs?|lasts?|lasted|went|goes|go|ended|contains?|worked|lived|moved|seats?|holds?"
)
_LIMITING = r"more|less|fewer|over|under|above|below|at least|at most|exactly|before|after|since|until|between|of (?=[$€£]?\d)|[a-z]+er than"
_LIST = re.compile(
    rf"(?:which|what) (?P<noun>(?!of\b)[a-z]+(?: [a-z]+)?s|people|staff) (?P<where>(?:{_VERBS})\b.+)"
    r"|(?:list|show|name|give)(?: me)? (?:all |the |every |all the |all our )?(?P<noun_2>[a-z]+s)(?P<where_2> (?:in|of|at|for|from|on|with|without|that|which|who|whose|under|over|not|cheaper|older|before|after|since)\b.+)"
    rf"|(?:which|what) (?P<noun_3>(?!of\b)[a-z]+) (?P<where_3>(?:{_VERBS})\b.*\b(?:{_LIMITING})\b.+)",
    re.I,
)


def _lists(text: str) -> Iterator[TableQuestion]:
    if match := _LIST.fullmatch(text):
        noun = match["noun"] or match["noun_2"] or match["noun_3"]
        where = match["where"] or match["where_2"] or match["where_3"]
        yield TableQuestion("list", where=f"{noun} {name_of(where)}", show=noun)
