"""Checks that the packages of an extra are installed, before the work that needs them begins."""

from __future__ import annotations

from importlib.util import find_spec

from pyrag.errors import ConfigError, install_extra

VECTORS = ("numpy", "faiss")
"""Packages of vector indexes."""
NETWORKS = ("numpy", "onnxruntime")
"""Packages of networks that come as ONNX files."""


def require_packages(work: str, packages: tuple[str, ...], *, instead: str = "") -> None:
    """Check that packages of the extra `embedded` are installed, without importing them.

    Args:
        work: Work that needs the packages, as the subject of the error message.
        packages: Modules of the packages.
        instead: Advice for users who do not want to install the packages.

    Raises:
        ConfigError: A package is missing.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        cure = f"{install_extra('embedded')}, or {instead}" if instead else install_extra("embedded")
        raise ConfigError(f"{work} needs {' and '.join(missing)}: {cure}")
