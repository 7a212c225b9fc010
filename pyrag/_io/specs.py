"""Specs: texts that name a part of pyrag, such as an engine, a retriever, an embedder or a tool.

    SCHEME:NAME               vllm:Qwen/Qwen2.5-7B, st:all-MiniLM-L6-v2, sql:shop.db
    SCHEME:NAME@ADDRESS       openai:MODEL@http://host:8000/v1, pgvector:TABLE@postgresql://host/db, qdrant:docs@DIR
    NAME=SCHEME:NAME          orders=sql:shop.db, for specs that may be given a name

The opener of each scheme decides which parts it needs; this module only splits the text, and replaces `~` in a path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_WITH_URL = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_NAMED = re.compile(r"(?:(\w+)=)?([^:=]+):(.+)", re.DOTALL)


class Spec(NamedTuple):
    """Scheme of a spec, and the text after its first colon."""

    scheme: str
    rest: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.rest}" if self.rest else self.scheme

    @property
    def at_url(self) -> tuple[str, str]:
        """Name and HTTP URL of `NAME@URL`; the URL is empty if there is none. Names may contain an @."""
        match = _WITH_URL.fullmatch(self.rest)
        return (match[1], match[2]) if match else (self.rest, "")

    @property
    def at_place(self) -> tuple[str, str]:
        """Name and place of `NAME@PLACE`, such as a folder or a database; names must not contain an @."""
        name, _, place = self.rest.partition("@")
        return name, place


def parse_spec(text: str) -> Spec:
    """Split a spec. A text without a colon is a scheme."""
    scheme, _, rest = text.strip().partition(":")
    return Spec(scheme, rest)


def parse_named_spec(text: str) -> tuple[str, Spec]:
    """Split a spec that may begin with `NAME=`.

    Returns:
        Name (empty if there is none) and spec. A text of another form is a scheme.
    """
    match = _NAMED.fullmatch(text)
    return (match[1] or "", Spec(match[2], match[3])) if match else ("", Spec(text, ""))


def expanded(path: str | Path) -> Path:
    """Replace `~` in a path with the home folder; return the path unchanged if there is no such user or folder."""
    text = str(path)
    return Path(text if "\0" in text else os.path.expanduser(text))  # noqa: PTH111 (Path's own raises)
