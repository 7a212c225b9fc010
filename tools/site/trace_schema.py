"""Command that writes the JSON schema of traces from the data classes: `python -m tools.site.trace_schema`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from pyrag.trace.model import TRACE_VERSION, Trace
from tools.site.events import event_names

SCHEMA = Path(__file__).parent.parent.parent / "pyrag/trace/schema.json"


def trace_schema() -> dict[str, Any]:
    """Return the schema of a trace, as used in files, in the service's replies and in `--trace`."""
    schema = msgspec.json.schema(Trace)
    definitions = schema["$defs"]
    for definition in definitions.values():
        definition["description"] = inspect.cleandoc(definition["description"])
    properties = definitions["Trace"]["properties"]
    properties["version"] = {"const": TRACE_VERSION, "default": TRACE_VERSION}
    properties["events"]["items"] = {
        "type": "object",
        "properties": {"event": {"enum": event_names()}, "at": {"type": "number"}},
        "required": ["event", "at"],
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A trace of pyrag"}
    return {**head, **schema}


def schema_text() -> str:
    """Return the content of the schema file."""
    return json.dumps(trace_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
