"""The skill and plug-in for assistants: its programs run, and what it names exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pyrag import PyRAG
from pyrag.server.mcp.addresses import REFERENCE
from pyrag.server.mcp.schemas import TOOLS
from pyrag_helpers import HELPERS

FOLDER = Path(__file__).parents[2] / "examples" / "assistants"
SKILL = FOLDER / "skills" / "pyrag-programs"
EXAMPLE = re.compile(r"`(programs/\w+\.py)`.*?Inputs: `(\{.*?\})`$", re.MULTILINE)
VALUES: dict[str, Any] = {
    "programs/table.py": [
        {"person": "Jed Hoyer", "born": "7 December 1973", "year": 1973},
        {"person": "John William Henry II", "born": "13 September 1949", "year": 1949},
    ],
    "programs/compare.py": {
        "older": "John William Henry II",
        "Jed Hoyer": "7 December 1973",
        "John William Henry II": "13 September 1949",
    },
    "programs/hops.py": {"director": "Ingmar Bergman", "birthplace": "Uppsala"},
}


def test_worked_programs_give_their_values_with_citations() -> None:
    examples = dict(EXAMPLE.findall((SKILL / "SKILL.md").read_text()))
    assert examples.keys() == VALUES.keys() == {f"programs/{path.name}" for path in SKILL.glob("programs/*.py")}
    with PyRAG() as rag:
        for name, inputs in examples.items():
            trace = rag.run((SKILL / name).read_text(), json.loads(inputs))
            assert (trace.error, trace.value) == (None, VALUES[name])
            assert all(trace.item_citations.values())


def test_skill_names_tools_and_functions_that_exist() -> None:
    text = (SKILL / "SKILL.md").read_text()
    head, body = text.removeprefix("---\n").split("---\n", 1)
    assert yaml.safe_load(head).keys() == {"name", "description"}
    assert yaml.safe_load(head)["name"] == SKILL.name
    assert all(f"`{tool.name}`" in body for tool in TOOLS)
    assert REFERENCE in body
    assert set(re.findall(r"`(parse_\w+|is_\w+)", body)) <= set(HELPERS)


@pytest.mark.parametrize("name", ["mcp.json", ".claude-plugin/plugin.json"])
def test_configurations_start_the_server(name: str) -> None:
    servers = json.loads((FOLDER / name).read_text())["mcpServers"]
    assert servers["pyrag"]["command"] == "pyrag"
    assert servers["pyrag"]["args"][0] == "mcp"
