"""JSON schemas and patterns of agents' replies, for servers that enforce them (`Sampling.schema`, `.pattern`).

Every field is required and no other is allowed, since OpenAI accepts no other schemas; a field that does not apply is
left empty. Each schema has the fields of its prompt's example, in that order (a test compares them). In a schema that
begins with "analysis", this field is the model's only place to think before it decides; the trace keeps it.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

# Anything may come before the answer, including thinking in any tags; only ending without an answer is forbidden.
TAGGED_ANSWER = r"[\s\S]*<answer>[\s\S]+</answer>"

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
DECISION: Schema = {"type": "string", "enum": ["YES", "NO"]}
NUMBERS: Schema = {"type": "array", "items": {"type": "integer"}}


def closed(title: str, properties: Schema) -> Schema:
    """Return the schema of an object with exactly these properties.

    Args:
        title: Name of the schema in requests.
        properties: Schemas of the fields, in order.
    """
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def asks_for(schema: Schema, prompt: str) -> bool:
    """Return True if a prompt names every field of a schema, in quotes.

    Prompts of another set or folder may ask for another form; a server must then not enforce the schema.

    Args:
        schema: Schema of an object.
        prompt: System and user message.
    """
    return all(f'"{name}"' in prompt for name in schema["properties"])


SUB_QUERIES = closed("sub_queries", {"sub_queries": TEXTS})  # an object around the list, which the parser finds inside
REWRITE = closed("rewrite", {"strategy": TEXT, "query": TEXT, "keywords": TEXTS})
JUDGEMENT = closed(
    "judgement",
    {
        "analysis": TEXT,
        "decision": DECISION,
        "answer": TEXT,
        "confidence": {"type": "number"},
        "documents": NUMBERS,
        "missing": TEXT,
    },
)
