"""IRCoT (Trivedi et al., 2023): sentences of reasoning alternate with retrievals, then a reader answers.

As in the paper, retrieved paragraphs stay in the prompt up to a limit, each sentence is the next query, and a reader
answers from all paragraphs at the end. Here the reader is the Answer agent, so that the answer has citations.
"""

from __future__ import annotations

import re

from pyrag.agents.parsing.thinking import split_thinking
from pyrag.agents.passages import fenced_passages
from pyrag.episode.episode import Episode
from pyrag.episode.recovery import merge
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import RecordedReply, StepRecorder, Value
from pyrag.settings import Settings
from pyrag.trace.model import Passage

ROUNDS = 8
MAX_PARAGRAPHS = 15
# A sentence ends before a space and a capital, but not after an initial or an abbreviation ("J. R.", "Mr. Ray").
_SENTENCE_END = re.compile(
    r"(?<![A-Z])(?<!\b[A-Z][a-z])(?<!\b(?:Mrs|Rev|Gen|Col|Sen|Jan|Feb))[.!?][\"”')]*(?=\s+[\"“'(]?[A-Z0-9])"
)
_DONE = re.compile(r"\banswer is\b|\A\W{0,6}(?:the )?(?:final )?answer\W{0,4}[:：]|<answer>|\\boxed\{", re.IGNORECASE)
_LABEL = re.compile(
    r"\A[\s*_#>-]{0,8}(?:(?:the )?next sentence|(?:next )?(?:step|thought)(?: \d{1,2})?|reasoning(?: so far)?)"
    r"[*_]{0,2}\s?[:：][*_\s]{0,4}",
    re.IGNORECASE,
)


async def answer(episode: Episode, settings: Settings) -> Result:
    """Request reasoning and retrieve in turns, then have the Answer agent read all paragraphs.

    The turns end early at a sentence that is empty, repeats an earlier sentence, or states the answer.

    Args:
        episode: State of the question.
        settings: Settings, of which `topk` is the number of passages per retrieval and `rounds` the maximum number of
            sentences (`ROUNDS` if None).
    """
    question = episode.question
    with StepRecorder(episode) as recorder:
        retrieved = await recorder.retrieve(question, settings.topk)
        paragraphs = list(retrieved.passages)
        values: list[Value] = [retrieved]
        thoughts: list[str] = []
        for _ in range(settings.rounds or ROUNDS):
            reply = await _reason(recorder, paragraphs, thoughts, values)
            thought = first_sentence(reply.text)
            values.append(reply)
            if not thought or thought in thoughts or _DONE.search(thought):
                break
            thoughts.append(thought)
            retrieved = await recorder.retrieve(thought, settings.topk, uses=[reply])
            values.append(retrieved)
            paragraphs = merge(paragraphs, retrieved.passages)[:MAX_PARAGRAPHS]
        return recorder.result(await recorder.answer(question, paragraphs, uses=values))


async def _reason(
    recorder: StepRecorder, paragraphs: list[Passage], thoughts: list[str], uses: list[Value]
) -> RecordedReply:
    fence, documents = fenced_passages(paragraphs)
    question = recorder.episode.question
    return await recorder.write(
        "ircot",
        {"question": question, "documents": documents, "fence": fence, "thoughts": " ".join(thoughts) or "(none yet)"},
        query=thoughts[-1] if thoughts else question,
        uses=uses,
        passages=paragraphs,
        fault=_fault,
    )


def _fault(text: str) -> str:
    return "" if first_sentence(text) else "it has no sentence"


def first_sentence(reply: str) -> str:
    """Return the first sentence of a reply, without the model's thinking and the prompt's label."""
    text = _LABEL.sub("", " ".join(split_thinking(reply, r"(?!)")[1].split()), count=1)
    end = _SENTENCE_END.search(text)
    return text[: end.end()] if end else text


METHOD = Method(name="ircot", answer=answer, needs_writer=True)
