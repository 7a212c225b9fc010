"""`/v1/models` and `/v1/chat/completions`, as clients of OpenAI's API ask them.

A model is `pyrag`, the default index, or `pyrag/INDEX`. The last user message is the question; those before it make it
a follow-up. System messages and sampling options are ignored. Progress comes as `reasoning_content`, as vLLM sends it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from pyrag.errors import PyRAGError
from pyrag.llm.protocol import Message
from pyrag.server.config import Access
from pyrag.server.errors import ApiError, from_pyrag
from pyrag.server.replies import EVENT_STREAM, access_of, json_reply, until_gone
from pyrag.server.service import Accepted, Answered, QuestionService, ServedIndex, cancel
from pyrag.server.wire import citations_of, progress_of
from pyrag.trace.model import Trace, TraceError

MODEL = "pyrag"
_STATUS = {"service": 502, "sandbox": 502, "deadline": 504}


class ContentPart(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """The texts of the content; images and the like are left out."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text)
        return self.content or ""


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class ChatRequest(BaseModel):
    """The part of OpenAI's request that is read; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(examples=[MODEL])
    messages: list[ChatMessage] = Field(
        min_length=1, max_length=1000, examples=[[{"role": "user", "content": "Who is Jed Hoyer?"}]]
    )
    stream: bool = False
    stream_options: StreamOptions | None = None


def add_openai_routes(app: FastAPI, service: QuestionService) -> None:
    """Add the routes to the application.

    Args:
        app: made by `create_app`.
        service: answers the questions.
    """

    @app.get("/v1/models", response_model=None, summary="List indexes as models")
    async def models(request: Request) -> Response:
        names = [name for name in service.indexes if access_of(request).allows(name)]
        ids = [MODEL, *(f"{MODEL}/{name}" for name in names)] if names else []
        listed = [{"id": one, "object": "model", "created": 0, "owned_by": "pyrag"} for one in ids]
        return json_reply({"object": "list", "data": listed})

    @app.post("/v1/chat/completions", response_model=None, summary="Answer the last message of a conversation")
    async def chat(body: ChatRequest, request: Request) -> Response:
        index = index_of_model(service, body.model, access_of(request))
        question, earlier = question_in(body.messages)
        accepted = service.accept(question, index, {}, earlier=earlier)
        base = str(request.base_url).rstrip("/")
        if body.stream:
            usage = bool(body.stream_options and body.stream_options.include_usage)
            return StreamingResponse(_chunks(accepted, body.model, base, usage=usage), media_type=EVENT_STREAM)
        (done,) = await until_gone(request, [accepted])
        return json_reply(_completion(done, body.model, base))


def question_in(messages: Sequence[ChatMessage]) -> tuple[str, list[Message]]:
    """Return the last message, which is the question, and those before it. Raises `ApiError` without a question."""
    spoken = [one for one in messages if one.role in ("user", "assistant") and one.text.strip()]
    if not spoken or spoken[-1].role != "user":
        raise ApiError(400, "no_question", "the last message must be a user's text: it is the question")
    earlier = [Message("user" if one.role == "user" else "assistant", one.text) for one in spoken[:-1]]
    return spoken[-1].text, earlier


def index_of_model(service: QuestionService, model: str, access: Access) -> ServedIndex:
    """Return the index that a model's name stands for.

    Args:
        service: has the indexes.
        model: `pyrag`, or `pyrag` with a slash and the name of an index.
        access: what the caller may use.

    Raises:
        ApiError: there is no such model, or it is not the caller's.
    """
    family, _, name = model.partition("/")
    if family != MODEL:
        raise ApiError(404, "model_not_found", f"there is no model {model!r}: GET /v1/models lists them")
    return service.index(name or None, access)


def failure_of(error: TraceError | None) -> ApiError | None:
    """Return a failure that leaves no answer to show; a program that failed is answered with `unknown`."""
    return ApiError(_STATUS[error.kind], error.kind, error.message) if error and error.kind in _STATUS else None


def outcome_of(accepted: Accepted) -> tuple[Answered | None, ApiError | None]:
    """Return what a finished question came to: an answer, or the failure to show instead."""
    try:
        done = accepted.task.result()
    except ApiError as error:
        return None, error
    except PyRAGError as error:
        return None, from_pyrag(error)
    except Exception:
        return None, ApiError(500, "internal_error", "an internal error: see the log of the server")
    return done, failure_of(done.trace.error)


def cited_text(done: Answered, base: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the answer with numbered citations, and an annotation for each number.

    Args:
        done: the question's outcome.
        base: address of this server, for passages that have none of their own.
    """
    text = done.trace.answer.text
    annotations = []
    for one in citations_of(done.trace):
        mark = f" [{one['number']}]"
        own = str(one["source"]).startswith(("http://", "https://"))
        citation = {
            "start_index": len(text) + 1,
            "end_index": len(text) + len(mark),
            "title": one["title"] or one["id"],
            "url": one["source"] if own else f"{base}/v1/traces/{done.id}#passage-{one['number']}",
        }
        annotations.append({"type": "url_citation", "url_citation": citation})
        text += mark
    return text, annotations


def _completion(done: Answered, model: str, base: str) -> dict[str, Any]:
    if failure := failure_of(done.trace.error):
        raise failure
    text, annotations = cited_text(done, base)
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": annotations}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    head = {"id": f"chatcmpl-{done.id}", "object": "chat.completion", "created": int(time.time()), "model": model}
    return {**head, "choices": [choice], "usage": _usage(done.trace)}


def _usage(trace: Trace) -> dict[str, int]:
    prompt, completion = trace.usage.prompt_tokens, trace.usage.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def _chunks(accepted: Accepted, model: str, base: str, *, usage: bool) -> AsyncIterator[bytes]:
    """Yield a completion as Server-Sent Events: progress, then the answer with its annotations."""
    head = {"id": f"chatcmpl-{accepted.id}", "object": "chat.completion.chunk", "created": int(time.time())}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data({**head, "model": model, "choices": [choice]})

    try:
        yield chunk({"role": "assistant", "content": ""})
        while (event := await accepted.events.get()) is not None:
            if said := progress_of(event):
                yield chunk({"reasoning_content": said})
        done, failure = outcome_of(accepted)
        if failure or done is None:
            yield _data(failure.body if failure else {})
            return
        text, annotations = cited_text(done, base)
        yield chunk({"content": text})
        if annotations:
            yield chunk({"annotations": annotations})
        yield chunk({}, "stop")
        if usage:
            yield _data({**head, "model": model, "choices": [], "usage": _usage(done.trace)})
        yield b"data: [DONE]\n\n"
    finally:
        await cancel([accepted.task])


def _data(value: Any) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(value)
