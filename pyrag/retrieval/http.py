"""Client of a retrieval server that speaks Search-R1's protocol.

    POST URL/retrieve {"queries": [q], "topk": k, "return_scores": true}
    -> {"result": [[{"document": {"id", "contents"}, "score"}, ...]]}

Documents may also come without the wrapper and score, and with `title` and `text` instead of `contents`. One without
an id gets one from its text. Our own server (`server`) adds the place in the source and the scores of the parts.
Transport, retries and most errors are `pyrag.http_client`.
"""

from __future__ import annotations

import hashlib

import msgspec

from pyrag.http_client import HttpService
from pyrag.http_options import RETRIEVER_LIMIT, BodyLimit, Transport
from pyrag.retrieval.contents import split_contents
from pyrag.trace import Passage

_PATH = "/retrieve"
_PATIENCE = "the setting retrieve_timeout"
_DEFAULT_TRANSPORT = Transport()
_MAX_TEXT = 16 << 20  # bytes of one document; a larger one is refused before it becomes text
_MAX_CHARACTERS = 1 << 20  # of a document; nobody reads on
_MAX_PARTS = 4096  # bytes
_CURE = "start it, or name another with --retriever or an index folder with --index"


_ABSENT = msgspec.Raw(b"null")


class _Document(msgspec.Struct):
    """Fields stay as they came until a passage is wanted: text takes up to four times its bytes."""

    id: str | int | None = None
    title: msgspec.Raw = _ABSENT
    text: msgspec.Raw = _ABSENT
    contents: msgspec.Raw = _ABSENT
    source: str = ""
    start: int | None = None
    end: int | None = None
    parts: msgspec.Raw = _ABSENT


class _Hit(_Document):
    document: _Document | None = None
    score: float | None = None


class _Reply(msgspec.Struct):
    result: list[list[_Hit]]


_replies = msgspec.json.Decoder(_Reply)
_texts = msgspec.json.Decoder(str | None)
_parts = msgspec.json.Decoder(dict[str, float] | None)


class HttpRetriever:
    """A `Retriever` over a server; `url` is its base or its `/retrieve` address.

    `timeout` limits one attempt and `total` all of them, in seconds; `limit` is the most that a reply may hold.
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

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        if not query.strip() or topk < 1:
            return []
        body = {"queries": [query.encode("utf-8", "replace").decode()], "topk": topk, "return_scores": True}
        return await self._service.post_json(_PATH, body, lambda content: _passages(content, topk, self.name))

    async def aclose(self) -> None:
        await self._service.aclose()


def _passages(content: bytes, topk: int, source: str) -> list[Passage]:
    """The first `topk` passages for the only query.

    Raises `ValueError`, which the client reports as a malformed reply.
    """
    result = _replies.decode(content).result
    if len(result) != 1:
        raise ValueError(f"{len(result)} lists of documents for one query")
    return [_passage(hit.document or hit, hit.score, source) for hit in result[0][:topk]]


def _passage(found: _Document, score: float | None, source: str) -> Passage:
    title, text = _text(found.title) or "", _text(found.text)
    if text is None:
        contents = _text(found.contents)
        if contents is None:
            raise ValueError("a document without contents or text")
        title, text = split_contents(contents, title)
    key = found.id if found.id is not None else hashlib.blake2b(f"{title}\0{text}".encode(), digest_size=8).hexdigest()
    parts = _parts.decode(found.parts) if len(memoryview(found.parts)) <= _MAX_PARTS else None
    return Passage(
        str(key), title, text, score or 0.0, found.source or source, parts or {}, start=found.start, end=found.end
    )


def _text(raw: msgspec.Raw) -> str | None:
    if len(memoryview(raw)) > _MAX_TEXT:
        raise ValueError(f"a document of more than {_MAX_TEXT >> 20} MB")
    text = _texts.decode(raw)
    return text if text is None else text[:_MAX_CHARACTERS]
