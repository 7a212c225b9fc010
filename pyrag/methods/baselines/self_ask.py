"""Self-Ask (Press et al., 2023) with retrieval: the model asks follow-up questions, which are answered one by one.

The Answer agent answers a follow-up question from its passages, as in the authors' version with a search engine, so
every intermediate answer has citations.
"""

from __future__ import annotations

import re
from functools import partial

from pyrag._io.lines import lines_of
from pyrag.agents.parsing.answer_places import extracted
from pyrag.agents.parsing.thinking import split_thinking
from pyrag.agents.passages import with_facts
from pyrag.episode.episode import Episode
from pyrag.methods.method import Method
from pyrag.methods.program_result import Result
from pyrag.methods.step_recorder import AnswerReader, RecordedReply, StepRecorder
from pyrag.settings import Settings
from pyrag.trace.model import Answer

ROUNDS = 5
_INTERMEDIATE = "Intermediate answer:"
_AROUND = ' \t*_`"“”'
_MARKS = r"[^\w\n]{0,12}"  # of lists, headings and emphasis
_NUMBER = r"[ #.(]{0,3}\d{1,2}[).]?"
_DASH = "[ \N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{EN DASH}-]?"
_ASKS = rf"(?:next |new |the )?(?:follow{_DASH}up|sub{_DASH}question|next question)(?:{_DASH}(?:question|query|q))?"
_FOLLOW_UP = re.compile(  # "Question:" without a number is the prompt's own label
    rf"^{_MARKS}(?:yes\W{{1,3}})?(?:\d{{1,2}}{_MARKS})?(?:{_ASKS}(?:{_NUMBER})?|(?:question|query|q){_NUMBER})"
    rf"[*_`\"]{{0,3}}\s?[:：]{_MARKS}(.*)",
    re.IGNORECASE | re.MULTILINE,
)
_IS = rf"(?: is\b|[*_`\"]{{0,3}}\s?[:：]){_MARKS}"
_FINAL = re.compile(
    rf"^{_MARKS}(?:(?:so|thus|hence|therefore|finally)\W{{1,3}})?(?:the )?(?:final )?answer{_IS}(.*)"
    rf"|\b(?:(?:so|thus|hence|therefore)\W{{1,3}})the answer{_IS}(.*)|\bthe final answer{_IS}(.*)"
    r"|\bfinal answer\s{0,3}[:：=–—-]{1,2}(.*)",
    re.IGNORECASE | re.MULTILINE,
)
_PAYLOAD = r"(?im)^[^\w\n]{0,12}(?:follow.?up|sub.?question|question)\b|final answer|<answer>"


async def answer(episode: Episode, settings: Settings) -> Result:
    """Answer follow-up questions one by one until the model states the final answer.

    If it states none, or asks no new question, the Answer agent concludes from the intermediate answers.

    Args:
        episode: State of the question.
        settings: Settings, of which `topk` is the number of passages per follow-up question and `rounds` the maximum
            number of model turns (`ROUNDS` if None).
    """
    with StepRecorder(episode) as recorder:
        asked: list[tuple[str, RecordedReply]] = []
        for _ in range(settings.rounds or ROUNDS):
            thought = await _think(recorder, asked)
            if thought.answer is not None:
                return recorder.result(thought)
            query = follow_up(thought.text)
            if not query or query in [earlier for earlier, _ in asked]:
                return await _conclude(recorder, asked, thought)
            retrieved = await recorder.retrieve(query, settings.topk, uses=[thought])
            asked.append((query, await recorder.answer(query, retrieved.passages, uses=[thought, retrieved])))
        return await _conclude(recorder, asked)


async def _think(recorder: StepRecorder, asked: list[tuple[str, RecordedReply]]) -> RecordedReply:
    question = recorder.episode.question
    transcript = "".join(f"Follow up: {query}\n{_INTERMEDIATE} {_text(reply)}\n" for query, reply in asked)
    return await recorder.write(
        "self_ask",
        {"question": question, "transcript": transcript.rstrip() or "(none yet)"},
        query=asked[-1][0] if asked else question,
        uses=[reply for _, reply in asked],
        stop=(_INTERMEDIATE,),
        read=partial(final_answer, question=question),
        fault=_fault,
    )


def _fault(text: str) -> str:
    if follow_up(text) or final_answer(text) is not None:
        return ""
    return "it is neither a follow-up question nor the final answer"


async def _conclude(recorder: StepRecorder, asked: list[tuple[str, RecordedReply]], *uses: RecordedReply) -> Result:
    """Have the Answer agent answer from the intermediate answers, if the model states no final answer."""
    facts = ". ".join(f"{query} {_text(reply)}" for query, reply in asked) or "nothing"
    query = with_facts(facts, recorder.episode.question)
    return recorder.result(await recorder.answer(query, None, uses=[*uses, *(reply for _, reply in asked)]))


def _text(reply: RecordedReply) -> str:
    return reply.answer.text if reply.answer else ""


def spoken(reply: str) -> str:
    """Return a reply without the model's thinking."""
    return split_thinking(reply, _PAYLOAD)[1]


def follow_up(text: str) -> str:
    """Return the question that a reply asks, with or without a label; empty if it asks none."""
    text = spoken(text)
    for match in _FOLLOW_UP.finditer(text):
        if asked := (match[1] or _line_after(text, match.end())).strip(_AROUND):
            return asked
    lines = [line.strip() for line in lines_of(text) if line.strip()]
    return lines[0].strip(_AROUND) if len(lines) == 1 and lines[0].strip(_AROUND).endswith(("?", "？")) else ""


def final_answer(text: str, question: str = "") -> Answer | None:
    """Return the text after "So the final answer is", unless a follow-up question precedes it.

    Args:
        text: The reply, including the model's thinking.
        question: The question, whose form determines how the answer is cut. Empty if unknown.

    Returns:
        The answer; None if the reply states none.
    """
    text = spoken(text)
    final, asked = _FINAL.search(text), _FOLLOW_UP.search(text)
    if asked is not None and (final is None or asked.start() < final.start()):
        return None
    read = AnswerReader(query=question)
    if final is None:
        return read(text) if extracted(text) else None
    value = next(filter(None, final.groups()), "") or _line_after(text, final.end())
    line = f"{final[0]}\n{value}"
    return read(line if extracted(line) else value.strip(" \t*_`").rstrip("."))


def _line_after(text: str, place: int) -> str:
    """Return the first following line that is not blank, for a label on its own line."""
    return next((line for line in lines_of(text[place:])[:4] if line.strip()), "")


METHOD = Method(name="self-ask", answer=answer, needs_writer=True)
