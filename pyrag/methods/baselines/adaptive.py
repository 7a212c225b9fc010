"""Adaptive-RAG (Jeong et al., 2024): a router chooses no retrieval, one retrieval, or many (here PyRAG).

The router is a prompt instead of the paper's trained classifier. Without a language model, the number of sub-queries
decides between one retrieval and many: there is nothing that could answer without retrieval.
"""

from __future__ import annotations

import re
from enum import Enum

from pyrag.agents.parsing.json_values import split_thinking
from pyrag.episode.episode import Episode
from pyrag.methods.baselines import direct, vanilla
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.pyrag import method as pyrag
from pyrag.methods.step_recorder import StepRecorder
from pyrag.settings import Settings


class Route(Enum):
    """The paper's three classes of questions."""

    DIRECT = "A"
    SINGLE = "B"
    MULTI = "C"


_LETTER = re.compile(r"\b([ABC])\b")
# The article "A" is no class: "A single search is enough".
_CHOSEN = re.compile(r"(?<![\w'’])(?:(A)(?!\s{1,3}[a-z]|\w|['’])|([BC])(?![\w'’]))")


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer by the method of the route that the question takes.

    Args:
        episode: The question under way.
        settings: Handed on to that method; with `recovery` "auto", a single retrieval climbs no ladder.

    Raises:
        ProgramFailedError: the program of one retrieval, or the last repair of PyRAG's, failed.
    """
    match await _route(episode):
        case Route.DIRECT:
            return await direct.answer(episode, settings)
        case Route.SINGLE:
            if settings.recovery == "auto":
                episode.ladder = ()  # as a single retrieval by itself
            return await vanilla.answer(episode, settings)
        case Route.MULTI:
            return await pyrag.answer(episode, settings)


async def _route(episode: Episode) -> Route:
    if not episode.can_write:
        await pyrag.decompose(episode)
        return Route.MULTI if len(episode.sub_queries) > 1 else Route.SINGLE
    with StepRecorder(episode) as recorder:
        said = await recorder.write("adaptive", {"question": episode.question}, query=episode.question)
    return parse_route(said.text)


def parse_route(text: str) -> Route:
    """The class that a reply begins with, else the last that it names; without one, retrieval is not skipped."""
    said = split_thinking(text, _LETTER.pattern)[1]
    chosen = list(_CHOSEN.finditer(said))
    if chosen and not said[: chosen[0].start()].strip(" \t\n*_`\"'#([{<"):
        return Route(chosen[0][0])
    letters = [found[0] for found in chosen] or _LETTER.findall(said)
    return Route(letters[-1]) if letters else Route.MULTI


METHOD = Method(name="adaptive", answer=answer, calls_tools=True)
