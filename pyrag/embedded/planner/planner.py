"""Rule-based Planner and Decomposer agents.

A question that no rule can read with confidence becomes a one-step program, and the plan has a note about it. A repair
never returns the program that failed. It returns the programs of the question's other readings, then a one-step
program, then one-step programs with more passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pyrag.agents.corpus.overview import CorpusOverview
from pyrag.agents.protocol import Decomposition, Plan
from pyrag.agents.python_text import literal
from pyrag.embedded.lexicon import any_of, words
from pyrag.embedded.lexicon.people import MAKER_NOUNS
from pyrag.embedded.lexicon.word_classes import OPENING_AUXILIARY, RELATIVE_PRONOUNS
from pyrag.embedded.plain_question import plain_question
from pyrag.embedded.planner.corpus.program import corpus_program, corpus_queries
from pyrag.embedded.planner.corpus.reading import asks_for_count, read_corpus_question
from pyrag.embedded.planner.grammar.common_properties import parse_gathering, parse_same, parse_shared
from pyrag.embedded.planner.grammar.compare import parse_comparison, parse_difference, parse_verdict
from pyrag.embedded.planner.grammar.measures import parse_measured
from pyrag.embedded.planner.grammar.question import parse_chain
from pyrag.embedded.planner.grammar.reports import parse_conditions, parse_evidence
from pyrag.embedded.planner.impossible_times import impossible_time
from pyrag.embedded.planner.meaning import Chain, Meaning, RelationStep, Whole
from pyrag.embedded.planner.program_text import TOPK, listed_program, sub_queries, whole_program, write_program
from pyrag.embedded.planner.question_readings import other_readings
from pyrag.embedded.planner.table_questions import with_table
from pyrag.episode.corpus.exhaustive import FAULT
from pyrag.errors import BadOutputError
from pyrag.trace.model import UNKNOWN

_MAX_CHARACTERS = 1000  # no rule reads longer questions
_ONE_STEP = "no rule reads this question with confidence, so it is asked in one step"
_CLAIM = re.compile(r"\W*is (?:this|it) true\b", re.IGNORECASE)
_COMPARED = (
    "rules cannot weigh a claim, they only compare it with what single passages say: ask with a language model (--llm)"
)
_JUDGED = (
    "a small reader judged each document by a yes/no question: check the rows, or ask with a language model (--llm)"
)
_LISTED = "no rule reads this question, so each sub-query is a step and the answer is drawn from all of them"
_TOPK_FACTORS = (2, 4, 8)  # by which top-k grows when a program of one step is repeated
_MAX_TOPK = 100  # passages that a program may retrieve at once


def parse(question: str) -> Meaning:
    """Return the first reading of a question."""
    text = _tidy(question)
    if len(text) > _MAX_CHARACTERS or "{" in text or "}" in text:
        return Whole()
    for read in _READERS:
        meaning = read(text)
        if meaning is not None:
            return meaning
    chain = parse_chain(text)
    if _YES_NO.match(text) and isinstance(chain, Chain) and not _needs_steps(text, chain):
        return Whole(sure=True)  # "Was the plan for the hall put off" is a statement; it needs no lookup of the plan
    unread = isinstance(chain, Whole) and not chain.sure
    return (parse_conditions(text) if unread else None) or chain


def _needs_steps(question: str, chain: Chain) -> bool:
    """Return whether a yes/no question states something about a description, such as "the author of Alpha".

    If the chain's last step only asks for a name, the question needs no steps.
    """
    last_question = chain.node.question if isinstance(chain.node, RelationStep) else ""
    return bool(_DESCRIBED.search(question)) and not _NAMED.fullmatch(last_question)


_NAMED = re.compile(r"\w+ (?:.*\{0\}|\{0\} (?:still |really )?[^a-z\s].*)\?", re.DOTALL)  # "Is Ada Lind {0}?"
_YES_NO = re.compile(rf"{OPENING_AUXILIARY}\b", re.IGNORECASE)
_RELATED = any_of(
    MAKER_NOUNS
    | words("""
        father mother wife husband son daughter spouse inventor mayor president ceo capital birthplace publisher owner
        successor predecessor
    """)
)
_DESCRIBED = re.compile(
    rf"\b{any_of(RELATIVE_PRONOUNS - {'when'})}\b|'s [a-z]+ (?!of\b)"
    rf"|\bthe (?:[a-z]+ )?{_RELATED} of\b"
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
    """Return a question with standard blanks, quotes and capitals, and with rare wordings replaced by common ones."""
    text = " ".join(question.split()).replace("’", "'").replace("`", "'")
    text = re.sub(r"(?<=\w)'([ST])\b", lambda match: match[0].lower(), text)  # "Man'S", from titles in capitals
    text = _ROMAN.sub(lambda match: match[0].upper(), text)  # "Philip Iv"
    text = re.sub(r"^(What|Who|Where|When)'s ", r"\1 is ", text)
    text = re.sub(r" ('s\b|[?,;:])", r"\1", text)
    text = _RANKED_TITLE.sub(lambda match: match[0].lower(), text)
    for wording, plain in _PLAINER:
        text = wording.sub(plain, text)
    return text


_ROMAN = re.compile(r"(?<=[a-z] )(?:Ii|Iii|Iv|Vi{1,3}|Ix|Xi{1,3}|Xiv|Xvi{0,3})\b")
_RANKED_TITLE = re.compile(
    r"\b(?:first|second|third|last|current|former|previous|next)"
    r" (?:President|Prime Minister|King|Queen|Emperor|Empress|Governor|Mayor|Chancellor)\b(?! [A-Z])"
)
_WHICH_REGION = r"(?:[Ii]n |[Oo]n )?([Ww](?:hat|hich) (?:county|continent|region))"  # pages of people name the city
_THE_PLACE = r"(the (?:city|town|village|place|country|state|location))"
_PLAINER = (  # rare wordings, and the common wordings that the rules read
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
    """Return the first reading of a question, from a cache if possible."""
    return parse(question)


@dataclass(frozen=True, slots=True)
class EmbeddedDecomposer:
    """Rule-based Decomposer, whose sub-queries are the steps of the planner's first reading."""

    overview: CorpusOverview | None = None

    def with_corpus(self, overview: CorpusOverview) -> EmbeddedDecomposer:
        """Return this decomposer for questions over all documents as well."""
        return EmbeddedDecomposer(overview)

    async def decompose(self, question: str) -> Decomposition:
        """Return a question's sub-queries, with a note if no rule can read the question."""
        if self.overview and (corpus := read_corpus_question(question, self.overview)):
            return Decomposition(corpus_queries(corpus) or (question,))
        question = plain_question(question)
        meaning = read_question(question)
        note = note_of(question, meaning)
        return Decomposition(sub_queries(question, meaning), note=note, doubt=is_doubt(note))


@dataclass(frozen=True, slots=True)
class EmbeddedPlanner:
    """Rule-based planner.

    Args:
        topk: Number of passages that each search in a program retrieves.
        overview: Overview of the documents. With it, questions over all of them become programs that enumerate.
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
        """Return True for a question that no search can answer, because it asks for the number of documents."""
        return asks_for_count(question)

    async def plan(self, question: str, sub_queries: Sequence[str] | None) -> Plan:
        """Return a question's plan.

        Args:
            question: The question as the user asked it.
            sub_queries: Sub-queries of the Decomposer, which become steps if no rule can read the question.
        """
        if impossible := impossible_time(question):
            source = f"final_answer = {literal(f'{UNKNOWN}: {impossible}: correct it, and ask again')}"
            return Plan(source, sub_queries=(question,), raw=(source,))
        if self.overview and (corpus := read_corpus_question(question, self.overview)):
            source = corpus_program(corpus)
            judged = _JUDGED if any(fact.is_judged for fact in corpus.selection.facts) else ""
            note = "; ".join(filter(None, (corpus.note, judged)))
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
            question: The question as the user asked it.
            sub_queries: The plan's sub-queries, which do not change.
            source: Program that failed. If it is not one of the rules' programs, their first program is returned.
            error: Ignored, since the order of programs is fixed.

        Raises:
            BadOutputError: The failed program was the last.
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
    """Return the plan of a reading."""
    source = with_table(question, write_program(question, meaning, topk), topk)
    note = note_of(question, meaning)
    queries = sub_queries(question, meaning)
    return Plan(source, sub_queries=queries, raw=(source,), note=note, doubt=is_doubt(note))


def note_of(question: str, meaning: Meaning) -> str:
    """Return the reason why a reading is a fallback; empty if it is not a fallback.

    Args:
        question: The question as the user asked it.
        meaning: Reading of the question.
    """
    if _CLAIM.match(question):
        return _COMPARED
    return _ONE_STEP if isinstance(meaning, Whole) and not meaning.sure else ""


def is_doubt(note: str) -> bool:
    """Return whether a note is only worth showing if the answer is not confident."""
    return note in (_ONE_STEP, _LISTED)


def _programs(question: str, topk: int) -> Iterator[str]:
    """Yield all programs for a question, in the order in which they are tried."""
    meaning = read_question(question)
    yield with_table(question, write_program(question, meaning, topk), topk)
    yield from (write_program(question, other, topk) for other in other_readings(question, meaning))
    yield whole_program(question, topk)
    yield from (whole_program(question, min(topk * factor, _MAX_TOPK)) for factor in _TOPK_FACTORS)
