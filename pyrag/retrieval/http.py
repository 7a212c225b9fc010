"""Client of a retrieval server that speaks Search-R1's protocol.

    POST URL/retrieve {"queries": [q], "topk": k, "return_scores": true}
    -> {"result": [[{"document": {"id", "contents"}, "score"}, ...]]}

A filter is sent as `where`, and the reply must repeat it, since a server without filters would ignore it.

Documents may also come without the wrapper and score, and with `title` and `text` instead of `contents`. A document
without an id gets one from its text; `checked` repairs or drops faulty documents. Our own server (`server`) adds the
place in the source and the scores of the parts. `pyrag._io.http.client` handles transport, retries and most errors.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pyrag._io.http.client import HttpService
from pyrag._io.http.errors import ReplyFormError
from pyrag._io.http.options import RETRIEVER_LIMIT, BodyLimit, Transport
from pyrag.retrieval.checked import FIELDS, Passages, checked, passage_of
from pyrag.retrieval.filters.tree import Filter
from pyrag.trace.model import Passage, SearchedIndex

_PATH = "/retrieve"
_PATIENCE = "the setting retrieve_timeout"
_DEFAULT_TRANSPORT = Transport()
_MAX_TEXT = 16 << 20  # bytes of one document; a larger one is left out before it becomes text
_MAX_CHARACTERS = 1 << 20  # of a document; the rest is cut off
_MAX_SHORT = 1 << 16  # bytes of a field that is not text
_MAX_LENIENT = 32 << 20  # bytes of a reply that a slower parser tries to read if it is not JSON
_MAX_COMMAS = 3_000_000
_CURE = "start it, or name another with --retriever or an index folder with --index"


class _EncodedDocument(msgspec.Struct):
    """Document whose fields stay encoded until needed, since decoded text takes up to four times as much memory."""

    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    title: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    contents: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    source: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    start: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    end: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    parts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    metadata: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    score: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    document: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _SmallDocument(msgspec.Struct):
    """Document so small that no field can be too large, so that it is decoded at once. Its fields are `FIELDS`."""

    id: Any = None
    title: Any = None
    text: Any = None
    contents: Any = None
    source: Any = None
    start: Any = None
    end: Any = None
    parts: Any = None
    metadata: Any = None
    score: Any = None
    document: _SmallDocument | None = None


class _RetrieveReply(msgspec.Struct):
    result: list[list[msgspec.Raw]]
    where: str | None = None


_replies = msgspec.json.Decoder(_RetrieveReply)
_documents = msgspec.json.Decoder(_EncodedDocument)
_small_documents = msgspec.json.Decoder(_SmallDocument)
_SOURCE, _SCORE = FIELDS.index("source"), FIELDS.index("score")
_LONG = ("title", "text", "contents")
_SHORT = ("id", "source", "start", "end", "parts", "metadata", "score")


class HttpRetriever:
    """Retriever that uses a server. `url` is the server's base address or its `/retrieve` address.

    `timeout` limits an attempt and `total` all attempts, in seconds. `limit` bounds the size of a reply.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 10.0,
        total: float | None = None,
        limit: BodyLimit = RETRIEVER_LIMIT,
        transport: Transport = _DEFAULT_TRANSPORT,
    ) -> None:
        base, _, query = url.strip().partition("?")
        base = base.rstrip("/").removesuffix(_PATH) + (f"?{query}" if query else "")
        self._service = HttpService(
            base,
            name="retriever",
            timeout=timeout,
            total=total,
            cure=_CURE,
            patience=_PATIENCE,
            limit=limit,
            transport=transport,
        )

    @property
    def name(self) -> str:
        return self._service.url

    @property
    def searched(self) -> SearchedIndex:
        return SearchedIndex(self.name, "http")

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> Passages:
        """Request passages from the server. A blank query is not sent, and returns nothing.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Raises:
            ServiceError: The server cannot be reached, refuses, or sends a malformed reply.
        """
        if not query.strip() or topk < 1:
            return Passages()
        body = {"queries": [query.encode("utf-8", "replace").decode()], "topk": topk, "return_scores": True}
        filter_text = None if where is None else str(where)
        body |= {} if filter_text is None else {"where": filter_text}
        return await self._service.post_json(
            _PATH, body, lambda content: _passages(content, topk, self.name, filter_text)
        )

    async def aclose(self) -> None:
        await self._service.aclose()


def _passages(content: bytes, topk: int, source: str, where: str | None) -> Passages:
    """Return the first `topk` passages of a reply to a single query.

    Raises:
        ValueError: The reply is malformed, and the client reports this.
    """
    reply = _reply(content)
    if where is not None and reply.where != where:
        raise ReplyFormError("it did not apply the filter, and may not support filters: search without a filter")
    result = reply.result
    if len(result) != 1:
        raise ReplyFormError(f"{len(result)} lists of documents for one query")
    documents = [_document(raw, source) for raw in result[0][:topk]]
    passages = checked(documents, topk)
    if documents and not passages:
        raise ReplyFormError("a document without contents or text")
    return passages


def _reply(content: bytes) -> _RetrieveReply:
    """Decode a reply, even if a number is NaN or a character is incomplete."""
    if content.count(b",") > _MAX_COMMAS:  # each value costs some 80 bytes, whatever it is
        raise ReplyFormError("it holds too many values")
    try:
        return _replies.decode(content)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        if len(content) > _MAX_LENIENT:
            raise
        try:
            value = json.loads(content.decode("utf-8", "replace"), parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            raise error from None
    return _replies.decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _document(raw: msgspec.Raw, source: str) -> object:
    """Return the passage of a small document with a text, and the fields of any other document."""
    passage = _small_passage(raw, source) if len(memoryview(raw)) <= _MAX_SHORT else None
    return _fields(raw, source) if passage is None else passage


def _fields(raw: msgspec.Raw, source: str) -> object:
    """Return the readable fields of a document as a mapping, or the value itself if it is not a document."""
    try:
        hit = _documents.decode(raw)
        fields = (
            hit if hit.document is msgspec.UNSET or bytes(hit.document) == b"null" else _documents.decode(hit.document)
        )
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _value(raw, _MAX_SHORT)
    values = {name: _value(getattr(fields, name), _MAX_SHORT) for name in _SHORT}
    values |= {name: _value(getattr(fields, name), _MAX_TEXT) for name in _LONG}
    values |= {"score": _value(hit.score, _MAX_SHORT), "source": values["source"] or source}
    return {name: value[:_MAX_CHARACTERS] if isinstance(value, str) else value for name, value in values.items()}


def _small_passage(raw: msgspec.Raw, source: str) -> Passage | None:
    """Return the passage of a small document; None if a part of it cannot be decoded, or if it has no text."""
    try:
        hit = _small_documents.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    values = list(msgspec.structs.astuple(hit if hit.document is None else hit.document))[: len(FIELDS)]
    values[_SOURCE], values[_SCORE] = values[_SOURCE] or source, hit.score
    return passage_of(values)


def _value(raw: msgspec.Raw | msgspec.UnsetType, limit: int) -> Any:
    """Return the value of a field; None if it is larger than the limit or cannot be decoded."""
    if raw is msgspec.UNSET or len(memoryview(raw)) > limit:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return json.loads(_text(bytes(raw)))
    except (ValueError, RecursionError):
        return None


def _text(data: bytes) -> str:
    """Decode bytes. Incomplete characters are left to `checked`; other faults are replaced."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
