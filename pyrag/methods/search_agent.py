"""Search agents: the model thinks, searches, reads what was found and goes on, in one text, until it answers.

`search-agent:DIALECT` speaks as Search-R1, ReSearch, ZeroSearch, StepSearch, R1-Searcher or Search-o1, whose published
checkpoints so run as they were trained. These models do not cite: an answer's citations are the passages found that
state it.

A `Dialect` holds the form in which one searches, is shown results and answers. The formats (marks, white space,
numbering of passages) are those that the checkpoints were trained on, read from the authors' code; the instructions are
template files, `prompts/pyrag_prompts/methods/search_agent.NAME.*`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.parsing.answer_places import boxed
from pyrag.agents.parsing.answers import is_unknown
from pyrag.agents.parsing.json_values import clipped
from pyrag.agents.prompts import load_prompts
from pyrag.episode.episode import Episode
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import Found, Said, StepRecorder, Value
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN, Answer, Passage

_QUOTES = " \t\n\"'“”"


@dataclass(frozen=True, slots=True)
class Dialect:
    """`answer` is None where the answer only stands in a \\boxed{…}; `digest` says whether the model extracts what is
    helpful from the passages before it is shown anything. `thoughts` are marks that passages must not contain either.
    `prompts` names the dialect whose templates are used, if not its own."""

    search: tuple[str, str]
    found: str
    passage: str
    searches: int  # most of one question, as the authors evaluated
    answer: tuple[str, str] | None = ("<answer>", "</answer>")
    boxed: bool = False
    opening: str = ""  # what the model is taken to have begun with
    digest: bool = False
    thoughts: tuple[str, ...] = ("<think>", "</think>")
    prompts: str = ""

    @property
    def stop(self) -> tuple[str, ...]:
        return (self.search[1],) if self.answer is None else (self.search[1], self.answer[1])

    def show(self, text: str) -> str:
        return self.found.format(documents=text)

    def write(self, passages: Sequence[Passage]) -> str:
        """Return passages as the model knows them. Retrieved text must not speak the dialect: it loses its marks."""
        written = (
            self.passage.format(number=number, title=self._plain(one.title), text=self._plain(one.text))
            for number, one in enumerate(passages, start=1)
        )
        return "".join(written).strip() or "None"

    def _plain(self, text: str) -> str:
        marks = [*self.search, *(self.answer or ()), *self.found.split("{documents}"), *self.thoughts]
        return _without(text, [mark.strip() for mark in marks if mark.strip()]).strip()


def _without(text: str, marks: Sequence[str]) -> str:
    """Return a text without these marks, and without those that form where one is left out (`<sea<search>rch>`)."""
    if not any(mark in text for mark in marks):
        return text
    kept: list[str] = []  # ends with no mark
    for character in text:
        kept.append(character)
        for mark in marks:
            if character == mark[-1] and "".join(kept[-len(mark) :]) == mark:
                del kept[-len(mark) :]
                break
    return "".join(kept)


DIALECTS = {
    "search-r1": Dialect(
        search=("<search>", "</search>"),
        found="\n\n<information>{documents}</information>\n\n",
        passage='Doc {number}(Title: "{title}") {text}\n',
        searches=4,
    ),
    "research": Dialect(
        search=("<search>", "</search>"),
        found=" <result>\n{documents}\n</result>",
        passage='"{title}"\n{text}\n\n',
        searches=8,
        boxed=True,
    ),
    "zerosearch": Dialect(
        search=("<search>", "</search>"),
        found="\n\n<information>{documents}</information>\n\n",
        passage="Doc {number}: {title} {text}\n",
        searches=5,
        prompts="search-r1",
    ),
    "stepsearch": Dialect(
        search=("<search>", "</search>"),
        found="\n\n<information>{documents}</information>\n\n",
        passage="Doc {number}<## Title: {title} ##> {text}\n",
        searches=5,
        thoughts=("<plan>", "</plan>", "<observation>", "</observation>", "<think>", "</think>", "<##", "##>"),
    ),
    "r1-searcher": Dialect(
        search=("<|begin_of_query|>", "<|end_of_query|>"),
        found="\n\n<|begin_of_documents|>\n{documents}\n<|end_of_documents|>\n\n",
        passage="({number}){title} {text}\n",
        searches=8,
        opening="<think>",
    ),
    "search-o1": Dialect(
        search=("<|begin_search_query|>", "<|end_search_query|>"),
        found="\n\n<|begin_search_result|>{documents}<|end_search_result|>\n\n",
        passage="**Document {number}:**\n{title}\n{text}\n\n",
        searches=10,
        answer=None,
        boxed=True,
        digest=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """The model's text until it acted: it searches, or it answers, or (neither set) it did not act."""

    text: str
    query: str = ""
    answer: str | None = None


def read_turn(text: str, dialect: Dialect) -> Turn:
    """Cut a turn behind its first action; what a model writes after that is its own invention of results.

    A server leaves out the mark that it stopped at, so a last action that is still open counts as closed.

    Args:
        text: The text of this turn alone.
        dialect: The marks of its actions.
    """
    actions = [dialect.search] if dialect.answer is None else [dialect.search, dialect.answer]
    ends = [(text.find(closing), closing) for _, closing in actions if closing in text]
    if ends:
        place, closing = min(ends)
        text = text[: place + len(closing)]
    else:
        place, closing = max((text.rfind(opening), closing) for opening, closing in actions)
        text += closing if place >= 0 else ""
    if query := _between(text, dialect.search).strip(_QUOTES):
        return Turn(text, query=query)
    said = text if dialect.answer is None else _between(text, dialect.answer)
    answer = (boxed(clipped(said)) or ("" if dialect.answer is None else said)) if dialect.boxed else said
    return Turn(text, answer=answer.strip() or None)


def _between(text: str, marks: tuple[str, str]) -> str:
    if not text.endswith(marks[1]):
        return ""
    return text.removesuffix(marks[1]).rpartition(marks[0])[2] if marks[0] in text else ""


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
        self.templates = f"search_agent.{self.dialect.prompts or self.name}"
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
                self.said += f"\n{self._notice(f'{self.templates}.retry')}\n"
            elif searches == self.limit:
                self.said += self.dialect.show(self._notice("search_agent.limit"))
            else:
                searches, query = searches + 1, turn.query
                self.said += self.dialect.show(await self._search(turn, said))
        return self.recorder.result(said)

    async def _go_on(self, query: str) -> Said:
        values = {"question": self.recorder.episode.question}
        if self.dialect.digest:
            values["limit"] = str(self.limit)
        said = await self.recorder.write(
            self.templates,
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
            f"{self.templates}.digest",
            {"reasoning": self.said[-_SHOWN:], "query": query, "documents": documents},
            query=query,
            uses=[found],
            passages=found.passages,
        )
        self.uses.append(said)
        return said.text.rpartition(_DIGEST)[2].strip(" :\n") if _DIGEST in said.text else _NOTHING

    def _notice(self, name: str) -> str:
        return load_prompts(self.settings.prompts).notice(name)


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
