"""Reranking behind the retriever protocol: a retriever's best are scored again by something slower and better.

A scorer is any callable from a query and passages to one score each, larger is better, plain or asynchronous; plain
ones run on the vectors' thread pool. `cross_encoder` makes one from a sentence-transformers model (`pyrag[dense]`);
`reader` is the embedded one, which needs nothing and scores how likely a passage answers a single-hop query.
The score that the passage had before stays in `Passage.parts`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from pyrag.errors import ConfigError, PyRAGError, ServiceError
from pyrag.retrieval.embedding import passage_text
from pyrag.retrieval.protocol import Retriever
from pyrag.retrieval.threads import in_thread
from pyrag.trace import Passage

Scorer = Callable[[str, Sequence[Passage]], Sequence[float] | Awaitable[Sequence[float]]]
DEPTH = 50
READER = "reader"
READER_DEPTH = 20  # 6 ms of CPU a passage: deeper costs more than it finds
PART = "rerank"


class RerankingRetriever:
    """A `Retriever` that asks `inner` for `depth` passages and keeps those that `scorer` likes best."""

    def __init__(self, inner: Retriever, scorer: Scorer, *, name: str = "rerank", depth: int = DEPTH) -> None:
        self._inner = inner
        self._scorer = scorer
        self._name = name
        self._depth = depth

    @property
    def name(self) -> str:
        return f"{self._name}({self._inner.name})"

    async def retrieve(self, query: str, topk: int) -> list[Passage]:
        if topk < 1:
            return []
        passages = await self._inner.retrieve(query, max(self._depth, topk))
        if not passages:
            return []
        scores = await self._scores(query, passages)
        scored = [
            replace(
                passage, score=float(score), parts={**(passage.parts or {"first": passage.score}), PART: float(score)}
            )
            for passage, score in zip(passages, scores, strict=True)
        ]
        return sorted(scored, key=lambda passage: -passage.score)[:topk]  # stable: ties as the inner one had them

    async def _scores(self, query: str, passages: Sequence[Passage]) -> Sequence[float]:
        try:
            if inspect.iscoroutinefunction(self._scorer):
                scores: Sequence[float] = await self._scorer(query, passages)
            else:
                result: Any = await in_thread(self._scorer, query, passages)
                scores = await result if inspect.isawaitable(result) else result
        except PyRAGError:
            raise
        except Exception as error:
            message = f"reranking with {self._name} failed ({type(error).__name__}: {error}): look into the scorer"
            raise ServiceError(message, service=self._name) from error
        if len(scores) != len(passages):
            message = f"{self._name} gave {len(scores)} scores for {len(passages)} passages: it must give one for each"
            raise ServiceError(message, service=self._name)
        return scores

    async def aclose(self) -> None:
        await self._inner.aclose()


def reranked(retriever: Retriever, spec: str) -> RerankingRetriever:
    """By what a spec names: `reader`, or a cross-encoder."""
    if spec != READER:
        return RerankingRetriever(retriever, cross_encoder(spec), name=f"{PART}:{spec}")
    from pyrag.embedded.neural import NeuralAnswerer

    return RerankingRetriever(retriever, NeuralAnswerer().evidence, name=f"{PART}:{spec}", depth=READER_DEPTH)


def cross_encoder(model: str, *, batch: int = 32) -> Scorer:
    """A scorer over a cross-encoder of the hub or a folder; loaded at the first query."""
    loaded: list[Any] = []

    def score(query: str, passages: Sequence[Passage]) -> Sequence[float]:
        if not loaded:
            loaded.append(_load(model))
        pairs = [(query, passage_text(passage.title, passage.text)) for passage in passages]
        return [float(one) for one in loaded[0].predict(pairs, batch_size=batch, show_progress_bar=False)]

    return score


def _load(model: str) -> Any:
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise ConfigError("a cross-encoder needs sentence-transformers: pip install 'pyrag[dense]'") from error
    return CrossEncoder(model)
