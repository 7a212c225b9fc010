"""Version of the readers of documents: pyrag, the libraries behind its formats, and readers of other packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from pyrag._io import plugins
from pyrag_runtime import DISTRIBUTION

_LIBRARIES = (
    "chardet", "clevercsv", "html-to-markdown", "lxml", "markdown-it-py", "olefile", "pypdfium2", "xberg", "xlrd",
)  # fmt: skip


@cache
def readers_version() -> str:
    """Return the version of everything that reads documents. A file that could not be read is tried when it changes."""
    added = sorted((suffix, plugins.package_of_part("documents", suffix)) for suffix in plugins.names("documents"))
    libraries = [f"{name} {_version(name)}" for name in (DISTRIBUTION, *_LIBRARIES)]
    return ", ".join((*libraries, *(f".{suffix} by {package} {_version(package)}" for suffix, package in added)))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
