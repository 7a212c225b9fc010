"""`POST /v1/explain`: questions and programs, filters of keys, limits, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.retrieval.index import update_index
from pyrag.server.config import ServerConfig, read_keys
from tests.server.conftest import ModelServer
from tests.server.test_serve import SCRIPTED, running

EACH = 'rows = each(documents(), "What is it?")\nfinal_answer = [row.value for row in rows]'
KEY, OPS = "k-all-0123456789abcdef", "k-ops-0123456789abcdef"


@pytest.fixture
def index(tmp_path: Path) -> str:
    rows = [
        {"id": f"d{number}", "title": f"D{number}", "text": f"Text {number}.", "team": "ops" if number < 3 else "law"}
        for number in range(7)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    update_index([tmp_path / "rows.jsonl"], tmp_path / "ix")
    return str(tmp_path / "ix")


async def test_a_question_is_planned_and_not_run(server: ModelServer) -> None:
    async with running(llm=f"openai:tiny@{server.url}", price_in=1.0, price_out=2.0) as client:
        status, reply = await client.post("/v1/explain", {"question": SCRIPTED})
        assert (status, server.roles) == (200, ["decompose", "plan"])
        assert (reply["planning"]["model_calls"], reply["happened"], reply["error"]) == (2, None, "")
        assert reply["calls"]["low"] == 2
        assert 2 <= reply["calls"]["expected"] <= reply["calls"]["high"]
        assert [line["line"] for line in reply["lines"]] == [1, 2, 3]
        assert [line["depends_on"] for line in reply["lines"]] == [[], [1], [2]]
        assert reply["cost"]["low"] > 0
        assert str(server.url) not in json.dumps(reply)
        status, analyzed = await client.post("/v1/explain", {"question": SCRIPTED, "analyze": True})
        assert (status, analyzed["happened"]["calls"], analyzed["happened"]["answer"]) == (200, 2, "an executive")


async def test_enumerations_are_counted_under_the_keys_filter(index: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f'{KEY}\n{OPS} firms where team = "ops"\n')
    config = ServerConfig(indexes={"firms": index}, keys=read_keys(keys, {"firms": index}))
    async with running(config) as client:
        counts = {}
        for key in (KEY, OPS):
            status, reply = await client.post("/v1/explain", {"source": EACH}, Authorization=f"Bearer {key}")
            assert status == 200
            counts[key] = [line["items"] for line in reply["lines"]]
        assert (counts[KEY], counts[OPS]) == ([7], [3])
        for where in ('team = "law" or team = "ops"', 'team = "law"', None):
            source = 'final_answer = count() + count(\'team = "law"\') + len(documents(\'team in ("law", "ops")\'))'
            body = {"source": source, "where": where, "analyze": True}
            _, reply = await client.post("/v1/explain", body, Authorization=f"Bearer {OPS}")
            narrowed = 0 if where == 'team = "law"' else 3
            assert f"documents: {narrowed}, counted in the index" in reply["basis"]
            assert (reply["lines"][0]["items"], reply["happened"]["answer"]) == (narrowed, str(2 * narrowed))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": "Who?", "source": "final_answer = 1"},
        {"question": " "},
        {"source": "final_answer = 1", "inputs": {"for": 1}},
        {"question": "Who?", "index": "none"},
        {"question": "Who?", "where": "year >"},
        {"question": "Who?", "more": 1},
    ],
)
async def test_requests_that_make_no_sense_are_refused(body: dict[str, object]) -> None:
    async with running() as client:
        status, reply = await client.post("/v1/explain", body)
        assert status in (400, 404), reply


async def test_a_wrong_program_is_named_not_run() -> None:
    async with running() as client:
        status, reply = await client.post("/v1/explain", {"source": "final_answer = anser('q')"})
        assert (status, reply["program"]) == (200, "")
        assert "Did you mean answer?" in reply["error"]
