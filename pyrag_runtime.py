"""The distribution `pyrag-runtime` and its version.

It is outside the package `pyrag`, because the distribution's name differs from the package's: on package indexes,
`pyrag` is another project's distribution.
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
