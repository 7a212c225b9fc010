"""Search agents: the model thinks, searches, reads the results and continues, in one text, until it answers.

`search-agent:DIALECT` uses the format of Search-R1, ReSearch, ZeroSearch, StepSearch, R1-Searcher or Search-o1, so that
their published checkpoints run in the way they were trained. These models do not cite, so an answer's citations are the
retrieved passages that contain it.

A `Dialect` holds the format of searches, results and answers. The formats (marks, white space, numbering of
passages) come from the authors' code, and the checkpoints were trained on them; the instructions are template files,
`prompts/pyrag_prompts/methods/search_agent.NAME.*`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.parsing.answer_places import boxed
from pyrag.agents.parsing.answers import is_unknown
from pyrag.agents.parsing.thinking import clipped
from pyrag.agents.prompts import load_prompts
from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import RecordedReply, RecordedSearch, StepRecorder, Value
from pyrag.settings import Settings
from pyrag.trace.model import UNKNOWN, Answer, Passage

_QUOTES = " \t\n\"'“”"


@dataclass(frozen=True, slots=True)
class Dialect:
    """Format of one family of search agents.

    Attributes:
        search: Marks around a query.
        results: Template of the search results.
        passage: Template of one passage.
        searches: Maximum searches per question, as in the authors' evaluation.
        answer: Marks around an answer; None if the answer is only in a \\boxed{…}.
        boxed: Whether the answer is in a \\boxed{…}.
        opening: Text that is prepended to the model's output.
        digest: Whether the model extracts the helpful parts of the passages before it sees any.
        thoughts: Additional marks that passages must not contain.
        prompts: Dialect whose templates are used; empty to use its own.
    """

    search: tuple[str, str]
    results: str
    passage: str
    searches: int
    answer: tuple[str, str] | None = ("<answer>", "</answer>")
    boxed: bool = False
    opening: str = ""
    digest: bool = False
    thoughts: tuple[str, ...] = ("<think>", "</think>")
    prompts: str = ""

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings that end a turn."""
        return (self.search[1],) if self.answer is None else (self.search[1], self.answer[1])

    def show(self, text: str) -> str:
        """Return search results in the format of the dialect."""
        return self.results.format(documents=text)

    def write(self, passages: Sequence[Passage]) -> str:
        """Return passages in the format of the dialect, with the dialect's marks removed from retrieved text."""
        written = (
            self.passage.format(number=number, title=self._plain(passage.title), text=self._plain(passage.text))
            for number, passage in enumerate(passages, start=1)
        )
        return "".join(written).strip() or "None"

    def _plain(self, text: str) -> str:
        marks = [*self.search, *(self.answer or ()), *self.results.split("{documents}"), *self.thoughts]
        return _without(text, [mark.strip() for mark in marks if mark.strip()]).strip()


def _without(text: str, marks: Sequence[str]) -> str:
    """Return a text without these marks, including marks that form when one is removed (`<sea<search>rch>`)."""
    if not any(mark in text for mark in marks):
        return text
    characters: list[str] = []  # ends with no mark
    for character in text:
        characters.append(character)
        for mark in marks:
            if character == mark[-1] and "".join(characters[-len(mark) :]) == mark:
                del characters[-len(mark) :]
                break
    return "".join(characters)


DIALECTS = {
    "search-r1": Dialect(
        search=("<search>", "</search>"),
        results="\n\n<information>{documents}</information>\n\n",
        passage='Doc {number}(Title: "{title}") {text}\n',
        searches=4,
    ),
    "research": Dialect(
        search=("<search>", "</search>"),
        results=" <result>\n{documents}\n</result>",
        passage='"{title}"\n{text}\n\n',
        searches=8,
        boxed=True,
    ),
    "zerosearch": Dialect(
        search=("<search>", "</search>"),
        results="\n\n<information>{documents}</information>\n\n",
        passage="Doc {number}: {title} {text}\n",
        searches=5,
        prompts="search-r1",
    ),
    "stepsearch": Dialect(
        search=("<search>", "</search>"),
        results="\n\n<information>{documents}</information>\n\n",
        passage="Doc {number}<## Title: {title} ##> {text}\n",
        searches=5,
        thoughts=("<plan>", "</plan>", "<observation>", "</observation>", "<think>", "</think>", "<##", "##>"),
    ),
    "r1-searcher": Dialect(
        search=("<|begin_of_query|>", "<|end_of_query|>"),
        results="\n\n<|begin_of_documents|>\n{documents}\n<|end_of_documents|>\n\n",
        passage="({number}){title} {text}\n",
        searches=8,
        opening="<think>",
    ),
    "search-o1": Dialect(
        search=("<|begin_search_query|>", "<|end_search_query|>"),
        results="\n\n<|begin_search_result|>{documents}<|end_search_result|>\n\n",
        passage="**Document {number}:**\n{title}\n{text}\n\n",
        searches=10,
        answer=None,
        boxed=True,
        digest=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """Text of the model up to an action: a search, an answer, or no action if neither is set."""

    text: str
    query: str = ""
    answer: str | None = None


def read_turn(text: str, dialect: Dialect) -> Turn:
    """Cut a turn after its first action, since models invent results after it.

    Servers omit the mark at which they stopped, so an unclosed last action counts as closed.

    Args:
        text: Text of this turn only.
        dialect: Format of the actions.
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
    content = text if dialect.answer is None else _between(text, dialect.answer)
    answer = (boxed(clipped(content)) or ("" if dialect.answer is None else content)) if dialect.boxed else content
    return Turn(text, answer=answer.strip() or None)


def _between(text: str, marks: tuple[str, str]) -> str:
    if not text.endswith(marks[1]):
        return ""
    return text.removesuffix(marks[1]).rpartition(marks[0])[2] if marks[0] in text else ""


VARIANTS = tuple(DIALECTS)
_SHOWN = 6_000  # characters of the reasoning shown for a digest
_DIGEST = "**Final Information**"
_NOTHING = "No helpful information found."


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer in one text that alternates thoughts and searches.

    Args:
        episode: Episode of the question.
        settings: Settings; `method` names the dialect after a colon, `rounds` is the maximum number of searches
            (None for the dialect's own), `topk` the number of passages per search.
    """
    with StepRecorder(episode) as recorder:
        return await _Agent(recorder, settings).run()


class _Agent:
    """Trajectory of one question: the text so far, and the calls that it depends on."""

    def __init__(self, recorder: StepRecorder, settings: Settings) -> None:
        self.recorder, self.settings = recorder, settings
        self.name = settings.method.partition(":")[2] or VARIANTS[0]
        self.dialect: Dialect = DIALECTS[self.name]
        self.templates = f"search_agent.{self.dialect.prompts or self.name}"
        self.text = self.dialect.opening
        self.uses: list[Value] = []
        self.passages: list[Passage] = []
        # The budget must leave room for the last answer, and for one search beyond the limit.
        affordable = (recorder.episode.ledger.budget.calls - 2) // (2 if self.dialect.digest else 1)
        self.limit = max(min(settings.rounds or self.dialect.searches, affordable), 0)

    async def run(self) -> Result:
        searches, query = 0, self.recorder.episode.question
        for _ in range(self.limit + 2):
            reply = await self._go_on(query)
            turn = read_turn(reply.text, self.dialect)
            self.text += turn.text
            if turn.answer is not None:
                break
            if not turn.query:
                self.text += f"\n{self._notice(f'{self.templates}.retry')}\n"
            elif searches == self.limit:
                self.text += self.dialect.show(self._notice("search_agent.limit"))
            else:
                searches, query = searches + 1, turn.query
                self.text += self.dialect.show(await self._search(turn, reply))
        return self.recorder.result(reply)

    async def _go_on(self, query: str) -> RecordedReply:
        values = {"question": self.recorder.episode.question}
        if self.dialect.digest:
            values["limit"] = str(self.limit)
        reply = await self.recorder.write(
            self.templates,
            values,
            query=query,
            uses=self.uses,
            passages=self.passages,
            stop=self.dialect.stop,
            prefix=self.text,
            read=lambda text: as_answer(read_turn(text, self.dialect), self.passages),
        )
        self.uses.append(reply)
        return reply

    async def _search(self, turn: Turn, reply: RecordedReply) -> str:
        results = await self.recorder.retrieve(turn.query, self.settings.topk, uses=[reply])
        self.uses.append(results)
        self.passages += [passage for passage in results.passages if passage not in self.passages]
        documents = self.dialect.write(results.passages)
        return await self._digest(turn.query, documents, results) if self.dialect.digest else documents

    async def _digest(self, query: str, documents: str, results: RecordedSearch) -> str:
        reply = await self.recorder.write(
            f"{self.templates}.digest",
            {"reasoning": self.text[-_SHOWN:], "query": query, "documents": documents},
            query=query,
            uses=[results],
            passages=results.passages,
        )
        self.uses.append(reply)
        return reply.text.rpartition(_DIGEST)[2].strip(" :\n") if _DIGEST in reply.text else _NOTHING

    def _notice(self, name: str) -> str:
        return load_prompts(self.settings.prompts).notice(name)


def as_answer(turn: Turn, passages: Sequence[Passage]) -> Answer | None:
    """Return the answer in a turn with the passages that contain it, or None if the turn has no answer.

    Args:
        turn: Turn of the model.
        passages: All passages retrieved so far. For yes, no or an unknown answer, nothing is cited.
    """
    if turn.answer is None:
        return None
    text = " ".join(turn.answer.split())
    if is_unknown(text):
        return Answer(UNKNOWN, known=False)
    stated = [] if text.casefold() in ("yes", "no") else [passage.id for passage in passages if states(passage, text)]
    return Answer(text, known=True, citations=tuple(stated))


def states(passage: Passage, answer: str) -> bool:
    """Return True if a passage contains an answer verbatim, ignoring case and white space.

    Args:
        passage: Passage whose title and text are searched.
        answer: Text to find; a match begins and ends at word boundaries.
    """
    pattern = rf"(?<!\w){re.escape(' '.join(answer.split()))}(?!\w)"
    return re.search(pattern, " ".join(f"{passage.title} {passage.text}".split()), re.IGNORECASE) is not None


METHOD = Method(name="search-agent", answer=answer, variants=VARIANTS, needs_writer=True)
