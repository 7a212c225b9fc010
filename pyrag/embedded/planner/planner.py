"""The embedded planner and decomposer: a question becomes sub-queries and a program by rules, without a model.

What the rules cannot read with confidence becomes a program of one step, and the plan's note says so. A repair
never returns the program that failed: first come other readings of the question, then the question in one step, then
the same with more passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pyrag.agents.corpus.overview import CorpusOverview
from pyrag.agents.protocol import Decomposition, Plan
from pyrag.embedded.asking import plain_question
from pyrag.embedded.planner.corpus.program import corpus_program, corpus_queries
from pyrag.embedded.planner.corpus.reading import asks_for_count, read_corpus_question
from pyrag.embedded.planner.grammar.compare import parse_comparison, parse_difference, parse_verdict
from pyrag.embedded.planner.grammar.measures import parse_measured
from pyrag.embedded.planner.grammar.question import parse_chain
from pyrag.embedded.planner.grammar.reports import parse_conditions, parse_evidence
from pyrag.embedded.planner.grammar.shared import parse_gathering, parse_same, parse_shared
from pyrag.embedded.planner.meaning import Chain, Meaning, RelationStep, Whole
from pyrag.embedded.planner.program_text import TOPK, listed_program, sub_queries, whole_program, write_program
from pyrag.embedded.planner.question_readings import other_readings
from pyrag.episode.corpus.exhaustive import FAULT
from pyrag.errors import BadOutputError

_MAX_CHARACTERS = 1000  # longer texts are no questions that the rules know
_ONE_STEP = "no rule reads this question with confidence, so it is asked in one step"
_CLAIM = re.compile(r"\W*is (?:this|it) true\b", re.IGNORECASE)
_COMPARED = (
    "rules cannot weigh a claim, they only compare it with what single passages say: ask with a language model (--llm)"
)
_JUDGED = (
    "a small reader judged each document by a yes/no question: check the rows, or ask with a language model (--llm)"
)
_LISTED = "no rule reads this question, so each sub-query is a step and the answer is drawn from all of them"
_MORE = (2, 4, 8)  # how much larger top-k gets where one step must be tried again
_MAX_TOPK = 100  # that programs may ask for


def parse(question: str) -> Meaning:
    """Return the meaning of a question, as far as the rules can tell."""
    text = _tidy(question)
    if len(text) > _MAX_CHARACTERS or "{" in text or "}" in text:
        return Whole()
    for read in _READERS:
        meaning = read(text)
        if meaning is not None:
            return meaning
    chain = parse_chain(text)
    if _YES_NO.match(text) and isinstance(chain, Chain) and not _needs_steps(text, chain):
        return Whole(
            sure=True
        )  # "Was the plan for the hall put off" states something of the plan, it describes no hall
    unread = isinstance(chain, Whole) and not chain.sure
    return (parse_conditions(text) if unread else None) or chain


def _needs_steps(question: str, chain: Chain) -> bool:
    """Return whether a yes/no question describes what it states something of, and states more of it than its name."""
    last = chain.node.question if isinstance(chain.node, RelationStep) else ""
    return bool(_DESCRIBED.search(question)) and not _NAMED.fullmatch(last)


_NAMED = re.compile(r"\w+ (?:.*\{0\}|\{0\} (?:still |really )?[^a-z\s].*)\?", re.DOTALL)  # "Is Ada Lind {0}?"
_YES_NO = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.IGNORECASE)
_DESCRIBED = re.compile(
    r"\b(?:that|which|who|whose|where|whom)\b|'s [a-z]+ (?!of\b)"
    r"|\bthe (?:[a-z]+ )?(?:director|author|writer|composer|performer|singer|founder|father|mother|wife|husband|son"
    r"|daughter|spouse|producer|creator|inventor|mayor|president|ceo|capital|birthplace|publisher|owner|successor"
    r"|predecessor) of\b"
)
_READERS = (
    parse_evidence,
    parse_verdict,
    parse_measured,
    parse_same,
    parse_shared,
    parse_difference,
    parse_comparison,
    parse_gathering,
)


def _tidy(question: str) -> str:
    text = " ".join(question.split()).replace("’", "'").replace("`", "'")
    text = re.sub(r"(?<=\w)'([ST])\b", lambda found: found[0].lower(), text)  # "Man'S", from titles in capitals
    text = _ROMAN.sub(lambda found: found[0].upper(), text)  # "Philip Iv"
    text = re.sub(r"^(What|Who|Where|When)'s ", r"\1 is ", text)
    text = re.sub(r" ('s\b|[?,;:])", r"\1", text)
    text = _RANKED_TITLE.sub(lambda found: found[0].lower(), text)
    for wording, plain in _PLAINER:
        text = wording.sub(plain, text)
    return text


_ROMAN = re.compile(r"(?<=[a-z] )(?:Ii|Iii|Iv|Vi{1,3}|Ix|Xi{1,3}|Xiv|Xvi{0,3})\b")
_RANKED_TITLE = re.compile(
    r"\b(?:first|second|third|last|current|former|previous|next)"
    r" (?:President|Prime Minister|King|Queen|Emperor|Empress|Governor|Mayor|Chancellor)\b(?! [A-Z])"
)
_WHICH_REGION = r"(?:[Ii]n |[Oo]n )?([Ww](?:hat|hich) (?:county|continent|region))"  # of which a page tells the city
_THE_PLACE = r"(the (?:city|town|village|place|country|state|location))"
# Wordings that are read as their plain form.
_PLAINER = (
    (re.compile(r"\bdid (.+?) come into the world\b"), r"was \1 born"),
    (re.compile(r"\b(came|come) into the world\b"), "born"),
    (re.compile(r"\blived to (?:be older|a greater age|an older age)\b"), "lived longer"),
    (re.compile(r"\bmakers? of (?=(?:the )?(?:\d{4} )?(?:film|movie)\b)"), "director of "),
    (re.compile(r"\badviser\b"), "advisor"),
    (re.compile(r"\bCEO\b"), "chief executive"),
    (re.compile(rf"^{_WHICH_REGION} was (.+?) born(?: in| on)?\??$"), r"\1 is the city where \2 was born in"),
    (re.compile(rf"^{_WHICH_REGION} did (.+?) die(?: in| on)?\??$"), r"\1 is the city where \2 died in"),
    (re.compile(rf"\b{_THE_PLACE} of ([^,]+?)'s birth\b"), r"\1 where \2 was born"),
    (re.compile(rf"\b{_THE_PLACE} of ([^,]+?)'s death\b"), r"\1 where \2 died"),
)


@lru_cache(maxsize=512)
def read_question(question: str) -> Meaning:
    """Return the cached result of `parse`."""
    return parse(question)


@dataclass(frozen=True, slots=True)
class EmbeddedDecomposer:
    """The sub-queries of the planner's own reading."""

    overview: CorpusOverview | None = None

    def with_corpus(self, overview: CorpusOverview) -> EmbeddedDecomposer:
        """Return this decomposer for questions over all documents as well."""
        return EmbeddedDecomposer(overview)

    async def decompose(self, question: str) -> Decomposition:
        if self.overview and (corpus := read_corpus_question(question, self.overview)):
            return Decomposition(corpus_queries(corpus) or (question,))
        question = plain_question(question)
        meaning = read_question(question)
        note = note_of(question, meaning)
        return Decomposition(sub_queries(question, meaning), note=note, doubt=is_doubt(note))


@dataclass(frozen=True, slots=True)
class EmbeddedPlanner:
    """Programs by rules, whose searches ask for `topk` passages.

    With an `overview` of the documents, questions over all of them become programs that enumerate.
    """

    topk: int = TOPK
    overview: CorpusOverview | None = None

    def with_topk(self, topk: int) -> EmbeddedPlanner:
        """Return this planner with another number of passages for each search."""
        return replace(self, topk=topk)

    def with_corpus(self, overview: CorpusOverview) -> EmbeddedPlanner:
        """Return this planner with an overview of the documents."""
        return replace(self, overview=overview)

    def needs_corpus(self, question: str) -> bool:
        """Return True for a question that no search can answer: how many documents there are."""
        return asks_for_count(question)

    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        """Return the rules' own reading; where there is none, a step for each sub-query that someone else wrote.

        Args:
            question: The question as it was asked.
            sub_queries: Those of a decomposer, used where there are two or more.
        """
        if self.overview and (corpus := read_corpus_question(question, self.overview)):
            source = corpus_program(corpus)
            note = _JUDGED if any(fact.is_judged for fact in corpus.selection.facts) else ""
            return Plan(source, sub_queries=corpus_queries(corpus) or (question,), raw=(source,), note=note)
        question = plain_question(question)
        meaning = read_question(question)
        if isinstance(meaning, Whole) and sub_queries and len(sub_queries) > 1:
            source = listed_program(question, sub_queries, self.topk)
            return Plan(source, sub_queries=tuple(sub_queries), raw=(source,), note=_LISTED, doubt=True)
        return _plan(question, meaning, self.topk)

    async def repair(self, question: str, sub_queries: Sequence[str], source: str, error: str) -> Plan:
        """Return the next program after the one that failed.

        Args:
            question: The question as it was asked.
            sub_queries: Those of the plan, kept as they are.
            source: The program that failed; one that is not the rules' own is followed by their first.
            error: Not used: the order of the programs is fixed.

        Raises:
            BadOutputError: there is none left.
        """
        if self.overview and read_corpus_question(question, self.overview):
            raise BadOutputError(f"the embedded planner has one program for a question over all documents: {error}")
        if FAULT in error:  # an opinion, and these rules know no better program
            return Plan(source, sub_queries=tuple(sub_queries), raw=(source,))
        programs = list(dict.fromkeys(_programs(plain_question(question), self.topk)))
        position = programs.index(source) if source in programs else -1
        if position + 1 >= len(programs):
            raise BadOutputError(
                "the embedded planner has no further program for this question: ask it in simpler words"
            )
        text = programs[position + 1]
        return Plan(
            text, sub_queries=tuple(sub_queries), raw=(text,), note="the program failed, so another reading is tried"
        )


def _plan(question: str, meaning: Meaning, topk: int) -> Plan:
    source = write_program(question, meaning, topk)
    note = note_of(question, meaning)
    queries = sub_queries(question, meaning)
    return Plan(source, sub_queries=queries, raw=(source,), note=note, doubt=is_doubt(note))


def note_of(question: str, meaning: Meaning) -> str:
    """Return the reason why a reading is a fallback; empty if it is none.

    Args:
        question: The question as it was asked.
        meaning: The reading of it.
    """
    if _CLAIM.match(question):
        return _COMPARED
    return _ONE_STEP if isinstance(meaning, Whole) and not meaning.sure else ""


def is_doubt(note: str) -> bool:
    """Return True for a note that is of no use beside a confident answer."""
    return note in (_ONE_STEP, _LISTED)


def _programs(question: str, topk: int) -> Iterator[str]:
    """Every program for a question, in the order in which they are tried."""
    meaning = read_question(question)
    yield write_program(question, meaning, topk)
    yield from (write_program(question, other, topk) for other in other_readings(question, meaning))
    yield whole_program(question, topk)
    yield from (whole_program(question, min(topk * factor, _MAX_TOPK)) for factor in _MORE)
