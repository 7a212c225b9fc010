"""An MCP server with a search tool, for tests: `python search_server.py KIND [URL]`.

What a search comes to depends on the query: `crash` ends the process, `fail` is an error, `sleep` never returns.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp.server.mcpserver import MCPServer

NOTES = [
    {"id": "mill", "title": "The mill", "text": "The mill was founded by Ann.", "url": "http://notes/mill"},
    {"id": "zoo", "title": "The zoo", "text": "A zebra lives in the zoo.", "url": "http://notes/zoo"},
]
server = MCPServer("notes", log_level="ERROR")


async def found(query: str, limit: int) -> list[dict[str, Any]]:
    if query == "crash":
        print("the notes are on fire", file=sys.stderr, flush=True)
        os._exit(3)
    if query == "fail":
        raise ValueError("no notes today")
    if query == "sleep":
        await asyncio.Event().wait()
    if query == "process":
        return [{"text": f"{os.getpid()} {sorted(os.environ)}"}]
    words = set(query.lower().split())
    return [one for one in NOTES if words & set(one["text"].lower().strip(".").split())][:limit]


async def search_notes(query: str, limit: int = 5) -> dict[str, Any]:
    """Search notes."""
    return {"results": await found(query, limit)}


async def retrieve(query: str) -> str:
    """Search notes, and return text."""
    return "\n".join(one["text"] for one in await found(query, 5))


def write_note(text: str) -> str:
    """Write a note."""
    return text


kind = sys.argv[1]
server.add_tool(write_note)
if kind in ("structured", "both"):
    server.add_tool(search_notes)
if kind in ("text", "both"):
    server.add_tool(retrieve, structured_output=False)
if kind == "silent":
    sys.exit("no notes here")
server.run()
