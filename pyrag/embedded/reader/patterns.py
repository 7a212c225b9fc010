"""Patterns over sentences by which the reader finds dates, and facts that are no names of people; no code."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re

from pyrag.embedded.lexicon import MONTHS, SHORT_MONTHS
from pyrag.embedded.words import UPPER_CLASS

_MONTH = rf"(?:{MONTHS}|{SHORT_MONTHS})"
_ERA = r"(?:\s?(?:BCE?|CE|AD|B\.C\.|A\.D\.))?"
DATE = re.compile(
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+\d{{3,4}}|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{3,4}}"
    rf"|{_MONTH},?\s+(?:of\s+)?\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{MONTHS})\b|(?:{MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?(?![\d,]))"
    + _ERA
)
YEAR = re.compile(
    r"(?:AD\s)?\b(?:1\d{3}|20\d{2})s?\b(?!\s?(?:km|m|ft|feet|miles|people|inhabitants|metres|meters|%|,\d))" + _ERA
    + r"|\b\d{1,4}\s?(?:BCE?|CE|AD|B\.C\.|A\.D\.)(?!\w)|\bAD\s?\d{1,4}\b"
)  # fmt: skip
ALL_DATES = re.compile(f"{DATE.pattern}|{YEAR.pattern}")
NAME = rf"[{UPPER_CLASS}][\w'’.-]*(?:(?: (?:of|the|de|la|le|du|des|del|di|da|do|dos|von|van|der|den|am|an|upon|on|sur|y|and))* [{UPPER_CLASS}][\w'’-]*)*(?:\. (?=[{UPPER_CLASS}])[{UPPER_CLASS}][\w'’-]*)*"
PLACE = re.compile(
    rf"(?:the )?(?:(?:village|town|city|hamlet|parish|suburb|neighbou?rhood|municipality|island|state|province|county|district|port|settlement)s? (?:of|called|named) )?(?:the )?({NAME}(?:, {NAME})*)"
)
SPLIT = re.compile(
    r"\s*[–—]\s*|\s+[-−]\s+|(?<=\w)-(?=(?:January|February|March|April|May|June|July|August|September|October|November|December) \d)|(?<=\d)-(?=\s?\d{1,2} [A-Z]|[A-Z]|\d{4})|\s*[;,]?\s*\b(?:died|d\.|deceased)\s*|\s*†\s*"
)
MONTH_WORDS = frozenset(MONTHS.split("|"))
BORN = re.compile(r"\bborn\b|\bbirthplace\b|\bnative of\b", re.I)
DIED = re.compile(
    r"\b(?:died|dies|death|killed|murdered|assassinated|executed|passed away|drowned|suicide|perished|found dead)\b",
    re.I,
)
COPULA = re.compile(
    r"\b(?:is|was|are|were|became)\s+(?:also |best known as |known as |one of |perhaps )?(?:an?|the|one of the)\b\s*",
    re.I,
)
RELEASE = re.compile(
    r"\b(?:releas\w+|publish\w+|premier\w+|issued|aired|debut\w*|broadcast|came out|first shown)\b", re.I
)
FOUNDING = re.compile(
    r"\b(?:found\w+|establish\w+|form(?:ed|ation)|incorporat\w+|creat\w+|organi[sz]ed|launch\w+|opened|started|began|inception|dates? (?:back )?(?:to|from)|since)\b",
    re.I,
)
PRIZE = re.compile(
    r"\b(?:Awards?|Prizes?|Medals?|Hall of Fame|Order|Oscar|Grammy|Emmy|Fellowship|Cross|Trophy|BAFTA|Cup)\b"
)
SPORT = re.compile(
    r"\b(association football|American football|Australian rules football|ice hockey|field hockey|rugby league|rugby union|table tennis|basketball|baseball|cricket|football|soccer|tennis|volleyball|handball|golf|boxing|wrestling|swimming|cycling|judo|rowing|fencing|sailing|badminton|chess|skiing|biathlon|hockey|rugby|athletics|snooker|darts|gymnastics)"
)
GENRE = re.compile(
    r"\b(?:is|was|are|were) (?:an?|the) (?:\d{4} )?((?:[\w'’/,-]+ ){1,8}?)(?:film|movie|band|group|album|single|song|novel|book|series|singer|musician|duo|game|video game|play|magazine|rapper|artist|EP|soundtrack|trio|quartet|ensemble)\b"
)
POPULATION = re.compile(
    r"\b(?:population|inhabitants|residents)\b[^.;]{0,60}?\b(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? million|(?!(?:1[5-9]|20)\d\d\b)\d+)\b(?!\))"
    r"|\b(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? million|\d+)\s+(?:inhabitants|people|residents)\b"
)
LANGUAGE = re.compile(
    r"\b([A-Z][a-z]+)(?:-|\s)(?:language|speaking|speaker)|\b(?:in|into|spoken|speaks?|language is|languages are) (?:the )?([A-Z][a-z]+)\b"
)
