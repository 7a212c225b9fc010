"""The page at `/`: its document, modules and stylesheets, and the choices that it offers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response

import pyrag_runtime
from pyrag.agents.engine import about_engine
from pyrag.errors import ConfigError
from pyrag.methods.registry import check_writer, get_method, method_names
from pyrag.server.config import Access
from pyrag.server.errors import public_text
from pyrag.server.replies import access_of, json_reply
from pyrag.server.schemas import OptionsReply
from pyrag.server.service import QuestionService
from pyrag.trace.html import page_file, page_paths

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
MAX_EXAMPLES = 6


def add_page(app: FastAPI, service: QuestionService) -> None:
    """Add the routes of the page.

    Args:
        app: The application.
        service: Service that answers the page's requests.
    """
    for path, name in page_paths().items():
        app.add_route(path, _file_route(name), include_in_schema=False)
    described: dict[int | str, dict[str, Any]] = {200: {"model": OptionsReply}}

    @app.get("/v1/options", response_model=None, responses=described, summary="Say what may be asked for")
    async def options(request: Request) -> Response:
        return json_reply(_options_of(service, access_of(request)))


def _file_route(name: str) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that serves a file. A browser that already has this version gets 304."""
    body = page_file(name).encode()
    headers = {**_HEADERS, "ETag": f'"{hashlib.sha256(body).hexdigest()[:20]}"'}

    async def route(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])

    return route


def _options_of(service: QuestionService, access: Access) -> dict[str, Any]:
    """Return the choices for a request: indexes and methods, with the engine, and examples for the bundled corpus."""
    served = service.index(None, access)
    can_write = served.engines.agents.can_write
    return {
        "version": pyrag_runtime.version(),
        "engine": public_text(served.engines.agents.name),
        "engine_note": about_engine(served.engines.agents.name),
        "index": served.name,
        "indexes": [name for name in service.indexes if access.allows(name)],
        "method": served.settings.method,
        "methods": _methods(served.settings.method, can_write=can_write),
        "examples": _examples() if served.is_bundled else [],
    }


def _methods(own: str, *, can_write: bool) -> list[str]:
    names = []
    for name in method_names():
        try:
            check_writer(get_method(name), can_write=can_write)
        except ConfigError:
            continue
        names.append(name)
    return names if own in names else [own, *names]


def _examples() -> list[str]:
    lines = (files("pyrag") / "data" / "demo.jsonl").read_bytes().splitlines()
    return [str(json.loads(line)["question"]) for line in lines[:MAX_EXAMPLES]]
