"""Questions whose answer is computed over the rows of a table: counts, sums, averages, differences and extremes.

Only the wording is known here, so that a program first looks whether the passages belong to a table that has the
question's words; otherwise it goes on as without tables.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from textwrap import indent

from pyrag.agents.python_text import literal
from pyrag_helpers.table_vocabulary import KINDS

_SUPERLATIVES = {
    "most expensive": ("highest", "price"), "dearest": ("highest", "price"), "cheapest": ("lowest", "price"), "least expensive": ("lowest", "price"),
    "heaviest": ("highest", "weight"), "lightest": ("lowest", "weight"), "longest": ("highest", "length"), "shortest": ("lowest", "length"),
    "tallest": ("highest", "height"), "highest": ("highest", "height"), "deepest": ("highest", "depth"), "widest": ("highest", "width"),
    "oldest": ("highest", "age"), "youngest": ("lowest", "age"), "fastest": ("highest", "speed"), "slowest": ("lowest", "speed"),
    "largest": ("highest", "area"), "biggest": ("highest", "area"), "smallest": ("lowest", "area"), "best paid": ("highest", "salary"),
    "most populous": ("highest", "population"),
}  # fmt: skip
_HIGH = r"(?P<high>highest|largest|biggest|greatest|most|maximum|max|top|best)"
_LOW = r"(?P<low>lowest|smallest|least|fewest|minimum|min)"
_RANK = rf"(?:{_HIGH}|{_LOW})"
_ADJECTIVES = "|".join(sorted(_SUPERLATIVES, key=len, reverse=True))
_PLACE = r"(?P<where>(?: (?:in|of|at|for|from|on|with|during|among|by|that|which|who|whose)\b.*)?)"
_NOUN = r"(?P<noun>[A-Za-z][\w'-]*(?: [a-z][\w'-]*){0,2}?)"
_COMPARATIVES = {
    "expensive": "price", "heavier": "weight", "lighter": "weight", "longer": "length", "shorter": "length", "taller": "height",
    "higher": "height", "lower": "height", "deeper": "depth", "wider": "width", "older": "age", "younger": "age", "faster": "speed",
    "larger": "area", "bigger": "area", "smaller": "area", "cheaper": "price", "dearer": "price",
}  # fmt: skip
_VERBS = {
    "cost": "price",
    "costs": "price",
    "earn": "salary",
    "earns": "salary",
    "weigh": "weight",
    "weighs": "weight",
    "pay": "salary",
    "make": "salary",
}


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """Computation over a table: the arguments of the helper `table_value`."""

    how: str
    column: str = ""
    where: str | tuple[str, str] = ""
    show: str = ""

    def expression(self, tables: str) -> str:
        """Return the call of the helper.

        Args:
            tables: Expression for the tables.
        """
        arguments = [tables, literal(self.how)]
        if self.column:
            arguments.append(f"column={literal(self.column)}")
        if isinstance(self.where, tuple):
            arguments.append(f"where=({', '.join(map(literal, self.where))})")
        elif self.where:
            arguments.append(f"where={literal(self.where)}")
        if self.show:
            arguments.append(f"show={literal(self.show)}")
        return f"table_value({', '.join(arguments)})"


def with_table(question: str, program: str, topk: int) -> str:
    """Return a program that computes over a table if the passages belong to one, and otherwise does as before.

    Args:
        question: The question.
        program: Program for the question without tables.
        topk: Number of passages to retrieve.
    """
    readings = read_table_question(question)
    if not readings:
        return program
    for reading in reversed(readings):
        program = (
            f"try:\n    final_answer = {reading.expression('tables')}\nexcept ValueError:\n{indent(program, '    ')}"
        )
    return f"tables = read_tables(retrieve({literal(_search(question, readings))}, topk={topk}))\n{program}"


def _search(question: str, readings: Sequence[TableQuestion]) -> str:
    """Return the search text for tables: the question, with the column's name and other names of the rows."""
    asked = set(re.findall(r"[a-z]+", question.lower()))
    more = [word for reading in readings for word in reading.column.split()]
    more += [word for kind in KINDS if asked.intersection(kind) for word in kind]
    return " ".join((question, *dict.fromkeys(word for word in more if word.lower() not in asked)))


@lru_cache(maxsize=512)
def read_table_question(question: str) -> tuple[TableQuestion, ...]:
    """Return the computations that a question may ask for, likeliest first; none if its wording asks for none.

    Args:
        question: The question.
    """
    text = " ".join(question.split()).strip().rstrip("?.! ")
    return tuple(dict.fromkeys(_readings(text)))[:_MAX_READINGS] if len(text) < _MAX_CHARACTERS else ()


_MAX_READINGS = 3
_MAX_CHARACTERS = 300


def _readings(text: str) -> Iterator[TableQuestion]:
    yield from _differences(text)
    yield from _sums(text)
    yield from _extremes(text)
    yield from _counts(text)


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
        r"how (?:much|many) (?P<more>more|less|fewer) (?P<column>[a-z][\w -]*?)? ?(?:do|does|did|has|have|is|are) (?P<first>.+?) (?P<verb>have|has|cost|earn|weigh|make|sell|pay|hold|use|need|seat|employ|carry|contain|get|take)?s? ?than (?P<second>.+)",
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


def _differences(text: str) -> Iterator[TableQuestion]:
    for pattern in _DIFFERENCES:
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            adjective, verb = (parts.get("adjective") or "").lower(), (parts.get("verb") or "").lower()
            column = parts.get("column") or _COMPARATIVES.get(adjective) or _VERBS.get(verb, "")
            if not adjective or column:
                yield TableQuestion("difference", column.strip(), (_name(match["first"]), _name(match["second"])))


_SUM = re.compile(
    rf"(?:what (?:is|was|are|were)|what's|calculate|compute|give(?: me)?|tell me|show(?: me)?|find) (?:the )?(?P<kind>(?:(?:sum )?total|sum|combined|overall)(?: (?:of|number of|amount of))?(?: (?:all|the))*|average|mean|(?:average|mean) (?:of|number of)(?: the)?) (?P<column>[A-Za-z][\w-]*(?: [a-z][\w-]*)?){_PLACE}",
    re.I,
)
_AMOUNT_OF = re.compile(
    r"(?:what (?:is|was)|what's|calculate|compute|give(?: me)?|tell me|show(?: me)?|find) (?:the )?(?:total|overall|combined) (?P<column>amount|number|value|cost)(?P<where> of .+)",
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


def _sums(text: str) -> Iterator[TableQuestion]:
    if match := _AMOUNT_OF.fullmatch(text):
        yield TableQuestion("sum", match["column"], _condition(match["where"]))
    if match := _SUM.fullmatch(text):
        how = "average" if re.match(r"average|mean", match["kind"], re.I) else "sum"
        yield TableQuestion(how, match["column"].strip(), _condition(match["where"]))
    for pattern in (_HOW_MUCH_SUM, _DO_SUM):
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            column = parts.get("column") or _VERBS.get((parts.get("verb") or "").lower(), "")
            where = f"{match['where']}{parts.get('more') or ''}"
            yield TableQuestion("average" if "average" in match["kind"] else "sum", column, _name(where))


_HAS_RANK = re.compile(
    rf"(?:which|what|whose|who)(?: (?:of the |of our )?{_NOUN})?{_PLACE.replace('where', 'before')} (?:has|have|had|shows?|gets?|got|receives?|reached|with|earns?|sold|sells?|holds?|needs?|uses?|employs?|seats?|carries|contains?|lists?|makes?|costs?|weighs?|paid|pays) (?:the )?{_RANK}(?: (?:number|amount|share) of)?(?: (?P<column>[a-z][\w -]*?))?{_PLACE}",
    re.I,
)
_WITH_RANK = re.compile(
    rf"(?:which|what|who) (?:is|are|was|were) the {_NOUN} with the {_RANK}(?: (?:number|amount) of)? (?P<column>[a-z][\w -]*?){_PLACE}",
    re.I,
)
_IS_RANK = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{_NOUN})? (?:is|are|was|were) the (?P<adjective>{_ADJECTIVES})(?: (?P<kind>[a-z][\w-]*))?{_PLACE}",
    re.I,
)
_RANK_VALUE = re.compile(
    rf"(?:what|which) (?:is|was) the {_RANK} (?P<column>[a-z][\w-]*(?: [a-z][\w-]*)?){_PLACE}", re.I
)
_VERB_RANK = re.compile(
    rf"(?:which|what|who)(?: (?:of the |of our )?{_NOUN})? (?P<verb>earns|costs|weighs) (?:the )?(?P<rank>most|least)(?P<where>(?: (?:in|of|at|for)\b.*)?)",
    re.I,
)


def _extremes(text: str) -> Iterator[TableQuestion]:
    if match := _VERB_RANK.fullmatch(text):
        how = "highest" if match["rank"].lower() == "most" else "lowest"
        yield TableQuestion(how, _VERBS[match["verb"].lower()], _condition(match["where"]), match["noun"] or "name")
        return
    if match := _WITH_RANK.fullmatch(text) or _HAS_RANK.fullmatch(text):
        parts = match.groupdict()
        if parts["column"]:
            where = _condition(f"{parts.get('before') or ''}{parts['where']}")
            yield TableQuestion(
                "highest" if match["high"] else "lowest", parts["column"], where, parts["noun"] or "name"
            )
    if match := _RANK_VALUE.fullmatch(text):
        yield TableQuestion("highest" if match["high"] else "lowest", match["column"], _condition(match["where"]))
    if match := _IS_RANK.fullmatch(text):
        how, column = _SUPERLATIVES[match["adjective"].lower()]
        if match["noun"] or match["kind"]:
            yield TableQuestion(how, column, _condition(match["where"]), match["noun"] or match["kind"])


_COUNT = re.compile(
    r"(?:how many|count(?: all| the)*|(?:what is|what's|give(?: me)?|tell me) the (?:total )?number of) (?:of (?:the|our|all) )?(?P<where>[a-z].+)",
    re.I,
)
_COUNTED = re.compile(
    r"^(?P<noun>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?) (?:do|does|did) (?:we|you|i) (?:have|list|sell|know|employ|offer|own|track)\b",
    re.I,
)
_VALUE_OF = re.compile(
    r"^[a-z][\w -]*? (?:do|does|did|has|have|had|will|would|can) (?:the |our )?(?!we\b|you\b|i\b|not\b|been\b|an?\b)",
    re.I,
)
_LIMITED = re.compile(r"\b(?:more|fewer|less|over|under|above|below|at least|at most)\b", re.I)


def _counts(text: str) -> Iterator[TableQuestion]:
    match = _COUNT.fullmatch(text)
    if match is None:
        return
    where = _COUNTED.sub(lambda match: match["noun"], match["where"])
    if re.match(r"(?:more|fewer|less|times|years|days|hours|minutes|months|weeks)\b", where, re.I):
        return
    asks_of_thing = _VALUE_OF.match(where) and not _LIMITED.search(where)
    if not asks_of_thing:
        yield TableQuestion("count", where=_name(where))


def _condition(text: str | None) -> str:
    return _name(re.sub(r"^ ?(?:of|in|at|for|from|on|among|that|which|who)\b", "", text or ""))


def _name(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" ,'\"“”").removeprefix("the ")
