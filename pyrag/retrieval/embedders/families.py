"""What each family of embedding models wants around a text, and how its token vectors become one vector.

One table, matched against a model's name from the top. The wordings are those of the models' own cards. A model that
no row matches is taken as it declares itself (sentence-transformers) or as mean pooling without a prefix (ONNX).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Pooling = Literal["mean", "cls", "last"]

_BGE_ENGLISH = "Represent this sentence for searching relevant passages: "
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章："
_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "


@dataclass(frozen=True, slots=True)
class Family:
    """`query` and `passage` are put before the text; `normalised` vectors have length 1."""

    name: str
    pattern: str
    query: str = ""
    passage: str = ""
    pooling: Pooling = "mean"
    normalised: bool = True


FAMILIES = (
    Family("e5-mistral", r"e5-mistral", query=_SEARCH, pooling="last"),
    Family("e5-instruct", r"\be5-.*instruct", query=_SEARCH),
    Family("e5", r"\be5-", query="query: ", passage="passage: "),
    Family("bge-m3", r"\bbge-m3", pooling="cls"),
    Family("bge-zh", r"\bbge-.*-zh", query=_BGE_CHINESE, pooling="cls"),
    Family("bge", r"\bbge-", query=_BGE_ENGLISH, pooling="cls"),
    Family("arctic", r"arctic-embed", query=_BGE_ENGLISH, pooling="cls"),
    Family("gte-qwen", r"\bgte-qwen", query=_SEARCH, pooling="last"),
    Family("gte-v1.5", r"\bgte-.*(v1\.5|modernbert|multilingual)", pooling="cls"),
    Family("gte", r"\bgte-"),
    Family("nomic", r"nomic-embed", query="search_query: ", passage="search_document: "),
    Family("contriever", r"contriever", normalised=False),
    Family("sentence", r"\b(all|multi-qa|paraphrase)-.*(minilm|mpnet|distilroberta)"),
)


def family_of(model: str) -> Family | None:
    """The first row whose pattern is found in the model's name or path."""
    name = model.lower().replace("_", "-")
    return next((family for family in FAMILIES if re.search(family.pattern, name)), None)
