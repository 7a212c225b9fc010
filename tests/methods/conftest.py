"""A small world for every method: real agents over a scripted model, and two passages that settle a two-hop question.

`SCRIPTS` holds what the model says under each method, in order. They are written so that each method answers rightly in
its own way, which the golden traces show.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from pyrag.agents.llm import make_llm_agents
from pyrag.agents.protocol import Agents
from pyrag.embedded import embedded_agents
from pyrag.episode.ledger import Recording
from pyrag.errors import ServiceError
from pyrag.llm.clients.scripted import DEFAULT_SAMPLING, Script, ScriptedChat
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.methods.registry import method_names, variants_of
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.events import Observer, ignore
from pyrag.trace.model import Passage, Trace
from pyrag_sandbox import Sandbox

QUESTION = "When was the director of Alpha born?"
PASSAGES = (
    Passage("alpha", "Alpha (film)", "Alpha is a film of 1985 that was directed by Ada Berg."),
    Passage("ada", "Ada Berg", "Ada Berg (born 1 May 1950) is a director of films."),
    Passage("beta", "Beta (film)", "Beta is a film of 1991 about a lighthouse."),
)
PROGRAM = """```python
docs_director = retrieve("Who directed Alpha?")
director = answer("Who directed Alpha?", docs_director)
docs_born = retrieve(f"When was {director} born?")
born = answer(f"When was {director} born?", docs_born)
final_answer = answer(
    f"Given: {director} directed Alpha and was born on {born}. "
    "Answer the question: When was the director of Alpha born?"
)
```"""
SUB_QUERIES = f'["Who directed Alpha?", "{QUESTION}"]'
ADA = "<redacted_thinking>Doc [1] names Ada Berg.</redacted_thinking>\n<answer>Ada Berg</answer>"
BORN = "<redacted_thinking>Doc [2] gives it.</redacted_thinking>\n<answer>1 May 1950</answer>"
NOTHING = "<redacted_thinking>No document says so.</redacted_thinking>\n<answer>unknown</answer>"
DATE = "<answer>1 May 1950</answer>"
GOALS = """{"rationale": "The director first.", "goals": [
 {"step": 1, "goal": "Who directed Alpha?", "type": "person", "needs": []},
 {"step": 2, "goal": "When was [person from step 1] born?", "type": "date", "needs": [1]}]}"""
TOPOLOGY = """{"type": "bridge", "difficulty": "medium", "asks": "date", "rationale": "The director first.", "agents": [
 {"id": "docs", "agent": "retriever", "input": "Who directed Alpha?", "depends_on": []},
 {"id": "director", "agent": "answer_generator", "input": "Who directed Alpha?", "depends_on": ["docs"]},
 {"id": "more", "agent": "retriever", "input": "{director} born", "depends_on": ["director"]},
 {"id": "born", "agent": "answer_generator", "input": "When was {director} born?", "depends_on": ["director", "more"],
  "kind": "date"}]}"""
YES_ADA = (
    '{"analysis": "Doc [1] names her.", "decision": "YES", "answer": "Ada Berg", "confidence": 0.9, "documents": [1]}'
)
YES_BORN = (
    '{"analysis": "Doc [1] gives it.", "decision": "YES", "answer": "1 May 1950", "confidence": 0.8, "missing": ""}'
)
NO = '{"analysis": "No document says so.", "decision": "NO", "answer": "", "missing": "a date of birth"}'
REWRITTEN = '{"strategy": "Use the name.", "query": "Ada Berg director born", "keywords": ["born"]}'
PYRAG = [SUB_QUERIES, PROGRAM, ADA, BORN, DATE]

SCRIPTS: dict[str, list[str]] = {
    "direct": [DATE],
    "cot": [f"Alpha was directed by Ada Berg. She was born on 1 May 1950.\n{DATE}"],
    "vanilla": [BORN],
    "pyrag": PYRAG,
    "adaptive": ["C", *PYRAG],
    "self-ask": [
        "Follow up: Who directed Alpha?\n",
        ADA,
        "Follow up: When was Ada Berg born?",
        BORN,
        "So the final answer is: 1 May 1950.",
    ],
    "ircot": [
        "Alpha was directed by Ada Berg. She was then born.",
        "Ada Berg was born on 1 May 1950.",
        "So the answer is: 1 May 1950.",
        BORN,
    ],
    "iter-retgen": [ADA.replace("Berg.", "Berg, a director of films."), BORN.replace("Doc [2]", "Doc [1]")],
    "decompose-only": [SUB_QUERIES, ADA, BORN, DATE],
    "plan-only": [SUB_QUERIES, PROGRAM, BORN],
    "opera:full": [GOALS, YES_ADA, NO, REWRITTEN, YES_BORN, DATE],
    "opera:no-plan": [NO, REWRITTEN, YES_BORN],
    "opera:no-rewrite": [GOALS, YES_ADA, YES_BORN, DATE],
    "opera:no-plan-no-rewrite": [YES_BORN],
    "hera": [TOPOLOGY, YES_ADA, YES_BORN],
    "search-agent:search-r1": [
        "<think>Who directed it?</think>\n<search> Who directed Alpha? ",
        "I forgot how to act.",
        "<think>Now Ada Berg.</think><search>Ada Berg born</search><information>made up</information>",
        "<think>That settles it.</think><answer> 1 May 1950 ",
    ],
    "search-agent:research": [
        "<think>Who directed it?</think> <search>Who directed Alpha?",
        "<think>Now Ada.</think> <search> Ada Berg born </search>",
        r"<think>Good.</think> <answer> The final answer is \[ \boxed{\text{1 May 1950}} \] </answer>",
    ],
    "search-agent:zerosearch": [
        "<think>Who directed it?</think>\n<search> Who directed Alpha? ",
        "<think>Now Ada Berg.</think><search>Ada Berg born</search><information>made up</information>",
        "<think>That settles it.</think><answer> 1 May 1950 </answer>",
    ],
    "search-agent:stepsearch": [
        "<plan>Find the director first.</plan><search>Who directed Alpha?",
        "<observation>Doc1: Ada Berg.</observation> I forgot how to act.",
        "<plan>Now Ada Berg.</plan><search> Ada Berg born </search>",
        "<observation>Doc1: born on 1 May 1950.</observation><answer>1 May 1950",
    ],
    "search-agent:r1-searcher": [
        'Who directed it? <|begin_of_query|>"Alpha director"',
        "Now Ada. <|begin_of_query|> Ada Berg born <|end_of_query|>",
        "Good.</think>\n\n<answer>1 May 1950",
    ],
    "search-agent:search-o1": [
        "Who directed it? <|begin_search_query|>Alpha director",
        "**Final Information**\n\nAda Berg directed Alpha.",
        "Now Ada. <|begin_search_query|>Ada Berg born<|end_search_query|>",
        "The pages say little.",
        r"So she was born then: \boxed{1 May 1950}",
    ],
}
# What a name alone stands for, and every variant of its own.
ALL = [full for name in method_names() for full in ([f"{name}:{one}" for one in variants_of(name)] or [name])]
OPERA = tuple(name for name in ALL if name.startswith("opera"))
EMBEDDED = ("vanilla", "pyrag", "iter-retgen", "decompose-only", "adaptive", "hera", *OPERA)


class Chat(ScriptedChat):
    """Counts tokens and fails where told: `fail_at` is the number of the call, from 1."""

    def __init__(self, replies: Sequence[str] | Script, fail_at: int = 0, error: ServiceError | None = None) -> None:
        super().__init__(replies if callable(replies) else list(replies))
        self.fail_at, self.error = fail_at, error
        self.asked: list[Sampling] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        self.asked.append(sampling)
        if len(self.asked) == self.fail_at and self.error:
            raise self.error
        reply = await super().complete(messages, sampling)
        return Reply(reply.text, 10, 2, reply.finish_reason)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@dataclass
class World:
    """Retrieves by shared words; `log` holds every query. `delay` makes work that could run side by side visible."""

    sandbox: Sandbox = field(default_factory=Sandbox)
    log: list[tuple[str, int]] = field(default_factory=list)
    error: ServiceError | None = None
    delay: float = 0.0
    name: str = "world"

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        self.log.append((query, topk))
        await asyncio.sleep(self.delay)
        if self.error:
            raise self.error
        scored = [(len(words(query) & words(f"{one.title} {one.text}")), one) for one in PASSAGES]
        return [one for score, one in sorted(scored, key=lambda pair: -pair[0]) if score][:topk]

    async def aclose(self) -> None:
        return

    async def ask(
        self,
        method: str,
        model: Chat | None = None,
        *,
        question: str = QUESTION,
        agents: Agents | None = None,
        recording: Recording | None = None,
        keep: bool = False,
        observer: Observer = ignore,
        **settings: object,
    ) -> Trace:
        """Asks with the method's own script, unless a model or agents are given."""
        agents = agents or make_llm_agents(model or Chat(SCRIPTS[method]))
        chosen = Settings(**{"topk": 2, **settings, "method": method})  # type: ignore[arg-type]  # real setting names
        engines = Engines(agents, self, self.sandbox)
        return await answer_question(question, engines, chosen, recording=recording, keep=keep, observer=observer)

    async def ask_embedded(self, method: str, **settings: object) -> Trace:
        return await self.ask(method, agents=embedded_agents(), **settings)  # type: ignore[arg-type]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.sandbox.aclose()
