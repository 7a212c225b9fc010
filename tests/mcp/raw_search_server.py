"""An MCP server that speaks the protocol by hand, for tests: `python raw_search_server.py REPLY`.

Its tool announces a schema; the reply is `text` (JSON), `plain` (words), `empty` (useless structured content before a
text) or `noise` (lines that are not messages before each reply).
"""

from __future__ import annotations

import json
import sys
from typing import Any

reply = sys.argv[1]
hit = {"title": "The mill", "content": "The mill was founded by Ann."}
schema = {"type": "object", "properties": {"results": {"type": "array"}}, "required": ["results"]}
tool = {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}
content: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps({"results": [hit]})}]}
if reply == "plain":
    content = {"content": [{"type": "text", "text": hit["content"]}]}
if reply == "empty":
    content |= {"structuredContent": {"results": [{"count": 1}]}}
results = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "raw", "version": "1"},
    },
    "tools/list": {"tools": [tool | {"outputSchema": schema}]},
    "tools/call": content,
}
for line in sys.stdin:
    message = json.loads(line)
    if reply == "noise":
        print('loading the notes ...\n\n{"level": "info"}\n[1, 2', flush=True)
    if message.get("method") in results:
        result = results[message["method"]]
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": "unknown method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
