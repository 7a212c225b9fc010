"""Checks of a store for passages and their vectors, such as `pyrag.retrieval.stores.qdrant.QdrantStore`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pyrag._io.threads import in_thread
from pyrag.errors import ConfigError
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.testing.checks import expect, shown
from pyrag.trace.model import Passage

if TYPE_CHECKING:
    from pyrag.retrieval.embedders.protocol import Matrix

_DIMENSION = 8
_PASSAGES = (
    Passage("a", "Zebra", "A zebra has stripes.", source="animals.md", start=0, end=20),
    Passage("b", "Heron", "A heron lives at rivers."),
    Passage("weird id\n é \\ '", "星河", "Ünïcode 👍 rivers", source="a\\b"),
    *(Passage(f"p{number}", f"Title {number}", f"text {number}") for number in range(5)),
)


class PassageStore(Protocol):
    """Store for passages by id, each with a vector. It is called from several threads."""

    def create(self, fingerprint: Fingerprint) -> None:
        """Create the store; keep an existing one of the same embedder. Raises `ConfigError` for another embedder."""
        ...

    def check(self, fingerprint: Fingerprint) -> None:
        """Raise `ConfigError` if the store's vectors were made with a different embedder."""
        ...

    def add(self, passages: Sequence[Passage], vectors: Matrix) -> None:
        """Write passages, replacing those with the same ids.

        Args:
            passages: Passages to write.
            vectors: Array of float32 of shape (passages, dimension).
        """
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Delete passages. Unknown ids are ignored."""
        ...

    def search(self, vector: Matrix, topk: int) -> list[Passage]:
        """Return the passages with the nearest vectors, best first.

        Args:
            vector: Array of float32 of shape (dimension,).
            topk: Maximum number of passages.
        """
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class StoreCase:
    """Functions that create and close stores for checks.

    Attributes:
        make: Function that returns a new, empty store. It is called once per check.
        close: Function that closes a store.
    """

    make: Callable[[], PassageStore]
    close: Callable[[PassageStore], None] = lambda store: None


def fingerprint(model: str = "words") -> Fingerprint:
    return Fingerprint(model=model, dimension=_DIMENSION)


def vectors_of(count: int) -> Matrix:
    """Return different unit vectors, the same at each call."""
    import numpy as np

    made = np.random.default_rng(3).normal(size=(count, _DIMENSION))
    unit: Matrix = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _filled(store: PassageStore) -> Matrix:
    vectors = vectors_of(len(_PASSAGES))
    store.create(fingerprint())
    store.add(_PASSAGES, vectors)
    return vectors


def finds_passages_whole(store: PassageStore) -> None:
    vectors = _filled(store)
    for passage, vector in zip(_PASSAGES, vectors, strict=True):
        passages = store.search(vector, 1)
        expect(
            [match.id for match in passages] == [passage.id], f"the vector of {passage.id!r} found {shown(passages)}"
        )
        same = replace(passages[0], score=0.0, parts={}) == passage
        expect(same, f"{shown(passage)} came back as {shown(passages[0])}: keep every field")


def returns_best_first_and_at_most_topk(store: PassageStore) -> None:
    vectors = _filled(store)
    for topk in (1, 3, 100):
        passages = store.search(vectors[0], topk)
        scores = [match.score for match in passages]
        expect(
            len(passages) == min(topk, len(_PASSAGES)),
            f"topk={topk} found {len(passages)} of {len(_PASSAGES)} passages",
        )
        expect(scores == sorted(scores, reverse=True), f"its scores do not fall along the list: {shown(scores)}")


def replaces_passages_of_the_same_id(store: PassageStore) -> None:
    vectors = _filled(store)
    store.add([replace(_PASSAGES[0], text="another text")], vectors[:1])
    expect(len(store) == len(_PASSAGES), f"after a passage was written again it counts {len(store)}")
    expect(store.search(vectors[0], 1)[0].text == "another text", "a passage written again keeps its old text")


def deletes_and_ignores_unknown_ids(store: PassageStore) -> None:
    vectors = _filled(store)
    store.delete([_PASSAGES[2].id, "unknown"])
    expect(len(store) == len(_PASSAGES) - 1, f"after one was deleted of {len(_PASSAGES)} it counts {len(store)}")
    ids = [match.id for match in store.search(vectors[2], 100)]
    expect(_PASSAGES[2].id not in ids, "a deleted passage is still found")


def refuses_other_embedders(store: PassageStore) -> None:
    _filled(store)
    store.create(fingerprint())
    store.check(fingerprint())
    for refuse in (store.create, store.check):
        try:
            refuse(fingerprint("another"))
        except ConfigError:
            continue
        raise AssertionError("it takes vectors of another embedder: raise ConfigError where the fingerprint differs")


def _check(work: Callable[[PassageStore], None]) -> Callable[[StoreCase], Awaitable[None]]:
    """Return a check that runs on a new store in a thread, as searches do."""

    async def check(case: StoreCase) -> None:
        store = case.make()
        try:
            await in_thread(partial(work, store))
        finally:
            case.close(store)

    check.__name__ = work.__name__
    return check


STORE_CHECKS: tuple[Callable[[StoreCase], Awaitable[None]], ...] = tuple(
    map(
        _check,
        (
            finds_passages_whole,
            returns_best_first_and_at_most_topk,
            replaces_passages_of_the_same_id,
            deletes_and_ignores_unknown_ids,
            refuses_other_embedders,
        ),
    )
)
