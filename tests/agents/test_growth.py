"""Parsers read texts of strangers in linear time: four times the text takes about four times the work.

Work is measured as time of this process on its processor, twice the least of several runs is far above what a linear
parser takes, and a text counts as slow only where it is so again and again: what else the machine does changes nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrag.agents.parsing.answers import find_citations, parse_answer, read_answer, salvage_answer, strip_citations
from pyrag.agents.parsing.draft import DraftReader
from pyrag.agents.parsing.judgements import parse_judged, salvage_judged
from pyrag.agents.parsing.programs import parse_draft, parse_program, repaired_quotes
from pyrag.agents.parsing.spans import is_wordy, shortened
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.parsing.thinking import MAX_REPLY, clipped, split_thinking
from pyrag.agents.reply_room import closes_answer
from pyrag.agents.rewriter import parse_rewrite
from pyrag.agents.schemas import JUDGEMENT, TAGGED_ANSWER
from pyrag.errors import BadOutputError
from pyrag.llm.schema import fits, matches
from pyrag.methods.baselines.ircot import first_sentence
from pyrag.methods.baselines.self_ask import final_answer
from pyrag.methods.hera.coach.agent import parse_blame, parse_guidance, parse_insights, parse_rules, parse_settlement
from pyrag.methods.hera.team_replies import parse_profile, parse_selection, parse_verdict
from pyrag.methods.hera.topology_replies import read_topology
from pyrag.methods.opera.goals import read_goals
from pyrag.methods.search_agent import DIALECTS, boxed, read_turn
from pyrag_helpers.unknown import is_unknown

QUERY = "In which town was Ines Valdoria born?"
SMALL, LARGE = 10_000, 40_000  # characters
FLOOR = 0.4  # seconds: several times what any parser takes for the large text
FACTOR = 9  # four times the text is four times the work; of a square, sixteen times
PARSERS: dict[str, Callable[[str], Any]] = {
    "thinking": lambda text: split_thinking(text, "<answer>"),
    "answer": lambda text: parse_answer(text, 3, QUERY),
    "salvaged answer": lambda text: salvage_answer(text, 3, QUERY),
    "tagged answer": lambda text: read_answer(f"<answer>{text}</answer>", 3, QUERY),
    "unknown": is_unknown,
    "citations": lambda text: find_citations(text, 3),
    "citations taken out": lambda text: strip_citations(text, 3),
    "sentence": lambda text: is_wordy(QUERY, text),
    "sentence made short": lambda text: shortened(QUERY, f"It was {text}"),
    "sub-queries": parse_sub_queries,
    "program": parse_program,
    "fenced program": lambda text: parse_program(f"```python\n{text}"),
    "draft": parse_draft,
    "quotes": repaired_quotes,
    "judgement": lambda text: parse_judged(text, 3, QUERY),
    "salvaged judgement": lambda text: salvage_judged(text, 3, QUERY),
    "rewrite": parse_rewrite,
    "selection": lambda text: parse_selection(text, 3),
    "verdict": lambda text: parse_verdict(text, "missing"),
    "profile": parse_profile,
    "insights": parse_insights,
    "settlement": lambda text: parse_settlement(text, [1]),
    "blame": lambda text: parse_blame(text, ["retriever"]),
    "rules": parse_rules,
    "guidance": parse_guidance,
    "goals": read_goals,
    "topology": read_topology,
    "box": boxed,
    "kept pattern": lambda text: matches(text, TAGGED_ANSWER),
    "kept schema": lambda text: fits(text, JUDGEMENT),
    "closed answer": closes_answer,
    "self-ask": final_answer,
    "ircot": first_sentence,
    **{name: lambda text, name=name: read_turn(text, DIALECTS[name]) for name in DIALECTS},
}
UNITS = [
    "</think>",
    "<think>",
    "<think>a</think>",
    "<answer>",
    "</answer>",
    "<answer>a</answer>",
    "\\boxed{",
    "\\boxed{a}",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    '{"a":',
    '{"a": "b"}',
    '["a", ',
    '"',
    "'",
    "“",
    "”",
    '"""',
    "`",
    "```",
    "```\n",
    "```python\n",
    "~~~\n",
    "Doc 1, ",
    "[1]",
    "[1, ",
    "Doc [1] and ",
    "(Doc 1 ",
    "a¹",
    " ",
    "\n",
    " \n",
    "\t",
    "\r\n",
    "1",
    "12 ",
    "a",
    "a b ",
    "-",
    "- a\n",
    "1. a?\n",
    "**",
    "**a** ",
    "__",
    "# ",
    "//",
    "/*",
    "answer: ",
    "the answer is ",
    "answer to a ",
    "答案：",
    "。",
    "no ",
    "the documents do not ",
    "not, ",
    "=",
    "x = 1\n",
    "a: ",
    ": ",
    "x = “a”",
    ". ",
    "? ",
    "\\",
    "\\text{",
    "<",
    "<a ",
    "</a>",
    "<a>b</a>",
    "|",
    "| a ",
    ",",
    "<|",
    "<|end|>",
    "[THINK]",
    "follow up: ",
    "so the final answer is ",
    "def f(",
    "if x:\n ",
    "lambda ",
    "decision: yes\n",
    "query: ",
    "&lt;answer&gt;",
    "＜answer＞",
    "[answer]",
    "[/answer]",
    "yes, ",
    "St. ",
    "According to Doc 1, ",
    "based on ",
    "[step ",
    "<search>",
    "</search>",
]
PIECES = st.lists(st.sampled_from(UNITS), min_size=1, max_size=3).map("".join)
ENDS = st.sampled_from(["", "z", "\n", "}", "]", ">", "<answer>", '"', "x = ", "“", "```\n"])


def work(parse: Callable[[str], Any], text: str) -> float:
    """Seconds of the processor that reading a text takes."""
    started = time.process_time()
    with contextlib.suppress(BadOutputError):
        parse(text)
    return time.process_time() - started


def grows_too_fast(parse: Callable[[str], Any], large: str, small: str) -> bool:
    """Whether the large text is slow, and slower than in proportion, every time that it is tried."""
    return all(
        (took := work(parse, large)) > FLOOR and took > FACTOR * min(work(parse, small) for _ in range(3))
        for _ in range(4)
    )


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(start=ENDS, unit=PIECES, end=ENDS)
def test_reading_takes_linear_time(name: str, start: str, unit: str, end: str) -> None:
    small, large = (f"{start}{unit * (size // len(unit))}{end}" for size in (SMALL, LARGE))
    assert not grows_too_fast(PARSERS[name], large, small)


@pytest.mark.parametrize("name", PARSERS)
def test_reading_each_unit_takes_linear_time(name: str) -> None:
    for unit in UNITS:
        small, large = (f"{unit * (size // len(unit))}z" for size in (SMALL, LARGE))
        assert not grows_too_fast(PARSERS[name], large, small), unit


@pytest.mark.parametrize(
    "text",
    [
        "</think>" * 125_000,
        "<answer>" * 2_000,
        "\\boxed{" * 500_000,
        "Doc 1, " * 100_000,
        "[" * 1_000_000,
        "{" * 1_000_000,
        "```" * 300_000,
        " " * 1_000_000,
        "9" * 1_000_000,
        '{"answer":' * 100_000,
        '"' * 1_000_000,
    ],
)
def test_floods_are_read_to_their_end(text: str) -> None:
    assert not read_answer(text, 3, QUERY).text.startswith(text[:3000])
    for parse in (parse_sub_queries, parse_rewrite, parse_insights):
        with pytest.raises(BadOutputError):
            parse(text)


def test_a_runaway_reply_is_cut_to_its_end() -> None:
    assert len(clipped("x" * 10 * MAX_REPLY)) == MAX_REPLY
    assert read_answer("word " * MAX_REPLY + "<answer>Marrow Bay</answer>").text == "Marrow Bay"
    thought = "<think>" + "I think. " * MAX_REPLY
    assert split_thinking(thought, "<answer>")[1] == ""
    assert split_thinking(f"{thought}</think><answer>a</answer>", "<answer>")[1] == "<answer>a</answer>"


def test_drafting_reads_a_long_reply_a_bounded_number_of_times() -> None:
    reader, reads = DraftReader(lambda _: None), 0
    read = reader._read

    def counted(draft: str) -> None:
        nonlocal reads
        reads += 1
        read(draft)

    reader._read = counted  # type: ignore[method-assign]
    for _ in range(50_000):
        reader.feed("\n")
    assert 0 < reads < 20_000
