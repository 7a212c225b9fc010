"""Search agents: the model thinks, searches, reads what was found and goes on, in one text, until it answers.

`search-agent:DIALECT` speaks as Search-R1, ReSearch, R1-Searcher or Search-o1, whose published checkpoints so run as
they were trained. These models do not cite: an answer's citations are the passages found that state it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyrag.agents.parsing.answers import is_unknown
from pyrag.agents.prompts import load_prompts
from pyrag.episode.episode import Episode
from pyrag.methods.program_result import Result
from pyrag.methods.search_agents.dialects import DIALECTS, Dialect, Turn, read_turn
from pyrag.methods.step_recorder import Found, Said, StepRecorder, Value
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN, Answer, Passage

VARIANTS = tuple(DIALECTS)
_SHOWN = 6_000  # characters of the reasoning that a digest sees
_DIGEST = "**Final Information**"
_NOTHING = "No helpful information found."
WRITES = True


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer in one text of thoughts and searches.

    Args:
        episode: The question under way.
        settings: `method` names the dialect behind a colon; `rounds` is the maximum number of searches (None: the
            dialect's own), `topk` the passages of each.
    """
    with StepRecorder(episode) as recorder:
        return await _Agent(recorder, settings).run()


class _Agent:
    """One trajectory: what has been said so far, and what it rests on."""

    def __init__(self, recorder: StepRecorder, settings: Settings) -> None:
        self.recorder, self.settings = recorder, settings
        self.name = settings.method.partition(":")[2] or VARIANTS[0]
        self.dialect: Dialect = DIALECTS[self.name]
        self.said = self.dialect.opening
        self.uses: list[Value] = []
        self.found: list[Passage] = []
        # Room for the last answer, and for a search too many.
        affordable = (recorder.episode.ledger.budget.calls - 2) // (2 if self.dialect.digest else 1)
        self.limit = max(min(settings.rounds or self.dialect.searches, affordable), 0)

    async def run(self) -> Result:
        searches, query = 0, self.recorder.episode.question
        for _ in range(self.limit + 2):
            said = await self._go_on(query)
            turn = read_turn(said.text, self.dialect)
            self.said += turn.text
            if turn.answer is not None:
                break
            if not turn.query:
                self.said += f"\n{self._notice(f'{self.name}.retry')}\n"
            elif searches == self.limit:
                self.said += self.dialect.show(self._notice("limit"))
            else:
                searches, query = searches + 1, turn.query
                self.said += self.dialect.show(await self._search(turn, said))
        return self.recorder.result(said)

    async def _go_on(self, query: str) -> Said:
        values = {"question": self.recorder.episode.question}
        if self.dialect.digest:
            values["limit"] = str(self.limit)
        said = await self.recorder.write(
            f"search_agent.{self.name}",
            values,
            query=query,
            uses=self.uses,
            passages=self.found,
            stop=self.dialect.stop,
            prefix=self.said,
            read=lambda text: as_answer(read_turn(text, self.dialect), self.found),
        )
        self.uses.append(said)
        return said

    async def _search(self, turn: Turn, said: Said) -> str:
        found = await self.recorder.retrieve(turn.query, self.settings.topk, uses=[said])
        self.uses.append(found)
        self.found += [one for one in found.passages if one not in self.found]
        documents = self.dialect.write(found.passages)
        return await self._digest(turn.query, documents, found) if self.dialect.digest else documents

    async def _digest(self, query: str, documents: str, found: Found) -> str:
        said = await self.recorder.write(
            f"search_agent.{self.name}.digest",
            {"reasoning": self.said[-_SHOWN:], "query": query, "documents": documents},
            query=query,
            uses=[found],
            passages=found.passages,
        )
        self.uses.append(said)
        return said.text.rpartition(_DIGEST)[2].strip(" :\n") if _DIGEST in said.text else _NOTHING

    def _notice(self, name: str) -> str:
        return load_prompts(self.settings.prompts).notice(f"search_agent.{name}")


def as_answer(turn: Turn, passages: Sequence[Passage]) -> Answer | None:
    """Return the answer of a turn, with the passages that state it; None where the turn has no answer.

    Args:
        turn: A turn of the model.
        passages: All that were found so far; none is cited for yes, no or an unknown answer.
    """
    if turn.answer is None:
        return None
    text = " ".join(turn.answer.split())
    if is_unknown(text):
        return Answer(UNKNOWN, known=False)
    stated = [] if text.casefold() in ("yes", "no") else [one.id for one in passages if states(one, text)]
    return Answer(text, known=True, citations=tuple(stated))


def states(passage: Passage, answer: str) -> bool:
    """Return True if a passage holds an answer word for word, whatever the case and white space.

    Args:
        passage: Its title and text are searched.
        answer: A text; a match begins and ends at the bounds of words.
    """
    pattern = rf"(?<!\w){re.escape(' '.join(answer.split()))}(?!\w)"
    return re.search(pattern, " ".join(f"{passage.title} {passage.text}".split()), re.IGNORECASE) is not None
