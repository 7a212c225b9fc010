"""Adaptive-RAG (Jeong et al., 2024): a router chooses no retrieval, one retrieval, or many (here PyRAG).

The router is a prompt instead of the paper's trained classifier. Without a language model, which could answer without
retrieval, the number of sub-queries decides between one retrieval and many.
"""

from __future__ import annotations

import re
from enum import Enum

from pyrag.agents.parsing.thinking import split_thinking
from pyrag.episode.episode import Episode
from pyrag.methods.baselines import direct, vanilla
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.pyrag import method as pyrag
from pyrag.methods.step_recorder import StepRecorder
from pyrag.settings import Settings


class Route(Enum):
    """Class of a question, as in the paper."""

    DIRECT = "A"
    SINGLE = "B"
    MULTI = "C"


_LETTER = re.compile(r"\b([ABC])\b")
# The article "A" is not a class: "A single search is enough".
_CHOSEN = re.compile(r"(?<![\w'’])(?:(A)(?!\s{1,3}[a-z]|\w|['’])|([BC])(?![\w'’]))")


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer by the method that the router chooses for the question.

    Args:
        episode: State of the question.
        settings: Settings of the chosen method. With `recovery` "auto", a single retrieval has no recovery ladder.

    Raises:
        ProgramFailedError: The program of a single retrieval, or PyRAG's last repair, failed.
    """
    match await _route(episode):
        case Route.DIRECT:
            return await direct.answer(episode, settings)
        case Route.SINGLE:
            if settings.recovery == "auto":
                episode.ladder = ()  # as in the method `vanilla`
            return await vanilla.answer(episode, settings)
        case Route.MULTI:
            return await pyrag.answer(episode, settings)


async def _route(episode: Episode) -> Route:
    if not episode.can_write:
        await pyrag.decompose(episode)
        return Route.MULTI if len(episode.sub_queries) > 1 else Route.SINGLE
    with StepRecorder(episode) as recorder:
        reply = await recorder.write("adaptive", {"question": episode.question}, query=episode.question)
    return parse_route(reply.text)


def parse_route(text: str) -> Route:
    """Return the class at the beginning of a reply, else the last class that it names, else many retrievals."""
    reply = split_thinking(text, _LETTER.pattern)[1]
    letters_in_context = list(_CHOSEN.finditer(reply))
    if letters_in_context and not reply[: letters_in_context[0].start()].strip(" \t\n*_`\"'#([{<"):
        return Route(letters_in_context[0][0])
    letters = [match[0] for match in letters_in_context] or _LETTER.findall(reply)
    return Route(letters[-1]) if letters else Route.MULTI


METHOD = Method(name="adaptive", answer=answer, calls_tools=True)
