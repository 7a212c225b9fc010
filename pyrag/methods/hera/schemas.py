"""Schemas of the replies of HERA's agents (see `pyrag.agents.schemas`)."""

from __future__ import annotations

from pyrag.agents.schemas import DECISION, NUMBERS, TEXT, TEXTS, closed
from pyrag.methods.hera.topology import AGENTS, DIFFICULTIES, QUESTION_TYPES

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
