"""Filters of a server's keys and requests: promise 15 of SECURITY.md over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.errors import ConfigError, FilterError
from pyrag.retrieval.filters.language import parsed
from pyrag.retrieval.http import HttpRetriever
from pyrag.retrieval.index import update_index
from pyrag.server.config import ServerConfig, read_keys
from tests.server.test_serve import Client, running

QUESTION = "Who founded the mill?"
ALL, OPS, HR = "k-all-0123456789ab", "k-ops-0123456789ab", "k-hr-0123456789abc"
LINES = f"{ALL}\n{OPS} default where team = \"ops\"\n{HR} where team in ('hr')\n"
RECORDS = [
    {"id": "ops", "text": "The mill was founded by Ann Smith.", "team": "ops"},
    {"id": "hr", "text": "The mill was founded by Bob Jones.", "team": "hr"},
    {"id": "open", "text": "The mill was founded long ago."},
]


@pytest.fixture
def index(tmp_path: Path) -> str:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in RECORDS))
    update_index([tmp_path / "a.jsonl"], tmp_path / "ix")
    (tmp_path / "keys").write_text(LINES)
    return str(tmp_path / "ix")


def config(tmp_path: Path) -> ServerConfig:
    return ServerConfig(keys=read_keys(tmp_path / "keys", {}))


async def ids(client: Client, key: str, **body: Any) -> set[str]:
    status, reply = await client.post("/retrieve", {"queries": ["mill"], **body}, **{"X-API-Key": key})
    assert status == 200, reply
    return {one["id"] for one in reply["result"][0]}


async def test_a_key_sees_what_its_filter_passes(index: str, tmp_path: Path) -> None:
    async with running(config(tmp_path), index=index) as client:
        assert await ids(client, ALL) == {"ops", "hr", "open"}
        assert await ids(client, OPS) == {"ops"}
        assert await ids(client, HR) == {"hr"}
        for where in ('team = "hr"', {"team": "hr"}, "not exists team", 'team = "ops" or team = "hr"'):
            assert await ids(client, OPS, where=where) <= {"ops"}
        assert await ids(client, ALL, where={"team": ["ops", "hr"]}) == {"ops", "hr"}
        answers = {}
        for key in (OPS, HR):
            body = {"question": QUESTION, "include_trace": True}
            status, reply = await client.post("/v1/ask", body, **{"X-API-Key": key})
            assert status == 200
            answers[key] = reply["answer"]
            assert set(reply["trace"]["passages"]) <= {"ops" if key == OPS else "hr"}
        assert answers == {OPS: "Ann Smith", HR: "Bob Jones"}


async def test_a_request_narrows_and_citations_show_metadata(index: str, tmp_path: Path) -> None:
    async with running(config(tmp_path), index=index) as client:
        body = {"question": QUESTION, "where": {"team": "hr"}}
        _, reply = await client.post("/v1/ask", body, **{"X-API-Key": ALL})
        assert reply["answer"] == "Bob Jones"
        assert [one["metadata"] for one in reply["citations"]] == [{"team": "hr"}]
        body = {"questions": [QUESTION], "where": 'team = "hr"'}
        _, batch = await client.post("/v1/ask/batch", body, **{"X-API-Key": OPS})
        assert batch["results"][0]["known"] is False
        for path, asked in (("/v1/ask", {"question": QUESTION}), ("/retrieve", {"queries": ["mill"]})):
            for where in ("", "team =", {}, {"team": {"~": 1}}):
                status, refused = await client.post(path, {**asked, "where": where}, **{"X-API-Key": OPS})
                assert status == 400
                assert "filter" in json.dumps(refused)


async def test_traces_of_another_filter_are_not_there(index: str, tmp_path: Path) -> None:
    async with running(config(tmp_path), index=index) as client:
        _, reply = await client.post("/v1/ask", {"question": QUESTION}, **{"X-API-Key": HR})
        for key, sees in ((HR, True), (OPS, False), (ALL, False)):
            _, listed = await client.get("/v1/traces", **{"X-API-Key": key})
            assert bool(listed["traces"]) == sees
            status, _ = await client.get(f"/v1/traces/{reply['id']}", **{"X-API-Key": key})
            assert status == (200 if sees else 404)


async def test_pyrag_reads_a_served_index_under_filters(index: str) -> None:
    async with running(index=index) as client:
        retriever = HttpRetriever(client.url)
        found = await retriever.retrieve("mill", 5, parsed('team = "ops"'))
        assert [(one.id, one.metadata) for one in found] == [("ops", {"team": "ops"})]
        await retriever.aclose()


def test_keys_with_wrong_filters_are_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{OPS} where team = ops\n")
    with pytest.raises(FilterError, match="put a text in quotes"):
        read_keys(tmp_path / "keys", {})
    (tmp_path / "keys").write_text(f"{OPS} were team = 'ops'\n")
    keys = read_keys(tmp_path / "keys", {})
    with pytest.raises(ConfigError, match="a key is bound to the index"):
        ServerConfig(keys=keys)


async def test_a_filter_that_finds_nothing_says_why(index: str, tmp_path: Path) -> None:
    async with running(config(tmp_path), index=index) as client:
        for where, says in (("taem = 'ops'", "did you mean 'team'?"), ("team = 7", "put the value in quotes")):
            body = {"question": QUESTION, "where": where}
            status, reply = await client.post("/v1/ask", body, **{"X-API-Key": ALL})
            assert (status, reply["known"]) == (200, False)
            assert any(says in warning for warning in reply["warnings"])
            body = {"queries": ["mill"], "where": where}
            _, found = await client.post("/retrieve", body, **{"X-API-Key": ALL})
            assert found["result"] == [[]]
            assert says in found["remarks"][0]


async def test_remarks_tell_a_key_nothing_of_what_it_hides(index: str, tmp_path: Path) -> None:
    records = [*RECORDS, {"id": "pay", "text": "The mill pays.", "team": "hr", "salary": 7}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    update_index([tmp_path / "a.jsonl"], index)
    async with running(config(tmp_path), index=index) as client:
        for where in ("salry > 3", "salary = 'x'", "team = 'x'", "salary > 7"):
            body = {"question": QUESTION, "where": where, "include_trace": True}
            _, reply = await client.post("/v1/ask", body, **{"X-API-Key": OPS})
            assert any(warning.startswith("the filter ") for warning in reply["warnings"])
            told = json.dumps(reply["warnings"]).replace(where, "")
            _, found = await client.post("/retrieve", {"queries": ["mill"], "where": where}, **{"X-API-Key": OPS})
            told += json.dumps(found["remarks"])
            assert "hr" not in told
            assert "'salary'" not in told.replace("names the field 'salary'", "")
        _, reply = await client.post("/v1/ask", {"question": QUESTION}, **{"X-API-Key": OPS})
        assert reply["warnings"] == []
