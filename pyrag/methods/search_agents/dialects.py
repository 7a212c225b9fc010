"""The forms in which published search agents search, are shown results and answer: one `Dialect` each.

The formats (marks, white space, numbering of passages) are those that the checkpoints were trained on, read from the
authors' code; the instructions are template files, `prompts/pyrag_prompts/methods/search_agent.NAME.*`. Formats only:
the loop is in `search_agent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.agents.parsing.answer_places import boxed
from pyrag.agents.parsing.json_values import clipped
from pyrag.trace.model import Passage

_QUOTES = " \t\n\"'“”"


@dataclass(frozen=True, slots=True)
class Dialect:
    """`answer` is None where the answer only stands in a \\boxed{…}; `digest` says whether the model extracts what is
    helpful from the passages before it is shown anything."""

    search: tuple[str, str]
    found: str
    passage: str
    searches: int  # most of one question, as the authors evaluated
    answer: tuple[str, str] | None = ("<answer>", "</answer>")
    boxed: bool = False
    opening: str = ""  # what the model is taken to have begun with
    digest: bool = False

    @property
    def stop(self) -> tuple[str, ...]:
        return (self.search[1],) if self.answer is None else (self.search[1], self.answer[1])

    def show(self, text: str) -> str:
        return self.found.format(documents=text)

    def write(self, passages: Sequence[Passage]) -> str:
        """Passages as the model knows them. Retrieved text must not speak the dialect: its marks are taken out."""
        written = (
            self.passage.format(number=number, title=self._plain(one.title), text=self._plain(one.text))
            for number, one in enumerate(passages, start=1)
        )
        return "".join(written).strip() or "None"

    def _plain(self, text: str) -> str:
        marks = [*self.search, *(self.answer or ()), *self.found.split("{documents}"), "<think>", "</think>"]
        for mark in marks:
            text = text.replace(mark.strip(), "") if mark.strip() else text
        return text.strip()


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
