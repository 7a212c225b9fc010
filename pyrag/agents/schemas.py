"""JSON schemas and patterns of what agents reply, for servers that enforce them (`Sampling.schema`, `.pattern`).

Every field is required and no other allowed, since OpenAI takes no other schema; a field that does not apply is empty.
Each has the fields of its prompt's example, in that order (a test compares them). Where a schema begins with
"analysis", that is the only place where a model can think before it decides; it is kept in the trace.
"""

from __future__ import annotations

from typing import Any

from pyrag.methods.hera.topology import AGENTS, DIFFICULTIES, QUESTION_TYPES

Schema = dict[str, Any]

# Anything may come before, thinking in tags of any family included: it only forbids to end without an answer.
TAGGED_ANSWER = r"[\s\S]*<answer>[\s\S]+</answer>"

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
DECISION: Schema = {"type": "string", "enum": ["YES", "NO"]}
NUMBERS: Schema = {"type": "array", "items": {"type": "integer"}}


def closed(title: str, properties: Schema) -> Schema:
    """An object with exactly these properties."""
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SUB_QUERIES = closed("sub_queries", {"sub_queries": TEXTS})  # an object around the list: the parser finds it there
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
REWRITE = closed("rewrite", {"strategy": TEXT, "query": TEXT, "keywords": TEXTS})
GOALS = closed(
    "goals",
    {
        "rationale": TEXT,
        "goals": {
            "type": "array",
            "items": closed(
                "goal",
                {
                    "step": {"type": "integer"},
                    "goal": TEXT,
                    "type": TEXT,
                    "needs": NUMBERS,
                    "search": {"type": "boolean"},
                    "compute": TEXT,
                },
            ),
        },
    },
)
INSIGHTS = closed("insights", {"analysis": TEXT, "insights": TEXTS})
SETTLEMENT = closed(
    "settlement",
    {
        "operation": {"type": "string", "enum": ["ADD", "MERGE", "PRUNE", "KEEP"]},
        "entries": NUMBERS,
        "insight": TEXT,
    },
)
BLAME = closed("blame", {"analysis": TEXT, "agents": TEXTS})
RULES = closed("rules", {"rules": TEXTS})
SHORTER = closed("shorter", {"rules": TEXTS, "principles": TEXTS})
GUIDANCE = closed("guidance", {"analysis": TEXT, "rules": TEXTS, "principles": TEXTS})
_PROFILE = {
    "type": {"type": "string", "enum": list(QUESTION_TYPES)},
    "difficulty": {"type": "string", "enum": list(DIFFICULTIES)},
    "asks": TEXT,
}
PROFILE = closed("profile", _PROFILE)
TOPOLOGY = closed(
    "topology",
    {
        **_PROFILE,
        "rationale": TEXT,
        "agents": {
            "type": "array",
            "items": closed(
                "agent",
                {
                    "id": TEXT,
                    "agent": {"type": "string", "enum": list(AGENTS)},
                    "input": TEXT,
                    "depends_on": TEXTS,
                    "kind": TEXT,
                    "topk": {"type": "integer"},
                    "compute": TEXT,
                },
            ),
        },
    },
)
DOCUMENTS = closed("documents", {"analysis": TEXT, "documents": NUMBERS})
VERDICT = closed("verdict", {"analysis": TEXT, "decision": DECISION, "missing": TEXT})
REVIEW = closed("review", {"decision": DECISION, "critique": TEXT})
