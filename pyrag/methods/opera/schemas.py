"""Schemas of the replies of OPERA's agents (see `pyrag.agents.schemas`)."""

from __future__ import annotations

from pyrag.agents.schemas import NUMBERS, TEXT, closed

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
