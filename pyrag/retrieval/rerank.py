"""Reranking of a retriever's best passages by a slower and better scorer.

A scorer is a function from a query and passages to a score for each passage; higher scores are better. It may be
asynchronous; other scorers run in threads. `cross_encoder` makes a scorer from a model. `reader` is the embedded
reader, which needs no other package and estimates how likely a passage is to answer a single-hop query. `Passage.parts`
keeps the earlier scores.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyrag._io.excerpts import excerpt
from pyrag._io.hub import unreachable
from pyrag._io.specs import expanded
from pyrag._io.threads import cores, in_thread
from pyrag.agents.engine import default_engine
from pyrag.errors import ConfigError, DataError, PyRAGError, ServiceError, install_extra
from pyrag.retrieval.catalogue.delegating import WrappingRetriever
from pyrag.retrieval.checked import Passages
from pyrag.retrieval.embedders.onnx import clean, open_session, open_tokenizer
from pyrag.retrieval.embedders.protocol import passage_text
from pyrag.retrieval.filters.tree import Filter
from pyrag.retrieval.protocol import Retriever, name_of, passages_of, searched_index
from pyrag.trace.model import Passage, SearchedIndex

Scorer = Callable[[str, Sequence[Passage]], Sequence[float] | Awaitable[Sequence[float]]]
Pairs = Callable[[Sequence[tuple[str, str]]], list[float]]
DEPTH = 50
READER = "reader"
READER_DEPTH = 20  # each passage takes 6 ms of CPU; more cost more than they bring
PART = "rerank"
ONNX = "onnx:"
SENTENCE_TRANSFORMERS = "st:"
_BATCH = 32
_MAX_TOKENS = 512  # of query and passage together
_MAX_WORDS = 200  # of the query, since only the passage is cut to fit


class RerankingRetriever(WrappingRetriever):
    """Retriever that requests `depth` passages from `inner` and returns those with the highest scores by `scorer`."""

    def __init__(self, inner: Retriever, scorer: Scorer, *, name: str = "rerank", depth: int = DEPTH) -> None:
        self._inner = inner
        self.wrapped = (inner,)
        self._scorer = scorer
        self._name = name
        self._depth = depth

    @property
    def name(self) -> str:
        return f"{self._name}({name_of(self._inner)})"

    @property
    def searched(self) -> SearchedIndex:
        return replace(searched_index(self._inner), name=self.name)

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the passages that the scorer ranks best among the first `depth` of the inner retriever.

        Args:
            query: Text to search for.
            topk: Maximum number of passages.
            where: Filter that passages must pass. None for no filter.

        Raises:
            ServiceError: The retriever or the scorer failed.
        """
        if topk < 1:
            return []
        passages = await passages_of(self._inner, query, max(self._depth, topk), where=where)
        if not passages:
            return []
        scores = await self._scores(query, passages)
        scored = [
            replace(
                passage, score=float(score), parts={**(passage.parts or {"first": passage.score}), PART: float(score)}
            )
            for passage, score in zip(passages, scores, strict=True)
        ]
        best = sorted(scored, key=lambda passage: -passage.score)[:topk]  # stable: ties keep their order
        return Passages(best, passages.notes)

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
            words = f"{type(error).__name__}: {excerpt(error, 300)}"
            message = f"reranking with {self._name} failed ({words}): look into the scorer"
            raise ServiceError(message, service=self._name) from error
        if len(scores) != len(passages):
            message = f"{self._name} gave {len(scores)} scores for {len(passages)} passages: it must give one for each"
            raise ServiceError(message, service=self._name)
        return scores


def reranked(retriever: Retriever, spec: str) -> RerankingRetriever:
    """Return a retriever with the reranker that a spec names.

    Args:
        retriever: Retriever of the passages to rerank.
        spec: `reader`, `onnx:DIR` or `st:NAME`.

    Raises:
        ConfigError: The spec does not name a reranker.
    """
    if spec.startswith((ONNX, SENTENCE_TRANSFORMERS)):
        return RerankingRetriever(retriever, cross_encoder(spec), name=f"{PART}:{spec}")
    if spec != READER:
        raise ConfigError(f"there is no reranker {spec!r}: write {READER}, {ONNX}DIR or {SENTENCE_TRANSFORMERS}NAME")
    open_reader = default_engine().open_reader
    assert open_reader is not None
    return RerankingRetriever(retriever, open_reader().evidence, name=f"{PART}:{spec}", depth=READER_DEPTH)


def cross_encoder(model: str) -> Scorer:
    """Return a scorer that uses a cross-encoder, loaded by the first query."""
    load = (
        partial(OnnxPairs, expanded(model.removeprefix(ONNX)))
        if model.startswith(ONNX)
        else partial(_sentence_transformers, model.removeprefix(SENTENCE_TRANSFORMERS))
    )
    loading = threading.Lock()  # several queries may be the first at the same time
    loaded: list[Pairs] = []

    def score(query: str, passages: Sequence[Passage]) -> Sequence[float]:
        with loading:
            if not loaded:
                loaded.append(load())
        return loaded[0]([(query, passage_text(passage.title, passage.text)) for passage in passages])

    return score


def _sentence_transformers(model: str) -> Pairs:
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise ConfigError(f"a cross-encoder needs sentence-transformers: {install_extra('dense')}") from error
    try:
        network = CrossEncoder(model, local_files_only=not Path(model).exists() and unreachable())
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise DataError(f"the cross-encoder {model} cannot be loaded ({reason}): check its name") from error

    def scores(pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [float(score) for score in network.predict(list(pairs), batch_size=_BATCH, show_progress_bar=False)]

    return scores


class OnnxPairs:
    """Exported cross-encoder. Pairs are scored one by one, since int8 scores would depend on their batch."""

    def __init__(self, folder: Path) -> None:
        self._session = open_session(folder, cores())
        self._tokenizer = open_tokenizer(folder)
        self._tokenizer.enable_truncation(_MAX_TOKENS, strategy="only_second")
        self._tokenizer.no_padding()
        self._inputs = {item.name for item in self._session.get_inputs()}

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        cleaned = [(clean(" ".join(query.split()[:_MAX_WORDS])), clean(text)) for query, text in pairs]
        return [self._score(item) for item in self._tokenizer.encode_batch(cleaned)]

    def _score(self, pair: Any) -> float:
        import numpy as np

        ids = np.asarray([pair.ids], np.int64)
        kinds = np.asarray([pair.type_ids], np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": kinds}
        logits = self._session.run(None, {name: feeds[name] for name in self._inputs})[0]
        return float(1 / (1 + np.exp(-logits[0, -1])))  # the only label, or the second of two, "relevant"
