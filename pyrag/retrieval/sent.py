"""Documents that were sent to an index over HTTP: files in a folder of the index, which every update keeps.

Each file is named by the document's id and the id's digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote

FOLDER = "documents"
_MAX_NAME = 100  # characters of an id in its file's name
_NAME = re.compile(r"(?P<id>.+)-[0-9a-f]{32}\.jsonl", re.DOTALL)


def file_of(index: Path, key: str) -> Path:
    """Return the file of a document.

    Args:
        index: Folder of the index.
        key: Id of the document.
    """
    name = f"{quote(key, safe='')[:_MAX_NAME]}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.jsonl"
    return index / FOLDER / (f"%2E{name[1:]}" if name.startswith(".") else name)  # hidden files are not indexed


def sent_documents(index: Path) -> tuple[str, ...]:
    """Return the ids of the documents that were sent to an index, sorted. Long ids are cut.

    Args:
        index: Folder of the index.
    """
    try:
        names = [path.name for path in (index / FOLDER).iterdir()]
    except OSError:
        return ()
    return tuple(sorted(unquote(match["id"]) for match in map(_NAME.fullmatch, names) if match))


def sent_folder(index: Path) -> tuple[Path, ...]:
    """Return the folder of the documents that were sent to an index; empty if there are none.

    Args:
        index: Real path of the index's folder.
    """
    return (index / FOLDER,) if sent_documents(index) else ()


def delete_sent(index: Path, places: Iterable[str]) -> None:
    """Delete the files of documents that were sent to an index; other paths are ignored.

    Args:
        index: Real path of the index's folder.
        places: Real paths of files.
    """
    for path in map(Path, places):
        if path.parent == index / FOLDER and _NAME.fullmatch(path.name):
            path.unlink(missing_ok=True)
