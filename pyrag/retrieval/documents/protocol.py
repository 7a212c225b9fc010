"""Reader of documents that a package adds for a suffix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

DocumentRecord = Mapping[str, Any]
"""Part of a document: its `text`, optionally its `title` and `id`, and metadata under other names."""


class DocumentReader(Protocol):
    """Function that reads documents of one format."""

    def __call__(self, data: bytes, name: str) -> str | Iterable[DocumentRecord]:
        """Return a document's text, or its records.

        Args:
            data: Content of the file, unpacked.
            name: Name of the file, for messages.
        """
        ...
