"""Specs of MCP servers, `mcp+stdio:COMMAND` and `mcp+http:URL`, and the selection of their search tool."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from pyrag._io.redaction import without_secrets
from pyrag.errors import ConfigError, PermanentServiceError

STDIO, HTTP = "mcp+stdio:", "mcp+http:"
TOKEN_VARIABLE = "PYRAG_MCP_TOKEN"  # noqa: S105 (its name)
_OPTIONS = re.compile(r"#((?:tool|env)=[^#]*)$")
_SEARCHES = ("search", "retrieve", "query", "find", "lookup")
_QUERIES = ("query", "q", "question", "text", "search", "search_query", "input", "prompt")
_LIMITS = ("topk", "top_k", "k", "limit", "n", "n_results", "num_results", "max_results", "count", "size")


@dataclass(frozen=True, slots=True)
class McpTarget:
    """Server and its tool. `command` is empty for a server with a URL.

    Attributes:
        name: Name for traces and messages, without arguments and secrets.
        tool: Name of the tool; empty to choose one of the server's tools.
        environment: Environment variables for the command, in addition to PATH, HOME and similar ones.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    tool: str = ""
    environment: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SearchTool:
    """Tool with the names of its arguments. `limit` is empty if the tool has no argument for the number of passages."""

    name: str
    query: str
    limit: str = ""
    max_limit: int | None = None

    def arguments(self, query: str, topk: int) -> dict[str, Any]:
        """Return the arguments of a call.

        Args:
            query: Text to search for.
            topk: Number of passages, which is lowered to the tool's own maximum.
        """
        number = topk if self.max_limit is None else min(topk, self.max_limit)
        return {self.query: query} | ({self.limit: number} if self.limit else {})


def is_mcp(spec: str) -> bool:
    """Return True for specs of MCP servers."""
    return spec.startswith((STDIO, HTTP))


def read_spec(spec: str) -> McpTarget:
    """Return the server that a spec names.

    Args:
        spec: `mcp+stdio:COMMAND` or `mcp+http:URL`, optionally with `#tool=NAME` and `&env=NAME,…` at its end.

    Raises:
        ConfigError: The command or the URL is missing or malformed, an option is unknown, or a variable is not set.
    """
    match = _OPTIONS.search(spec)
    options = dict(parse_qsl(match[1])) if match else {}
    rest = spec[: match.start()] if match else spec
    if unknown := sorted(options.keys() - {"tool", "env"}):
        raise ConfigError(f"an MCP retriever has no option {unknown[0]!r}: it takes #tool=NAME&env=NAME,…")
    tool = options.get("tool", "")
    if rest.startswith(HTTP):
        url = rest.removeprefix(HTTP)
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"{HTTP} needs the URL of a server, such as {HTTP}http://127.0.0.1:8011/mcp")
        return McpTarget(f"{HTTP}{without_secrets(url)}", url=url, tool=tool)
    try:
        command = tuple(shlex.split(rest.removeprefix(STDIO)))
    except ValueError as error:
        raise ConfigError(f"the command after {STDIO} cannot be read ({error}): quote it as for a shell") from None
    if not command:
        raise ConfigError(f"{STDIO} needs the command of a server, such as '{STDIO}pyrag mcp'")
    named = [name for name in options.get("env", "").split(",") if name]
    if missing := [name for name in named if name not in os.environ]:
        raise ConfigError(f"the variable {missing[0]}, which env= names, is not set: set it or leave it out")
    label = f"{STDIO}{Path(command[0]).name}"
    return McpTarget(label, command, tool=tool, environment={name: os.environ[name] for name in named})


def choose_tool(tools: Mapping[str, Mapping[str, Any]], target: McpTarget) -> SearchTool:
    """Select the search tool: the one that the user named, the only one, or the one whose name suggests a search.

    Args:
        tools: Input schemas by name.
        target: The server, with the name of the tool if the user named it.

    Raises:
        PermanentServiceError: The tool does not exist, several tools qualify, or the tool has no text argument.
    """
    names = list(tools)
    if target.tool:
        selection = [name for name in names if name == target.tool]
    else:
        selection = names if len(names) == 1 else _searches(names)
    if len(selection) != 1:
        fault = f"has no tool {target.tool!r}" if target.tool else "has several tools that may search, or none"
        listing = ", ".join(names[:20]) or "none"
        message = (
            f"{target.name} {fault} (its tools: {listing}): choose one with #tool=NAME at the end of the retriever"
        )
        raise PermanentServiceError(message, service=target.name)
    return _search_tool(selection[0], tools[selection[0]], target)


def _searches(names: Sequence[str]) -> list[str]:
    """Return the tools whose name is, or contains, a word for searching."""
    for word in _SEARCHES:
        if word in names:
            return [word]
    worded = {name: set(re.split(r"[^a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower())) for name in names}
    for word in _SEARCHES:
        if matches := [name for name, words in worded.items() if word in words]:
            return matches
    return []


def _search_tool(name: str, schema: Mapping[str, Any], target: McpTarget) -> SearchTool:
    fields: Mapping[str, Any] = schema.get("properties") or {}
    required = [name for name in schema.get("required") or () if name in fields]
    texts = [name for name in fields if "string" in _types(fields[name])]
    query = next((name for name in _QUERIES if name in texts), None)
    query = query or next((name for name in required if name in texts), None) or next(iter(texts), None)
    if query is None or any(name != query and name not in _LIMITS for name in required):
        needs = ", ".join(required) or "nothing"
        message = f"the tool {name} of {target.name} needs {needs}: pyrag can only give it a query and a number"
        raise PermanentServiceError(message, service=target.name)
    limit = next((name for name in _LIMITS if name in fields and _types(fields[name]) & {"integer", "number"}), "")
    maximum = fields[limit].get("maximum") if limit else None
    return SearchTool(name, query, limit, int(maximum) if isinstance(maximum, int | float) else None)


def _types(field: Any) -> set[str]:
    """Return the JSON types that a field may have."""
    if not isinstance(field, Mapping):
        return set()
    own = field.get("type")
    types = {own} if isinstance(own, str) else set(own or ())
    for option in field.get("anyOf") or field.get("oneOf") or ():
        types |= _types(option)
    return types
