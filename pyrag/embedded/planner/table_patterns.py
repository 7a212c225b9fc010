"""Parts of the patterns for questions over tables, and what such a question means."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re
from dataclasses import dataclass

SUPERLATIVES = {
    "most expensive": ("highest", "price"), "dearest": ("highest", "price"), "cheapest": ("lowest", "price"), "least expensive": ("lowest", "price"),
    "heaviest": ("highest", "weight"), "lightest": ("lowest", "weight"), "longest": ("highest", "long"), "shortest": ("lowest", "short"),
    "tallest": ("highest", "height"), "highest": ("highest", "height"), "deepest": ("highest", "depth"), "widest": ("highest", "width"),
    "oldest": ("highest", "age"), "youngest": ("lowest", "age"), "fastest": ("highest", "speed"), "slowest": ("lowest", "speed"),
    "largest": ("highest", "area"), "biggest": ("highest", "area"), "smallest": ("lowest", "area"), "best paid": ("highest", "salary"),
    "most populous": ("highest", "population"), "least populous": ("lowest", "population"), "narrowest": ("lowest", "width"),
    "shallowest": ("lowest", "depth"), "lowest": ("lowest", "height"), "priciest": ("highest", "price"), "costliest": ("highest", "price"),
    "warmest": ("highest", "temperature"), "hottest": ("highest", "temperature"), "coldest": ("lowest", "temperature"),
    "worst paid": ("lowest", "salary"), "newest": ("latest", "addition"), "latest": ("latest", ""), "most recent": ("latest", ""), "earliest": ("earliest", ""),
}  # fmt: skip
ORIGINS = {"oldest": ("earliest", "origin"), "youngest": ("latest", "origin")}
"""Computations of ages by the dates of columns such as "Built", for tables without ages."""
HIGH = r"(?P<high>highest|largest|biggest|greatest|longest|most|maximum|max|top|best)"
LOW = r"(?P<low>lowest|smallest|shortest|least|fewest|minimum|min)"
RANK = rf"(?:{HIGH}|{LOW})"
ADJECTIVES = "|".join(sorted(SUPERLATIVES, key=len, reverse=True))
PLACE = r"(?P<where>(?: (?:in|of|at|for|from|to|on|over|under|with|without|during|among|by|since|after|before|between|that|which|who|whose)\b.*)?)"
NOUN = r"(?P<noun>[A-Za-z][\w'-]*(?: (?!(?:in|at|on|from|for|with|the|that|who|whose)\b)[a-z][\w'-]*){0,2}?)"
COMPARATIVES = {
    "expensive": "price", "heavier": "weight", "lighter": "weight", "longer": "long", "shorter": "short", "taller": "height",
    "higher": "height", "lower": "height", "deeper": "depth", "wider": "width", "older": "age", "younger": "age", "faster": "speed",
    "larger": "area", "bigger": "area", "smaller": "area", "cheaper": "price", "dearer": "price",
}  # fmt: skip
VERBS = {
    "cost": "price", "costs": "price", "earn": "salary", "earns": "salary", "weigh": "weight", "weighs": "weight", "pay": "salary",
    "make": "salary",
}  # fmt: skip
SPENDING = {
    "spent": "spent", "spend": "spent", "spends": "spent", "paid": "paid", "pay": "paid", "donated": "donated", "donate": "donated",
    "raised": "raised", "raise": "raised", "invoiced": "amount", "invoice": "amount", "billed": "billed", "bill": "billed",
    "sold": "sold", "sell": "sold", "cost": "cost", "earned": "salary", "made": "amount",
}  # fmt: skip
ASK = (
    r"(?:(?:what|which) (?:is|was|are|were)|what's|calculate|compute|give(?: me)?|tell me|show(?: me)?|find|list|name) "
)


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """Computation over a table: the arguments of the helper `table_value`."""

    how: str
    column: str = ""
    where: str | tuple[str, str] = ""
    show: str = ""
    by: str = ""
    rank: str = ""
    top: int = 0


def condition_of(text: str | None) -> str:
    """Return a condition without its first preposition."""
    return name_of(re.sub(r"^ ?(?:of|in|at|for|on|among|that|which|who)\b", "", text or ""))


def name_of(text: str) -> str:
    """Return a name or condition without quotes and articles at its edges."""
    return re.sub(r"\s+", " ", text).strip(" ,'\"“”").removeprefix("the ")
