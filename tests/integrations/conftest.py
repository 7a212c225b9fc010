"""Parts that the tests of frameworks share."""

from __future__ import annotations

from tests.retrieval.conftest import dead_url

__all__ = ["dead_url"]
