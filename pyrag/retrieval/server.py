"""A retrieval server that speaks Search-R1's protocol, over any retriever; `http` is its client.

    POST /retrieve {"queries": [q, ...], "topk": 5, "return_scores": true}
    -> {"result": [[{"document": {"id", "title", "text", "contents", "source", ...}, "score"}, ...], ...]}
    GET /health -> {"status": "ok", "retriever", "generation"}

Without `return_scores` the documents come bare. An index folder is opened again once it has a new generation; requests
that have begun keep the old one. Whatever is wrong with a request is a 4xx with `{"error": sentence}`.

Left out: authentication and TLS (put a proxy in front of it, or keep it on loopback).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from pyrag.errors import PyRAGError
from pyrag.retrieval.documents.model import MARK
from pyrag.retrieval.protocol import Retriever, passages_of
from pyrag.trace.model import Passage

MAX_QUERIES = 1024
MAX_TOPK = 1000
MAX_PASSAGES = 100_000
"""Of a reply: queries times topk. More would be hundreds of megabytes for a request of a few kilobytes."""

MAX_BODY = 4 << 20
TOPK = 5
AT_ONCE = 16
"""Queries that are searched at the same time; more wait."""

_POLL = 0.5  # seconds between two looks at the index folder
_FIRST = "who wrote this"  # asked before anybody is served: it loads the models, or says what is wrong with them
_BODY = 30.0  # seconds that the body of a request gets to arrive
_END = 5.0  # seconds that requests get to end when the server does: less than the 10 that Docker waits

Open = Callable[[], Retriever]
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RetrieveRequest(msgspec.Struct):
    queries: list[str]
    topk: int | None = None
    return_scores: bool = False


class Current:
    """The retriever over the generation in use of a folder, or over something constant (`folder` is None)."""

    def __init__(self, opener: Open, folder: Path | None) -> None:
        self._open = opener
        self._folder = folder
        self._mark = self._look()
        self._used: dict[int, int] = {}  # requests that are using a retriever, by its id()
        self.retriever = opener()
        self.problem = ""
        self._reopening: asyncio.Task[None] | None = None
        self._looked = 0.0

    @contextlib.asynccontextmanager
    async def use(self) -> Any:
        self._check()
        retriever = self.retriever
        self._used[id(retriever)] = self._used.get(id(retriever), 0) + 1
        try:
            yield retriever
        finally:
            self._used[id(retriever)] -= 1
            await self._let_go(retriever)

    async def aclose(self) -> None:
        if self._reopening:
            await self._reopening
        await self.retriever.aclose()

    @property
    def generation(self) -> str:
        from pyrag.retrieval.index import read_info

        if self._folder is None:
            return ""
        with contextlib.suppress(PyRAGError):
            return read_info(self._folder).generation
        return ""

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._folder is None or now - self._looked < _POLL:
            return
        self._looked = now
        mark = self._look()
        if mark != self._mark and (self._reopening is None or self._reopening.done()):
            self._reopening = asyncio.create_task(self._reopen(mark))

    async def _reopen(self, mark: tuple[int, int] | None) -> None:
        try:
            fresh = await asyncio.to_thread(self._open)
        except PyRAGError as error:
            self.problem = str(error)  # the old one is still good; the next look tries again
            return
        old, self.retriever = self.retriever, fresh
        self._mark, self.problem = mark, ""
        await self._let_go(old)

    async def _let_go(self, retriever: Retriever) -> None:
        if retriever is not self.retriever and not self._used.get(id(retriever)):
            self._used.pop(id(retriever), None)
            await retriever.aclose()

    def _look(self) -> tuple[int, int] | None:
        if self._folder is None:
            return None
        try:
            status = (self._folder / MARK).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns


async def search_all(retriever: Retriever, wanted: RetrieveRequest, slots: asyncio.Semaphore) -> list[list[Any]]:
    """Search for every query of a request and return the hits of each, in the protocol's form.

    Args:
        retriever: where to search.
        wanted: the request, as `read_request` returned it.
        slots: bounds the searches that run at the same time, over all requests.

    Raises:
        PyRAGError: the retriever failed; the other searches are cancelled.
    """
    topk = TOPK if wanted.topk is None else wanted.topk

    async def search(query: str) -> list[Passage]:
        async with slots:
            found = await passages_of(retriever, query, topk)
        await asyncio.sleep(0)  # small indexes are searched in the loop: others get their turn
        return found

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(search(query)) for query in wanted.queries]
    except* PyRAGError as failed:
        raise failed.exceptions[0] from None
    return [[hit_of(one, scored=wanted.return_scores) for one in task.result()] for task in tasks]


def application(current: Current) -> web.Application:
    slots = asyncio.Semaphore(AT_ONCE)

    async def retrieve(request: web.Request) -> web.StreamResponse:
        wanted = read_request(await _body(request))
        async with current.use() as retriever:
            result = await search_all(retriever, wanted, slots)
        return _json({"result": result})

    async def health(_: web.Request) -> web.StreamResponse:
        state: dict[str, str] = {"status": "ok", "retriever": current.retriever.name}
        if generation := await asyncio.to_thread(lambda: current.generation):
            state["generation"] = generation
        return _json({**state, "problem": current.problem} if current.problem else state)

    app = web.Application(client_max_size=MAX_BODY, middlewares=[_errors])
    app.router.add_post("/retrieve", retrieve)
    app.router.add_get("/health", health)
    return app


def runner_of(current: Current) -> web.AppRunner:
    """Return the runner of a server: it stops searching for clients that have gone, and logs none of their mistakes."""
    log = logging.getLogger(__name__)
    log.addFilter(_no_fault_of_a_client)
    return web.AppRunner(
        application(current), access_log=None, shutdown_timeout=_END, handler_cancellation=True, logger=log
    )


def _no_fault_of_a_client(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError | web.RequestPayloadError)


async def serve(
    opener: Open,
    folder: Path | None,
    host: str,
    port: int,
    started: Callable[[str, str], None] = lambda _url, _name: None,
) -> None:
    """Serve a retriever until SIGINT or SIGTERM; requests that have begun are answered.

    Args:
        opener: Opens the retriever; called again for each new generation.
        folder: Index folder to watch; None for a retriever that does not change.
        host: Address to listen on.
        port: Port; 0 for any free one.
        started: Called with the URL and the retriever's name.

    Raises:
        PyRAGError: There is no index, a required model is missing, or the port is taken.
    """
    current = Current(opener, folder)
    runner = runner_of(current)
    await runner.setup()
    try:
        await passages_of(current.retriever, _FIRST, 1)
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            reason = error.strerror or error
            raise PyRAGError(f"cannot listen on {host}:{port} ({reason}): choose another --port or --host") from error
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        started(f"http://{shown}:{bound[1]}", current.retriever.name)
        await _signalled()
    finally:
        await runner.cleanup()
        await current.aclose()


async def _signalled() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequestError as error:
        return _json({"error": str(error)}, 400)
    except web.HTTPRequestEntityTooLarge:
        return _json({"error": f"the request is larger than {MAX_BODY >> 20} MiB: send fewer queries"}, 413)
    except web.HTTPException as error:
        cure = "POST /retrieve and GET /health are what there is"
        return _json({"error": f"{error.reason} ({request.method} {request.path}): {cure}"}, error.status)
    except PyRAGError as error:
        return _json({"error": str(error)}, 503)


class BadRequestError(ValueError):
    """A request that cannot be served; the message says what to send instead."""


async def _body(request: web.Request) -> bytes:
    """Raises `BadRequestError`."""
    try:
        async with asyncio.timeout(_BODY):
            return await request.read()
    except TimeoutError:
        raise BadRequestError(f"the request did not arrive within {_BODY:g} s: send it whole") from None
    except web.RequestPayloadError as error:
        reason = " ".join(str(error).split())
        raise BadRequestError(f"the request cannot be read ({reason}): send plain JSON") from None


def read_request(body: bytes) -> RetrieveRequest:
    """Return a checked request. Raises `BadRequestError`, with what to send instead."""
    example = 'send {"queries": ["…"], "topk": 5, "return_scores": true}'
    try:
        wanted = msgspec.json.decode(body, type=RetrieveRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the request cannot be read ({error}): {example}") from None
    if len(wanted.queries) > MAX_QUERIES:
        raise BadRequestError(f"{len(wanted.queries)} queries at once: send at most {MAX_QUERIES}")
    if wanted.topk is not None and not 1 <= wanted.topk <= MAX_TOPK:
        raise BadRequestError(f"topk is {wanted.topk}: ask for 1 to {MAX_TOPK} passages")
    passages = len(wanted.queries) * (wanted.topk or TOPK)
    if passages > MAX_PASSAGES:
        raise BadRequestError(f"{passages} passages at once: send fewer queries, at most {MAX_PASSAGES} in all")
    return wanted


def hit_of(passage: Passage, *, scored: bool) -> dict[str, Any]:
    """Return a passage as the protocol's document, or as a hit with its score.

    Args:
        passage: what was found.
        scored: wrap the document in `{"document", "score"}`.
    """
    title = " ".join(passage.title.split())
    document: dict[str, Any] = {
        "id": passage.id,
        "title": passage.title,
        "text": passage.text,
        "contents": f'"{title}"\n{passage.text}' if title else passage.text,
        "source": passage.source,
    }
    if passage.start is not None:
        document |= {"start": passage.start, "end": passage.end}
    if passage.parts:
        document["parts"] = passage.parts
    if passage.metadata:
        document["metadata"] = passage.metadata
    return {"document": document, "score": passage.score} if scored else document


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")
