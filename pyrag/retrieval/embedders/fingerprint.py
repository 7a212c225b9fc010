"""Fingerprints of embedding models, and the prefixes and pooling that each family of models needs.

A model belongs to the first family in the table that matches its name. The prefixes are quoted from the models' cards.
A model without a family is used as its configuration declares (sentence-transformers), or with mean pooling and no
prefix (ONNX).
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
    """Family of models. `query` and `passage` are prefixes of texts; `normalised` vectors have length 1."""

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
    """Return the first family whose pattern occurs in a model's name or path."""
    name = model.lower().replace("_", "-")
    return next((family for family in FAMILIES if re.search(family.pattern, name)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Everything that determines the vector of a text, except rounding.

    Attributes:
        max_tokens: Maximum number of tokens of a text; 0 if unknown. It is not compared, since it only affects long
            texts.
    """

    model: str
    dimension: int
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: str = "mean"
    normalised: bool = True
    max_tokens: int = 0

    def difference(self, other: Fingerprint) -> str:
        """Describe the first difference, with this fingerprint's value first; empty if vectors can be compared."""
        mine, others = (item.model.rstrip("/").rpartition("/")[2].lower() for item in (self, other))
        if mine != others:
            return f"the model {self.model}, not {other.model}"
        for name in ("dimension", "query_prefix", "passage_prefix", "pooling", "normalised"):
            if getattr(self, name) != getattr(other, name):
                word = name.replace("_", " ")
                return f"the {word} {getattr(self, name)!r}, not {getattr(other, name)!r}"
        return ""


def fingerprint_of(model: str, dimension: int, *, max_tokens: int = 0) -> Fingerprint:
    """Return the fingerprint of a model, with the prefixes and pooling of its family.

    A model without a family gets mean pooling and no prefixes.

    Args:
        model: Name or path of the model, which determines its family and is stored in indexes.
        dimension: Length of the model's vectors.
        max_tokens: Maximum number of tokens of a text. 0 if unknown.
    """
    family = family_of(model) or Family("", "")
    return Fingerprint(
        model=model, dimension=dimension, query_prefix=family.query, passage_prefix=family.passage,
        pooling=family.pooling, normalised=family.normalised, max_tokens=max_tokens,
    )  # fmt: skip
