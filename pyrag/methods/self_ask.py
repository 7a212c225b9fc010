"""Self-Ask (Press et al., 2023) with retrieval: the model asks follow-up questions, each is looked up and answered.

The Answer agent answers a follow-up question from its passages, as in the authors' version with a search engine, so
that every intermediate answer has citations.
"""

from __future__ import annotations

import re

from pyrag.agents.parsing import split_thinking
from pyrag.agents.passages import given
from pyrag.config import Settings
from pyrag.episode import Episode
from pyrag.methods._drive import Driver, Said, reader
from pyrag.methods.base import Result
from pyrag.trace import Answer

ROUNDS = 5
_INTERMEDIATE = "Intermediate answer:"
_FOLLOW_UP = re.compile(r"^\W*follow[ -]?up\W*:\s*(.+)", re.IGNORECASE | re.MULTILINE)
_FINAL = re.compile(r"so the final answer is\W*?[:：]?\s*(.+)", re.IGNORECASE)
WRITES = True


async def answer(episode: Episode, settings: Settings) -> Result:
    with Driver(episode) as driver:
        asked: list[tuple[str, Said]] = []
        for _ in range(settings.rounds or ROUNDS):
            thought = await _think(driver, asked)
            follow_up = _FOLLOW_UP.search(spoken(thought.text))
            if thought.answer is not None or follow_up is None:
                return driver.result(thought) if thought.answer else await _conclude(driver, asked, thought)
            query = follow_up[1].strip()
            found = await driver.retrieve(query, settings.topk, uses=[thought])
            asked.append((query, await driver.answer(query, found.passages, uses=[thought, found])))
        return await _conclude(driver, asked)


async def _think(driver: Driver, asked: list[tuple[str, Said]]) -> Said:
    question = driver.episode.question
    transcript = "".join(f"Follow up: {query}\n{_INTERMEDIATE} {_text(said)}\n" for query, said in asked)
    return await driver.write(
        "self_ask",
        {"question": question, "transcript": transcript.rstrip() or "(none yet)"},
        query=asked[-1][0] if asked else question,
        uses=[said for _, said in asked],
        stop=(_INTERMEDIATE,),
        read=final_answer,
    )


async def _conclude(driver: Driver, asked: list[tuple[str, Said]], *uses: Said) -> Result:
    """Where the model does not come to an end, the Answer agent composes what has been found."""
    facts = ". ".join(f"{query} {_text(said)}" for query, said in asked) or "nothing"
    query = given(facts, driver.episode.question)
    return driver.result(await driver.answer(query, None, uses=[*uses, *(said for _, said in asked)]))


def _text(said: Said) -> str:
    return said.answer.text if said.answer else ""


def spoken(reply: str) -> str:
    """A reply without the model's own thinking."""
    return split_thinking(reply, r"(?im)^\W*follow[ -]?up\W*:|so the final answer is")[1]


def final_answer(text: str) -> Answer | None:
    """What stands behind "So the final answer is", unless a follow-up question comes before it."""
    text = spoken(text)
    final, follow_up = _FINAL.search(text), _FOLLOW_UP.search(text)
    if final is None or (follow_up is not None and follow_up.start() < final.start()):
        return None
    return reader()(final[1].strip().rstrip("."))
