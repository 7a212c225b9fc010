"""Programs of callers over HTTP and by the MCP tool: values, faults, keys, filters, limits and events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.retrieval.index import update_index
from pyrag.server.config import Access, ServerConfig, read_keys
from pyrag.server.errors import ApiError
from pyrag.server.mcp.schemas import ProgramArguments
from pyrag.server.mcp.tools import Tools, value_text
from tests.server.test_serve import Client, running

SOURCE = '"""Founders."""\nprint("go")\nfinal_answer = {c: answer(f"Who founded {c}?", retrieve(c)) for c in companies}'
BODY = {"source": SOURCE, "inputs": {"companies": ["Acme", "Blix"]}}
KEY, OPS = "k-all-0123456789abcdef", "k-ops-0123456789abcdef"


@pytest.fixture
def index(tmp_path: Path) -> str:
    rows = [
        {"id": "acme", "title": "Acme", "text": "Acme was founded by Ann Lee.", "team": "ops"},
        {"id": "blix", "title": "Blix", "text": "Blix was founded by Bo Chan.", "team": "law"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    update_index([tmp_path / "rows.jsonl"], tmp_path / "ix")
    return str(tmp_path / "ix")


async def events_of(client: Client, body: dict[str, Any]) -> list[tuple[str, Any]]:
    async with client.session.post(client.url + "/v1/programs", json={**body, "stream": True}) as reply:
        blocks = (await reply.text()).strip().split("\n\n")
    pairs = [block.split("\n") for block in blocks if block.startswith("event: ")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


async def test_value_citations_output_and_trace_are_returned(index: str) -> None:
    async with running(ServerConfig(indexes={"firms": index})) as client:
        status, reply = await client.post("/v1/programs", BODY)
        assert (status, reply["value"], reply["output"]) == (200, {"Acme": "Ann Lee", "Blix": "Bo Chan"}, "go\n")
        numbers = {citation["number"]: citation["id"] for citation in reply["citations"]}
        cited = {key: [numbers[number] for number in items] for key, items in reply["item_citations"].items()}
        assert cited == {"Acme": ["acme"], "Blix": ["blix"]}
        _, kept = await client.get(f"/v1/traces/{reply['id']}")
        assert (kept["value"], kept["question"], kept["method"]) == (reply["value"], "Founders.", "program")


async def test_events_end_with_the_same_reply(index: str) -> None:
    async with running(ServerConfig(indexes={"firms": index})) as client:
        events = await events_of(client, BODY)
        assert events[0][0] == "accepted"
        assert events[-1][0] == "reply"
        assert events[-1][1]["value"] == {"Acme": "Ann Lee", "Blix": "Bo Chan"}
        assert [name for name, _ in events].count("step_started") == 4


async def test_fault_names_its_line_in_the_reply(index: str) -> None:
    async with running(ServerConfig(indexes={"firms": index})) as client:
        status, reply = await client.post("/v1/programs", {"source": "x = 1\nfinal_answer = anser('q')"})
        assert (status, reply["error"]["kind"], reply["error"]["line"]) == (200, "program", 2)
        assert reply["error"]["source_line"] == "final_answer = anser('q')"
        assert reply["error"]["message"].endswith("Did you mean answer?")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"source": ""},
        {"source": "   "},
        {"source": 3},
        {"source": "final_answer = 1", "inputs": {"for": 1}},
        {"source": "final_answer = 1", "inputs": [1]},
        {"source": "final_answer = 1", "budget": {"call": 1}},
        {"source": "final_answer = 1", "budget": {"calls": 0}},
        {"source": "final_answer = 1", "where": "n >="},
        {"source": "#" * 70_000},
        {"source": "final_answer = 1", "more": 1},
    ],
)
async def test_wrong_bodies_are_refused_in_one_sentence(index: str, body: dict[str, Any]) -> None:
    async with running(ServerConfig(indexes={"firms": index})) as client:
        status, reply = await client.post("/v1/programs", body)
        assert status == 400
        assert reply["error"]["message"]


async def test_keys_and_filters_hold_for_programs(index: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n{OPS} firms where team = 'ops'\n")
    config = ServerConfig(indexes={"firms": index}, keys=read_keys(tmp_path / "keys", {}))
    source = "final_answer = sorted({d.id for w in [None, 'team = \"law\"'] for d in retrieve('founded', where=w)})"
    async with running(config) as client:
        assert (await client.post("/v1/programs", {"source": source}))[0] == 401
        _, reply = await client.post("/v1/programs", {"source": source}, Authorization=f"Bearer {OPS}")
        assert reply["value"] == ["acme"]
        _, reply = await client.post("/v1/programs", {"source": source}, Authorization=f"Bearer {KEY}")
        assert reply["value"] == ["acme", "blix"]
        body = {"source": source, "where": "team = 'law'"}
        _, reply = await client.post("/v1/programs", body, Authorization=f"Bearer {OPS}")
        assert reply["value"] == []


ENUMERATION = """
wider = 'team = "law" or team = "ops"'
opened = []
for name in ["acme", "blix"]:
    try:
        opened += [p.id for p in open_document(name)]
    except ValueError:
        pass
rows = each(documents(wider), "Who founded it?")
ids = [d.id for d in documents()]
final_answer = {"ids": ids, "n": [count(), count(wider)], "opened": opened, "rows": [r.item for r in rows]}
"""


async def test_keys_hold_for_enumeration(index: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n{OPS} firms where team = 'ops'\n")
    config = ServerConfig(indexes={"firms": index}, keys=read_keys(tmp_path / "keys", {}))
    async with running(config) as client:
        body = {"source": ENUMERATION}
        _, every = await client.post("/v1/programs", body, Authorization=f"Bearer {KEY}")
        assert every["value"] == {
            "ids": ["acme", "blix"], "n": [2, 2], "opened": ["acme", "blix"], "rows": ["Acme", "Blix"]
        }  # fmt: skip
        _, reply = await client.post("/v1/programs", {**body, "include_trace": True}, Authorization=f"Bearer {OPS}")
        assert reply["value"] == {"ids": ["acme"], "n": [1, 1], "opened": ["acme"], "rows": ["Acme"]}
        assert "Blix" not in json.dumps(reply).replace(json.dumps(ENUMERATION), "")


async def test_coverage_is_in_replies_without_paths(index: str, tmp_path: Path) -> None:
    source = "docs = documents()\nfinal_answer = [each(docs, 'Who founded it?'), [d.source for d in docs]]"
    async with running(ServerConfig(indexes={"firms": index})) as client:
        _, reply = await client.post("/v1/programs", {"source": source})
        (coverage,) = reply["coverage"]
        assert (coverage["total"], coverage["answered"], coverage["what"], reply["complete"]) == (
            2,
            2,
            "documents",
            True,
        )
        assert (coverage["weak"], coverage["weak_items"]) == (0, [])
        assert 0.5 <= coverage["confidence"] <= 1
        assert str(tmp_path) not in json.dumps(reply)
        assert reply["value"][1] == ["rows.jsonl", "rows.jsonl"]
        _, short = await client.post("/v1/programs", {"source": source, "budget": {"calls": 1}})
        assert (short["complete"], short["coverage"][0]["missing_items"]) == (False, ["Blix"])
        tools = Tools(client.service)

        async def report(number: int, line: str) -> None:
            pass

        result = await tools.run_program(ProgramArguments(source=source), Access(), report)
        assert (result.coverage, result.complete) == (
            ["2 of 2 documents answered, 0 unknown"],
            True,
        )
        assert "Coverage: 2 of 2 documents answered" in value_text(result)


async def test_budget_is_lowered_to_the_server_limits(index: str) -> None:
    async with running(ServerConfig(indexes={"firms": index}), max_calls=1) as client:
        _, reply = await client.post("/v1/programs", {**BODY, "budget": {"calls": 50}})
        assert reply["error"]["kind"] == "budget"


async def test_assistants_get_the_value_or_the_fault(index: str) -> None:
    async with running(ServerConfig(indexes={"firms": index})) as client:
        tools = Tools(client.service)
        lines: list[str] = []

        async def report(number: int, line: str) -> None:
            lines.append(line)

        result = await tools.run_program(ProgramArguments(**BODY), Access(), report)
        assert result.value == {"Acme": "Ann Lee", "Blix": "Bo Chan"}
        assert '"Acme": "Ann Lee"' in value_text(result)
        assert lines
        with pytest.raises(ApiError, match="Did you mean answer"):
            await tools.run_program(ProgramArguments(source="final_answer = anser('q')"), Access(), report)
