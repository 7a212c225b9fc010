"""Reference of the HTTP service and its MCP tools, generated from the OpenAPI document and the tools' schemas."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyrag.server.app import create_app
from pyrag.server.config import ServerConfig
from pyrag.server.mcp.schemas import TOOLS, object_schema
from pyrag.server.service import QuestionService
from pyrag.settings import make_settings
from tools.site.tables import code, table

_METHODS = ("get", "post", "delete", "put")
_HTTP = """\
# HTTP

The routes of `pyrag serve`, from its OpenAPI document (`GET /openapi.json`). `pyrag serve-retriever` has those that
do not take a question. [serve.md](../serve.md) shows how to use them.
"""
_MCP = """\
# MCP tools

The tools of `pyrag mcp` and of `/mcp` of `pyrag serve`. [mcp.md](../mcp.md) shows how an assistant is connected.
"""


def http_page() -> str:
    """Return the reference of the routes and of the objects in their bodies."""
    document = openapi_document()
    routes = [part for path, methods in document["paths"].items() for part in _routes(path, methods)]
    refusals = {
        status: reply.get("description", "")
        for methods in document["paths"].values()
        for method in _METHODS
        for status, reply in methods.get(method, {}).get("responses", {}).items()
        if not status.startswith("2")
    }
    rows = [(code(status), meaning) for status, meaning in sorted(refusals.items())]
    objects = [_object(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return "\n".join([_HTTP, *routes, "## Refusals\n", table(("status", "meaning"), rows), "## Objects\n", *objects])


def mcp_page() -> str:
    """Return the reference of the tools."""
    parts = [
        f"## {tool.name}\n\n{tool.description}\n\n**Arguments**\n\n{fields_of(object_schema(tool.arguments))}\n"
        f"**Result**\n\n{fields_of(object_schema(tool.result))}"
        for tool in TOOLS
    ]
    return "\n".join([_MCP, *parts])


def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document of `pyrag serve`."""
    return asyncio.run(_document())


async def _document() -> dict[str, Any]:
    service = QuestionService(make_settings({}), ServerConfig())
    try:
        return dict(create_app(service).openapi())
    finally:
        await service.aclose()


def _routes(path: str, methods: Mapping[str, Any]) -> Iterator[str]:
    for method in _METHODS:
        if route := methods.get(method):
            yield f"## {method.upper()} {path}\n\n{route.get('summary', '')}.\n\n{route.get('description', '')}\n"
            yield _parameters(route.get("parameters", []))
            if body := route.get("requestBody"):
                yield f"**Body**\n\n{_content(body['content'])}"
            replies = route["responses"]
            rows = [(code(status), replies[status].get("description", "")) for status in replies if status[0] == "2"]
            refused = ", ".join(status for status in sorted(replies) if status[0] != "2")
            yield f"**Replies**\n\n{table(('status', 'meaning'), rows)}\n[Refusals](#refusals): {refused or 'none'}.\n"


def _parameters(parameters: list[Mapping[str, Any]]) -> str:
    rows = [(code(item["name"]), item["in"], _type(item["schema"]), item.get("description", "")) for item in parameters]
    return table(("parameter", "in", "type", "meaning"), rows)


def _content(content: Mapping[str, Any]) -> str:
    schema = next(iter(content.values()))["schema"]
    return fields_of(schema) if "properties" in schema else f"{_type(schema)}\n"


def _object(name: str, schema: Mapping[str, Any]) -> str:
    return f"### {name}\n\n{schema.get('description', '')}\n\n{fields_of(schema)}"


def fields_of(schema: Mapping[str, Any]) -> str:
    """Return a table of an object's fields."""
    required = schema.get("required", ())
    rows = [
        (code(name), _type(field), "required" if name in required else _default(field), field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "default", "meaning"), rows)


def _type(schema: Mapping[str, Any]) -> str:
    if reference := schema.get("$ref"):
        return str(reference).rpartition("/")[2]
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(map(_type, choices)))
    if "enum" in schema:
        return ", ".join(code(json.dumps(value)) for value in schema["enum"])
    kind = schema.get("type", "any")
    kinds = kind if isinstance(kind, list) else [kind]
    return f"array of {_type(schema.get('items', {}))}" if kinds == ["array"] else " or ".join(kinds)


def _default(schema: Mapping[str, Any]) -> str:
    return code(json.dumps(schema["default"], ensure_ascii=False)) if "default" in schema else ""
