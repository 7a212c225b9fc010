"""The distribution `pyrag-runtime`: its version, the command's entry point, and its namesake.

A package index offers another project's distribution called `pyrag`, which installs a package `pyrag` too. Whichever
comes last overwrites files of the other, so this module lies outside the package and imports it only once it is ours.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib import metadata, util
from pathlib import Path

DISTRIBUTION = "pyrag-runtime"
_PACKAGE = "pyrag"
_OPENING = "pyrag: executable multi-hop question answering"  # of the docstring of our `pyrag/__init__.py`
_OLD_SUMMARY = "executable multi-hop question answering"  # of distributions that we once built under the other name


def version() -> str:
    """The installed version; "0.0.0" for a checkout that is not installed."""
    for name in (DISTRIBUTION, _PACKAGE):
        found = _found(name)
        if found is not None and (name == DISTRIBUTION or _is_ours(found)):
            return str(found.version)
    return "0.0.0"


def namesake() -> str:
    """One sentence on the other project's distribution in this environment; empty where there is none."""
    found = _found(_PACKAGE)
    if found is None or _is_ours(found):
        return ""
    return (
        f"another project's distribution {_PACKAGE} {found.version} is installed here and shares the import name "
        f"{_PACKAGE}: run pip uninstall {_PACKAGE}, then pip install --force-reinstall --no-deps . "
        "in a checkout of pyrag"
    )


def is_shadowed() -> bool:
    """True if `import pyrag` would run another project's `pyrag/__init__.py`; imports nothing."""
    spec = util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return True
    return not Path(spec.origin).read_text(encoding="utf-8", errors="replace").lstrip('"').startswith(_OPENING)


def main() -> None:
    """Entry point of the command `pyrag`."""
    if is_shadowed():
        what = namesake() or f"the import name {_PACKAGE} leads to another project's files: see pip show -f {_PACKAGE}"
        print(f"pyrag: {what}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    if what := namesake():
        warnings.filterwarnings("ignore", re.escape(what), RuntimeWarning)
        print(f"pyrag: warning: {what}", file=sys.stderr)  # noqa: T201
    from pyrag.cli.main import main as run

    run()


def _found(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _is_ours(found: metadata.Distribution) -> bool:
    return _OLD_SUMMARY in (found.metadata["Summary"] or "").lower()
