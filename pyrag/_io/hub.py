"""Files of the public hub, of another server with the same protocol, or of a folder that mirrors it.

The files of a mirror are `FOLDER/OWNER/REPOSITORY/FILE`. The hub's own client (`pip install '.[data]'`) downloads files
and resumes interrupted downloads. Nothing is fetched unless a command requests it.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyrag.errors import DataError, PermanentServiceError, UsageError, install_extra

HUB = "https://huggingface.co"
_CONNECTING = 5.0  # seconds
_SHA256 = re.compile(r"[0-9a-f]{64}")  # the tag of a large file; small files have git's own tags


@dataclass(frozen=True, slots=True)
class Remote:
    """File in a data set's repository on the hub."""

    repository: str
    file: str


def unreachable(endpoint: str = "") -> bool:
    """Return True if a hub refuses connections, so that its client would retry without success.

    The default is the hub of `HF_ENDPOINT`. The client itself handles slow hubs, proxies and its offline mode.
    """
    from urllib.request import getproxies  # imports HTTP and TLS, which most commands do not need

    address = urlsplit(endpoint or os.environ.get("HF_ENDPOINT") or HUB)
    if os.environ.get("HF_HUB_OFFLINE") or not address.hostname or getproxies().keys() & {address.scheme, "all"}:
        return False
    try:
        port = address.port or (80 if address.scheme == "http" else 443)
        socket.create_connection((address.hostname, port), timeout=_CONNECTING).close()
    except (TimeoutError, ValueError):
        return False
    except OSError:
        return True
    return False


def fetch(remote: Remote, source: str = HUB, folder: Path | None = None) -> Path:
    """Download a file and compare it with the hub's checksum.

    Args:
        remote: The file.
        source: URL of the hub, or a folder that mirrors it, from which nothing is copied.
        folder: Folder for the download. None for the client's cache.

    Returns:
        Path of the file.

    Raises:
        UsageError: The hub's client is not installed.
        DataError: The mirror lacks the file, or the download is damaged.
        PermanentServiceError: The file cannot be fetched.
    """
    if not source.startswith(("http://", "https://")):
        return _mirrored(remote, Path(source))
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError as error:
        raise UsageError(f"downloads need the hub's client: {install_extra('data')}") from error
    if not sys.stderr.isatty():
        disable_progress_bars()
    endpoint = source.rstrip("/")
    try:
        if unreachable(endpoint):
            raise ConnectionError("no connection")
        path = hf_hub_download(
            remote.repository, remote.file, repo_type="dataset", endpoint=endpoint, etag_timeout=10, local_dir=folder
        )
        address = hf_hub_url(remote.repository, remote.file, repo_type="dataset", endpoint=endpoint)
        about = get_hf_file_metadata(address, endpoint=endpoint)
    except (HfHubHTTPError, OSError, ValueError) as error:
        what = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise PermanentServiceError(
            f"{remote.repository}/{remote.file} could not be fetched from {source} ({what}): "
            "check the network, or name a mirror with --from FOLDER",
            service=source,
        ) from error
    _check(Path(path), about.size, about.etag or "")
    return Path(path)


def size_of(remote: Remote, source: str = HUB) -> int | None:
    """Return the size of a file in bytes, or None if it cannot be determined.

    Args:
        remote: The file.
        source: URL of the hub, or a folder that mirrors it.
    """
    if not source.startswith(("http://", "https://")):
        path = Path(source) / remote.repository / remote.file
        return path.stat().st_size if path.is_file() else None
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        return None
    endpoint = source.rstrip("/")
    try:
        if unreachable(endpoint):
            return None
        address = hf_hub_url(remote.repository, remote.file, repo_type="dataset", endpoint=endpoint)
        return get_hf_file_metadata(address, endpoint=endpoint, timeout=10).size
    except (HfHubHTTPError, OSError, ValueError):
        return None


def files_of(repository: str, source: str = HUB) -> list[str]:
    """Return the paths of a repository's files.

    Args:
        repository: Data set on the hub.
        source: URL of the hub, or a folder that mirrors it.

    Raises:
        UsageError: The hub's client is not installed.
        DataError: The mirror lacks the repository.
        PermanentServiceError: The hub cannot list the files.
    """
    if not source.startswith(("http://", "https://")):
        folder = Path(source) / repository
        if not folder.is_dir():
            raise DataError(f"the mirror {source} has no folder {repository}: copy it there from the hub")
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise UsageError(f"downloads need the hub's client: {install_extra('data')}") from error
    endpoint = source.rstrip("/")
    try:
        if unreachable(endpoint):
            raise ConnectionError("no connection")
        return sorted(HfApi(endpoint=endpoint).list_repo_files(repository, repo_type="dataset"))
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise PermanentServiceError(
            f"the files of {repository} could not be listed by {source} ({error}): check the network, or name a "
            "mirror with --from FOLDER",
            service=source,
        ) from error


def _mirrored(remote: Remote, folder: Path) -> Path:
    path = folder / remote.repository / remote.file
    if not path.is_file():
        raise DataError(
            f"the mirror {folder} has no file {remote.repository}/{remote.file}: copy it there from the hub"
        )
    return path


def _check(path: Path, size: int | None, tag: str) -> None:
    wrong = size is not None and path.stat().st_size != size
    if not wrong and _SHA256.fullmatch(tag):
        with path.open("rb") as file:
            wrong = hashlib.file_digest(file, "sha256").hexdigest() != tag
    if wrong:
        path.unlink()
        raise DataError(f"{path} is not what the hub says it should be and was deleted: fetch it again")
