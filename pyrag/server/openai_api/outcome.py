"""Outcomes of questions in OpenAI's words: progress, the answer with its citations, failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pyrag.server.errors import ApiError
from pyrag.server.replies import failure_of_task
from pyrag.server.service import Accepted, Answered
from pyrag.trace.codec import citations_of
from pyrag.trace.model import Trace, TraceError

_STATUS = {"service": 502, "sandbox": 502, "deadline": 504}


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage and the place of its number in the text, in characters; `url` is empty for a file of the index."""

    number: int
    passage: str
    name: str
    title: str
    url: str
    start: int
    end: int


def cited_text(trace: Trace) -> tuple[str, list[CitedPassage]]:
    """Return the answer with the numbers of its citations behind it, and the passage of each number."""
    text = trace.answer.text
    cited = []
    for one in citations_of(trace):
        mark = f"[{one['number']}]"
        url = one["source"] if one["source"].startswith(("http://", "https://")) else ""
        name, start = one["source"] or one["title"] or one["id"], len(text) + 1
        end = start + len(mark)
        cited.append(CitedPassage(one["number"], one["id"], name, one["title"] or name, url, start, end))
        text += f" {mark}"
    return text, cited


def url_citation(cited: CitedPassage, base: str) -> dict[str, Any]:
    """Return a citation as an address, which is the only kind that chat completions have.

    Args:
        cited: the passage.
        base: address of the kept trace, for passages without an address; empty if none is kept.
    """
    own = f"{base}#passage-{cited.number}" if base else f"urn:pyrag:passage:{quote(cited.passage, safe='')}"
    place = {"start_index": cited.start, "end_index": cited.end}
    return {"type": "url_citation", **place, "title": cited.title, "url": cited.url or own}


def file_citation(cited: CitedPassage) -> dict[str, Any]:
    """Return a citation of a file of the index. Its place in the text comes on top of OpenAI's fields."""
    place = {"start_index": cited.start, "end_index": cited.end}
    file = {"file_id": cited.passage, "filename": cited.name, "index": cited.number - 1}
    return {"type": "file_citation", **file, **place}


def verdict_of(trace: Trace) -> dict[str, Any]:
    """Return the verdict on an answer, which replies have in a field `pyrag` on top of OpenAI's."""
    answer = trace.answer
    return {"known": answer.known, "confidence": answer.confidence, "weak": trace.weak, "remark": trace.remark}


def failure_of(error: TraceError | None) -> ApiError | None:
    """Return a failure that leaves no answer to show; a program that failed is answered with `unknown`."""
    return ApiError(_STATUS[error.kind], error.kind, error.message) if error and error.kind in _STATUS else None


def outcome_of(accepted: Accepted) -> Answered | ApiError:
    """Return the outcome of a finished question: an answer, or the failure to show instead."""
    if failure := failure_of_task(accepted.task):
        return failure
    done = accepted.task.result()
    return failure_of(done.trace.error) or done
