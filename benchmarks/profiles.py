"""Benchmark of the profiles `paper` and `fast`: calls and tokens of two-hop questions, with and without a prefix cache.

    python -m benchmarks.profiles [--questions 20] [--json]

A scripted model replies as a good model would, with the program or the answer that a prompt asks for. Passages come
from the bundled corpus; a token is four characters. The cached part of a prompt is its longest prefix in common
with an earlier prompt, in whole blocks of 16 tokens, as in vLLM's prefix cache. Neither time nor the quality of a real
model's replies to shorter prompts is measured (see `make small-model` for the latter).
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile

from pyrag.agents.llm import make_llm_agents
from pyrag.cli.main import guarded
from pyrag.evaluation.reports.writer import Table
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.retrieval.bundled import BundledRetriever
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import make_settings
from pyrag_sandbox import Sandbox

SAMPLING = Sampling()
BLOCK = 16 * 4  # characters of a block of vLLM's prefix cache
PROFILES = ("paper", "fast")


@dataclass(slots=True)
class ProfileFigures:
    """Sums over the questions of a profile. `cached` counts prompt tokens found in the prefix cache."""

    profile: str
    questions: int = 0
    right: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: int = 0

    def row(self) -> list[str]:
        return [
            self.profile,
            f"{self.right}/{self.questions}",
            *(f"{value / self.questions:.1f}" for value in (self.calls,)),
            *(
                f"{value / self.questions:,.0f}"
                for value in (self.prompt_tokens, self.completion_tokens, self.prompt_tokens + self.completion_tokens)
            ),
            f"{self.cached / self.prompt_tokens:.0%}",
            f"{(self.prompt_tokens - self.cached) / self.questions:,.0f}",
        ]


@dataclass(slots=True)
class ScriptedPlanner:
    """Chat model that replies with prepared programs and answers for two-hop questions, and counts its calls."""

    figures: ProfileFigures
    name: str = "scripted"
    work: str = ""
    prompts: list[str] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling = SAMPLING) -> Reply:
        """Return the reply of the agent that the system message names.

        Args:
            messages: The prompt.
            sampling: Ignored.
        """
        prompt = "\n".join(f"{message.role}: {message.content}" for message in messages)
        reply = self._reply(messages[0].content, messages[-1].content)
        shared = max((_shared(prompt, earlier) for earlier in self.prompts), default=0)
        self.prompts.append(prompt)
        self.figures.calls += 1
        self.figures.prompt_tokens += len(prompt) // 4
        self.figures.completion_tokens += len(reply) // 4
        self.figures.cached += shared * BLOCK // 4
        return Reply(reply, len(prompt) // 4, len(reply) // 4)

    async def aclose(self) -> None:
        return None

    def _reply(self, system: str, user: str) -> str:
        if "Decompose Agent" in system:
            return json.dumps([f"Who directed {self.work}?", f"Where was the director of {self.work} born?"])
        if "Plan Agent" in system:
            return self._program()
        answer = "Springfield" if "born" in user.rsplit("Question:", 1)[-1].rsplit("Given:", 1)[-1] else "Ada Smith"
        thinking = "<redacted_thinking>Doc [1] says so.</redacted_thinking>\n" if "thinking>" in system else "Doc [1] "
        return f"{thinking}<answer>{answer}</answer>"

    def _program(self) -> str:
        first, second = f'"Who directed {self.work}?"', 'f"Where was {director} born?"'
        return f"""```python
docs_director = retrieve({first})
director = answer({first}, docs_director)
docs_born = retrieve({second})
born = answer({second}, docs_born)
final_answer = answer(
    f"Given: {{director}} directed {self.work}. {{director}} was born in {{born}}. "
    "Answer the question: {question_of(self.work)}"
)
```"""


def _shared(prompt: str, other: str) -> int:
    """Return the number of whole blocks that two prompts have in common at their start."""
    starts = range(0, min(len(prompt), len(other)) - BLOCK + 1, BLOCK)
    return sum(1 for _ in takewhile(lambda at: prompt[at : at + BLOCK] == other[at : at + BLOCK], starts))


def question_of(work: str) -> str:
    return f"Where was the director of {work} born?"


async def measure(profile: str, questions: int) -> ProfileFigures:
    """Return the figures of a profile.

    Args:
        profile: Name of the profile.
        questions: Number of questions.
    """
    figures = ProfileFigures(profile)
    model = ScriptedPlanner(figures)
    settings = make_settings({"profile": profile})
    agents = make_llm_agents(model, prompts_dir=settings.prompts)
    engines = Engines(agents, BundledRetriever(), Sandbox())
    try:
        for number in range(questions):
            model.work = f"Film {number}"
            trace = await answer_question(question_of(model.work), engines, settings)
            figures.questions += 1
            figures.right += trace.answer.text == "Springfield"
    finally:
        await engines.aclose()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = [asyncio.run(measure(profile, options.questions)) for profile in PROFILES]
    if options.json:
        print(json.dumps([asdict(entry) for entry in figures]))
        return
    header = [
        "profile",
        "right",
        "calls",
        "prompt tokens",
        "reply tokens",
        "tokens",
        "cached",
        "prompt tokens uncached",
    ]
    print(Table(header, [entry.row() for entry in figures]))


if __name__ == "__main__":
    guarded(main)
