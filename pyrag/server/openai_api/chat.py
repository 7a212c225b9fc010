"""Routes `/v1/models` and `/v1/chat/completions` of OpenAI's API.

The model is `pyrag` for the default index, or `pyrag/INDEX`. Progress is sent as `reasoning_content`, as vLLM does.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from msgspec import Meta
from pydantic import BaseModel

from pyrag.server.bodies import MAX_NAME, body_of, read_request
from pyrag.server.config import Access
from pyrag.server.errors import ApiError
from pyrag.server.openai_api.conversation import (
    MAX_MESSAGES,
    MODEL,
    ChatMessage,
    index_of_model,
    models_of,
    question_in,
    refuse,
)
from pyrag.server.openai_api.formats import contract_of_format, refusal_of
from pyrag.server.openai_api.outcome import cited_text, failure_of, outcome_of, url_citation, verdict_of
from pyrag.server.replies import STILL_WORKING, access_of, heard, json_reply, until_gone
from pyrag.server.schemas import EVENT_STREAM, ModelLine, ModelList, streamed
from pyrag.server.service import AcceptedQuestion, Dialogue, FinishedQuestion, QuestionService, cancel
from pyrag.server.wire import progress_of
from pyrag.trace.model import Trace

_STREAM = """data: {"object":"chat.completion.chunk","choices":[{"delta":{"reasoning_content":"retrieve: …"}, …}]}

data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"Uppsala [1]"}, …}]}

data: [DONE]
"""
_EVENTS = "With `stream`, chunks as OpenAI sends them; an `error` object ends a stream that fails."


class StreamOptions(msgspec.Struct):
    include_usage: Annotated[bool | None, Meta(description="Send a last chunk with the usage.")] = False


class ChatRequest(msgspec.Struct, kw_only=True):
    """Request in OpenAI's format. Sampling options, `tools` and system messages are ignored. Values that change the
    form of the reply are refused: `n` above 1, `logprobs`, `modalities` other than text, and a `tool_choice` that
    forces a call.
    """

    model: Annotated[str, Meta(max_length=MAX_NAME, examples=[MODEL])]
    messages: Annotated[
        list[ChatMessage],
        Meta(
            min_length=1, max_length=MAX_MESSAGES, examples=[[{"role": "user", "content": "When was Jed Hoyer born?"}]]
        ),
    ]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    store: Annotated[bool | None, Meta(description="False keeps no trace.")] = True
    n: Any = None
    logprobs: Any = None
    response_format: Any = None
    modalities: Any = None
    audio: Any = None
    function_call: Any = None
    tool_choice: Any = None

    def check(self) -> None:
        """Raise `ApiError` for options that would change the form of the reply."""
        refuse("n", self.n, 1)
        refuse("logprobs", self.logprobs, False)
        refuse("modalities", self.modalities, ["text"])
        refuse("audio", self.audio)
        refuse("function_call", self.function_call, "auto", "none")
        refuse("tool_choice", self.tool_choice, "auto", "none")


class ChatCompletionReply(BaseModel):
    """Reply in OpenAI's format. Each message has `annotations` of the type `url_citation`, and a field `pyrag` with
    `known`, `confidence`, `weak` and `remark`.
    """

    id: str
    object: str
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any]


def add_chat_routes(app: FastAPI, service: QuestionService) -> None:
    """Add the routes of chat completions and models.

    Args:
        app: Application made by `create_app`.
        service: Service that answers the questions.
    """

    @app.get(
        "/v1/models", response_model=None, responses={200: {"model": ModelList}}, summary="List indexes as models",
        tags=["openai"],
    )  # fmt: skip
    async def models(request: Request) -> Response:
        listed = [_model(name) for name in models_of(service, access_of(request))]
        return json_reply({"object": "list", "data": listed})

    @app.get(
        "/v1/models/{model:path}", response_model=None, responses={200: {"model": ModelLine}}, summary="Name a model",
        tags=["openai"],
    )  # fmt: skip
    async def model(model: str, request: Request) -> Response:
        index_of_model(service, model, access_of(request))
        return json_reply(_model(model))

    @app.post(
        "/v1/chat/completions", response_model=None, summary="Answer the last message of a conversation",
        responses=streamed(ChatCompletionReply, _STREAM, _EVENTS), tags=["openai"], openapi_extra=body_of(ChatRequest),
    )  # fmt: skip
    async def chat(request: Request) -> Response:
        body = await read_request(request, ChatRequest)
        body.check()
        access: Access = access_of(request)
        index = index_of_model(service, body.model, access)
        question, earlier = question_in(body.messages, "messages")
        dialogue = Dialogue(earlier, access.owner, keep=body.store is not False)
        returns = contract_of_format(body.response_format, "response_format")
        accepted = service.accept(question, index, {}, dialogue=dialogue, watched=bool(body.stream), returns=returns)
        base = f"{str(request.base_url).rstrip('/')}/v1/traces/{accepted.id}" if dialogue.keep else ""
        if body.stream:
            usage = bool(body.stream_options and body.stream_options.include_usage)
            chunks = _chunks(accepted, body.model, base, usage=usage)
            return StreamingResponse(chunks, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})
        (done,) = await until_gone(request, [accepted.task])
        return json_reply(_completion(done, body.model, base))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "pyrag"}


def _completion(done: FinishedQuestion, model: str, base: str) -> dict[str, Any]:
    if failure := failure_of(done.trace.error):
        raise failure
    content = {"role": "assistant", **_content(done.trace, base)}
    message = {**content, "pyrag": verdict_of(done.trace)}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    head = {"id": f"chatcmpl-{done.id}", "object": "chat.completion", "created": int(time.time()), "model": model}
    return {**head, "choices": [choice], "usage": _usage(done.trace)}


def _content(trace: Trace, base: str) -> dict[str, Any]:
    """Return the fields of a message that contain the answer, or the reason why there is no value."""
    if refusal := refusal_of(trace):
        return {"content": None, "refusal": refusal, "annotations": []}
    text, cited = cited_text(trace)
    flat = [url_citation(passage, base) for passage in cited]
    annotations = [{"type": annotation.pop("type"), "url_citation": annotation} for annotation in flat]
    return {"content": text, "refusal": None, "annotations": annotations}


def _usage(trace: Trace) -> dict[str, Any]:
    prompt, completion = trace.usage.prompt_tokens, trace.usage.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


async def _chunks(accepted: AcceptedQuestion, model: str, base: str, *, usage: bool) -> AsyncIterator[bytes]:
    """Yield a completion as Server-Sent Events: progress, then the answer and its annotations."""
    head = {"id": f"chatcmpl-{accepted.id}", "object": "chat.completion.chunk", "created": int(time.time())}
    unused = {"usage": None} if usage else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data({**head, "model": model, "choices": [choice], **unused})

    try:
        yield chunk({"role": "assistant", "content": ""})
        async for happened in heard(accepted.events):
            if progress := "".join(map(progress_of, happened)):
                yield chunk({"reasoning_content": progress})
            elif not happened:
                yield STILL_WORKING
        done = outcome_of(accepted)
        if isinstance(done, ApiError):
            yield _data(done.body)
            return
        for name, value in _content(done.trace, base).items():
            if value:
                yield chunk({name: value})
        yield chunk({"pyrag": verdict_of(done.trace)})
        yield chunk({}, "stop")
        if usage:
            yield _data({**head, "model": model, "choices": [], "usage": _usage(done.trace)})
        yield b"data: [DONE]\n\n"
    finally:
        await cancel([accepted.task])


def _data(value: Any) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(value)
