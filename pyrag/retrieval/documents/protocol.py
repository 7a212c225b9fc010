"""Protocol of document readers that packages add for a suffix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

DocumentRecord = Mapping[str, Any]
"""Part of a document: `text`, optionally `title` and `id`, and metadata under other names."""


class DocumentReader(Protocol):
    """Function that reads documents of one format."""

    def __call__(self, data: bytes, name: str) -> str | Iterable[DocumentRecord]:
        """Return a document's text, or its records.

        Args:
            data: Unpacked content of the file.
            name: Name of the file, for messages.
        """
        ...
