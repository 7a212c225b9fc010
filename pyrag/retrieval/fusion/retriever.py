"""Retriever over several sources: all are searched at the same time, and their lists are fused by reciprocal rank.

Ids begin with the source's name (`notes:4f1c…`), so that equal documents in two sources remain distinct, and each
passage has the source's name in its metadata, under `origin`. A source that fails or is too slow is skipped with a
note; the search fails only if no source answers.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from pyrag.errors import FilterError, PyRAGError, ServiceError
from pyrag.retrieval.checked import Passages
from pyrag.retrieval.filters.tree import Filter, value_text
from pyrag.retrieval.filters.verdict import ABOUT_FILTER, NOTHING_TO_SAY, FilterVerdict
from pyrag.retrieval.fusion.documents import FusedDocuments, FusedSource, with_origin
from pyrag.retrieval.fusion.origin import LEFT_OUT, ORIGIN, rest_for
from pyrag.retrieval.hybrid import fuse
from pyrag.retrieval.protocol import filter_verdict, passages_of, searched_index
from pyrag.trace.model import Passage, SearchedIndex


class FusedRetriever(FusedDocuments):
    """A `Retriever` over several sources.

    Args:
        sources: The sources, with distinct names; if scores are equal, passages of earlier sources come first.
    """

    def __init__(self, sources: Sequence[FusedSource]) -> None:
        self._sources = {source.name: source for source in sources}
        self.name = " + ".join(self._sources)

    @property
    def searched(self) -> SearchedIndex:
        """Generations of all sources, and the sum of their passages if all are known."""
        indexes = {name: searched_index(source.retriever) for name, source in self._sources.items()}
        generations = " ".join(f"{name}={index.generation}" for name, index in indexes.items() if index.generation)
        prints = " ".join(f"{name}={index.fingerprint}" for name, index in indexes.items() if index.fingerprint)
        counts = [index.passages for index in indexes.values()]
        return SearchedIndex(
            self.name,
            kind="fused",
            generation=generations,
            fingerprint=hashlib.sha256(prints.encode()).hexdigest() if prints else "",
            passages=None if None in counts else sum(filter(None, counts)),
        )

    async def retrieve(self, query: str, topk: int, where: Filter | None = None) -> list[Passage]:
        """Return the best passages of all sources that answer in time.

        Args:
            query: Search text.
            topk: Maximum number of passages.
            where: Filter of the passages; sources whose passages cannot pass it are not searched.

        Returns:
            Passages, best first; `notes` name skipped sources, with the reasons.

        Raises:
            FilterError: No source supports the filter.
            ServiceError: No source answered.
        """
        asked = {name: rest for name in self._sources if (rest := rest_for(where, name)) is not False}
        if topk < 1 or not asked:
            return []
        tasks = [_searched(self._sources[name], query, topk, rest) for name, rest in asked.items()]
        results = dict(zip(asked, await asyncio.gather(*tasks), strict=True))
        lists = {name: result for name, result in results.items() if isinstance(result, Passages)}
        failures = {name: result for name, result in results.items() if isinstance(result, PyRAGError)}
        if not lists:
            raise self._failed(failures)
        notes = [f"{name}: {note}" for name, passages in lists.items() for note in passages.notes]
        notes += [f"the source {name} {LEFT_OUT}: {error}" for name, error in failures.items()]
        notes += [
            f"{name}: the field {ORIGIN} of its documents is hidden by the source's name"
            for name, passages in lists.items()
            if any(ORIGIN in passage.metadata for passage in passages)
        ]
        named = {name: [with_origin(passage, name) for passage in passages] for name, passages in lists.items()}
        weights = {name: source.weight for name, source in self._sources.items()}
        return Passages(fuse(named, weights)[:topk], notes)

    def _failed(self, failures: dict[str, PyRAGError]) -> PyRAGError:
        first = next(iter(failures.values()))
        if len(failures) == 1 or all(isinstance(error, FilterError) for error in failures.values()):
            return first
        each = "; ".join(f"{name}: {error}" for name, error in failures.items())
        return ServiceError(f"no source answered ({each})", service=self.name)

    async def judge_filter(self, where: Filter, within: Filter | None = None) -> FilterVerdict:
        """Judge a filter before a search; there is only a verdict if no source's passages can pass it.

        Args:
            where: The filter.
            within: Filter for the passages that the caller may see; None for all.
        """
        known = {name: rest for name in self._sources if (rest := rest_for(within, name)) is not False}
        verdicts: dict[str, FilterVerdict] = {}
        for name, inner in known.items():
            rest = rest_for(where, name)
            if rest is None:
                return NOTHING_TO_SAY
            if rest is not False:
                verdicts[name] = await filter_verdict(self._sources[name].retriever, rest, inner)
        if not verdicts:
            names = ", ".join(map(value_text, known))
            return FilterVerdict(
                (f"{ABOUT_FILTER}{where} passes no source: the field {ORIGIN} is one of {names}",), True
            )
        if not all(verdict.sentences for verdict in verdicts.values()):
            return NOTHING_TO_SAY
        sentences = tuple(f"{text} (in {name})" for name, verdict in verdicts.items() for text in verdict.sentences)
        return FilterVerdict(sentences, all(verdict.mismatched for verdict in verdicts.values()))

    async def aclose(self) -> None:
        """Close all sources, even if closing one of them fails; then raise the first error."""
        closing = [source.retriever.aclose() for source in self._sources.values()]
        for result in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result


async def _searched(source: FusedSource, query: str, topk: int, where: Filter | None) -> Passages | PyRAGError:
    """Return the passages of a source, or the error that prevents it from answering."""
    try:
        async with asyncio.timeout(source.deadline):
            return await passages_of(source.retriever, query, topk, where=where)
    except TimeoutError:
        return ServiceError(f"it did not answer within {source.deadline:g} seconds", service=source.name)
    except PyRAGError as error:
        return error
