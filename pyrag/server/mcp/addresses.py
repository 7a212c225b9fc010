"""Addresses of resources: `pyrag://INDEX` and `pyrag://INDEX/passages/ID`, percent-encoded.

`REFERENCE` is the address of the reference of programs; index names cannot contain its slash.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from pyrag.server.errors import ApiError

_SCHEME = "pyrag://"
_PASSAGES = "/passages/"
PASSAGE_TEMPLATE = f"{_SCHEME}{{index}}{_PASSAGES}{{id}}"
REFERENCE = f"{_SCHEME}reference/programs"


def index_uri(name: str) -> str:
    """Return the address of an index."""
    return f"{_SCHEME}{quote(name, safe='')}"


def passage_uri(index: str, key: str) -> str:
    """Return the address of a passage.

    Args:
        index: Name of the index.
        key: Id of the passage.
    """
    return f"{index_uri(index)}{_PASSAGES}{quote(key, safe='')}"


def read_uri(uri: str) -> tuple[str, str | None]:
    """Return the index and the passage that an address names; the passage is empty for the address of an index.

    Raises:
        ApiError: The address is not one of pyrag's.
    """
    if not uri.startswith(_SCHEME):
        raise ApiError(404, "unknown_resource", f"there is no resource {uri!r}: its address must open with {_SCHEME}")
    name, separator, key = uri.removeprefix(_SCHEME).partition(_PASSAGES)
    return unquote(name.rstrip("/")), unquote(key) if separator else None
