"""Agents of a topology, found in an orchestrator's reply: JSON in various shapes, converted to agents with plain keys.

This module only finds the agents. `topology_replies` checks the topology.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyrag.agents.parsing.json_values import parse_json
from pyrag.agents.parsing.spellings import first_read
from pyrag.methods.hera.team_replies import agent_named
from pyrag.methods.hera.topology import AGENTS

_LIST_KEYS = (
    "agents", "nodes", "topology", "steps", "pipeline", "workflow", "graph", "plan", "team", "output", "result",
)  # fmt: skip
_EDGE_KEYS = ("edges", "links", "connections")
_ENDS = (("from", "to"), ("source", "target"), ("start", "end"), ("parent", "child"))
AGENT_KEYS = ("agent", "agent_type", "agent_name", "role", "type", "name", "tool", "module", "component")
_MAX_DEPTH = 3  # objects around the list of agents
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ARROW = re.compile(r"\s*(?:->|→|=>)\s*")
RawNode = dict[str, Any]


def listed_nodes(text: str) -> tuple[RawNode, list[RawNode]] | None:
    """Return the object that holds the list of agents, and the agents as written; None if the reply has no agents."""
    return first_read(text, _nodes_of)


def _nodes_of(text: str) -> tuple[RawNode, list[RawNode]] | None:
    objects = parse_json(text, "{")
    lists = [{"agents": value} for value in parse_json(text, "[") if value]
    for value in (*objects, *lists):
        if (listed := _listed(value)) is not None:
            return listed
    separate = [plain(value) for value in objects if isinstance(value, dict) and _names_agent(value)]
    return ({}, separate[::-1]) if separate else None


def _names_agent(value: dict[Any, Any]) -> bool:
    name = first(plain(value), AGENT_KEYS)
    return isinstance(name, str) and agent_named(name, AGENTS) is not None


def plain(value: Mapping[Any, Any]) -> RawNode:
    """Return a mapping with its keys in lower case and their words joined by `_`."""
    return {re.sub(r"[\s-]+", "_", _CAMEL.sub("_", str(key).strip())).casefold(): item for key, item in value.items()}


def first(value: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the value of the first key that is present and not empty; None if there is none.

    Args:
        value: An object with plain keys.
        keys: Spellings of a field, preferred ones first.
    """
    return next((value[key] for key in keys if value.get(key) not in (None, "", [], {})), None)


def _listed(value: Any, depth: int = _MAX_DEPTH) -> tuple[RawNode, list[RawNode]] | None:
    if not isinstance(value, dict) or not depth:
        return None
    head = plain(value)
    for key in _LIST_KEYS:
        inner = head.get(key)
        nodes = _nodes(inner)
        if nodes is not None:
            return head, _joined(nodes, first(head, _EDGE_KEYS))
        if (deeper := _listed(inner, depth - 1)) is not None:
            return {**head, **deeper[0]}, deeper[1]
    return None


def _nodes(value: Any) -> list[RawNode] | None:
    """Return the agents in a list, or in an object with agents by id; None for anything else."""
    if isinstance(value, list):
        named = all(isinstance(item, str) and agent_named(item, AGENTS) for item in value)
        if not named and not any(isinstance(item, dict) for item in value):
            return None
        return [plain(item) if isinstance(item, dict) else {"agent": item} for item in value]
    if isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
        nodes = [{"id": key, **plain(item)} for key, item in value.items()]
        return nodes if all(first(node, AGENT_KEYS) for node in nodes) else None
    return None


def _joined(nodes: list[RawNode], edges: Any) -> list[RawNode]:
    """Return the agents with the edges between them added to their dependencies."""
    for source, target in filter(None, map(_edge, edges if isinstance(edges, list) else ())):
        for node in nodes:
            if target in (node.get("id"), node.get("name"), node.get("agent")):
                known = node.get("depends_on")
                node["depends_on"] = [*(known if isinstance(known, list) else []), source]
    return nodes


def _edge(value: Any) -> tuple[Any, Any] | None:
    if isinstance(value, str):
        value = _ARROW.split(value)
    if isinstance(value, dict):
        keyed = plain(value)
        return next(((keyed[a], keyed[b]) for a, b in _ENDS if a in keyed and b in keyed), None)
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else None
