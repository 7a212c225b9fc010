"""JSON schemas and patterns of what agents reply, for servers that enforce them (`Sampling.schema`, `.pattern`).

Every field is required and no other allowed, since OpenAI takes no other schema; a field that does not apply is empty.
Each has the fields of its prompt's example, in that order (a test compares them). Where a schema begins with
"analysis", that is the only place where a model can think before it decides; it is kept in the trace.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

# Anything may come before, thinking in tags of any family included: it only forbids to end without an answer.
TAGGED_ANSWER = r"[\s\S]*<answer>[\s\S]+</answer>"

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
DECISION: Schema = {"type": "string", "enum": ["YES", "NO"]}
NUMBERS: Schema = {"type": "array", "items": {"type": "integer"}}


def closed(title: str, properties: Schema) -> Schema:
    """Return the schema of an object with exactly these properties.

    Args:
        title: Name of the schema in requests.
        properties: Schemas of the fields, in their order.
    """
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def asks_for(schema: Schema, prompt: str) -> bool:
    """Return whether a prompt names every field of a schema, in quotes.

    Prompts of another set or folder may ask for replies of another form, which no server must be made to refuse.

    Args:
        schema: Schema of an object.
        prompt: System and user message.
    """
    return all(f'"{name}"' in prompt for name in schema["properties"])


SUB_QUERIES = closed("sub_queries", {"sub_queries": TEXTS})  # an object around the list: the parser finds it there
REWRITE = closed("rewrite", {"strategy": TEXT, "query": TEXT, "keywords": TEXTS})
