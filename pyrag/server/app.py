"""FastAPI applications: all routes over a `QuestionService`, or only the search routes over a `SearchService`.

TLS and rate limits per caller are left to a proxy in front of the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

import pyrag_runtime
from pyrag.errors import PyRAGError
from pyrag.methods.own_program import OwnProgram
from pyrag.server.bodies import body_of, contract_in, described_body, read_request, read_value, schemas_of
from pyrag.server.documents.routes import DocumentsRequest, add_document_routes
from pyrag.server.errors import ApiError, from_pyrag, public_text
from pyrag.server.explain.routes import add_explain_route
from pyrag.server.guard import Guard
from pyrag.server.mcp.http import mounted
from pyrag.server.metrics import CONTENT_TYPE
from pyrag.server.openai_api.chat import ChatRequest, add_chat_routes
from pyrag.server.openai_api.responses import ResponsesRequest, add_responses_routes
from pyrag.server.page import add_page
from pyrag.server.replies import STILL_WORKING, access_of, failure_of_task, heard, json_reply, until_gone
from pyrag.server.schemas import (
    EVENT_STREAM,
    HEALTH_REPLY,
    RETRIEVE_REPLY,
    RETRIEVE_SCHEMA,
    AskReply,
    AskRequest,
    BatchReply,
    BatchRequest,
    ExplainRequest,
    ProgramReply,
    ProgramRequest,
    StateReply,
    TraceList,
    TraceReply,
    refusals,
    streamed,
)
from pyrag.server.search import SearchService
from pyrag.server.service import AcceptedQuestion, FinishedQuestion, QuestionService, cancel
from pyrag.server.trace_store import TraceFilter
from pyrag.server.wire import answer_object

MAX_LISTED = 200
MAX_NUMBER = 1 << 53  # largest trace number in a query; JSON integers are exact up to here
BODIES = (
    AskRequest,
    BatchRequest,
    ProgramRequest,
    ExplainRequest,
    ChatRequest,
    ResponsesRequest,
    DocumentsRequest,
)
"""Bodies of requests, for the OpenAPI document."""

_STREAM = """event: accepted
data: {"id":"0f3c…"}

event: step_started
data: {"event":"step_started","at":0.031,"step":0,"primitive":"retrieve","query":"film Alpha"}

event: reply
data: {"id":"0f3c…","answer":"Uppsala","known":true, …}
"""
_EVENTS = (
    "With `stream` or `Accept: text/event-stream`: `accepted` with the id, then each event of the trace as it happens "
    "with `at`, its seconds since the question was accepted, and at the end `reply` with the answer, or `error`."
)


def create_app(service: QuestionService) -> FastAPI:
    """Return the application of `pyrag serve`. Its lifespan starts and closes the service."""
    app = _application(service)
    _add_questions(app, service)
    _add_traces(app, service)
    add_chat_routes(app, service)
    add_responses_routes(app, service)
    add_explain_route(app, service)
    add_document_routes(app, service)
    add_page(app, service)
    return app


def create_search_app(service: SearchService) -> FastAPI:
    """Return the application of `pyrag serve-retriever`. Its lifespan starts and closes the service."""
    return _application(service)


def _application(service: SearchService) -> FastAPI:
    """Return an application with the routes of both servers: search, state and error replies, behind the guard."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            await service.start()
            async with mounted(app, service) if isinstance(service, QuestionService) else nullcontext():
                yield
        finally:
            await service.aclose()

    app = FastAPI(
        title="pyrag",
        version=pyrag_runtime.version(),
        summary="Multi-hop questions answered by programs over retrieve() and answer().",
        docs_url=None,  # the default page loads scripts from another site
        redoc_url=None,
        lifespan=lifespan,
        responses=refusals(),
    )
    vars(app)["openapi"] = _document_of(app, service)
    _add_errors(app, service)
    _add_passages(app, service)
    _add_state(app, service)
    app.add_middleware(Guard, service=service)
    return app


def _document_of(app: FastAPI, service: SearchService) -> Callable[[], dict[str, Any]]:
    @cache
    def document() -> dict[str, Any]:
        described: dict[str, Any] = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes, tags=app.openapi_tags
        )
        for operations in described["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)  # invalid requests get 400, in the form of all refusals
        for name in ("HTTPValidationError", "ValidationError"):
            described["components"]["schemas"].pop(name, None)
        if isinstance(service, QuestionService):
            described["components"]["schemas"] |= schemas_of(*BODIES)
        described["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        keyed: list[dict[str, list[str]]] = [{"bearer": []}, {"key": []}]
        described["security"] = keyed if service.config.keys else [{}, *keyed]
        return described

    return document


def _add_errors(app: FastAPI, service: SearchService) -> None:
    def refused(error: ApiError, request: Request) -> Response:
        service.metrics.refused(error.code)
        return json_reply(error.body_at(request.url.path), error.status, error.headers)

    async def api_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return refused(error, request)

    async def pyrag_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, PyRAGError)
        return refused(from_pyrag(error), request)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return refused(_invalid(error.errors()[0]), request)

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = f"{error.detail} ({request.method} {request.url.path}): GET /openapi.json lists what there is"
        reply = refused(ApiError(error.status_code, "http_error", message), request)
        reply.headers.update(error.headers or {})
        if error.status_code == 405:
            reply.headers["Allow"] = ", ".join(sorted(_methods_of(app, request)))
        return reply

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


def _methods_of(app: FastAPI, request: Request) -> set[str]:
    """Return the methods that all routes of a path accept. Starlette only reports the first route's methods."""
    matching = (route for route in app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in matching for method in getattr(route, "methods", None) or ()}


def _invalid(problem: dict[str, Any]) -> ApiError:
    """Return the refusal of a query string that failed pydantic's validation."""
    place = ".".join(str(part) for part in problem["loc"] if part not in ("body", "query", "path"))
    return ApiError(400, "invalid_request", f"{place or 'the body'}: {problem['msg']}", param=place or None)


def _add_questions(app: FastAPI, service: QuestionService) -> None:
    @app.post(
        "/v1/ask", response_model=None, responses=streamed(AskReply, _STREAM, _EVENTS), summary="Answer a question",
        tags=["questions"], openapi_extra=body_of(AskRequest),
    )  # fmt: skip
    async def ask(request: Request) -> Response:
        body = await read_request(request, AskRequest)
        index = service.index(body.index, access_of(request), body.where)
        stream = body.stream or EVENT_STREAM in request.headers.get("accept", "")
        returns = contract_in(body.returns, "returns")
        accepted = service.accept(body.question, index, body.limits(), body.method, watched=stream, returns=returns)
        return await _replied(request, accepted, stream=stream, whole=body.include_trace)

    @app.post(
        "/v1/programs", response_model=None, responses=streamed(ProgramReply, _STREAM, _EVENTS),
        summary="Run a program of your own", tags=["questions"], openapi_extra=body_of(ProgramRequest),
    )  # fmt: skip
    async def run_program(request: Request) -> Response:
        body = await read_request(request, ProgramRequest)
        index = service.index(body.index, access_of(request), body.where)
        program = OwnProgram(body.source, body.inputs)
        stream = body.stream or EVENT_STREAM in request.headers.get("accept", "")
        returns = contract_in(body.returns, "returns")
        accepted = service.accept(program, index, body.limits(), watched=stream, returns=returns)
        return await _replied(request, accepted, stream=stream, whole=body.include_trace)

    @app.post(
        "/v1/ask/batch", response_model=None, responses={200: {"model": BatchReply}}, summary="Answer many questions",
        tags=["questions"], openapi_extra=body_of(BatchRequest),
    )  # fmt: skip
    async def ask_batch(request: Request) -> Response:
        body = await read_request(request, BatchRequest)
        if len(body.questions) > service.config.max_batch:
            message = f"{len(body.questions)} questions at once: send at most {service.config.max_batch}"
            raise ApiError(400, "too_many_questions", message, param="questions")
        index = service.index(body.index, access_of(request), body.where)
        returns = contract_in(body.returns, "returns")
        service.admit(len(body.questions))
        tasks: list[asyncio.Task[FinishedQuestion]] = []
        try:
            for question in body.questions:
                accepted = service.accept(question, index, body.limits(), body.method, watched=False, returns=returns)
                tasks.append(accepted.task)
        except BaseException:
            await cancel(tasks)
            raise
        done = await until_gone(request, tasks)
        return json_reply({"results": [_reply(answered, whole=body.include_trace) for answered in done]})


def _add_traces(app: FastAPI, service: QuestionService) -> None:
    @app.get(
        "/v1/traces", response_model=None, responses={200: {"model": TraceList}}, summary="List kept traces",
        tags=["traces"],
    )  # fmt: skip
    async def traces(
        request: Request,
        limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 50,
        before: Annotated[int | None, Query(ge=0, le=MAX_NUMBER, description="`next` of the page before.")] = None,
        index: str | None = None,
        since: Annotated[datetime | float | None, Query(description="Seconds of the epoch, or ISO 8601.")] = None,
        until: Annotated[datetime | float | None, Query(description="Seconds of the epoch, or ISO 8601.")] = None,
        known: bool | None = None,
    ) -> Response:
        access = access_of(request)
        names = service.scopes(access) if index is None else [access.scope(service.named(index, access))]
        wanted = TraceFilter(indexes=names, before=before, since=_epoch(since), until=_epoch(until), known=known)
        summaries = await service.store.newest(wanted, limit + 1)
        more = summaries[limit - 1].number if len(summaries) > limit else None
        return json_reply({"traces": [asdict(summary) for summary in summaries[:limit]], "next": more})

    @app.get(
        "/v1/traces/{id}", response_model=None, responses={200: {"model": TraceReply}}, summary="Return a kept trace",
        tags=["traces"],
    )  # fmt: skip
    async def trace(id: str, request: Request) -> Response:  # noqa: A002
        stored = await service.store.get(id)
        if stored is None or stored[0] not in service.scopes(access_of(request)):
            raise _no_trace()
        return json_reply(stored[1])

    @app.delete("/v1/traces/{id}", response_model=None, status_code=204, summary="Delete a kept trace", tags=["traces"])
    async def delete_trace(id: str, request: Request) -> Response:  # noqa: A002
        if not await service.store.delete(id, service.scopes(access_of(request))):
            raise _no_trace()
        return Response(status_code=204)


def _no_trace() -> ApiError:
    return ApiError(404, "unknown_trace", "there is no such trace: only the newest are kept")


def _epoch(moment: datetime | float | None) -> float | None:
    """Convert a time to seconds since the epoch; a time without a zone is in UTC."""
    if not isinstance(moment, datetime):
        return moment
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError, OSError):
        raise ApiError(400, "invalid_request", "since and until must be times such as 2026-01-31T12:00:00Z") from None


def _add_passages(app: FastAPI, service: SearchService) -> None:
    @app.post(
        "/retrieve", response_model=None, responses={**refusals(flat=True), 200: RETRIEVE_REPLY},
        summary="Search, by Search-R1's protocol", tags=["passages"], openapi_extra=described_body(RETRIEVE_SCHEMA),
    )  # fmt: skip
    async def retrieve(request: Request, index: str | None = None) -> Response:
        service.check_open()
        access = access_of(request)
        value = await read_value(await request.body(), "request")
        work = service.search(service.named(index, access), value, access)
        (result,) = await until_gone(request, [service.begin(work)])
        return json_reply(result)

    @app.get(
        "/health", response_model=None, responses={200: HEALTH_REPLY}, tags=["passages"],
        summary="Name an index and the generation of it that answers",
    )  # fmt: skip
    async def health(request: Request, index: str | None = None) -> Response:
        name = service.named(index, access_of(request))
        served = service.retrievers[name]
        state = {"status": "ok", "retriever": name}
        await served.follow()
        if served.generation:
            state["generation"] = served.generation
        if served.problem:
            state["problem"] = public_text(served.problem)
        return json_reply(state)


def _add_state(app: FastAPI, service: SearchService) -> None:
    state: dict[int | str, dict[str, Any]] = {200: {"model": StateReply}}

    @app.get("/healthz", response_model=None, responses=state, summary="Say that the process runs", tags=["state"])
    async def healthz() -> Response:
        return json_reply({"status": "ok"})

    missing: dict[str, Any] = {"model": StateReply, "description": "A part is missing, or the server is shutting down."}

    @app.get(
        "/readyz", response_model=None, responses={**state, 503: missing}, summary="Say whether requests are served",
        tags=["state"],
    )  # fmt: skip
    async def readyz(request: Request) -> Response:
        problems = await service.problems(access_of(request))
        shown = {"status": "not ready" if problems else "ok", "problems": problems}
        return json_reply(shown, 503 if problems else 200)

    text = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}

    @app.get(
        "/metrics", response_model=None, response_class=Response, responses={200: text},
        summary="Counters for Prometheus", tags=["state"],
    )  # fmt: skip
    async def metrics(request: Request) -> Response:
        shown = service.metrics.text(service.gauges, service.allowed(access_of(request)))
        return Response(shown, headers={"Content-Type": CONTENT_TYPE})


async def _replied(request: Request, accepted: AcceptedQuestion, *, stream: bool, whole: bool) -> Response:
    """Return the reply to a question or program, or a stream of its events."""
    if stream:
        events = _events(accepted, whole=whole)
        return StreamingResponse(events, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})
    (done,) = await until_gone(request, [accepted.task])
    return json_reply(_reply(done, whole=whole))


async def _events(accepted: AcceptedQuestion, *, whole: bool) -> AsyncIterator[bytes]:
    """Yield a question's events and then its reply, as Server-Sent Events."""
    try:
        yield _event("accepted", {"id": accepted.id})
        async for happened in heard(accepted.events):
            yield b"".join(_event(event["event"], event) for event in happened) or STILL_WORKING
        if failure := failure_of_task(accepted.task):
            yield _event("error", failure.body)
        else:
            yield _event("reply", _reply(accepted.task.result(), whole=whole))
    finally:
        await cancel([accepted.task])


def _event(name: str, value: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))


def _reply(done: FinishedQuestion, *, whole: bool) -> dict[str, Any]:
    return answer_object(done.id, done.index, done.trace, whole=whole)
