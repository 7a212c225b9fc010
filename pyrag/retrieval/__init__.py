"""Retrievers with a common protocol: BM25, dense and hybrid over an index folder, servers, and user-defined ones.

Importing this package loads no retriever; `open_retriever` imports what its argument needs.
"""

from pyrag.retrieval.open import Options, open_retriever
from pyrag.retrieval.protocol import Retriever

__all__ = ["Options", "Retriever", "open_retriever"]
