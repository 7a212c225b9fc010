"""Program variables that JSON does not know: traces, records, benchmarks and the server's store keep them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyrag.server.trace_store import TraceStore
from pyrag.trace.codec import from_json
from pyrag.trace.model import Answer, Trace

from .conftest import Run

PROGRAM = """
seen = {True: "yes", None: [1], 1.5: "x"}
large = 10 ** 400
deep = []
for _ in range(40):
    deep = [deep]
both = {1: "a", "1": "b"}
final_answer = answer("Given: Ada. Who?")
"""
SCRIPT = {"decompose": '["Who?"]', "plan": f"```python{PROGRAM}```", "answer": "<answer>Ada</answer>"}
KEPT = {"True": "yes", "None": [1], "1.5": "x"}
MODEL = ("--llm", "scripted:script.json")


@pytest.fixture(autouse=True)
def script(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))


def test_ask_writes_traces_and_records_of_odd_values(pyrag: Run, tmp_path: Path) -> None:
    done = pyrag("ask", "Who?", *MODEL, "--trace", "t.json", "--record", "r.jsonl", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["answer"] == "Ada"
    kept = from_json((tmp_path / "t.json").read_bytes()).variables
    assert (kept["seen"], kept["large"], kept["both"]) == (KEPT, 10**400, {"1 (int)": "a", "1": "b"})
    assert pyrag("trace", "show", "t.json").returncode == 0
    assert json.loads(pyrag("ask", "Who?", "--llm", "replay:r.jsonl", "--json").stdout)["answer"] == "Ada"


@pytest.mark.parametrize("ways", [(), ("--workers", "1")])
def test_bench_goes_on_behind_odd_values(pyrag: Run, tmp_path: Path, ways: tuple[str, ...]) -> None:
    run = ("bench", "--sets", "mini-popqa", "--method", "pyrag", "--limit", "3", "--out", "run", *MODEL, *ways)
    done = pyrag(*run)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / "traces" / "mini-popqa.pyrag.jsonl").read_bytes().splitlines()
    assert [from_json(line).variables["seen"] for line in lines] == [KEPT] * 3
    assert pyrag(*run).returncode == 0


async def test_the_store_keeps_half_characters_and_odd_keys() -> None:
    store = TraceStore(None, 10)
    try:
        await store.add("t", "a", Trace("Who \ud800?", Answer("\udc00"), extensions={"own": {None: {True: 1}}}))
        found = await store.get("t")
        assert found is not None
        assert found[1].extensions == {"own": {"None": {"True": 1}}}
    finally:
        store.close()
