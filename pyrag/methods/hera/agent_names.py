"""Words that models use for HERA's agents, kinds of questions and difficulties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyrag.agents.parsing.spellings import line
from pyrag.methods.hera.topology import Agent, Difficulty, QuestionType

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The first pattern that is found decides.
_AGENTS: tuple[tuple[str, Agent], ...] = (
    (r"answer_?(?:valid|verif|check|review)|reflect|review|criti(?:c|que)", "reflect"),
    (r"decompos|question_split|query_split", "query_decomposer"),
    (r"rewrit|reformulat|query_(?:expan|generat)|paraphras", "query_rewriter"),
    (r"select|rerank|filter|evidence_extract", "evidence_selector"),
    (r"validat|verif|sufficien", "context_validator"),
    (r"conclu|^final|synthes|aggregat|combin|compar|summari|merg", "conclude"),
    (r"retriev|search|look_?up|fetch", "retriever"),
    (r"answer|reader|generat|^qa$|extract", "answer_generator"),
)
_TYPES: tuple[tuple[str, QuestionType], ...] = (
    (r"bridg", "bridge"),
    (r"compar|contrast", "comparison"),
    (r"intersect|common|shared|conjunct", "intersection"),
    (r"tempor|\bdates?\b|\btime\b|chronolog", "temporal"),
    (r"caus|\bwhy\b", "causal"),
    (r"ambig|vague|unclear", "ambiguous"),
    (r"single|simple|fact|direct|(?:one|1)[ -]?hop|look-?up", "single"),
    (r"multi|hop|chain|composit|sequential|nested", "bridge"),
)
_DIFFICULTIES: tuple[tuple[str, Difficulty], ...] = (
    (r"medium|moderate|intermediate|\bmid|average|normal|^2|two", "medium"),
    (r"easy|simple|low|trivial|basic|straightforward|^1|one", "easy"),
    (r"hard|difficult|complex|high|challeng|^[3-9]|three|four", "hard"),
)


def agent_named(said: str, known: Iterable[Agent]) -> Agent | None:
    """The agent that "Answer Generator", "answerer" or "answer-generator agent" means, if it is among those known."""
    joined = re.sub(r"\W+", "_", _CAMEL.sub("_", said.strip()), flags=re.ASCII).casefold().strip("_")
    name = joined.removeprefix("the_").removesuffix("_agent")
    among = tuple(known)
    if exact := next((agent for agent in among if agent == name), None):
        return exact
    meant = next((agent for pattern, agent in _AGENTS if re.search(pattern, name)), None)
    return meant if meant in among else None


def question_type(said: str) -> QuestionType | None:
    """The kind of question that a word such as "multi-hop" means."""
    return next((kind for pattern, kind in _TYPES if re.search(pattern, said.casefold())), None)


def difficulty(said: str) -> Difficulty | None:
    """The difficulty that a word such as "moderate", or a number, means."""
    return next((level for pattern, level in _DIFFICULTIES if re.search(pattern, said.strip().casefold())), None)


def text_of(value: Mapping[str, object], key: str) -> str:
    """The value of a field on one line: a text, a number, or the first of a list; empty for anything else."""
    said = value.get(key)
    if isinstance(said, list | tuple):
        said = next(iter(said), None)
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        return ""
    return line(str(said))
