"""Opening of retrievers by spec: URLs, folders, tables, objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyrag._io import plugins
from pyrag._io.http.options import RETRIEVER_LIMIT, BodyLimit, Transport
from pyrag._io.specs import expanded, parse_spec
from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import OwnRetriever, Retriever
from pyrag.retrieval.remote.mcp_spec import HTTP, STDIO, is_mcp
from pyrag.trace.model import SearchedIndex

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.embedding import TextEmbedder
    from pyrag.retrieval.index import IndexInfo
    from pyrag.retrieval.vectors.faiss_index import VectorIndex

QDRANT, PGVECTOR = "qdrant:", "pgvector:"
_WEB = ("searxng:", "tavily:", "brave:")
_REMOTE = ("http://", "https://", QDRANT, PGVECTOR, STDIO, HTTP, *_WEB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of retrieval.

    Attributes:
        timeout: Seconds for one request to a server.
        embedder: Spec of an embedder that replaces the index's own (another engine for the same model).
        dense_weight: Weight of the vectors in a hybrid: 0 is BM25 only, 1 the vectors only.
        exact: Whether to refuse an index folder whose vectors are searched approximately.
        rerank: Reranker: `reader`, the embedded reader, or a cross-encoder.
        where: Filter that all passages must pass.
        own_where: Whether this filter is the caller's own, whose faults may be reported.
        limit: Maximum size of a server's reply.
        transport: Proxy and certificates of servers.
    """

    timeout: float = 10.0
    embedder: str | None = None
    dense_weight: float = 0.5
    exact: bool = False
    rerank: str | None = None
    where: Filter | None = None
    own_where: bool = False
    limit: BodyLimit = RETRIEVER_LIMIT
    transport: Transport = Transport()


def open_retriever(
    spec: str | Path | Retriever | Sequence[str], *, timeout: float | None = None, options: Options | None = None
) -> Retriever:
    """Return the retriever that a spec names.

    Args:
        spec: URL, `qdrant:COLLECTION@PLACE`, `pgvector:TABLE@URL`, `mcp+stdio:COMMAND`, `mcp+http:URL`,
            `searxng:URL`, `tavily:`, `brave:`, index folder, or a retriever object. Several specs, each as
            `[NAME=]SPEC[#weight=2&deadline=1.5]`, are searched as one.
        timeout: Seconds for one request to a server. Ignored if `options` are given.
        options: All other options.

    Raises:
        ConfigError: The spec is not a retriever.
        DataError: The folder holds no readable index.
    """
    options = options or Options(timeout=10.0 if timeout is None else timeout)
    several = isinstance(spec, Sequence) and not isinstance(spec, str)
    retriever = _over_several(spec, options) if several else _opened(spec, options)  # type: ignore[arg-type]
    if options.rerank is not None:
        from pyrag.retrieval.rerank import reranked

        retriever = reranked(retriever, options.rerank)
    if options.where is None:
        return retriever
    from pyrag.retrieval.filters.bound import BoundRetriever

    return BoundRetriever(retriever, options.where, own=options.own_where)


def is_remote(spec: str) -> bool:
    """Return True for specs of servers and of installed packages, False for index folders."""
    is_added = parse_spec(spec).scheme in plugins.names("retrievers")
    return spec.startswith(_REMOTE) or (is_added and not Path(spec).exists())


def source_folders(specs: Sequence[str]) -> list[Path]:
    """Return the index folders among several sources."""
    from pyrag.retrieval.fusion.specs import read_sources

    places = [source.place for source in read_sources(specs)]
    return [expanded(place) for place in places if not is_remote(place)]


def _opened(spec: str | Path | Retriever, options: Options) -> Retriever:
    if isinstance(spec, str) and spec.startswith((QDRANT, PGVECTOR)):
        return _over_store(spec, options)
    if isinstance(spec, str) and is_mcp(spec):
        from pyrag.retrieval.remote.mcp_tool import McpRetriever

        return McpRetriever(spec, timeout=options.timeout)
    if isinstance(spec, str) and spec.startswith(_WEB):
        from pyrag.retrieval.remote.web_search import WebSearchRetriever

        return WebSearchRetriever(spec, timeout=options.timeout, limit=options.limit, transport=options.transport)
    if isinstance(spec, str) and parse_spec(spec).scheme in plugins.names("retrievers"):
        return OwnRetriever(plugins.opened("retrievers", parse_spec(spec)))
    if isinstance(spec, str) and "://" in spec:
        from pyrag.retrieval.http import HttpRetriever

        return HttpRetriever(spec, timeout=options.timeout, limit=options.limit, transport=options.transport)
    if isinstance(spec, str | Path):
        return _over_index(expanded(spec), str(spec), options)
    if callable(getattr(spec, "retrieve", None)):
        return spec
    raise ConfigError(
        f"{type(spec).__name__} is not a retriever: give a URL, an index folder or an object with "
        "async retrieve(query, topk)"
    )


def _over_several(specs: Sequence[str], options: Options) -> Retriever:
    """Open several sources, each of which follows the generations of its index."""
    from pyrag.retrieval.following import FollowingRetriever
    from pyrag.retrieval.fusion.documents import FusedSource
    from pyrag.retrieval.fusion.retriever import FusedRetriever
    from pyrag.retrieval.fusion.specs import read_sources

    own = replace(options, rerank=None, where=None)
    sources = []
    for source in read_sources(specs):
        folder = None if is_remote(source.place) else expanded(source.place)
        retriever = FollowingRetriever(partial(_opened, source.place, own), folder)
        sources.append(FusedSource(source.name, retriever, source.weight, source.deadline or options.timeout))
    return FusedRetriever(sources)


def _over_store(spec: str, options: Options) -> Retriever:
    from pyrag.retrieval.embedders.embedding import open_embedder
    from pyrag.retrieval.stores.store import Store, StoreRetriever

    if options.embedder is None:
        raise ConfigError(f"{spec} needs the embedder of its vectors: name it with --embedder, such as bundled")
    store: Store
    if spec.startswith(QDRANT):
        from pyrag.retrieval.stores.qdrant import QdrantStore

        store = QdrantStore(spec, timeout=options.timeout)
    else:
        from pyrag.retrieval.stores.pgvector import PgvectorStore

        store = PgvectorStore(spec, timeout=options.timeout)
    embedder = open_embedder(options.embedder, timeout=options.timeout, transport=options.transport)
    return StoreRetriever(store, embedder, dense_weight=options.dense_weight)


def _over_index(folder: Path, shown: str, options: Options) -> Retriever:
    """Open an index as its kind of retriever; open it again if it is replaced in the meantime."""
    if not shown.strip():
        raise ConfigError("the name of the index is empty: give an index folder or the URL of a retriever")
    if ":" in shown and not folder.exists() and "/" not in parse_spec(shown).scheme:
        added = "".join(f", {name}:" for name in sorted(plugins.names("retrievers")))
        raise ConfigError(
            f"{shown} is neither an index folder nor a known retriever: retrievers begin with {', '.join(_REMOTE)}"
            f"{added}; register one of your own as an entry point pyrag.retrievers, or pass the object in Python"
        )
    from pyrag.retrieval.index import read_info

    while True:
        info = read_info(folder)
        try:
            retriever, failure = _of_kind(info, folder, shown, options), None
        except DataError as error:
            failure = error
        if read_info(folder) == info:
            if failure is not None:
                raise failure
            return retriever


def _of_kind(info: IndexInfo, folder: Path, shown: str, options: Options) -> Retriever:
    from pyrag.retrieval.bm25 import Bm25Retriever
    from pyrag.retrieval.index import open_index
    from pyrag.retrieval.indexing.checksums import content_fingerprint

    bm25 = open_index(folder)
    searched = partial(
        SearchedIndex,
        kind=info.kind,
        generation=info.generation,
        fingerprint=content_fingerprint(folder / info.generation),
        passages=info.passages,
    )
    sparse = Bm25Retriever(bm25, name=f"bm25:{shown}", searched=searched(f"bm25:{shown}"))
    if info.kind == "bm25" and not options.exact:
        return sparse
    if info.kind == "bm25":
        raise ConfigError(f"{shown} has no vectors to search exactly: build it with --embedder and --exact")
    if options.dense_weight <= 0:
        if info.kind == "dense":
            raise ConfigError(f"{shown} is searched by its vectors only: keep the dense weight above 0")
        return sparse
    from pyrag.retrieval.dense import DenseRetriever
    from pyrag.retrieval.index import vectors_folder
    from pyrag.retrieval.vectors.faiss_index import open_vectors

    vectors = open_vectors(vectors_folder(folder, info))
    if options.exact:
        _check_exact(vectors, shown)
    dense = DenseRetriever(
        vectors,
        _embedder(info, options),
        bm25.passages,
        f"dense:{shown}",
        searched(f"dense:{shown}"),
        bm25.selector.selected,
        bm25.selector.judged,
        bm25.catalogue,
    )
    if info.kind == "dense" or options.dense_weight >= 1:
        return dense
    from pyrag.retrieval.hybrid import HybridRetriever, WeightedRetriever

    weight = options.dense_weight
    parts = {"bm25": WeightedRetriever(sparse, 1 - weight), "dense": WeightedRetriever(dense, weight)}
    return HybridRetriever(parts, name=f"hybrid:{shown}", searched=searched(f"hybrid:{shown}"))


def _check_exact(vectors: VectorIndex, shown: str) -> None:
    """Raise `ConfigError` if these vectors are searched approximately."""
    from pyrag.retrieval.vectors.index_types import EXACT

    types = sorted({segment.type for segment in vectors.info.segments if segment.type != EXACT})
    if types:
        raise ConfigError(
            f"the vectors of {shown} are approximate ({', '.join(types)}, recall {vectors.info.recall:.2f}): build "
            "them again with --exact"
        )


def _embedder(info: IndexInfo, options: Options) -> TextEmbedder:
    from pyrag.retrieval.embedders.embedding import open_embedder

    return open_embedder(options.embedder or info.embedder, timeout=options.timeout, transport=options.transport)
