"""Wordings of questions, as tables for `question_analysis`: relations, kinds of answer, words around the subject.

A row of `RELATIONS` is a relation, the kind of its answer and a pattern over the question, names blanked. The first row
that fits wins, so narrow relations stand before wide ones.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

import re

from pyrag.embedded.lexicon import words

RELATIONS: tuple[tuple[str, str, str], ...] = (
    ("cause of death", "cause", r"cause of (?:\S+ )?death|death cause|manner of death|(?:how|why) did .{2,60}\bdie\b(?! in)|what did .{2,60} die (?:of|from)|what killed|how was .{2,60} killed|reason .*\b(?:death|died?)\b"),
    ("place of birth", "place", r"place of birth|birth ?place|(?:city|town|country|state|village|location|county) of birth|where (?:was|is|were) .*\bborn|\b(?:what|which) (?:\w+ ){0,2}?(?:city|town|place|country|state|village|location|county|province|region)\b.*\bborn|\bborn (?:in|on) (?:what|which) (?:\w+ ){0,2}?(?:city|town|place|country|state|location|village|islands?)\b|\bin (?:what|which) (?:city|town|place|village) .*\bcome into the world|(?:what|which) (?:\w+ ){0,2}?islands? .*\bborn\b|birth location"),
    ("date of birth", "date", r"date of birth|birth ?date|birth ?day|birth year|year of birth|(?:when|what (?:year|date|day|month)|which (?:year|day|date)) .*\bborn\b|\bborn (?:when|in (?:what|which) year)|how old"),
    ("place of burial", "place", r"place of burial|burial place|resting place|(?:where|what .*place|which .*place|what cemetery|which cemetery) .*\b(?:buried|interred|entombed)\b"),
    ("date of burial", "date", r"when .*\b(?:buried|interred)\b"),
    ("place of death", "place", r"place of death|death ?place|(?:city|country|location|town) of death|where did .*\b(?:die|pass away)\b|where .*\bdied\b|\b(?:what|which) (?:\w+ )?(?:city|town|place|country|state|location|region)\b(?!.*\blive\b).*\b(?:die|died|pass away)\b|location of death"),
    ("date of death", "date", r"date of death|death date|year of death|(?:when|what (?:year|date|day)|which (?:year|day|date)) .*\b(?:die|died|pass(?:ed)? away|death)\b"),
    ("date of marriage", "date", r"when .*\b(?:marry|married|wed)\b"),
    ("sibling", "person", r"\b(?:sibling|brother|sister)s?\b(?! in law)"),
    ("spouse", "person", r"\b(?:spouse|wife|husband|consort)\b|who(?:m)? (?:was|is|did|has) .*\b(?:married|marry|wed)\b|\bwho married\b|married to who|wed(?:ded)? who|marital partner"),
    ("mother", "person", r"\bmother\b(?!-in-law| in law)"),
    ("father", "person", r"\bfather\b(?!-in-law| in law)|who fathered"),
    ("parents", "person", r"\bparents?\b(?! company| organi)"),
    ("child", "person", r"\b(?:child|children|son|daughter|kids?)\b"),
    ("publication date", "date", r"(?:publication|release|premiere|issue|air) (?:date|year)|(?:date|year|time) of (?:publication|release|premiere)|(?:when|what (?:year|date|month)|which year) .*\b(?:released?|published|publish|come out|came out|premiered?|aired|air|debut(?:ed)?|issued)\b"),
    ("inception", "date", r"\binception\b|founding (?:date|year)|(?:date|year) of (?:foundation|establishment|founding|formation|creation)|(?:when|what (?:year|date)|which year) (?:was|were|did) .*\b(?:founded|established|formed|created|incorporated|organi[sz]ed|launched|opened?|start(?:ed)?|begin|began)\b"),
    ("country of origin", "country", r"country of origin|country .*\b(?:originate|produced|made|released)\b|(?:what|which) country (?:is|was|are|were|does|did) .*\b(?:come )?from|where (?:is|was|are) .*\b(?:film|movie|band|song|album)\b.* from"),
    ("nationality", "nationality", r"\bnationality\b|citizenship|\bcitizen\b|what country (?:is|was) .* from|\bcountry does .* belong|what ethnicity"),
    ("occupation", "occupation", r"\boccupation\b|\bprofession\b|(?:do|does|did) .* do for (?:a|their|his|her) living|what .* job|\bline of work\b|field of work|known as a what"),
    ("period", "period", r"^(?:when|(?:during|in|over) (?:which|what) (?:years?|period|time)) (?:was|were) (?!the\b).*\b(?:active|king|queen|emperor|empress|president|prime minister|chancellor|pope|governor|mayor|in office|in power|on the throne)\b|^(?:when|(?:during|in) (?:which|what) (?:years|period)) did (?!the\b).*\b(?:reign|rule|hold office|play|work|perform)\b|what (?:years|period) (?:was|were|did) .*\b(?:active|reign|rule|in office)\b"),
    ("employer", "organisation", r"\bemployer\b|\bemployed\b|where (?:does|did|do) .*\bwork\b|who(?:m)? (?:does|did) .*\bwork for\b|(?:what|which) (?:company|organi[sz]ation|university|school) .*\bwork"),
    ("advisor", "person", r"(?:doctoral|thesis|phd|academic) (?:advis[eo]r|supervisor)|^who (?:supervised|advised)\b|\b(?:doctorate|ph\.?d\.?) under (?:who|whom|which)\b|^under whom .*\b(?:doctorate|ph\.?d)"),
    ("teacher", "person", r"^who (?:taught|mentored|tutored)\b|\bteacher of\b|^student of$|stud(?:y|ied) (?:under|with) (?:who|whom|which)\b|^(?:under|with) whom .*\bstudy|\b(?:teacher|mentor|tutor)\?*$"),
    ("educated at", "organisation", r"educated at|\beducation\b|\bstud(?:y|ied)\b|\bgraduate[ds]?\b|alma mater|(?:what|which|where) .*\b(?:attend(?:ed)?|educated)\b|(?:university|college|school) .*\battend|\bdegrees?\b.*\b(?:from|where)|where .*\b(?:doctorates?|degrees?|education)\b"),
    ("award received", "award", r"award received|\b(?:what|which) (?:\w+ ){0,2}?(?:award|prize|medal|honou?r)s?\b|\bawards? (?:did|has|was)\b|awarded (?:what|which)|\baward\b.*\b(?:win|won|receive)"),
    ("capital of", "place", r"capital of$|the capital of\?*$|\bcapital of (?:what|which)\b|(?:what|which) (?:country|state|place|region|island)(?:'s| is| has).*\bcapital\b.* (?:is|called) |whose capital"),
    ("population", "number", r"\bpopulation\b|how many (?:people|inhabitants|residents) live"),
    ("capital", "place", r"\bcapital (?:city )?(?:of|is)\b|(?:what|which) (?:city )?is .*\bcapital\b|^capital$|'s capital"),
    ("place of formation", "place", r"location of formation|formation location|(?:where|what city|which city|what place) (?:was|were|did) .*\b(?:formed?|founded|established|originate)\b"),
    ("border", "place", r"shares? (?:a )?border|\bborders?\b(?! states)"),
    ("headquarters", "place", r"headquarter|head office|main office|where .*\bbased\b|based in (?:what|which)"),
    ("record label", "organisation", r"\blabel\b"),
    ("position", "position", r"position (?:played|held)|\b(?:what|which) position\b|\bposition\b"),
    ("genre", "genre", r"\bgenre\b|(?:what|which) (?:type|kind|style) of (?:music|film|movie|book)"),
    ("team", "organisation", r"sports team|\bteam\b|\bclub\b|who(?:m)? (?:does|did|do) .* play for"),
    ("party", "organisation", r"political party|\bparty\b"),
    ("religion", "name", r"\breligion\b|religious affiliation|\bfaith\b"),
    ("instrument", "phrase", r"\binstruments?\b"),
    ("language", "language", r"\blanguages?\b"),
    ("continent", "continent", r"\bcontinent\b"),
    ("publisher", "organisation", r"\bpublish(?:er|ed)\b"),
    ("part of", "name", r"^(?!.*\b(?:what|which) (?:country|state|nation)\b).*\bpart of\b"),
    ("instance of", "phrase", r"instance of|what (?:type|kind|sort) of (?:thing|place|entity)"),
    ("named after", "name", r"named (?:after|for)|eponym|^namesake$"),
    ("river", "name", r"\b(?:what|which) (?:river|stream)\b.*\b(?:run|flow|pass|cross|go|lie|lies|stand|stands|is|located|situated|found)(?:s|es)?\b(?!.*\b(?:into|join|longest)\b)|\b(?:on|along) (?:what|which) (?:river|stream)\b"),
    ("currency", "name", r"\bcurrency\b(?!.*\b(?:predat|replac|before|former))|(?:what|which) money\b|what do (?:people|they|you) pay with"),
    ("height", "number", r"\bhow (?:high|tall) (?:is|was)\b|(?:what is|^) ?the (?:height|elevation) of"),
    ("length", "number", r"\bhow long is\b|what is the length of"),
    ("mouth", "name", r"mouth of the watercourse|(?:river|stream|creek).*\b(?:flow into|flows into|empty|turn into|mouth)|tributary of"),
    ("follows", "name", r"^follows$|^followed by$|replaced by$"),
    ("state", "state", r"^state$|\b(?:what|which)(?: \w+)? state\b|\bstate (?:is|does|where)\b|name of the state"),
    ("county", "county", r"^county$|\b(?:what|which) county\b|name of the county"),
    ("located in", "place", r"located in the administrative|administrative territorial entity"),
    ("country", "country", r"^country$|\b(?:what|which|whose) country\b|\bcountry (?:is|was|for|does|of|where)\b|name of the country"),
    ("location", "place", r"^location$|where (?:is|are|was|were) .*\b(?:located|situated|found|held)|\bwhere (?:is|are)\b(?! .* from)|\b(?:what|which) (?:city|town|place|region|province|district) (?:is|was|are|were)\b.*\b(?:located|situated|found|based|in)\b"),
    ("director", "person", r"\bdirector\b|\bdirect(?:ed|s)?\b(?! (?:by )?(?:the|which|what) (?:film|movie)s?$)|\bfilmmaker\b|film was helmed"),
    ("composer", "person", r"whose music (?:is|was)|\bcompos(?:er|ed?|es)\b|(?:wrote|made|did) the (?:music|score|soundtrack)|\bscored\b|music (?:of|for) .* by who"),
    ("producer", "person", r"\bproducer\b|^who (?:\w+ )?produced\b|\bproduced by who"),
    ("lyricist", "person", r"\blyric"),
    ("screenwriter", "person", r"screen ?writer|\bscreenplay|\bscript"),
    ("performer", "person", r"\bperformer\b|\bperform(?:ed|s)?\b|\bsinger\b|\bsang\b|\bsings\b|\brecorded\b|\bperformed by\b|(?:what|which|whose) (?:band|artist|group|musician)\b|by (?:what|which) artist"),
    ("author", "person", r"\bauthor(?:ed)?\b|\bwriter\b|\bwrote\b|\bwritten by\b|\bwritten\b|songwriter|\bpenned\b"),
    ("founder", "person", r"\bfounded by\b|\bfounders?\b|^who (?:\w+ )?(?:founded|established|started|formed)\b|\bfounded\b.*\bwho\b|established by"),
    ("creator", "person", r"\bcreators?\b|^who (?:\w+ )?(?:created|invented|designed|developed|discovered)\b|(?:created|invented|designed|developed|discovered) by\b|notable work of|^developer$|^architect$|\barchitect\b"),
    ("editor", "person", r"\beditor\b|^who edited\b|edited by"),
    ("cinematographer", "person", r"cinematograph|^who photographed\b|director of photography"),
    ("presenter", "person", r"\bpresenter\b|^who (?:presented|hosted|hosts|presents)\b|presented by|\bhost of\b"),
    ("painter", "person", r"^who painted\b|painted by"),
    ("student", "person", r"\bdoctoral student|\bstudents? of\b(?!.*\bwho (?:was|is) a student)|^student$"),
    ("distributor", "organisation", r"\bdistribut(?:or|ed)\b"),
    ("chief executive", "person", r"\bceo\b|chief executive"),
    ("chairperson", "person", r"\bchair(?:man|woman|person)\b"),
    ("based on", "title", r"\bbased on$|based on\?|adapted from"),
    ("sport", "sport", r"\b(?:what|which) sport\b|^sport$"),
    ("owner", "organisation", r"\bowned by\b|\bowners?\b|^who owns\b|parent (?:company|organi[sz]ation)"),
    ("manufacturer", "organisation", r"\bmanufactur|\bproduction company\b|^(?:what|which) company (?:makes|made|produces|produced)"),
    ("cast", "person", r"^cast member$|\bcast members?\b|^who (?:starred|stars) in\b"),
)  # fmt: skip
KIND_OF_HEAD: dict[str, str] = {
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
    **dict.fromkeys(words("""
        film movie song album book novel show series game title play work single magazine newspaper poem
    """), "title"),
}  # fmt: skip
# Words around the subject, in small letters only: a capital belongs to a name. The question's own first letter is lowered.
LEAD = re.compile(
    r"^(?:(?:who|whom|whose|what|which|when|where|how|why|is|was|are|were|did|does|do|has|had|have|the|a|an|in|at|on|by|of|for|to|from|during|"
    r"name of|name|and|also|that|it|so|as|with|main|original|first|film|movie|song|album|band|book|novel|work|works|located|known|come|single|play|opera|"
    r"place|city|country|year|years|date|location|state|county|company|person|people|exactly|award|awards|prize|medal|political party|party|team|sports team|club|"
    r"instrument|sport|religion|language|official|native|manufacturer|published|released|publisher|screenplay|lyrics|lyricist|music|score|soundtrack|building|designed|painted|"
    r"edited|photographed|presented|distributed|developed|invented|discovered|owns|owned|started|formed|established|starred|stars|taught|editor|painter|presenter|teacher|student|"
    r"doctoral|academic|advis[eo]r|supervisor|supervised|mentored|tutored|advised|taught|under|whom|teacher|mentor|tutor|river|stream|runs?|flows?|passes|through|along|past|reign|high|tall|long|currency|money|used|pay|pays|people|today|now|currently|chairman|chairperson|president|ceo|university|school|college|degree|genre|type|kind|style|doctorates|position|record label|label|kind of|type of)\b[\s,]*|['’]s\s+|[\s,?.:;]+)+"
)
TAIL = re.compile(  # one mark at a time: a run of n could be taken in 2^n ways
    r"(?:[\s,?.:;]|['’]s?$|\b(?:born|die|died|located|situated|in|at|on|by|from|of|to|who|whom|what|which|when|where|is|was|are|were|educated|named after|named for|based|"
    r"did|does|do|it|come|for|a|the|with|has|had|been|released|published|founded|established|formed|name|pass away|passed away|buried|member|hold|held|attend|attended|"
    r"work|works|worked|belong|originate|play|plays|played|win|won|receive|received|produced|made|film|movie|song|study|studied|graduate|graduated|created|started|active|reign|ruled?|run|flow|stand|used|lie|marry|married|speak|use)\b['’]?)+$"
)
NOUNS = re.compile(
    r"\b(?:date of (?:birth|death|publication|release|burial)|place of (?:birth|death|burial)|cause of (?:\S+ )?death|birth ?place|birth ?date|birthday|death date|"
    r"release date|publication date|country of (?:origin|citizenship)|nationality|citizenship|citizen|occupation|profession|employer|educated at|"
    r"award received|capital(?: city)?|headquarters|record label|genre|population|director|composer|producer|screenwriter|performer|singer|author|writer|"
    r"founder|creator|owner|spouse|wife|husband|mother|father|parents?|child(?:ren)?|sons?|daughters?|siblings?|brothers?|sisters?|city of birth|parent company|"
    r"directed|composed|performed|wrote|written|produced|founded|created|married|sang|recorded|languages?|continent|religion|position|label)\b"
)
CHOICE = (
    re.compile(r"\bbetween\s+(?:the\s+)?(?=(?-i:[A-Z\"]))([^,?]{2,80}?),?\s+(?:or|and)\s+([^,?]{2,80}?)\s*\?*$", re.I),
    re.compile(r"[,:]\s*([^,?]{2,80}?),?\s+or\s+([^,?]{2,80}?)\s*\?*$", re.I),
    re.compile(r",\s*([^?]{2,90}?)\s+or\s+([^?]{2,90}?)\s*\?*$", re.I),
    re.compile(r"^(?:between|of|out of)\s+([^,?]{2,80}?)\s+(?:or|and)\s+([^,?]{2,80}?),\s*(?:who|which|what)\b", re.I),
    re.compile(r"\b((?:[A-Z][\w'’.-]*\s+){1,6})or\s+([A-Z][^?]{1,80}?)\s*\?*$"),
    re.compile(r"\b(?:an?|the)\s+([\w-]+(?: [\w-]+)?)\s+or\s+(?:an?|the)\s+([\w-]+(?: [\w-]+)?)\s*\?*$", re.I),
)
HEAD = re.compile(
    r"\b(?:what|which|whose)\s+((?:(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|has\b|had\b|have\b)[\w'’-]+\s+){0,3}?[\w'’-]+?)(?:\s+(?:is|are|was|were|do|does|did|has|had|have|of|in|on|that|who|can|would|will|for|from|to|at|by|with)\b|\s+\w+(?:ed|s)\b|\?|$)",
    re.I,
)
