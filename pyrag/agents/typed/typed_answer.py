"""Typed answers: a language model replies with JSON, and the texts of other answerers are parsed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrag.agents.conversation import Conversation
from pyrag.agents.parsing.answers import parse_answer
from pyrag.agents.parsing.fields import positions_of
from pyrag.agents.parsing.json_values import parse_json
from pyrag.agents.passages import fenced_passages
from pyrag.agents.prompted_agent import PromptedAgent
from pyrag.agents.prompts import Prompts
from pyrag.agents.protocol import Answerer, Reading
from pyrag.agents.schemas import NUMBERS, TEXT, closed
from pyrag.agents.typed.returns import Returns, is_missing
from pyrag.errors import BadOutputError
from pyrag.llm.protocol import ChatModel, Sampling
from pyrag.trace.model import UNKNOWN, Passage

RETRIES = 1  # further replies after one that is not of the type
_TEMPLATE = "typed"
_NO_DOCUMENTS = "(none: the facts are in the question)"
_MAX_EVIDENCE = 1_000  # characters


def typed_answerer(answerer: Answerer, returns: Returns) -> Answerer:
    """Return an answerer whose known answers are values of a type, in the form of `Returns.text`.

    Args:
        answerer: Answerer of any engine. If it has a method `returning(returns)`, that method returns the typed
            answerer.
        returns: The type.

    Raises:
        ValueError: The answerer gives short texts, and values of the type cannot be read from short texts.
    """
    make = getattr(answerer, "returning", None)
    typed: Answerer | None = make(returns) if callable(make) else None
    if typed is not None:
        return typed
    if not returns.reads_text:
        raise ValueError(
            "this engine gives short texts and cannot fill a JSON schema of objects or lists: ask for each field by "
            'itself with returns="number", "date", "bool" or "list[str]", or name a language model (--llm)'
        )
    return ReadingAnswerer(answerer, returns)


@dataclass(frozen=True, slots=True)
class ReadingAnswerer:
    """Answerer that parses the value in another answerer's text; a text without such a value is unknown."""

    inner: Answerer
    returns: Returns

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return the other answerer's reading with the parsed value.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        reading = await self.inner.answer(query, passages)
        if not reading.known:
            return reading
        try:
            return replace(reading, text=self.returns.written(reading.text))
        except ValueError as error:
            why = f"{reading.text!r} was not taken: {error}"
            return replace(reading, text=UNKNOWN, known=False, citations=(), rationale=why)


@dataclass(frozen=True, slots=True)
class LLMTypedAnswerer:
    """Answer Agent whose replies are JSON. After two bad replies the answer is unknown."""

    model: ChatModel
    prompts: Prompts
    returns: Returns
    sampling: Sampling = Sampling()

    async def answer(self, query: str, passages: Sequence[Passage] | None) -> Reading:
        """Return an answer whose text is a value of the type; unknown if the list of passages is empty.

        Args:
            query: Query to answer.
            passages: Passages to answer from; None to aggregate the facts in the query.
        """
        if passages is not None and not passages:
            return Reading(UNKNOWN, known=False, rationale="no passages were given")
        agent = PromptedAgent(self.model, self.prompts, self.sampling)
        talk = self._talk(agent, query, passages)
        count = len(passages or ())
        try:
            return await agent.asked(
                talk, lambda text: self._read(text, count, query, talk), f"{_TEMPLATE}.retry", RETRIES
            )
        except BadOutputError as error:
            why = f"the model's replies held no usable value: {error}"
            return Reading(UNKNOWN, known=False, rationale=why, usage=talk.usage, raw=talk.raw, note=talk.note)

    def prompt(self) -> str:
        """Return the prompt without passages and query."""
        values = {"fence": "", "documents": "", "query": "", "wanted": self.returns.wanted}
        return "".join(self.prompts.render_method(_TEMPLATE, values))

    def _talk(self, agent: PromptedAgent, query: str, passages: Sequence[Passage] | None) -> Conversation:
        fence, documents = ("documents", _NO_DOCUMENTS) if passages is None else fenced_passages(passages)
        values = {"fence": fence, "documents": documents, "query": query, "wanted": self.returns.wanted}
        value = {"anyOf": [dict(self.returns.schema), {"type": "null"}]}
        fields = {"evidence": TEXT, "documents": NUMBERS, "known": {"type": "boolean"}, "value": value}
        return agent.talk(_TEMPLATE, values, closed("typed_answer", fields))

    def _read(self, text: str, documents: int, query: str, talk: Conversation) -> Reading:
        """Return the reading in a reply. Raises `BadOutputError`, whose message is for the model."""
        reply = next((value for value in parse_json(text, "{") if isinstance(value, dict) and "value" in value), None)
        if reply is None:
            return self._of_text(text, documents, query, talk)
        evidence = str(reply.get("evidence", ""))[:_MAX_EVIDENCE]
        if reply.get("known") is False or is_missing(reply["value"]):
            return Reading(UNKNOWN, known=False, rationale=evidence, usage=talk.usage, raw=talk.raw, note=talk.note)
        cited = positions_of(reply.get("documents"), documents)
        return self._reading(self._checked(reply["value"]), cited, evidence, talk)

    def _of_text(self, text: str, documents: int, query: str, talk: Conversation) -> Reading:
        """Return the reading of a reply that is not the requested object but the value itself, or a plain answer."""
        if self.returns.name == "json":
            for value in parse_json(text, "{"):
                return self._reading(self._checked(value), (), "", talk)
        if not self.returns.reads_text:
            raise BadOutputError('it holds no JSON object with the key "value"')
        parsed = parse_answer(text, documents)
        if not parsed.known:
            return Reading(UNKNOWN, known=False, rationale=parsed.rationale, usage=talk.usage, raw=talk.raw)
        return self._reading(self._checked(parsed.text), parsed.citations, parsed.rationale, talk)

    def _checked(self, value: Any) -> Any:
        try:
            if isinstance(value, str) and self.returns.reads_text:
                return self.returns.read(value)
            return self.returns.checked(value)
        except ValueError as error:
            raise BadOutputError(f"{error}: write {self.returns.wanted}") from None

    def _reading(self, value: Any, cited: tuple[int, ...], evidence: str, talk: Conversation) -> Reading:
        text = self.returns.text(value)
        return Reading(text, True, cited, evidence, usage=talk.usage, raw=talk.raw, note=talk.note)


def as_value(returns: Returns | None, text: str) -> Any:
    """Return the value of a known answer.

    Args:
        returns: Type of the answer; None for a text.
        text: Text of the answer.

    Raises:
        ValueError: The text is not a value of the type, for example in an edited recording.
    """
    try:
        return text if returns is None else returns.value(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the answer {text[:80]!r} is not of the type {returns and returns.name}") from error
