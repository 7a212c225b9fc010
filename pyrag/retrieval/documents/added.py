"""Passages out of files of kinds that installed packages read: entry points of the group `pyrag.documents`.

The entry point is named as the suffix. Its function takes a file's bytes and name, and returns text, which is cut into
passages as Markdown is, or records: mappings with `text`, and with `title`, `id` and further fields if they have some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyrag._io import plugins
from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.documents.model import Placed
from pyrag.retrieval.documents.prose import running_text
from pyrag.retrieval.documents.records import record_of_value
from pyrag.retrieval.documents.unpack import Opened


def added(file: Opened) -> Iterator[Placed]:
    """Yield the passages of a file that an installed package reads. Raises `DataError` if it cannot."""
    suffix, name = file.document.kind.removeprefix("."), file.document.name
    package = plugins.package_of_part("documents", suffix)
    try:
        read = plugins.loaded_function("documents", suffix, "read(data, name)")
    except ConfigError as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    try:
        given: Any = read(file.whole(), name)
        values = given if isinstance(given, str) else list(given)
    except DataError:
        raise
    except Exception as error:  # whatever the package's code raises
        raise DataError(f"{name}: the reader of {package} failed ({type(error).__name__}: {error})") from error
    if isinstance(values, str):
        yield from running_text(file, values)
        return
    for number, value in enumerate(values, 1):
        where = f"{name} record {number}"
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: the reader of {package} gave a {type(value).__name__}: it must give mappings")
        yield record_of_value(file, dict(value), where)
