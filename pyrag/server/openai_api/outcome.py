"""Outcomes of questions in OpenAI's format: answers with citations, and failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pyrag.server.errors import ApiError
from pyrag.server.openai_api.formats import value_text
from pyrag.server.replies import failure_of_task
from pyrag.server.service import AcceptedQuestion, FinishedQuestion
from pyrag.trace.codec import citations_of
from pyrag.trace.model import Trace, TraceError

_STATUS = {"service": 502, "sandbox": 502, "deadline": 504}


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """Cited passage, and the position of its number in the text, in characters. `url` is empty without an address."""

    number: int
    passage: str
    name: str
    title: str
    url: str
    start: int
    end: int


def cited_text(trace: Trace) -> tuple[str, list[CitedPassage]]:
    """Return the answer followed by the numbers of its citations, and the passage of each number.

    A value of a requested type is JSON, which has no room for numbers, so each citation refers to the whole text.
    """
    typed = trace.returns is not None
    text = value_text(trace) if typed else trace.answer.text
    cited = []
    for citation in citations_of(trace):
        mark = f"[{citation['number']}]"
        url = citation["source"] if citation["source"].startswith(("http://", "https://")) else ""
        name, start = citation["source"] or citation["title"] or citation["id"], 0 if typed else len(text) + 1
        end = len(text) if typed else start + len(mark)
        cited.append(CitedPassage(citation["number"], citation["id"], name, citation["title"] or name, url, start, end))
        text += "" if typed else f" {mark}"
    return text, cited


def url_citation(cited: CitedPassage, base: str) -> dict[str, Any]:
    """Return a citation as a URL, which is the only form in chat completions.

    Args:
        cited: The passage.
        base: Address of the stored trace, for passages without an address; empty if the trace is not stored.
    """
    own = f"{base}#passage-{cited.number}" if base else f"urn:pyrag:passage:{quote(cited.passage, safe='')}"
    place = {"start_index": cited.start, "end_index": cited.end}
    return {"type": "url_citation", **place, "title": cited.title, "url": cited.url or own}


def file_citation(cited: CitedPassage) -> dict[str, Any]:
    """Return a citation of a file in the index. Its position in the text is an addition to OpenAI's fields."""
    place = {"start_index": cited.start, "end_index": cited.end}
    file = {"file_id": cited.passage, "filename": cited.name, "index": cited.number - 1}
    return {"type": "file_citation", **file, **place}


def verdict_of(trace: Trace) -> dict[str, Any]:
    """Return the verdict on an answer, which replies contain in the additional field `pyrag`."""
    answer = trace.answer
    return {"known": answer.known, "confidence": answer.confidence, "weak": trace.weak, "remark": trace.remark}


def failure_of(error: TraceError | None) -> ApiError | None:
    """Convert an error without an answer to a refusal. (A failed program does have an answer, `unknown`.)"""
    return ApiError(_STATUS[error.kind], error.kind, error.message) if error and error.kind in _STATUS else None


def outcome_of(accepted: AcceptedQuestion) -> FinishedQuestion | ApiError:
    """Return the outcome of a finished question: the answer, or the failure to show instead."""
    if failure := failure_of_task(accepted.task):
        return failure
    done = accepted.task.result()
    return failure_of(done.trace.error) or done
