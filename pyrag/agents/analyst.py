"""Agent that judges whether the evidence suffices, and answers if it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyrag.agents.conversation import Conversation
from pyrag.agents.parsing.judgements import Judged, parse_judged, salvage_judged
from pyrag.agents.passages import fenced_passages
from pyrag.agents.prompted_agent import PromptedAgent
from pyrag.agents.protocol import Answerer, Reading
from pyrag.agents.schemas import JUDGEMENT
from pyrag.errors import BadOutputError
from pyrag.trace.model import UNKNOWN, Passage

RETRIES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMAnalyst(PromptedAgent):
    """Analyst over a chat model. If two replies are malformed, the evidence counts as insufficient.

    Attributes:
        system: Template of the system message.
        template: Template of the request with passages.
        retry: Template of the request to reply again.
        facts: Template of the request with facts instead of passages; empty if `answerer` answers from facts.
        answerer: Agent that answers from facts.
        question: The user's question, which the request shows beside a query that is a step towards it.
    """

    system: str
    template: str
    retry: str
    facts: str = ""
    answerer: Answerer | None = None
    question: str = ""

    def about(self, question: str) -> LLMAnalyst:
        """Return this analyst for the queries of a question."""
        return replace(self, question=question)

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return an answer if the evidence suffices; otherwise an unknown one that names what is missing.

        Args:
            query: Query to answer; without passages, it includes the facts to answer from.
            passages: Evidence; without any, the answer is unknown and no call is made. None to answer from the facts in
                the query.
        """
        if passages is None and not self.facts:
            assert self.answerer is not None
            return await self.answerer.answer(query, None)
        if passages is not None and not passages:
            return Reading(UNKNOWN, known=False, rationale="no passages were given")  # not worth a call
        talk = self._opened(query, passages)
        count, note = len(passages or ()), ""
        try:
            judged = await self.asked(talk, lambda reply: parse_judged(reply, count, query), self.retry, RETRIES)
        except BadOutputError as error:
            fault = f"the model's replies had no usable judgement: {error}"
            salvaged = (salvage_judged(reply, count, query) for reply in reversed(talk.whole))
            judged = next(filter(None, salvaged), None) or Judged(UNKNOWN, False, (), None, fault, "")
            note = "" if judged.known else talk.cut_off
        return Reading(
            judged.text,
            judged.known,
            judged.citations,
            judged.analysis,
            judged.confidence,
            judged.missing,
            usage=talk.usage,
            raw=talk.raw,
            note="; ".join(filter(None, (judged.note, note))),
        )

    def _opened(self, query: str, passages: Sequence[Passage] | None) -> Conversation:
        if passages is None:
            return self.talk(self.facts, {"query": query}, JUDGEMENT, system=self.system)
        fence, documents = fenced_passages(passages)
        values = {"query": query, "documents": documents, "fence": fence, "question": self.question or query}
        return self.talk(self.template, values, JUDGEMENT, system=self.system, optional=("question",))
