"""The FastAPI application: routes over a `QuestionService`.

Left out: TLS and rate limits by caller (put a proxy in front).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from pyrag.errors import PyRAGError
from pyrag.retrieval.server import BadRequestError, read_request, search_all
from pyrag.server.errors import ApiError, from_pyrag, public_text
from pyrag.server.guard import Guard
from pyrag.server.mcp.http import mounted
from pyrag.server.metrics import CONTENT_TYPE
from pyrag.server.openai_api import add_openai_routes
from pyrag.server.page import add_page
from pyrag.server.replies import EVENT_STREAM, access_of, json_reply, until_gone, wait_for
from pyrag.server.responses_api import add_responses_route
from pyrag.server.schemas import (
    RETRIEVE_SCHEMA,
    AskReply,
    AskRequest,
    BatchReply,
    BatchRequest,
    ErrorReply,
    TraceList,
)
from pyrag.server.service import Accepted, Answered, QuestionService, cancel
from pyrag.server.wire import answer_object

HEARTBEAT = 15.0  # seconds between signs of life in a stream
MAX_LISTED = 200
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply} for status in (400, 401, 403, 404, 408, 413, 429, 503)
}


def create_app(service: QuestionService) -> FastAPI:
    """Return the application. Its lifespan starts and closes the service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            await service.start()
            async with mounted(app, service):
                yield
        finally:
            await service.aclose()

    app = FastAPI(
        title="pyrag",
        summary="Multi-hop questions answered by programs over retrieve() and answer().",
        docs_url=None,  # its page loads scripts of another site
        redoc_url=None,
        lifespan=lifespan,
        responses=_REFUSALS,
    )
    _add_errors(app)
    _add_questions(app, service)
    _add_passages(app, service)
    _add_traces(app, service)
    _add_state(app, service)
    add_openai_routes(app, service)
    add_responses_route(app, service)
    add_page(app, service)
    app.add_middleware(Guard, service=service)
    return app


def _add_errors(app: FastAPI) -> None:
    def refused(error: ApiError, request: Request) -> Response:
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
        flat = request.url.path == "/retrieve"  # whose protocol has a sentence there
        return json_reply({"error": public_text(str(error))} if flat else error.body, error.status, headers)

    async def api_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return refused(error, request)

    async def pyrag_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, PyRAGError)
        return refused(from_pyrag(error), request)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return refused(ApiError(400, "invalid_request", f"{place or 'the body'}: {first['msg']}"), request)

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = f"{error.detail} ({request.method} {request.url.path}): GET /openapi.json lists what there is"
        return refused(ApiError(error.status_code, "http_error", message), request)

    async def internal(request: Request, error: Exception) -> Response:
        return refused(ApiError(500, "internal_error", "internal error: see the log of the server"), request)

    for kind, handler in (
        (ApiError, api_error),
        (PyRAGError, pyrag_error),
        (RequestValidationError, invalid),
        (HTTPException, http_error),
        (Exception, internal),
    ):
        app.add_exception_handler(kind, handler)


def _add_questions(app: FastAPI, service: QuestionService) -> None:
    streams: dict[int | str, dict[str, Any]] = {200: {"model": AskReply, "content": {EVENT_STREAM: {}}}}

    @app.post("/v1/ask", response_model=None, responses=streams, summary="Answer a question")
    async def ask(body: AskRequest, request: Request) -> Response:
        index = service.index(body.index, access_of(request))
        accepted = service.accept(body.question, index, body.limits(), body.method)
        if body.stream or EVENT_STREAM in request.headers.get("accept", ""):
            stream = _events(accepted, whole=body.include_trace)
            return StreamingResponse(stream, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})
        (done,) = await until_gone(request, [accepted])
        return json_reply(_reply(done, whole=body.include_trace))

    @app.post(
        "/v1/ask/batch", response_model=None, responses={200: {"model": BatchReply}}, summary="Answer many questions"
    )
    async def ask_batch(body: BatchRequest, request: Request) -> Response:
        if len(body.questions) > service.config.max_batch:
            message = f"{len(body.questions)} questions at once: send at most {service.config.max_batch}"
            raise ApiError(400, "too_many_questions", message)
        index = service.index(body.index, access_of(request))
        service.admit(len(body.questions))
        accepted: list[Accepted] = []
        try:
            for question in body.questions:
                one = service.accept(question, index, body.limits(), body.method)
                accepted.append(one)
        except BaseException:
            await cancel([one.task for one in accepted])
            raise
        done = await until_gone(request, accepted)
        return json_reply({"results": [_reply(one, whole=body.include_trace) for one in done]})


def _add_passages(app: FastAPI, service: QuestionService) -> None:
    extra = {"requestBody": {"required": True, "content": {"application/json": {"schema": RETRIEVE_SCHEMA}}}}

    @app.post("/retrieve", response_model=None, openapi_extra=extra, summary="Search, by Search-R1's protocol")
    async def retrieve(request: Request, index: str | None = None) -> Response:
        served = service.index(index, access_of(request))
        try:
            wanted = read_request(await request.body())
        except BadRequestError as error:
            raise ApiError(400, "invalid_request", str(error)) from None
        searching = asyncio.create_task(search_all(served.retriever, wanted, service.search_slots))
        await wait_for(request, [searching])
        return json_reply({"result": searching.result()})


def _add_traces(app: FastAPI, service: QuestionService) -> None:
    @app.get("/v1/traces", response_model=None, responses={200: {"model": TraceList}}, summary="List kept traces")
    async def traces(request: Request, limit: int = 50, before: int | None = None) -> Response:
        if not 1 <= limit <= MAX_LISTED or not abs(before or 0) < 1 << 62:
            raise ApiError(400, "invalid_request", f"limit must be 1 to {MAX_LISTED}, and before a number of a trace")
        names = [name for name in service.indexes if access_of(request).allows(name)]
        found = await asyncio.to_thread(service.store.newest, names, limit, before)
        return json_reply({"traces": [asdict(one) for one in found]})

    @app.get("/v1/traces/{key}", response_model=None, summary="Return a kept trace")
    async def trace(key: str, request: Request) -> Response:
        found = await asyncio.to_thread(service.store.get, key.encode("utf-8", "replace").decode())
        if found is None or not access_of(request).allows(found[0]):
            raise ApiError(404, "unknown_trace", "there is no such trace: only the newest are kept")
        return json_reply(found[1])


def _add_state(app: FastAPI, service: QuestionService) -> None:
    @app.get("/healthz", response_model=None, summary="Say that the process runs")
    async def healthz() -> Response:
        return json_reply({"status": "ok"})

    @app.get("/readyz", response_model=None, summary="Say whether questions are taken")
    async def readyz() -> Response:
        return json_reply({"status": "ok"} if service.ready else {"status": "starting"}, 200 if service.ready else 503)

    @app.get("/metrics", response_model=None, summary="Counters for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.text(service.gauges), headers={"Content-Type": CONTENT_TYPE})


async def _events(accepted: Accepted, *, whole: bool) -> AsyncIterator[bytes]:
    """Yield a question's events, and its reply as the last one, as Server-Sent Events."""
    try:
        yield _event("accepted", {"id": accepted.id})
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    event = await accepted.events.get()
            except TimeoutError:
                yield b": still working\n\n"
                continue
            if event is None:
                break
            yield _event(event["event"], event)
        try:
            yield _event("reply", _reply(accepted.task.result(), whole=whole))
        except (ApiError, PyRAGError) as error:
            yield _event("error", (error if isinstance(error, ApiError) else from_pyrag(error)).body)
        except Exception:
            yield _event("error", ApiError(500, "internal_error", "an internal error").body)
    finally:
        await cancel([accepted.task])


def _event(name: str, value: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))


def _reply(done: Answered, *, whole: bool) -> dict[str, Any]:
    return answer_object(done.id, done.index, done.trace, whole=whole)
