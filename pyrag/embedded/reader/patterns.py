"""Patterns that find dates, places, causes of death and other facts in sentences, for `life` and `facts`."""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re

from pyrag.embedded.lexicon.times import MONTHS
from pyrag.embedded.reader.spans import DATE, YEAR
from pyrag.trace.sentences import UPPER_CLASS

ALL_DATES = re.compile(f"{DATE.pattern}|{YEAR.pattern}")
NAME = rf"[{UPPER_CLASS}][\w'’.-]*(?:(?: (?:of|the|de|la|le|du|des|del|di|da|do|dos|von|van|der|den|am|an|upon|on|sur|y|and))* [{UPPER_CLASS}][\w'’-]*)*(?:\. (?=[{UPPER_CLASS}])[{UPPER_CLASS}][\w'’-]*)*"
PLACE = re.compile(
    rf"(?:the )?(?:(?:village|town|city|hamlet|parish|suburb|neighbou?rhood|municipality|island|state|province|county|district|port|settlement)s? (?:of|called|named) )?(?:the )?({NAME}(?:, {NAME})*)"
)
SPLIT = re.compile(
    rf"(?<=\w)-(?=(?:{MONTHS}) \d)|"
    r"\s*[–—]\s*|\s+[-−]\s+|(?<=\d)-(?=\s?\d{1,2} [A-Z]|[A-Z]|\d{4})|\s*[;,]?\s*\b(?:died|d\.|deceased)\s*|\s*†\s*"
)

BORN = re.compile(r"\bborn\b|\bbirthplace\b|\bnative of\b", re.I)
DIED = re.compile(
    r"\b(?:died|dies|death|killed|murdered|assassinated|executed|passed away|drowned|suicide|perished|found dead)\b",
    re.I,
)
CAUSE = re.compile(
    r"\b(?:died|death|die|dies|succumbed|killed|dead|passed away|suffering|life)\b[^.;]{0,60}?\b(?:of|from|by|due to|in|following|after|to|with|caused by)\s+"
    r"(?:an? |the |his |her |complications (?:of|from) |apparent |massive |sudden |acute |injuries (?:in|from) (?:an? )?)*"
    r"((?:[\w'’-]+ ){0,3}?(?:heart attack|heart failure|heart disease|cancer|stroke|pneumonia|tuberculosis|suicide|overdose|accident|crash|leuk(?:a)?emia|disease|fever|"
    r"dysentery|poisoning|h(?:a)?emorrhage|infection|influenza|diabetes|cholera|typhus|malaria|smallpox|plague|cirrhosis|hanging|drowning|failure|syndrome|tumou?r|"
    r"aneurysm|sepsis|embolism|wounds?|asthma|AIDS|kidney failure|illness|bronchitis|thrombosis|lymphoma|COVID-19|arrest|fall|gunshot|explosion|consumption|execution|poison))\b", re.I)  # fmt: skip
DIED_OF = re.compile(
    r"\bdied (?:of|from) (?:an? |the )?([\w'’-]+(?: [\w'’-]+){0,2}?)(?= in\b| on\b| at\b|[.,;]| while| and| when|$)"
)
VIOLENT = re.compile(
    r"\b(shot(?: and killed| dead)?|stabbed|hanged|beheaded|murdered|assassinated|drowned|executed|poisoned|guillotined|committed suicide|killed in action|suicide|heart attack|cancer|stroke)\b",
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
POSITION = re.compile(
    r"\b((?:[\w-]+ )?(?:goalkeeper|defender|midfielder|forward|striker|winger|sweeper|full-?back|centre-?back|quarterback|linebacker|cornerback|lineman|safety|running back|wide receiver|tight end|pitcher|catcher|shortstop|outfielder|infielder|baseman|point guard|shooting guard|power forward|small forward|center|centre|guard|fly-half|prop|hooker|lock|flanker|batsman|bowler|wing))\b",
    re.I,
)
LANGUAGE = re.compile(
    r"\b([A-Z][a-z]+)(?:-|\s)(?:language|speaking|speaker)|\b(?:in|into|spoken|speaks?|language is|languages are) (?:the )?([A-Z][a-z]+)\b"
)
POPULATION = re.compile(
    r"\b(?:population|inhabitants|residents)\b[^.;]{0,60}?\b(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? million|(?!(?:1[5-9]|20)\d\d\b)\d+)\b(?!\))"
    r"|\b(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? million|\d+)\s+(?:inhabitants|people|residents)\b"
)
SPORT = re.compile(
    r"\b(association football|American football|Australian rules football|ice hockey|field hockey|rugby league|rugby union|table tennis|basketball|baseball|cricket|football|soccer|tennis|volleyball|handball|golf|boxing|wrestling|swimming|cycling|judo|rowing|fencing|sailing|badminton|chess|skiing|biathlon|hockey|rugby|athletics|snooker|darts|gymnastics)"
)
GENRE = re.compile(
    r"\b(?:is|was|are|were) (?:an?|the) (?:\d{4} )?((?:[\w'’/,-]+ ){1,8}?)(?:film|movie|band|group|album|single|song|novel|book|series|singer|musician|duo|game|video game|play|magazine|rapper|artist|EP|soundtrack|trio|quartet|ensemble)\b"
)
_PHRASE = r"((?:[\w'’-]+ ){0,2}?[\w'’-]+)(?=[.,;()]|$| and\b| which\b| since\b| in\b| until\b)"
CURRENCY = re.compile(
    rf"\bcurrency(?: unit)?(?: of [^.;,]{{0,30}}?)?(?:,| is| was| has been)(?: called)? (?:the )?{_PHRASE}"
    r"|\b(?:uses?|used|adopted|introduced) the ((?:[\w-]+ ){0,2}?[\w-]+) as (?:its|the)(?: official| national)? currency"
    r"|\b[Tt]he ((?:[\w-]+ ){0,2}?[\w-]+)(?:,[^.;]{0,30},)? (?:is|was) the (?:official |national |only )?currency"
)
_SIZE = r"\d[\d,.]*(?: \d+/\d+)?\s?{unit}\b"
_METRES = _SIZE.replace("{unit}", r"(?:metres?|meters?|m|feet|ft|foot)")
_KILOMETRES = _SIZE.replace("{unit}", r"(?:kilomet(?:re|er)s?|km|miles?|mi|metres?|meters?|m|feet|ft)")
HEIGHT = re.compile(
    rf"\b(?:height|elevation|altitude|tall|high|rises|rising|stands)\b[^.;\d]{{0,30}}({_METRES})|({_METRES})[^.;]{{0,12}}\b(?:high|tall|above)\b"
)
LENGTH = re.compile(
    rf"\b(?:length|long|runs|flows|stretches|spans)\b[^.;\d]{{0,25}}({_KILOMETRES})|({_KILOMETRES})[^.;]{{0,12}}\b(?:long|in length)\b"
)
RIVER = re.compile(
    rf"\b(?:on|along|beside|by|through|crossed by|banks? of)\s+(?:both sides of |the [a-z]+ banks? of )?(?:the )?((?:[Rr]iver {NAME})|(?:{NAME} River\b))"
)
