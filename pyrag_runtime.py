"""The distribution `pyrag-runtime` and its version.

It lies outside of the package `pyrag`, because the distribution has another name than the package: a package index
offers another project's distribution `pyrag`.
"""

from __future__ import annotations

from importlib import metadata

DISTRIBUTION = "pyrag-runtime"


def version() -> str:
    """Return the installed version; "0.0.0" for a checkout that is not installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0.0.0"
