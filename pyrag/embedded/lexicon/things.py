"""Nouns for kinds of things that have proper names: places, organisations, buildings and works."""

from __future__ import annotations

from pyrag.embedded.lexicon import words

PLACE_KINDS = words("""
    country state city town village county province district region continent area place location nation island
""")
WATER_KINDS = words("river lake sea ocean")
BUILDING_KINDS = words("airport stadium museum church building bridge")
PERFORMER_KINDS = words("band group")
SCHOOL_KINDS = words("school university")
PERIODICAL_KINDS = words("newspaper magazine")
ORGANISATION_KINDS = words("company team club organization organisation") | PERFORMER_KINDS
WORK_KINDS = words("film movie song album novel book single series play poem opera game show story")
NAMED_KINDS = (
    PLACE_KINDS
    | WATER_KINDS
    | BUILDING_KINDS
    | ORGANISATION_KINDS
    | SCHOOL_KINDS
    | PERIODICAL_KINDS
    | WORK_KINDS - words("single play poem opera game story")  # also words for other things: "the all-star game"
    | words("""
        language religion party mountain empire kingdom dynasty planet species army tribe network station label award
        league house port channel
    """)
)  # kinds of things that have a proper name
