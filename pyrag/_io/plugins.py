"""Parts that installed packages add to pyrag by entry points.

    [project.entry-points."pyrag.methods"]      NAME = "module:METHOD"  a pyrag.extend.Method
    [project.entry-points."pyrag.retrievers"]   NAME = "module:open"    open(rest) -> Retriever, for NAME or NAME:REST
    [project.entry-points."pyrag.engines"]      NAME = "module:open"    open(rest) -> ChatModel, for --llm NAME:REST;
                                                                        or a pyrag.extend.Engine
    [project.entry-points."pyrag.documents"]    SUFFIX = "module:read"  read(data, name) -> text or records
    [project.entry-points."pyrag.tools"]        NAME = "module:tool"    a function or a list of functions
    [project.entry-points."pyrag.commands"]     NAME = "module:command" a function with Typer's options, or a Typer

Nothing is imported before it is used. A package cannot replace one of pyrag's own names, and a name that two packages
claim is not used; `problems` reports both. A part that cannot be loaded is an error only when it is used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pyrag._io.specs import Spec
from pyrag.errors import ConfigError, PyRAGError
from pyrag_runtime import DISTRIBUTION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal["methods", "retrievers", "engines", "documents", "tools", "commands"]
OWN: Mapping[Kind, Collection[str]] = {
    "methods": frozenset((
        "adaptive", "cot", "decompose-only", "direct", "hera", "ircot", "iter-retgen", "opera", "plan-only", "pyrag",
        "search-agent", "self-ask", "vanilla",
    )),
    "retrievers": frozenset((
        "http", "https", "qdrant", "pgvector", "mcp", "mcp+http", "mcp+https", "searxng", "tavily", "brave",
    )),
    "engines": frozenset(("embedded", "openai", "vllm", "transformers", "scripted", "replay")),
    "documents": frozenset(
        (
            "jsonl", "ndjson", "json", "csv", "tsv", "txt", "text", "log", "rst", "adoc", "org", "tex", "bib", "srt",
            "vtt", "yaml", "yml", "toml", "ini", "md", "markdown", "html", "htm", "xhtml", "eml", "mbox", "ics", "vcf",
            "ipynb", "pdf", "docx", "docm", "dotx", "odp", "gz", "bz2", "xz", "zip",
        )
    ),
    "tools": frozenset(("sql", "table")),
    "commands": (
        "ask", "chat", "run", "explain", "index", "trace", "models", "doctor", "serve", "mcp", "serve-retriever",
        "serve-model", "bench", "data", "evolve", "experience", "reproduce", "train", "cache", "sandbox",
    ),
}  # fmt: skip


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names that packages register for a kind of part."""
    return tuple(name for name in _entries_of(kind)[0] if name not in OWN[kind])


def problems(kind: Kind) -> list[str]:
    """Return a sentence about each name that cannot be used."""
    return _entries_of(kind)[1]


@cache
def load(kind: Kind, name: str) -> Any:
    """Import and return the part that a package adds under a name.

    Args:
        kind: Kind of the part.
        name: Name in `names(kind)`, or a name of pyrag's own that an entry point of pyrag registers.

    Raises:
        ConfigError: The name is not registered, or the part cannot be loaded, whatever the package's code raised.
    """
    entry = _entries_of(kind)[0].get(name)
    if entry is None:
        raise ConfigError(
            f"the {_SINGULAR[kind]} {name} is not registered, because this copy of pyrag is not installed: run "
            "pip install . in its folder"
        )
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"the {_SINGULAR[kind]} {name} of {package_of(entry)} cannot be loaded ({type(error).__name__}: {error})"
        ) from error


def loaded_function(kind: Kind, name: str, signature: str) -> Any:
    """Return the function that a package adds under a name.

    Args:
        kind: Kind of the part.
        name: Name in `names(kind)`.
        signature: Signature of the function for the message, such as `open(rest)`.

    Raises:
        ConfigError: The part cannot be loaded, or is not a function.
    """
    function = load(kind, name)
    if not callable(function):
        what = f"the {_SINGULAR[kind]} {name} of {package_of_part(kind, name)}"
        raise ConfigError(f"{what} is not a function {signature}: look at its entry point")
    return function


def opened(kind: Kind, spec: Spec) -> Any:
    """Return the part that a package's function `open(rest)` creates for a spec.

    Args:
        kind: Kind of the part.
        spec: The spec, whose scheme is in `names(kind)`.

    Raises:
        ConfigError: The function cannot be loaded, or raises an error that is not pyrag's.
    """
    open_part = loaded_function(kind, spec.scheme, "open(rest)")
    try:
        return open_part(spec.rest)
    except PyRAGError:
        raise
    except Exception as error:  # any error of the package's code
        what = f"the {_SINGULAR[kind]} {spec} of {package_of_part(kind, spec.scheme)}"
        raise ConfigError(f"{what} cannot be opened ({type(error).__name__}: {error})") from error


def package_of_part(kind: Kind, name: str) -> str:
    """Return the package that adds a part.

    Args:
        kind: Kind of the part.
        name: Name in `names(kind)`.
    """
    return package_of(_entries_of(kind)[0][name])


def package_of(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def forget() -> None:
    """Look for packages again, for tests that install packages."""
    for cached_function in (load, _entries_of, _installed):
        cached_function.cache_clear()


_SINGULAR: Mapping[Kind, str] = {
    "methods": "method", "retrievers": "retriever", "engines": "engine", "documents": "reader of documents",
    "tools": "tool", "commands": "command",
}  # fmt: skip


@cache
def _installed() -> Any:  # Python 3.11 and 3.12 give it different types
    from importlib.metadata import entry_points

    return entry_points()


@cache
def _entries_of(kind: Kind) -> tuple[dict[str, EntryPoint], list[str]]:
    entries: dict[str, EntryPoint] = {}
    wrong: list[str] = []
    claimed_names: set[str] = set()
    for entry in _installed().select(group=f"pyrag.{kind}"):
        name = entry.name.lower().removeprefix(".") if kind == "documents" else entry.name
        if name in OWN[kind] and package_of(entry) != DISTRIBUTION:
            wrong.append(f"the {_SINGULAR[kind]} {name} of {package_of(entry)} is left out: the name is pyrag's own")
        elif name in entries and entry.value != entries[name].value:
            claimed_names.add(name)
            packages = f"{package_of(entries[name])} and {package_of(entry)}"
            wrong.append(f"the {_SINGULAR[kind]} {name} is left out: {packages} both claim the name")
        else:
            entries[name] = entry
    return {name: entry for name, entry in sorted(entries.items()) if name not in claimed_names}, wrong
