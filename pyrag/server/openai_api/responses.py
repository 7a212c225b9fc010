"""Route `/v1/responses` of OpenAI's API: the answer as a message, progress as a reasoning summary.

Responses can be read, deleted and continued (`previous_response_id`) as long as their traces are stored. Input items of
a response and conversations as separate objects are not supported.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from msgspec import Meta
from pydantic import BaseModel, ConfigDict

from pyrag.llm.protocol import Message
from pyrag.server.bodies import MAX_NAME, body_of, read_request
from pyrag.server.errors import ApiError
from pyrag.server.openai_api.conversation import (
    MAX_MESSAGES,
    MAX_TURNS,
    MODEL,
    ChatMessage,
    index_of_model,
    question_in,
    refuse,
)
from pyrag.server.openai_api.formats import contract_of_format, refusal_of
from pyrag.server.openai_api.outcome import (
    cited_text,
    failure_of,
    file_citation,
    outcome_of,
    url_citation,
    verdict_of,
)
from pyrag.server.replies import STILL_WORKING, access_of, heard, json_reply, until_gone
from pyrag.server.schemas import EVENT_STREAM, streamed
from pyrag.server.service import AcceptedQuestion, Dialogue, FinishedQuestion, QuestionService, cancel
from pyrag.server.wire import progress_of

_ID = "resp_"
_STREAM = """event: response.created
data: {"type":"response.created","sequence_number":0,"response":{…}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","sequence_number":4,"delta":"retrieve: film Alpha\\n", …}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":10,"delta":"Uppsala [1]", …}
"""
_EVENTS = "With `stream`, OpenAI's events, from `response.created` to `response.completed` or `response.failed`."


_MetadataName = Annotated[str, Meta(max_length=64)]
_MetadataText = Annotated[str, Meta(max_length=512)]


class TextOptions(msgspec.Struct):
    format: Any = None


class ResponsesRequest(msgspec.Struct, kw_only=True):
    """Request in OpenAI's format. Sampling options, `tools`, `reasoning`, `include` and `instructions` are ignored;
    `background`, `conversation`, `prompt` and a `tool_choice` that forces a call are refused.
    """

    model: Annotated[str, Meta(max_length=MAX_NAME, examples=[MODEL])]
    input: Annotated[str | list[ChatMessage], Meta(examples=["When was Jed Hoyer born?"])]
    stream: bool | None = False
    previous_response_id: Annotated[
        Annotated[str, Meta(max_length=MAX_NAME)] | None,
        Meta(description="A kept response of the same key to continue."),
    ] = None
    store: Annotated[bool | None, Meta(description="False keeps no trace, and no response to continue.")] = True
    instructions: str | list[Any] | None = None
    metadata: Annotated[
        Annotated[dict[_MetadataName, _MetadataText], Meta(max_length=16)] | None,
        Meta(description="At most 16 texts of 512 characters, under names of 64; returned with the response."),
    ] = None
    text: TextOptions | None = None
    background: Any = None
    conversation: Any = None
    prompt: Any = None
    top_logprobs: Any = None
    tool_choice: Any = None

    def check(self) -> None:
        """Raise `ApiError` for options that would change the form of the reply."""
        refuse("background", self.background, False)
        refuse("conversation", self.conversation)
        refuse("prompt", self.prompt)
        refuse("top_logprobs", self.top_logprobs, 0)
        refuse("tool_choice", self.tool_choice, "auto", "none")
        if isinstance(self.input, list) and not 0 < len(self.input) <= MAX_MESSAGES:
            raise ApiError(400, "invalid_request", f"input: send 1 to {MAX_MESSAGES} messages", param="input")

    @property
    def format(self) -> Any:
        """The format of the text; None for plain text."""
        return self.text and self.text.format


class ResponsesReply(BaseModel):
    """OpenAI's response. Citations are `file_citation` for files of the index and `url_citation` for addresses.

    A completed response has a field `pyrag` with `known`, `confidence`, `weak` and `remark`.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    object: str
    created_at: int
    model: str
    status: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None


class DeletedResponse(BaseModel):
    """Confirmation that a response and its trace were deleted."""

    id: str
    object: str = "response"
    deleted: bool = True


def add_responses_routes(app: FastAPI, service: QuestionService) -> None:
    """Add the routes for responses.

    Args:
        app: Application made by `create_app`.
        service: Service that answers the questions.
    """

    @app.post(
        "/v1/responses", response_model=None, summary="Answer the last message of a conversation",
        responses=streamed(ResponsesReply, _STREAM, _EVENTS), tags=["openai"], openapi_extra=body_of(ResponsesRequest),
    )  # fmt: skip
    async def responses(request: Request) -> Response:
        body = await read_request(request, ResponsesRequest)
        body.check()
        access = access_of(request)
        index = index_of_model(service, body.model, access)
        messages = [ChatMessage(role="user", content=body.input)] if isinstance(body.input, str) else body.input
        question, earlier = question_in(messages, "input")
        if body.previous_response_id is not None:
            earlier = (*await _turns(service, body.previous_response_id, access.owner), *earlier)
        dialogue = Dialogue(earlier[-MAX_TURNS:], access.owner, keep=body.store is not False)
        returns = contract_of_format(body.format, "text.format")
        accepted = service.accept(question, index, {}, dialogue=dialogue, returns=returns)
        base = f"{str(request.base_url).rstrip('/')}/v1/traces/{accepted.id}" if dialogue.keep else ""
        shown = _Response(accepted.id, body, base)
        if body.stream:
            headers = {"Cache-Control": "no-store"}
            events = _events(accepted, shown, service)
            return StreamingResponse(events, media_type=EVENT_STREAM, headers=headers)
        (done,) = await until_gone(request, [accepted.task])
        if failure := failure_of(done.trace.error):
            raise failure
        while (event := accepted.events.get_nowait()) is not None:
            shown.summary += progress_of(event)
        reply = shown.completed(done)
        await shown.keep(reply, service)
        return json_reply(reply)

    _add_kept_responses(app, service)


def _add_kept_responses(app: FastAPI, service: QuestionService) -> None:
    @app.get(
        "/v1/responses/{response_id}", response_model=None, responses={200: {"model": ResponsesReply}},
        summary="Return a kept response", tags=["openai"],
    )  # fmt: skip
    async def response(
        response_id: Annotated[str, Path(description="Of a response of the same key, made without `store: false`.")],
        request: Request,
        stream: Annotated[bool, Query(description="Refused: a kept response is complete.")] = False,
    ) -> Response:
        refuse("stream", stream, False)
        access = access_of(request)
        reply = await service.store.response(_key_of(response_id), access.owner, service.scopes(access))
        if reply is None:
            raise _no_response(response_id)
        return Response(reply, media_type="application/json")

    @app.delete(
        "/v1/responses/{response_id}", response_model=None, responses={200: {"model": DeletedResponse}},
        summary="Delete a kept response and its trace", tags=["openai"],
    )  # fmt: skip
    async def delete_response(response_id: str, request: Request) -> Response:
        access = access_of(request)
        if not await service.store.delete_response(_key_of(response_id), access.owner, service.scopes(access)):
            raise _no_response(response_id)
        return json_reply(DeletedResponse(id=response_id).model_dump())


def _key_of(response: str) -> str:
    """Return the id of a response's trace; empty if the text is not the id of a response."""
    return response.removeprefix(_ID) if response.startswith(_ID) else ""


def _no_response(response: str) -> ApiError:
    message = f"there is no response {response[:80]!r}: it was not stored, is kept no more, or is another caller's"
    return ApiError(404, "response_not_found", message, param="response_id")


async def _turns(service: QuestionService, previous: str, owner: str) -> list[Message]:
    turns = await service.store.turns(previous.removeprefix(_ID), owner)
    if turns is None:
        message = f"there is no response {previous[:80]!r}: it was not stored, is kept no more, or is another caller's"
        raise ApiError(400, "previous_response_not_found", message, param="previous_response_id")
    return turns


@dataclass(slots=True)
class _Response:
    """Response in progress."""

    id: str
    request: ResponsesRequest
    base: str
    summary: str = ""
    created: int = field(default_factory=lambda: int(time.time()))

    def object(self, status: str, output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        asked = self.request
        return {
            "id": f"{_ID}{self.id}",
            "object": "response",
            "created_at": self.created,
            "model": asked.model,
            "status": status,
            "output": output,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": asked.instructions,
            "max_output_tokens": None,
            "metadata": asked.metadata or {},
            "parallel_tool_calls": False,
            "previous_response_id": asked.previous_response_id,
            "reasoning": {"effort": None, "summary": None},
            "store": asked.store is not False,
            "temperature": None,
            "text": {"format": asked.format or {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None,
            **more,
        }

    async def keep(self, reply: dict[str, Any], service: QuestionService) -> None:
        """Keep a reply for later requests, unless this request has `store: false`."""
        if self.request.store is not False:
            await service.keep_response(self.id, msgspec.json.encode(reply))

    def reasoning(self, status: str = "completed") -> dict[str, Any]:
        summary = [self.summary_part()] if status == "completed" else []
        return {"id": f"rs_{self.id}", "type": "reasoning", "summary": summary, "status": status}

    def summary_part(self) -> dict[str, Any]:
        return {"type": "summary_text", "text": self.summary}

    def message(self, content: list[dict[str, Any]], status: str) -> dict[str, Any]:
        head = {"id": f"msg_{self.id}", "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": content}

    def part(self, done: FinishedQuestion) -> dict[str, Any]:
        """Return the message part: the text, or the reason why there is no value of the requested type."""
        if refusal := refusal_of(done.trace):
            return {"type": "refusal", "refusal": refusal}
        text, cited = cited_text(done.trace)
        annotations = [url_citation(passage, self.base) if passage.url else file_citation(passage) for passage in cited]
        return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}

    def completed(self, done: FinishedQuestion) -> dict[str, Any]:
        spent = done.trace.usage
        usage = {
            "input_tokens": spent.prompt_tokens,
            "output_tokens": spent.completion_tokens,
            "total_tokens": spent.prompt_tokens + spent.completion_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        message = self.message([self.part(done)], "completed")
        return self.object("completed", [self.reasoning(), message], usage=usage, pyrag=verdict_of(done.trace))


@dataclass(slots=True)
class _EventStream:
    """Events of a stream, numbered from 0."""

    number: int = 0

    def __call__(self, kind: str, **values: Any) -> bytes:
        data = msgspec.json.encode({"type": kind, "sequence_number": self.number, **values})
        self.number += 1
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)


async def _events(accepted: AcceptedQuestion, shown: _Response, service: QuestionService) -> AsyncIterator[bytes]:
    """Yield a response as Server-Sent Events, in OpenAI's order."""
    event = _EventStream()
    try:
        yield event("response.created", response=shown.object("in_progress", []))
        yield event("response.in_progress", response=shown.object("in_progress", []))
        place = {"item_id": f"rs_{shown.id}", "output_index": 0, "summary_index": 0}
        yield event("response.output_item.added", output_index=0, item=shown.reasoning("in_progress"))
        yield event("response.reasoning_summary_part.added", **place, part=shown.summary_part())
        async for happened in heard(accepted.events):
            if progress := "".join(map(progress_of, happened)):
                shown.summary += progress
                yield event("response.reasoning_summary_text.delta", **place, delta=progress)
            elif not happened:
                yield STILL_WORKING
        yield event("response.reasoning_summary_text.done", **place, text=shown.summary)
        yield event("response.reasoning_summary_part.done", **place, part=shown.summary_part())
        yield event("response.output_item.done", output_index=0, item=shown.reasoning())
        done = outcome_of(accepted)
        if isinstance(done, ApiError):
            error = {"code": "server_error", "message": done.sentence}
            reply = shown.object("failed", [shown.reasoning()], error=error)
            await shown.keep(reply, service)
            yield event("response.failed", response=reply)
            return
        for chunk in _message_events(event, shown, done):
            yield chunk
        reply = shown.completed(done)
        await shown.keep(reply, service)
        yield event("response.completed", response=reply)
    finally:
        await cancel([accepted.task])


def _message_events(event: _EventStream, shown: _Response, done: FinishedQuestion) -> list[bytes]:
    part = shown.part(done)
    place = {"item_id": f"msg_{shown.id}", "output_index": 1, "content_index": 0}
    return [
        event("response.output_item.added", output_index=1, item=shown.message([], "in_progress")),
        *(_text_events if part["type"] == "output_text" else _refusal_events)(event, part, place),
        event("response.content_part.done", **place, part=part),
        event("response.output_item.done", output_index=1, item=shown.message([part], "completed")),
    ]


def _text_events(event: _EventStream, part: dict[str, Any], place: dict[str, Any]) -> list[bytes]:
    return [
        event("response.content_part.added", **place, part={**part, "text": "", "annotations": []}),
        event("response.output_text.delta", **place, delta=part["text"], logprobs=[]),
        *(
            event("response.output_text.annotation.added", **place, annotation_index=position, annotation=annotation)
            for position, annotation in enumerate(part["annotations"])
        ),
        event("response.output_text.done", **place, text=part["text"], logprobs=[]),
    ]


def _refusal_events(event: _EventStream, part: dict[str, Any], place: dict[str, Any]) -> list[bytes]:
    return [
        event("response.content_part.added", **place, part={**part, "refusal": ""}),
        event("response.refusal.delta", **place, delta=part["refusal"]),
        event("response.refusal.done", **place, refusal=part["refusal"]),
    ]
