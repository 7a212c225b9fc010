"""The prompt set `paper`: the structure of the prompts that PyRAG and OPERA released, and replies in their form."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import pyrag_prompts
from pyrag.agents.llm import make_llm_agents
from pyrag.agents.prompts import EXAMPLE_NAMES, load_prompts
from pyrag.agents.protocol import Agents, Answerer, Rewriter
from pyrag.episode.plan_checks import check_plan
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.llm.protocol import ChatModel, Message, Reply, Sampling
from pyrag.methods.opera.agents import opera_agents
from pyrag.methods.opera.protocol import GoalPlanner
from pyrag.trace.model import Passage
from pyrag_helpers import HELPERS

PAPER = Path(pyrag_prompts.__file__).parent / "paper"
DEFAULT = Sampling()
QUESTION = "When was the author of Alpha born?"
ALPHA = [Passage("a", "Alpha", "Alpha is a novel by Ann Lee."), Passage("b", "Ann Lee", "Ann Lee was born in 1962.")]
PROGRAM = """\
docs1 = retrieve("Who wrote Alpha?")
author = answer("Who wrote Alpha?", docs1)

docs2 = retrieve(f"When was {author} born?")
born = answer(f"When was {author} born?", docs2)

final_answer = answer(
    f"Given: {author} wrote Alpha, {author} was born {born}. "
    f"Answer the question: When was the author of Alpha born?"
)"""


class HeardError(Exception):
    """The first request of an agent."""

    def __init__(self, messages: Sequence[Message], sampling: Sampling) -> None:
        super().__init__("heard")
        self.system, self.user = (one.content for one in messages)
        self.schema = sampling.schema


class Listener:
    name = "listener"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT) -> Reply:
        raise HeardError(messages, sampling)

    async def aclose(self) -> None:
        return


def agents_over(model: ChatModel) -> tuple[Agents, GoalPlanner, Answerer, Rewriter]:
    agents = make_llm_agents(model, prompts_dir="paper")
    team = agents.team(opera_agents)
    assert team is not None
    assert team.analyst is not None
    assert agents.rewriter is not None
    return agents, team.goal_planner, team.analyst, agents.rewriter


FACTS = f"Given: x. Answer the question: {QUESTION}"
QUERIES = ["Who wrote Alpha?", "When was Ann Lee born?"]
FAULT = "Traceback (most recent call last)\nNameError: y"


async def asked(agent: str) -> HeardError:
    agents, planner, analyst, rewriter = agents_over(Listener())
    work: dict[str, Callable[[], Awaitable[Any]]] = {
        "decompose": lambda: agents.decomposer.decompose(QUESTION),
        "plan": lambda: agents.planner.plan(QUESTION, QUERIES),
        "joint": lambda: agents.planner.plan(QUESTION, None),
        "repair": lambda: agents.planner.repair(QUESTION, QUERIES, "x = y", FAULT),
        "evidence": lambda: agents.answerer.answer(QUERIES[0], ALPHA),
        "aggregation": lambda: agents.answerer.answer(FACTS, None),
        "opera plan": lambda: planner.plan(QUESTION),
        "analysis": lambda: analyst.answer(QUERIES[0], ALPHA),
        "synthesis": lambda: analyst.answer(FACTS, None),
        "rewrite": lambda: rewriter.rewrite(QUERIES[0], ["Alpha"], ALPHA, "the author"),
    }
    with pytest.raises(HeardError) as heard:
        await work[agent]()
    return heard.value


# Headings of the releases' prompts, one a line, in order.
SECTIONS = {
    "decompose": "Original question:\nExample:\nJSON output:",
    "plan": """retrieve(query: str) -> List[str]
answer(query: str, docs: List[str]) -> str
answer(query: str) -> str
Rules:
TWO PARTS
BAD:
GOOD:
Original question:
Sub-queries to resolve:
Reference example
End with: final_answer = answer(""",
    "joint": "Rules:\nTWO PARTS\nOriginal question:\nReference example",
    "repair": """=== Original question ===
=== Failing code ===
=== Runtime error ===
=== Fix instructions ===""",
    "evidence": """Output format (STRICT):
Evidence citation rule:
Answer rules:
Example
=== QUESTION ===
=== END QUESTION ===
=== RETRIEVED DOCUMENTS ===
[Doc 1]
[Doc 2]
=== END DOCUMENTS ===""",
    "aggregation": """'Given:'
'Answer the question:'
Output format (STRICT):
=== QUESTION ===
No retrieved documents.""",
    "opera plan": "\n".join(
        [
            "## CRITICAL RULES:",
            *(f"### Rule {n}:" for n in range(1, 9)),
            "## OUTPUT FORMAT:",
            "<reasoning>",
            "<question>",
        ]
    ),
    "analysis": """Original multi-hop question:
Sub-question:
Sufficiency test
Retrieved Documents:
JSON format
Key principles:
Grounding notes:""",
    "synthesis": "Executed sub-goals\nReturn JSON only:",
    "rewrite": """## Rewrite Task
Failure Reason:
## Current Documents Preview
## Instructions
## Output JSON Format""",
}


@pytest.mark.parametrize("agent", SECTIONS)
async def test_each_agent_has_the_sections_of_the_release_in_order(agent: str) -> None:
    heard = await asked(agent)
    text, at = f"{heard.system}\n{heard.user}", 0
    for section in SECTIONS[agent].splitlines():
        at = text.find(section, at) + len(section)
        assert at >= len(section), section
    assert heard.schema is None  # no server is made to enforce the form of another set


@pytest.mark.parametrize(
    ("agent", "examples"), [("decompose", 1), ("plan", 1), ("evidence", 1), ("aggregation", 0), ("synthesis", 0)]
)
async def test_prompts_have_the_number_of_examples_of_the_release(agent: str, examples: int) -> None:
    heard = await asked(agent)
    assert len(re.findall(r"(?m)^(?:Reference example|Example)\b", f"{heard.system}\n{heard.user}")) == examples


async def test_the_plan_shows_its_sub_queries_as_a_list() -> None:
    heard = await asked("plan")
    assert '["Who wrote Alpha?", "When was Ann Lee born?"]' in heard.user
    assert "parse_date" not in heard.system  # the release has no helpers


def test_the_example_program_keeps_the_contract() -> None:
    source = (PAPER / "plan.example.txt").read_text(encoding="utf-8")
    question = "Who was born earlier, the author of The Glass Orchard or the painter of Winter Quay?"
    assert check_plan(source, (), ("retrieve", "answer"), tuple(HELPERS), (), question) == []
    assert source.count("retrieve(") == 4


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("methods/opera.analyse.user.txt", ["status", "answer", "analysis"]),
        ("methods/opera.synthesise.user.txt", ["answer", "analysis"]),
        ("methods/rewrite.user.txt", ["rewritten_query", "strategy", "keywords"]),
    ],
)
def test_forms_have_the_keys_of_the_release(path: str, keys: list[str]) -> None:
    text = (PAPER / path).read_text(encoding="utf-8")
    assert re.findall(r'^  "(\w+)":', text, re.MULTILINE) == keys


def test_examples_are_about_invented_names() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAPER.rglob("*.txt"))
    assert any(name in text for name in EXAMPLE_NAMES)
    for name in ("Inception", "Nolan", "Jurassic", "Mosby", "Tokarev", "fida ninfa"):
        assert name not in text


def test_what_the_set_lacks_the_defaults_have() -> None:
    paper, default = load_prompts("paper"), load_prompts()
    assert paper.notice("hera.orchestrate.system") == default.notice("hera.orchestrate.system")
    assert paper.has_method("opera.synthesise")
    assert not default.has_method("opera.synthesise")


@pytest.mark.parametrize("program", [PROGRAM, f"```python\n{PROGRAM}\n```", f"```\n{PROGRAM}\n```"])
@pytest.mark.parametrize(
    "listed", ['["Who wrote Alpha?", "When was Ann Lee born?"]', '```json\n["Who wrote Alpha?"]\n```']
)
async def test_pyrags_agents_read_replies_of_the_release(program: str, listed: str) -> None:
    replies = [
        listed,
        program,
        "<redacted_thinking>Doc [1] names the author.</redacted_thinking>\n<answer> Ann Lee </answer>",
        "<redacted_thinking>The date is asked for.</redacted_thinking>\n<answer> 1962 </answer>",
    ]
    model = ScriptedChat(replies)
    agents = make_llm_agents(model, prompts_dir="paper")
    decomposed = await agents.decomposer.decompose(QUESTION)
    assert decomposed.sub_queries[0] == "Who wrote Alpha?"
    assert (await agents.planner.plan(QUESTION, decomposed.sub_queries)).source.strip() == PROGRAM
    reading = await agents.answerer.answer("Who wrote Alpha?", ALPHA)
    assert (reading.text, reading.citations) == ("Ann Lee", (0,))
    assert (await agents.answerer.answer(FACTS, None)).text == "1962"
    assert len(model.calls) == len(replies)  # nothing was asked again


async def test_operas_agents_read_replies_of_the_release() -> None:
    replies = [
        "<reasoning>\nFirst the author, then the date.\n</reasoning>\n<subquestions>\n"
        "<subquestion>Who wrote Alpha?</subquestion>\n"
        "<subquestion>When was [Answer1], the author of Alpha, born?</subquestion>\n</subquestions>",
        '```json\n{"status": "no", "answer": "", "analysis": "The author is missing."}\n```',
        json.dumps({"rewritten_query": "Alpha novel author", "strategy": "name the kind", "keywords": ["novel"]}),
        '{"status": "yes", "answer": "Ann Lee", "analysis": "[1] says so."}',
        '{"answer": "1962", "analysis": "Step 2 gives the year."}',
    ]
    model = ScriptedChat(replies)
    _, planner, analyst, rewriter = agents_over(model)
    plan = await planner.plan(QUESTION)
    assert [goal.needs for goal in plan.goals] == [(), (1,)]
    assert plan.rationale == "First the author, then the date."
    lacking = await analyst.answer("Who wrote Alpha?", ALPHA[1:])
    assert (lacking.known, lacking.missing) == (False, "The author is missing.")
    rewritten = await rewriter.rewrite("Who wrote Alpha?", ["Who wrote Alpha?"], ALPHA, lacking.missing)
    assert (rewritten.query, rewritten.keywords) == ("Alpha novel author", ("novel",))
    reading = await analyst.answer("Who wrote Alpha?", ALPHA)
    assert (reading.text, reading.citations) == ("Ann Lee", (0,))
    final = await analyst.answer(FACTS, None)
    assert final.text == "1962"
    assert len(model.calls) == len(replies)


@pytest.mark.parametrize("status", ["no", "NO", "No."])
async def test_a_status_of_no_outweighs_an_answer(status: str) -> None:
    model = ScriptedChat([json.dumps({"status": status, "answer": "Ann Lee", "analysis": "another Alpha"})])
    analyst = agents_over(model)[2]
    reading = await analyst.answer("Who wrote Alpha?", ALPHA)
    assert (reading.known, reading.missing) == (False, "another Alpha")
