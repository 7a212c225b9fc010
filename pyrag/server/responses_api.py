"""`/v1/responses`, as clients of OpenAI's API ask it: the answer as a message, progress as a reasoning summary.

Left out: `previous_response_id` and stored conversations; clients send the earlier messages in `input`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from pyrag.server.errors import ApiError, public_text
from pyrag.server.openai_api import (
    MODEL,
    ChatMessage,
    cited_text,
    failure_of,
    index_of_model,
    outcome_of,
    question_in,
)
from pyrag.server.replies import EVENT_STREAM, access_of, json_reply, until_gone
from pyrag.server.service import Accepted, Answered, QuestionService, cancel
from pyrag.server.wire import progress_of


class ResponsesRequest(BaseModel):
    """The part of OpenAI's request that is read; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(examples=[MODEL])
    input: str | list[ChatMessage] = Field(examples=["Who is Jed Hoyer?"], max_length=100_000)
    stream: bool = False
    previous_response_id: str | None = None


def add_responses_route(app: FastAPI, service: QuestionService) -> None:
    """Add the route to the application.

    Args:
        app: made by `create_app`.
        service: answers the questions.
    """

    @app.post("/v1/responses", response_model=None, summary="Answer the last message of a conversation")
    async def responses(body: ResponsesRequest, request: Request) -> Response:
        if body.previous_response_id is not None:
            message = "previous_response_id is not kept: send the earlier messages in input"
            raise ApiError(400, "unsupported_parameter", message)
        index = index_of_model(service, body.model, access_of(request))
        messages = [ChatMessage(role="user", content=body.input)] if isinstance(body.input, str) else body.input
        question, earlier = question_in(messages)
        accepted = service.accept(question, index, {}, earlier=earlier)
        shown = _Response(accepted.id, body.model, str(request.base_url).rstrip("/"))
        if body.stream:
            return StreamingResponse(_events(accepted, shown), media_type=EVENT_STREAM)
        (done,) = await until_gone(request, [accepted])
        if failure := failure_of(done.trace.error):
            raise failure
        while (event := accepted.events.get_nowait()) is not None:
            shown.summary += progress_of(event)
        return json_reply(shown.completed(done))


@dataclass(slots=True)
class _Response:
    """A response as far as it is written."""

    id: str
    model: str
    base: str
    summary: str = ""
    created: int = field(default_factory=lambda: int(time.time()))

    def object(self, status: str, output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        head = {"id": f"resp_{self.id}", "object": "response", "created_at": self.created, "model": self.model}
        fixed = {"parallel_tool_calls": False, "tool_choice": "none", "tools": [], "temperature": None, "top_p": None}
        nothing: dict[str, Any] = {
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "usage": None,
        }
        return {**head, **fixed, **nothing, "status": status, "output": output, **more}

    def reasoning(self) -> dict[str, Any]:
        return {"id": f"rs_{self.id}", "type": "reasoning", "summary": [self.summary_part()], "status": "completed"}

    def summary_part(self) -> dict[str, Any]:
        return {"type": "summary_text", "text": self.summary}

    def message(self, content: list[dict[str, Any]], status: str) -> dict[str, Any]:
        return {
            "id": f"msg_{self.id}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def text_part(self, done: Answered) -> dict[str, Any]:
        text, annotations = cited_text(done, self.base)
        flat = [{"type": one["type"], **one["url_citation"]} for one in annotations]
        return {"type": "output_text", "text": text, "annotations": flat, "logprobs": []}

    def completed(self, done: Answered) -> dict[str, Any]:
        spent = done.trace.usage
        usage = {
            "input_tokens": spent.prompt_tokens,
            "output_tokens": spent.completion_tokens,
            "total_tokens": spent.prompt_tokens + spent.completion_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        message = self.message([self.text_part(done)], "completed")
        return self.object("completed", [self.reasoning(), message], usage=usage)


async def _events(accepted: Accepted, shown: _Response) -> AsyncIterator[bytes]:
    """Yield a response as Server-Sent Events, numbered from 0."""
    number = 0

    def event(kind: str, **values: Any) -> bytes:
        nonlocal number
        data = msgspec.json.encode({"type": kind, "sequence_number": number, **values})
        number += 1
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)

    try:
        yield event("response.created", response=shown.object("in_progress", []))
        yield event("response.in_progress", response=shown.object("in_progress", []))
        place = {"item_id": f"rs_{shown.id}", "output_index": 0, "summary_index": 0}
        empty = {"id": f"rs_{shown.id}", "type": "reasoning", "summary": [], "status": "in_progress"}
        yield event("response.output_item.added", output_index=0, item=empty)
        yield event("response.reasoning_summary_part.added", **place, part=shown.summary_part())
        while (one := await accepted.events.get()) is not None:
            if said := progress_of(one):
                shown.summary += said
                yield event("response.reasoning_summary_text.delta", **place, delta=said)
        yield event("response.reasoning_summary_text.done", **place, text=shown.summary)
        yield event("response.reasoning_summary_part.done", **place, part=shown.summary_part())
        yield event("response.output_item.done", output_index=0, item=shown.reasoning())
        done, failure = outcome_of(accepted)
        if failure or done is None:
            error = {"code": "server_error", "message": public_text(str(failure))}
            yield event("response.failed", response=shown.object("failed", [shown.reasoning()], error=error))
            return
        part = shown.text_part(done)
        place = {"item_id": f"msg_{shown.id}", "output_index": 1, "content_index": 0}
        yield event("response.output_item.added", output_index=1, item=shown.message([], "in_progress"))
        yield event("response.content_part.added", **place, part={**part, "text": "", "annotations": []})
        yield event("response.output_text.delta", **place, delta=part["text"], logprobs=[])
        for position, annotation in enumerate(part["annotations"]):
            yield event(
                "response.output_text.annotation.added", **place, annotation_index=position, annotation=annotation
            )
        yield event("response.output_text.done", **place, text=part["text"], logprobs=[])
        yield event("response.content_part.done", **place, part=part)
        yield event("response.output_item.done", output_index=1, item=shown.message([part], "completed"))
        yield event("response.completed", response=shown.completed(done))
    finally:
        await cancel([accepted.task])
