"""The cues after or before which a relation's name stands, as tables for `people`; no code.

A row is a pattern over one sentence, which name to take ("after" the match, "before" it, the "second" of a list, a
"place") and the pattern's reliability in [0, 1], judged on training data. A pattern that looks for a capital is matched
with case, the others without.
"""

# ruff: noqa: E501 - a pattern is easier to read, compare and sort on one line

from __future__ import annotations

_BY = r"(?:(?!\bstarring\b)[^.;()]){0,60}?\bby\s+"


def _made(participles: str, nouns: str) -> tuple[tuple[str, str, float], ...]:
    """The usual cues of somebody's part in a work: "edited by X", "its editor X", "X edited"."""
    return (
        (rf"\b(?:{participles})\b{_BY}", "after", 1.0),
        (rf"\b(?:{nouns})s?(?: was| is|,)?\s+(?=[^a-z\s])", "after", 0.8),
        (rf"\s+(?:{participles})\b", "before", 0.6),
    )


_TAUGHT = (  # one table for teachers and advisers: pages seldom tell the two apart
    (r"\b(?:advis[eo]r|supervisor|supervision of|supervised by|guidance of|advised by|mentored by|mentor|tutored by)(?: was|,)?\s+", "after", 1.0),
    (r"\b(?:doctora\w+|ph\.?d\.?|dissertation|thesis|degree)\b[^.;()]{0,60}?\bunder\s+", "after", 1.0),
    (r"\b(?:studied|trained|student|pupil|lessons|taught|learnt|learned|apprentice\w*)\b[^.;()]{0,30}?\b(?:under|with|of|from|by)\s+", "after", 0.95),
    (r"\b(?:teacher|tutor)s?(?: was| were|,)?\s+(?=[^a-z\s])", "after", 0.85),
)  # fmt: skip

CUES: dict[str, tuple[tuple[str, str, float], ...]] = {
    "director": (
        (r"\b(?:co-)?directed(?:(?:,| and| &|,? or)? (?:and )?(?:(?:co-|executive-)?\w+ed|written|co-written|shot|story|screenplay)){0,5},? (?:\w+ly )?by (?:and \w+ )?", "after", 1.0),
        (r"\b(?:directorial|debut)\b[^.;]{0,30}\b(?:of|by|for)\s+", "after", 0.8),
        (r"\bdirectors?,?\s+(?=[^a-z\s])", "after", 0.7),
        (r"\bfilm (?:by|of)\s+", "after", 0.75), (r"\bhelmed by\s+", "after", 0.8), (r"\bmade by\s+", "after", 0.6),
        (r"\s+(?:co-)?directed\b", "before", 0.6), (r"['’]s? (?:\w+ ){0,3}(?:film|directorial|debut)", "before", 0.5),
        (r"\bfilmed by\s+", "after", 0.5),
    ),
    "composer": (
        (rf"\b(?:music|score|soundtrack|songs|background)\b{_BY}", "after", 0.95), (rf"\b(?:composed|scored)\b{_BY}", "after", 1.0),
        (r"\b(?:opera|musical|symphony|work|singspiel|ballet|operetta|song|piece|suite|poem|concerto|sonata|overture|oratorio|cantata|requiem|march|waltz)\b[^.;()]{0,40}?\bby\s+", "after", 0.8),
        (r"\bcomposer,?\s+(?=[^a-z\s])", "after", 0.7), (r"\s+(?:has |had )?(?:composed|scored)\b", "before", 0.7),
        (r"\bwritten\b[^.;()]{0,40}?\bby\s+", "after", 0.6), (r"\bmusic (?:of|is)\s+", "after", 0.5),
    ),
    "performer": (
        (r"\b(?:performed|recorded|sung)(?: and \w+)?(?: \w+ly)? by\s+", "after", 1.0), (rf"\b(?:released|covered|popularized|introduced|written)\b{_BY}", "after", 0.55),
        (r"\b(?:song|single|album|track|ep|lp|mixtape|record|duet|hit|ballad|cover|compilation|extended play|tune)\b(?:(?!written|composed|produced|lyrics|directed|arranged)[^.;()]){0,60}?(?<!ed )(?<!en )(?<!ung )\bby\s+", "after", 0.98), (r"\b(?:song|single|album|track)\b[^.;()]{0,30}?\b(?:from|of)\s+", "after", 0.45),
        (r"['’]s? (?:\w+[\s-]){0,5}(?:album|single|song|ep|record)\b", "before", 0.7),
        (r"\b(?:singer|band|rapper|artist|group|musician|duo|singer-songwriter)s?\s+(?=[^a-z\s])", "after", 0.6),
        (r"\s+(?:performed|sang|recorded)\b", "before", 0.5), (r"\bby\s+", "after", 0.4),
    ),
    "author": (
        (rf"\b(?:written|authored|penned|co-written)\b{_BY}", "after", 1.0),
        (r"\b(?:novel|book|story|play|poem|memoir|series|novella|comic|manga|essay|biography|song|treatise|collection|work)\b[^.;()]{0,50}?\b(?:by|of)\s+", "after", 0.9),
        (r"\b(?:author|writer|novelist|playwright|poet|screenwriter)s?,?\s+(?=[^a-z\s])", "after", 0.7),
        (r"\s+wrote\b", "before", 0.6), (r"['’]s? (?:\w+[\s-]){0,4}(?:novel|book|play|story)\b", "before", 0.6), (r"\bby\s+", "after", 0.4),
    ),
    "screenwriter": ((rf"\b(?:written|screenplay|script)\b{_BY}", "after", 1.0), (r"\b(?:screenwriter|writer)s?,?\s+(?=[^a-z\s])", "after", 0.7)),
    "lyricist": ((rf"\b(?:lyrics?|words|written)\b{_BY}", "after", 1.0),),
    "producer": ((rf"\bproduced\b{_BY}", "after", 1.0), (r"\bproducers?,?\s+(?=[^a-z\s])", "after", 0.7), (r"\s+produced\b", "before", 0.5)),
    "founder": (
        (rf"\b(?:co-)?(?:founded|established|formed|started|created|set up|launched)\b{_BY}", "after", 1.0),
        (r"\b(?:co-)?founders?(?: was| is|,)?\s+(?=[^a-z\s])", "after", 0.85), (r"\s+(?:co-)?(?:founded|established|started|formed)\b", "before", 0.8),
    ),
    "creator": (
        (rf"\b(?:created|invented|designed|developed|discovered|built|made|conceived)\b{_BY}", "after", 1.0),
        (r"\b(?:creator|inventor|designer|developer|architect)s?,?\s+(?=[^a-z\s])", "after", 0.7), (r"\s+(?:created|invented|designed|developed|discovered)\b", "before", 0.8),
    ),
    "editor": _made("edited", "editor"),
    "cinematographer": _made("photographed|shot|filmed", "cinematographer|director of photography"),
    "presenter": _made("presented|hosted", "presenter|host"),
    "painter": _made("painted", "painter|artist"),
    "advisor": _TAUGHT,
    "student": ((r"\b(?:students?|pupils?)(?: was| were|,| included?| such as)*\s+(?=[^a-z\s])", "after", 0.9),),
    "teacher": _TAUGHT,
    "distributor": ((rf"\b(?:distributed|released)\b{_BY}", "after", 1.0),),
    "chief executive": ((r"\b(?:CEO|chief executive(?: officer)?)(?: was| is|,)?\s+(?=[^a-z\s])", "after", 1.0), (r",? (?:is|was|as|the)(?: \w+){0,3} (?:CEO|chief executive)", "before", 0.7)),
    "chairperson": ((r"\bchair(?:man|woman|person)(?: was| is|,)?\s+(?=[^a-z\s])", "after", 1.0),),
    "based on": ((r"\b(?:based|adapted|adaptation|inspired)\b[^.;()]{0,40}?\b(?:on|from|of|by)\s+(?:the )?(?:[\w' ]+ )?(?=[\"“A-Z])", "after", 0.9),),
    "owner": ((rf"\bowned\b(?: and operated)?{_BY}", "after", 1.0), (r"\bsubsidiary of\s+", "after", 0.9), (r"\b(?:division|unit) of\s+", "after", 0.7), (r"\bparent company,?(?: is)?\s+", "after", 0.8)),
    "manufacturer": ((rf"\b(?:manufactured|produced|made|built|developed|marketed)\b{_BY}", "after", 1.0),),
    "publisher": ((rf"\b(?:published|released)\b{_BY}", "after", 1.0), (r"\bpublisher,?\s+(?=[^a-z\s])", "after", 0.7)),
    "record label": ((r"\b(?:released|issued)\b[^.;()]{0,60}?\b(?:by|on|through|via|under)\s+(?:the )?(?=[^a-z\d\s])", "after", 0.8), (r"\bsigned\b[^.;()]{0,25}?\b(?:to|with)\s+", "after", 0.9), (r"\blabels?,?\s+(?=[^a-z\s])", "after", 0.8)),
    "spouse": (
        (r"\b(?:re)?marri(?:ed|es)\b(?: to)?(?! (?:in|on|at|and|the year))\s+", "after", 1.0), (r"\b(?:[Hh]is|[Hh]er|[Tt]heir|\w['’]s) (?:\w+ )?(?:wife|husband|spouse|consort)(?: was| is|,)?\s+(?:named )?(?=[^a-z\s]|the |an? )", "after", 0.95),
        (r"\b(?:wife|husband|spouse|widow|widower|consort|partner|queen consort) of\s+", "after", 0.95), (r"\b(?:marriage|wedding|wedded|wed|engaged) (?:to|with)\s+", "after", 0.9),
        (r"\bwife,?\s+(?=[^a-z\s])", "after", 0.7), (r"\bhusband,?\s+(?=[^a-z\s])", "after", 0.7), (r"\bmarriage (?:of|between)\s+", "second", 0.5), (r"\bby marriage to\s+", "after", 0.9),
    ),
    "father": (
        (r"\b(?:son|daughter|child|children|sons|daughters|heir|bastard|issue|born) (?:of|to)\s+", "after", 1.0), (r"\b(?:[Hh]is|[Hh]er|[Tt]heir|['’]s) (?:\w+ )?father(?: was| is|,)?\s+(?:named |called )?(?=[^a-z\s]|the |an? )", "after", 0.95),
        (r"\bparents?(?: were| are| is|,)?\s+", "after", 0.8), (r"\bfather(?:,| was)?\s+(?=[^a-z\s])", "after", 0.8), (r"\b(?:son|daughter)s?\b[^.;()]{0,40}?\bof\s+", "after", 0.7), (r"\bborn\b[^.;]{0,80}?\bto\s+", "after", 0.7), (r"\bfathered by\s+", "after", 0.9),
    ),
    "mother": (
        (r"\b(?:[Hh]is|[Hh]er|[Tt]heir|['’]s) (?:\w+ )?mother(?: was| is|,)?\s+(?:named |called )?(?=[^a-z\s]|the |an? )", "after", 1.0), (r"\b(?:son|daughter|child|children|sons|daughters|issue|born) (?:of|to)\s+", "second", 0.95),
        (r"\b(?:son|daughter)\b[^.;]{0,80}?\b(?:marriage (?:to|with)|wife,?|by(?: his| her)?)\s+", "after", 0.9), (r"\bmother(?:,| was)?\s+(?=[^a-z\s])", "after", 0.8), (r"\bparents?(?: were| are| is|,)?\s+", "second", 0.8), (r"\bborn\b[^.;]{0,80}?\bto\s+", "second", 0.75),
        (r"\b(?:son|daughter)s?\b[^.;()]{0,60}?\bof\s+", "second", 0.7),
    ),
    "parents": ((r"\b(?:son|daughter|child|born) (?:of|to)\s+", "after", 0.9), (r"\bparents?(?: were| are| is|,)?\s+", "after", 0.9), (r"\b(?:father|mother)(?:,| was)?\s+", "after", 0.8)),
    "child": (
        (r"\b(?:father|mother|parents?) of\s+", "after", 0.95), (r"\b(?:[Hh]is|[Hh]er|[Tt]heir|['’]s) (?:\w+ )?(?:son|daughter|child|children|sons|daughters)(?: was| is| are| were|,| include)?\s+(?:named )?(?=[^a-z\s])", "after", 1.0),
        (r"\b(?:son|daughter)s?(?:,| named| called)?\s+(?=[^a-z\s])", "after", 0.8), (r"\bchildren\b[^.]{0,30}?[:,]\s+", "after", 0.6),
    ),
    "sibling": (
        (r"\b(?:brother|sister|sibling|half-brother|half-sister)s? (?:of|to)\s+", "after", 0.95), (r"\b(?:[Hh]is|[Hh]er|[Tt]heir|['’]s) (?:\w+ )*(?:brother|sister|sibling|half-brother|half-sister)s?(?: was| is| are| were|,)?\s+(?=[^a-z\s])", "after", 1.0), (r"\b(?:brother|sister)s?,?\s+(?=[^a-z\s])", "after", 0.7),
    ),
    "educated at": (
        (r"\b(?:graduated|graduate|alumn\w+|degrees?|doctorate|ph\.?d\.?|diploma|b\.?a\.?|m\.?a\.?|educat\w+|schooled|trained|study|studied|studying|studies|enrolled|matriculated)\b[^.;()]{0,60}?\b(?:at|from|of)\s+(?:the )?(?=[^a-z\s])", "after", 1.0),
        (r"\b(?:attended|attending|entered|joined)\s+(?:the )?(?=[^a-z\s])", "after", 0.8),
    ),
    "employer": (
        (r"\b(?:works?|worked|working|employed|taught|teaches|served)\b[^.;()]{0,30}?\b(?:at|for|by|with)\s+(?:the )?", "after", 0.9), (r"\b(?:professor|lecturer|teacher|researcher|employee|fellow)\b[^.;()]{0,50}?\b(?:at|of)\s+(?:the )?(?=[^a-z\s])", "after", 0.85), (r"\bmember of\s+(?:the )?", "after", 0.6), (r"\bjoined\s+(?:the )?", "after", 0.6),
    ),
    "award received": (
        (r"\b(?:won|received|awarded|awards?|recipient of|winner of|winning|receiving|earned|honou?red with|inducted into)\b[^.;]{0,50}?\b(?:the|a|an|his|her|into)\s+(?:[\d\w]+ )?(?=[^a-z\d\s])", "award", 1.0), (r"\b(?:won|received|awarded|winner of|into)\s+", "award", 0.8),
    ),
    "team": ((r"\b(?:plays|played|playing|goalkeeper|midfielder|forward|defender|striker|signed|appeared)\b[^.;()]{0,40}?\b(?:for|with|at)\s+(?:the )?(?:\w+ ){0,5}?(?=[^a-z\s])", "after", 0.9), (r"\b(?:for|of) the\s+(?=[^a-z\s])", "after", 0.5)),
    "party": ((r"\b(?:member|politician|leader|candidate|affiliated|representing)\b[^.;()]{0,40}?\b(?:of|from|with|for|to)\s+(?:the )?(?=[^a-z\s])", "after", 0.9),),
    "headquarters": ((r"\b(?:headquartered|headquarters|based|head office|main office)\b[^.;()]{0,40}?\b(?:in|at)\s+", "place", 1.0),),
    "capital": ((r"\bcapital(?: city)?(?: is|,)?\s+(?=[^a-z\s])", "place", 0.9), (r"\bcapital\b[^.;()]{0,40}?\b(?:is|at|in)\s+", "place", 0.8)),
    "capital of": ((r"\bcapital\b[^.;()]{0,60}?\bof\s+(?:the )?(?:\w+ ){0,4}?(?:of )?(?=[^a-z\s])", "place", 1.0),),
    "part of": ((r"\b(?:part|member|subsidiary|division|branch|province|diocese|section|suburb|constituency) of\s+(?:the )?", "after", 0.9), (r"\b(?:in|within) the\s+(?=[^a-z\s])", "after", 0.5)),
    "named after": ((r"\bnamed\b[^.;()]{0,30}?\b(?:after|for|from|honou?r of)\s+(?:the )?", "after", 1.0), (r"\bname\b[^.;]{0,40}?\bfrom\s+(?:the )?", "after", 0.7)),
    "mouth": ((r"\b(?:tributary of|flow\w*\b[^.;()]{0,40}?\binto|joins|empt\w+\b[^.;()]{0,20}?\binto|confluence with|discharges\b[^.;()]{0,20}?\binto)\s+(?:the )?", "after", 1.0),),
    "follows": ((r"\b(?:successor|succeeded|replaced|follow\w*|sequel|after)\b[^.;()]{0,20}?\b(?:to|by|of)?\s+(?:the )?(?=[^a-z\s])", "after", 0.7),),
    "religion": ((r"\b(?:convert\w*|adherent|member|follower|devout|practicing)\b[^.;()]{0,20}?\b(?:to|of)?\s+(?=[^a-z\s])", "after", 0.7),),
    "place of burial": ((r"\b(?:buried|interred|entombed|burial|laid to rest|remains)\b[^.;()]{0,40}?\b(?:in|at)\s+(?:the )?", "place", 1.0),),
    "place of formation": ((r"\b(?:formed|founded|established|created|based|from)\b[^.;()]{0,40}?\b(?:in|at)\s+(?=[^a-z\d\s])", "place", 1.0),),
    "border": ((r"\bborder(?:s|ed|ing)?\b[^.;()]{0,30}?\b(?:by|with|on|to)?\s+(?:the )?(?=[^a-z\s])", "after", 0.9),),
    "cast": ((r"\b(?:starring|stars|starred|cast includes|featuring|features)\s+", "after", 0.9),),
    "location": ((r"\b(?:located|situated|held|lies|based|found|stands)\b[^.;()]{0,60}?\b(?:in|at|on|near)\s+(?:the )?(?:\w+ of )?(?=[^a-z\d\s])", "place", 0.9), (r"\bin\s+(?:the )?(?:\w+ of )?(?=[^a-z\d\s])", "place", 0.6)),
    "located in": ((r"\b(?:in|of)\s+(?:the )?(?=[^a-z\d\s])", "place", 0.8),),
}  # fmt: skip
