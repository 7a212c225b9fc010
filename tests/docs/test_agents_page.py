"""docs/agents.md shows what the parsers read, and docs/extending/prompts.md what the templates hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from pyrag.agents import llm, rewriter, writer
from pyrag.agents.parsing.answers import read_answer
from pyrag.agents.parsing.judgements import parse_judged
from pyrag.agents.parsing.programs import parse_program
from pyrag.agents.parsing.sub_queries import parse_sub_queries
from pyrag.agents.rewriter import parse_rewrite
from pyrag.agents.schemas import REWRITE, SUB_QUERIES, TAGGED_ANSWER
from pyrag.methods.opera.goals import read_goals

from .blocks import ROOT
from .prompt_table import table

TEXT = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
PROMPTS = ROOT / "docs/extending/prompts.md"
REPLY = re.compile(r"^<!-- reply of (\w+), read as ([^\n]+) -->\n(```|~~~)text\n(.*?)\n\3$", re.M | re.S)
READERS: dict[str, Callable[[str], Any]] = {
    "decompose": lambda text: list(parse_sub_queries(text)),
    "plan": parse_program,
    "answer": lambda text: read_answer(text, 2, "In which town was Mara Lindqvist born?").text,
    "rewrite": lambda text: parse_rewrite(text)[0],
    "standalone": writer._parse,
    "analysis": lambda text: parse_judged(text, 2, "In which town was Mara Lindqvist born?").text,
    "goals": lambda text: [goal.text for goal in read_goals(text).goals],
}


@pytest.mark.parametrize(
    ("role", "meaning", "reply"), [(role, meaning, reply) for role, meaning, _, reply in REPLY.findall(TEXT)]
)
def test_a_shown_reply_is_read_as_it_says(role: str, meaning: str, reply: str) -> None:
    assert READERS[role](reply) == json.loads(meaning)


def test_every_role_has_a_shown_reply() -> None:
    assert {role for role, *_ in REPLY.findall(TEXT)} == set(READERS)
    assert TEXT.count("<!-- reply of") == len(REPLY.findall(TEXT))


def test_the_table_of_templates_is_that_of_the_files() -> None:
    run = "run python tests/docs/prompt_table.py and paste what it prints into docs/extending/prompts.md"
    assert table() in PROMPTS.read_text(encoding="utf-8"), run


def test_numbers_of_repeated_requests_are_those_of_the_agents() -> None:
    again = {
        cells[0].strip(): cells[3].strip()
        for line in TEXT.splitlines()
        if len(cells := line.strip("|").split("|")) == 4
    }
    assert again["Decompose"] == str(llm.RETRIES)
    assert again["Plan"].startswith(str(llm.RETRIES))
    assert (again["Rewrite"], again["Standalone"]) == (str(rewriter.RETRIES), str(writer.RETRIES))
    assert (SUB_QUERIES["required"], REWRITE["required"]) == (["sub_queries"], ["strategy", "query", "keywords"])
    assert TAGGED_ANSWER.endswith("</answer>")
