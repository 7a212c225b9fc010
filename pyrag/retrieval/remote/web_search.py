"""Retrievers for web search engines: `searxng:URL`, `tavily:` and `brave:`. Their snippets are the passages.

Keys are read from the environment (`TAVILY_API_KEY`, `BRAVE_SEARCH_API_KEY`). Another address, such as a proxy's, may
follow the colon. The pages themselves are not read.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec

from pyrag._io.http.client import HttpService
from pyrag._io.http.errors import ReplyFormError
from pyrag._io.http.options import RETRIEVER_LIMIT, BodyLimit, Transport
from pyrag._io.specs import parse_spec
from pyrag.errors import ConfigError
from pyrag.retrieval.checked import Passages, checked

_TAG = re.compile(r"</?\w[^<>]*>")
_DEFAULT_TRANSPORT = Transport()


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """API of a search engine.

    Attributes:
        url: Address; empty if the user must name it.
        key: Environment variable with the API key; empty if no key is needed.
        header: Name of the key's header, and its value with a placeholder for the key.
        path: Path of a search.
        body: Function that makes the body of a POST request from the query and the number of results; None to send a
            GET request.
        parameters: Function that makes the query parameters of a GET request.
        results: Names under which a reply holds its results, outermost first.
        max_results: Maximum number of results.
        max_query: Maximum numbers of characters and words of a query.
    """

    url: str
    key: str
    header: tuple[str, str]
    path: str
    body: Callable[[str, int], Mapping[str, Any]] | None
    parameters: Callable[[str, int], Mapping[str, str]]
    results: Sequence[str]
    max_results: int
    max_query: tuple[int, int]


ENGINES: Mapping[str, SearchEngine] = {
    "searxng": SearchEngine(
        "", "", ("", ""), "/search", None,
        lambda query, _: {"q": query, "format": "json"}, ("results",), 100, (2_000, 500),
    ),
    "tavily": SearchEngine(
        "https://api.tavily.com", "TAVILY_API_KEY", ("Authorization", "Bearer {}"), "/search",
        lambda query, number: {"query": query, "max_results": number}, lambda *_: {}, ("results",), 20, (2_000, 500),
    ),
    "brave": SearchEngine(
        "https://api.search.brave.com/res/v1", "BRAVE_SEARCH_API_KEY", ("X-Subscription-Token", "{}"), "/web/search",
        None, lambda query, number: {"q": query, "count": str(number)}, ("web", "results"), 20, (400, 50),
    ),
}  # fmt: skip


class WebSearchRetriever:
    """Retriever that uses a web search engine.

    Args:
        spec: `searxng:URL`, `tavily:` or `brave:`; the last two may be followed by another address.
        timeout: Seconds for one request.
        limit: Maximum size of a reply in megabytes, with the setting that changes it.
        transport: Proxy and certificates.

    Raises:
        ConfigError: The address is missing, or the API key is not set.
    """

    def __init__(
        self,
        spec: str,
        *,
        timeout: float = 10.0,
        limit: BodyLimit = RETRIEVER_LIMIT,
        transport: Transport = _DEFAULT_TRANSPORT,
    ) -> None:
        self.name, url = parse_spec(spec)
        self._engine = engine = ENGINES[self.name]
        if not (url or engine.url):
            raise ConfigError(
                f"{self.name}: needs the address of an instance, such as {self.name}:http://127.0.0.1:8888"
            )
        key = os.environ.get(engine.key, "") if engine.key else ""
        if engine.key and not key:
            raise ConfigError(f"the retriever {self.name} needs an API key: set {engine.key}")
        header, form = engine.header
        self._service = HttpService(
            (url or engine.url).rstrip("/"),
            name=self.name,
            timeout=timeout,
            headers={header: form.format(key), "Accept": "application/json"} if header else None,
            cure="check its address",
            cures=dict.fromkeys((401, 403), f"check {engine.key or 'that its settings.yml allows the format json'}"),
            patience="the setting retrieve_timeout",
            limit=limit,
            transport=transport,
        )

    async def retrieve(self, query: str, topk: int) -> Passages:
        """Return the snippets of the best pages. A blank query is not sent, and a long query is cut.

        Args:
            query: Text to search for.
            topk: Maximum number of snippets.

        Raises:
            ServiceError: The engine cannot be reached, refuses, or sends a malformed reply.
        """
        engine = self._engine
        characters, words = engine.max_query
        query = " ".join(query.encode("utf-8", "replace").decode().split()[:words])[:characters].strip()
        if not query or topk < 1:
            return Passages()
        number = min(topk, engine.max_results)

        def read(content: bytes) -> Passages:
            return _passages(content, engine.results, number)

        if engine.body is not None:
            return await self._service.post_json(engine.path, engine.body(query, number), read)
        return await self._service.get_json(f"{engine.path}?{urlencode(engine.parameters(query, number))}", read)

    async def aclose(self) -> None:
        await self._service.aclose()


def _passages(content: bytes, names: Sequence[str], topk: int) -> Passages:
    """Return the snippets of a reply.

    Raises:
        ValueError: The reply is malformed, and the client reports this.
    """
    value = msgspec.json.decode(content)
    if not isinstance(value, dict):
        raise ReplyFormError("it is not an object")
    for name in names:  # Brave leaves out `web` if it finds nothing
        value = value.get(name) or {} if isinstance(value, dict) else {}
    hits = [_snippet(item, place) for place, item in enumerate(value[:topk], 1)] if isinstance(value, list) else []
    return checked([item for item in hits if item is not None], topk)


def _snippet(result: Any, place: int) -> dict[str, Any] | None:
    """Convert a result to the mapping that `checked` reads; return None if it has no text."""
    if not isinstance(result, dict):
        return None
    parts = [result.get("content") or result.get("description"), *(result.get("extra_snippets") or ())]
    text = "\n".join(filter(None, (_plain(part) for part in parts)))
    url = result.get("url")
    if not text or not isinstance(url, str):
        return None
    score = result.get("score")
    own_score = float(score) if isinstance(score, int | float) else 1.0 / place
    return {"id": url, "title": _plain(result.get("title")), "text": text, "source": url, "score": own_score}


def _plain(value: Any) -> str:
    """Return a text without the tags that engines use to highlight words."""
    return html.unescape(_TAG.sub("", value)).strip() if isinstance(value, str) else ""
