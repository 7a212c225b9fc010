"""Classes of words that make up the grammar of questions and clauses."""

from __future__ import annotations

from pyrag.embedded.lexicon import any_of, words

BE = words("is are was were")
DO = words("do does did")
HAVE = words("has have had")
MODALS = words("can could will would shall should may might must")
AUXILIARIES = BE | DO | HAVE | MODALS | words("isn't wasn't didn't")
OPENING_AUXILIARIES = BE | DO | HAVE | words("can could will would should")  # "May" and "Might" open more names
BE_FORM = any_of(BE)
DO_FORM = any_of(DO)
OPENING_AUXILIARY = any_of(OPENING_AUXILIARIES)

ARTICLES = words("the a an")
DETERMINERS = ARTICLES | words("his her its their this these those each every all both some any no another")
PRONOUNS = words("he she it they him them himself herself itself themselves there")
RELATIVE_PRONOUNS = words("who whom which that whose where when")
SUBJECT_PRONOUNS = words("who which that")  # pronouns that may be the subject of a relative clause
QUESTION_WORDS = words("who whom whose what which when where why how")
CLAUSE_WORDS = QUESTION_WORDS | DO | {"that"}  # words that open a clause
SUBORDINATORS = words("while because if although though whereas how why what whether")
CONJUNCTIONS = words("and or but nor")
PREPOSITIONS = words("""
    of in on at by for to from with about against between during after before near under over through into as than
    since until within without among along across around behind beyond despite toward towards via upon onto off
    outside inside per like beside besides beneath below above
""")
VALUE_PREPOSITION = any_of(words("in at by from to into with under on for as"))  # before the value of a claim
NEAR = words("near by along off beside outside")  # prepositions of places
PHRASAL_PARTICLES = words("up out down off away back")
ADVERBS = words("""
    first also later finally still already once originally initially ever never often now currently eventually then
    last not only just twice again even together almost nearly about
""")
# Words before a name or noun in a question that belong to no name.
QUESTION_OPENERS = (
    QUESTION_WORDS
    | OPENING_AUXILIARIES
    | ARTICLES
    | words("and in on at of for from by to with during after before under")
)
