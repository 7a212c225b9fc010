"""Replies without end, of any kind, cost a client neither its memory nor its patience."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .servers import BEHAVIOURS, BULKY_MODEL, BULKY_RETRIEVER, Behaviour, hostile

CLIENT = Path(__file__).parent / "client.py"
ROOT = CLIENT.parent.parent.parent
MAX_MEGABYTES = 700
NAMES = {"retriever": "retriever", "embedder": "server of embeddings"}
LARGE = ["endless body", "endless chunks", "a length of a terabyte", "a gzip bomb", "a deflate bomb"]


def asked(role: str, behaviours: Iterable[Behaviour], seconds: float = 0.3, times: int = 1) -> dict[str, Any]:
    """What a client of that role says of each of these servers, and the peak of its memory."""
    with ExitStack() as stack:
        urls = [stack.enter_context(hostile(one)) for one in behaviours]
        paths = [str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))]
        code = f"import sys, runpy; sys.path[:0] = {paths}; runpy.run_path(sys.argv[0], run_name='__main__')"
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"import sys; sys.argv[:1] = [{str(CLIENT)!r}]; {code}",
                role,
                str(seconds),
                str(times),
                *urls,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("role", ["model", "streaming model", "retriever"])
def test_every_request_ends_with_one_error(role: str) -> None:
    result = asked(role, BEHAVIOURS.values())
    failed = [name for name, end in zip(BEHAVIOURS, result["ends"], strict=True) if not end["error"]]
    assert not failed
    assert all(len(end["message"]) < 700 for end in result["ends"])
    assert result["peak"] < MAX_MEGABYTES


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("model", "sent a reply of more than 64 MB: check that its URL is right, or raise the setting llm_body_mb"),
        ("streaming model", "more than 64 MB: check that its URL is right, or raise the setting llm_body_mb"),
        ("models", "more than 64 MB: check that its URL is right, or raise the setting llm_body_mb"),
        ("embedder", "more than 32 MB: check that its URL is right"),
        ("retriever", "more than 256 MB: check that its URL is right, or raise the setting retriever_body_mb"),
    ],
)
def test_the_limit_names_server_and_setting(role: str, said: str) -> None:
    result = asked(role, (BEHAVIOURS[name] for name in LARGE), seconds=60)
    for end in result["ends"]:
        assert end["message"].startswith(NAMES.get(role, "model server") + " http://")
        assert said in end["message"]
    assert result["peak"] < MAX_MEGABYTES


@pytest.mark.slow
@pytest.mark.parametrize(("role", "behaviours"), [("model", BULKY_MODEL), ("retriever", BULKY_RETRIEVER)])
def test_what_the_limit_allows_stays_small_in_memory(role: str, behaviours: dict[str, Behaviour]) -> None:
    for name, behaviour in behaviours.items():
        result = asked(role, [behaviour], seconds=60)
        assert result["peak"] < MAX_MEGABYTES, name
        assert "TimeoutError" not in result["ends"][0]["error"], name


@pytest.mark.slow
@pytest.mark.parametrize(("role", "name"), [("model", "endless body"), ("retriever", "a gzip bomb")])
def test_many_calls_at_once_take_the_memory_of_one(role: str, name: str) -> None:
    result = asked(role, [BEHAVIOURS[name]], seconds=120, times=12)
    assert "sent a reply of more than" in result["ends"][0]["message"]
    assert result["peak"] < MAX_MEGABYTES
