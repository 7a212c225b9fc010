"""The verdict on an answer at every way to the service: the same words, without paths and options of a command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from pyrag.retrieval.index import update_index
from pyrag.server.config import Access, ServerConfig
from pyrag.server.mcp.schemas import AskArguments
from pyrag.server.mcp.tools import Tools, answer_text
from tests.server.test_openai_api import asking, said
from tests.server.test_serve import Client, running

SURE = "Who directed Gravity?"
DOUBTFUL = "Who is the wife of the composer?"
NOWHERE = "What is the colour of the moon called Fooqux?"
Verdict = tuple[bool, bool, str]


def verdict(reply: Any) -> Verdict:
    value = reply if isinstance(reply, dict) else {key: getattr(reply, key) for key in ("known", "weak", "remark")}
    return value["known"], value["weak"], value["remark"]


async def verdicts(client: Client, question: str) -> dict[str, Verdict]:
    """Ask a question in every way."""
    body = {"question": question}
    _, asked = await client.post("/v1/ask", body)
    _, kept = await client.get(f"/v1/traces/{asked['id']}")
    _, batch = await client.post("/v1/ask/batch", {"questions": [question]})
    _, with_trace = await client.post("/v1/ask", {**body, "include_trace": True})
    async with client.session.post(client.url + "/v1/ask", json={**body, "stream": True}) as reply:
        last = (await reply.text()).strip().split("\n\n")[-1].split("\n")
    found = {
        "ask": verdict(asked),
        "kept": verdict({**kept, "known": kept["answer"]["known"]}),
        "batch": verdict(batch["results"][0]),
        "trace": verdict({**with_trace["trace"], "known": with_trace["known"]}),
        "events": verdict(json.loads(last[1].removeprefix("data: "))),
    }
    async with asking(client.url) as official:
        chat = await official.chat.completions.create(model="pyrag", messages=said(question))
        chunks = [
            chunk
            async for chunk in await official.chat.completions.create(
                model="pyrag", messages=said(question), stream=True
            )
        ]
        response = await official.responses.create(model="pyrag", input=question)
        async with official.responses.stream(model="pyrag", input=question) as stream:
            streamed = await stream.get_final_response()
        again = await official.responses.retrieve(response.id)
    deltas = [delta for chunk in chunks if (delta := getattr(chunk.choices[0].delta, "pyrag", None))]
    found |= {
        "chat": verdict(chat.choices[0].message.pyrag),
        "chat stream": verdict(deltas[0]),
        "response": verdict(response.pyrag),
        "response stream": verdict(streamed.pyrag),
        "kept response": verdict(again.pyrag),
    }

    async def ignore(number: int, line: str) -> None:
        pass

    result = await Tools(client.service).ask(AskArguments(question=question), Access(), ignore)
    assert result.remark in answer_text(result)
    return {**found, "mcp": verdict(result)}


async def test_every_way_marks_a_weak_answer() -> None:
    async with running(least_evidence=0) as client:
        found = await verdicts(client, DOUBTFUL)
        assert len(set(found.values())) == 1, found
        known, weak, remark = found["ask"]
        assert (known, weak) == (True, True)
        assert remark.startswith("weak answer, confidence 0.")
        assert "check it in " in remark


@pytest.mark.slow
async def test_every_way_says_what_an_unknown_answer_lacks() -> None:
    async with running() as client:
        found = await verdicts(client, NOWHERE)
        assert len(set(found.values())) == 1, found
        known, weak, remark = found["ask"]
        assert (known, weak) == (False, False)
        searched, tries = remark.split("; try ")
        assert "pyrag's bundled corpus (as the index default) found" in searched
        assert "other words" in tries
        assert "topk" not in tries  # the server's own is the largest that a request may ask for
        assert "--index)" in tries
        assert verdict((await client.post("/v1/ask", {"question": SURE}))[1]) == (True, False, "")


async def test_a_request_below_the_servers_topk_may_raise_it(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        "\n".join(json.dumps({"id": str(one), "text": f"Mill {one} stands."}) for one in range(60))
    )
    update_index([tmp_path / "rows.jsonl"], tmp_path / "index")
    config = ServerConfig(indexes={"mill": str(tmp_path / "index")})
    async with running(config, topk=20, recovery="none") as client:
        body = {"question": "Who is the owner of the mill?", "topk": 2}
        remark = (await client.post("/v1/ask", body))[1]["remark"]
        assert "of the index mill found 2 passages" in remark
        assert ", topk 4" in remark
        assert str(tmp_path) not in remark
