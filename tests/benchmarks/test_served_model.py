"""The benchmark with a served model: waits are unions of intervals, figures are sums, a level is asked over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.prefix_cache import PrefixCache
from benchmarks.served_model import HEAD, QuestionWaits, covered, figures, measure, read_asked
from pyrag.trace.events import AgentFinished, Searched
from pyrag.trace.model import Answer, Step, Trace, Usage

PROGRAM = """final_answer = answer("Who wrote Alpha?", retrieve("Who wrote Alpha?"))"""


class VllmServer(BaseHTTPRequestHandler):
    """Replies as a served planner and reader would, and counts prompt tokens as vLLM's metrics do."""

    prompts = 0

    def do_GET(self) -> None:
        counted = f"vllm:prefix_cache_queries_total {100 * self.prompts}\nvllm:prefix_cache_hits_total {self.prompts}\n"
        self._send(counted.encode())

    def do_POST(self) -> None:
        type(self).prompts += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        plan = body["model"] == "plan"
        text = f"1. Who wrote Alpha?\n```python\n{PROGRAM}\n```" if plan else "<answer>Ada Smith</answer>"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        self._send(json.dumps({"choices": [choice], "usage": {"prompt_tokens": 50, "completion_tokens": 5}}).encode())

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), VllmServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_overlapping_waits_are_counted_once() -> None:
    assert covered([(2.0, 3.0), (0.0, 1.0), (0.5, 1.5), (0.6, 0.7)]) == 2.5
    assert covered([]) == 0.0


def test_the_wait_of_an_event_ends_with_it() -> None:
    timed = QuestionWaits()
    timed.note(AgentFinished(0, "plan", seconds=2.0, at=2.5))
    timed.note(AgentFinished(1, "answer", seconds=1.0, at=4.0))
    timed.note(Searched(2, "q", 5, seconds=0.5, at=3.0))
    assert timed.waits == [(0.5, 2.5), (3.0, 4.0), (2.5, 3.0)]
    assert timed.planning == 2.0


def test_figures_of_a_level_are_sums_of_its_questions() -> None:
    steps = (Step(0, "retrieve", "q", seconds=1.0), Step(1, "answer", "q", seconds=2.0, depends_on=(0,)))
    usage = Usage(model_calls=2, prompt_tokens=300, completion_tokens=30, seconds=5.0)
    trace = Trace("q", Answer("a"), steps=steps, usage=usage)
    timed = QuestionWaits([(0.0, 1.0), (1.5, 4.5)], planning=1.0)
    level = figures("paper", 10.0, 0.5, PrefixCache(600, 150), [(trace, timed)] * 2)
    assert (level.questions_per_second, level.tokens_per_second, level.prompt_tokens_per_second) == (0.2, 6.0, 60.0)
    assert (level.cached, level.wall_by_path, level.pyrag_cpu_ms) == (0.25, 1.25, 250.0)
    assert level.pyrag_wall == pytest.approx(0.2)
    assert len(level.row()) == len(HEAD)


def test_a_level_is_asked_over_http(url: str) -> None:
    specs = {"sft-plan": f"openai:plan@{url}/v1", "sft-answer": f"openai:answer@{url}/v1"}
    level = asyncio.run(measure("fast", specs, [f"Who wrote Alpha {n}?" for n in range(4)], ["Who wrote Beta?"]))
    assert (level.at_once, level.failed) == (4, 0)
    assert level.cached == 0.01
    assert 0.0 <= level.pyrag_wall < 1.0
    assert level.tokens_per_second > 0


def test_bundled_questions_are_asked_without_a_data_folder() -> None:
    assert len(set(read_asked(None))) > 100
