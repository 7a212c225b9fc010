"""A retriever of the user's own. Only `retrieve` is needed of it: its name and its closing cannot fail a question."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from pyrag.errors import ConfigError
from pyrag.retrieval.checked import Passages
from pyrag.retrieval.protocol import described, name_of, passages_of


class OwnRetriever:
    """A `Retriever` over any object with `retrieve(query, topk)`. Raises `ConfigError` for an object without."""

    def __init__(self, inner: Any) -> None:
        try:
            usable = callable(inner.retrieve)
        except Exception:
            usable = False
        if not usable:
            raise ConfigError(
                f"a {type(inner).__name__} is no retriever: give a URL, an index folder or an object with "
                "async retrieve(query, topk)"
            )
        self.inner = inner

    @property
    def name(self) -> str:
        return name_of(self.inner)

    async def retrieve(self, query: str, topk: int) -> Passages:
        """What the object finds, checked; its mistakes are `ServiceError`."""
        return await passages_of(self.inner, query, topk)

    async def aclose(self) -> None:
        """Closes the object, if it can be closed; a failure is a warning."""
        close = getattr(self.inner, "aclose", None) or getattr(self.inner, "close", None)
        try:
            closing = close() if callable(close) else None
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:
            warnings.warn(f"the retriever {self.name} could not be closed ({described(error)})", stacklevel=2)
