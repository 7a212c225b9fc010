"""The primitives over which `pyrag sandbox check` judges programs."""

from __future__ import annotations

import pytest

from pyrag.cli.sandbox import STUBS
from pyrag_sandbox import Limits
from pyrag_sandbox.host import check


async def judged(samples: list[check.Sample]) -> list[check.Judgement]:
    return [row async for row in check.judge(samples, primitives=STUBS, limits=Limits(own_seconds=5.0))]


@pytest.mark.parametrize(
    "arguments",
    [
        "", "5", "None", "'q', 0", "'q', 101", "'q', True", "'q', 3.0", "'q', '5'", "'q', 5, 6", "query='q', k=1",
        "'q', query='q'", "'x' * 9000",
    ],
)  # fmt: skip
async def test_retrieve_checks_its_arguments(arguments: str) -> None:
    (row,) = await judged([check.Sample("a", f"final_answer = retrieve({arguments})")])
    assert row.verdict == "error"


@pytest.mark.parametrize(
    "arguments", ["", "5", "'q', 5", "'q', 'docs'", "'q', [1]", "'q', [['a']]", "'q', {}", "'q', [], 1"]
)
async def test_answer_checks_its_arguments(arguments: str) -> None:
    (row,) = await judged([check.Sample("a", f"final_answer = answer({arguments})")])
    assert row.verdict == "error"


@pytest.mark.parametrize(
    "call",
    ["retrieve('q')", "retrieve(query='q', topk=100)", "answer('q', retrieve('q', 1))", "answer('q', docs=None)"],
)
async def test_stubs_serve_valid_calls(call: str) -> None:
    (row,) = await judged([check.Sample("a", f"final_answer = {call}", "", "allowed")])
    assert row.agrees
    assert row.line is None
