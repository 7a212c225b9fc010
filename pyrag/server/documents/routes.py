"""Routes that add, replace and delete documents of served index folders, for keys with the right to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Request, Response
from msgspec import Meta
from pydantic import BaseModel

from pyrag._io.specs import expanded
from pyrag._io.threads import in_thread
from pyrag.retrieval.index import Built
from pyrag.server.bodies import MAX_NAME, body_of, read_request
from pyrag.server.config import Access
from pyrag.server.documents.folder import DocumentFolder
from pyrag.server.errors import ApiError
from pyrag.server.replies import access_of, json_reply
from pyrag.server.service import QuestionService

MAX_DOCUMENTS = 1000
"""Maximum number of documents of a request; its size is limited as every body's is."""


_Name = Annotated[str, Meta(max_length=MAX_NAME)]


class DocumentBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Document to add. If one with the same id exists, it is replaced."""

    id: Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00-\x1f]+$", examples=["mill-1"])]
    text: Annotated[str, Meta(min_length=1, examples=["The otter mill was built in 1872."])]
    title: str | None = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="Fields for filters.")] = None


class DocumentsRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Documents to add to an index."""

    documents: Annotated[list[DocumentBody], Meta(min_length=1, max_length=MAX_DOCUMENTS)]
    index: Annotated[_Name | None, Meta(description="Name of the index.")] = None


class UpdateReply(BaseModel):
    """Outcome of an update of an index, whose passages may come from its files as well."""

    index: str
    passages: int
    added: int
    changed: int
    removed: int


def add_document_routes(app: FastAPI, service: QuestionService) -> None:
    """Add the routes to an application.

    Args:
        app: The application.
        service: The service, whose indexes are updated.
    """
    locks: dict[str, asyncio.Lock] = {}

    async def updated(name: str, work: Callable[[], Built | None]) -> Response:
        async def run() -> Built | None:
            async with locks.setdefault(name, asyncio.Lock()):
                return await in_thread(work)

        service.check_open()
        built = await asyncio.shield(service.begin(run()))
        if built is None:
            raise ApiError(404, "unknown_document", "no document with this id was sent to this index")
        counts = {"added": built.added, "changed": built.changed, "removed": built.removed}
        return json_reply({"index": name, "passages": built.info.passages, **counts})

    @app.post(
        "/v1/documents", response_model=None, responses={200: {"model": UpdateReply}}, summary="Add documents",
        tags=["documents"], openapi_extra=body_of(DocumentsRequest),
    )  # fmt: skip
    async def add_documents(request: Request) -> Response:
        _check_right(access_of(request))
        body = await read_request(request, DocumentsRequest)
        documents = {document.id: _record(document) for document in body.documents}
        if len(documents) < len(body.documents):
            raise ApiError(400, "invalid_request", "two documents have the same id: send each once", param="documents")
        name, folder = _folder(service, body.index, access_of(request))
        return await updated(name, lambda: folder.put(documents))

    @app.delete(
        "/v1/documents/{id:path}", response_model=None, responses={200: {"model": UpdateReply}},
        summary="Delete a document", tags=["documents"],
    )  # fmt: skip
    async def delete_document(id: str, request: Request, index: str | None = None) -> Response:  # noqa: A002
        _check_right(access_of(request))
        name, folder = _folder(service, index, access_of(request))
        return await updated(name, lambda: folder.delete(id))


def _check_right(access: Access) -> None:
    if not access.writes:
        raise ApiError(
            403, "may_not_write", "documents need a key with the right to write: add +write after it in the key file"
        )


def _folder(service: QuestionService, index: str | None, access: Access) -> tuple[str, DocumentFolder]:
    """Return the name and the documents of an index that a caller may use. Raises `ApiError` if it is not a folder."""
    name = service.named(index, access)
    place = service.indexes[name].settings.index
    if place is None:
        raise ApiError(400, "not_a_folder", f"the index {name} is not an index folder, which documents need")
    return name, DocumentFolder(expanded(place))


def _record(document: DocumentBody) -> dict[str, Any]:
    if not any(map(str.isalnum, document.text)):
        raise ApiError(400, "invalid_request", f"the document {document.id!r} has no word", param="documents")
    title, metadata = document.title or "", document.metadata or {}
    return {"id": document.id, "title": title, "text": document.text, "metadata": metadata}
