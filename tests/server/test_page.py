"""The page's routes: files, headers, and choices. `tests/page` opens it in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from pyrag.retrieval.index import update_index
from pyrag.server.config import ServerConfig, read_keys
from pyrag.trace.html import page_file, page_paths
from tests.server.test_serve import BOUND, KEY, indexes, running

__all__ = ["indexes"]


def policy_of(headers: Any) -> dict[str, str]:
    parts = headers["Content-Security-Policy"].split(";")
    return {name: sources for name, _, sources in (part.strip().partition(" ") for part in parts)}


KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


async def test_every_file_of_the_page_has_a_strict_policy() -> None:
    async with running() as client:
        for path, name in page_paths().items():
            kind = KINDS[name.rpartition(".")[2]]
            async with client.session.get(client.url + path) as reply:
                assert (reply.status, reply.content_type, await reply.text()) == (200, kind, page_file(name))
                policy = policy_of(reply.headers)
                assert policy["default-src"] == "'none'"
                assert {policy[one] for one in ("script-src", "style-src", "connect-src")} == {"'self'"}
                assert {policy[one] for one in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
                assert policy["require-trusted-types-for"] == "'script'"
                assert reply.headers["X-Content-Type-Options"] == "nosniff"
                tag = reply.headers["ETag"]
            async with client.session.get(client.url + path, headers={"If-None-Match": tag}) as reply:
                assert (reply.status, await reply.read()) == (304, b"")
        assert (await client.get("/scripts/nothing.js"))[0] == 404


async def test_options_name_what_may_be_asked() -> None:
    async with running() as client:
        status, found = await client.get("/v1/options")
        assert (status, found["engine"], found["indexes"], found["method"]) == (200, "embedded", ["default"], "pyrag")
        assert "vanilla" in found["methods"]
        assert "ircot" not in found["methods"]  # which needs a language model
        for question in found["examples"]:
            _, reply = await client.post("/v1/ask", {"question": question})
            assert (question, reply["known"]) == (question, True)


async def test_options_of_an_own_index_have_no_examples(tmp_path: Path) -> None:
    (tmp_path / "mill.md").write_text("The mill was founded by Ann.")
    update_index([tmp_path / "mill.md"], tmp_path / "ix")
    async with running(ServerConfig(indexes={"mill": str(tmp_path / "ix")})) as client:
        _, found = await client.get("/v1/options")
        assert (found["index"], found["indexes"], found["examples"]) == ("mill", ["mill"], [])


async def test_page_opens_without_a_key_and_options_do_not(tmp_path: Path, indexes: dict[str, str]) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n{BOUND} mill\n")
    async with running(ServerConfig(indexes=indexes, keys=read_keys(keys, {}))) as client:
        for path in page_paths():
            assert (await client.get(path))[0] == 200
        assert (await client.get("/v1/options"))[0] == 401
        assert (await client.get("/v1/options", Authorization=f"Bearer {KEY}"))[1]["indexes"] == ["zoo", "mill"]
        assert (await client.get("/v1/options", Authorization=f"Bearer {BOUND}"))[1]["indexes"] == ["mill"]
