"""Spans over OTLP to a receiver of our own, decoded by OpenTelemetry's messages; and pyrag without the extra."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pyrag.runtime.telemetry import is_wanted

QUESTION = "Who is older, Jed Hoyer or John William Henry II?"
VARIABLES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_SDK_DISABLED",
)


@dataclass
class Receiver:
    """An OTLP/HTTP receiver; `bodies` are the requests to /v1/traces."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                kept.bodies.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


def run(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: one for key, one in os.environ.items() if not key.startswith("OTEL_")} | variables
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False, timeout=300)


def test_ask_exports_a_whole_question_over_otlp(receiver: Receiver, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    done = run("-m", "pyrag", "ask", QUESTION, cwd=tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert (done.returncode, done.stdout.strip()) == (0, "John William Henry II"), done.stderr
    spans, services = [], set()
    for body in receiver.bodies:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            services |= {one.value.string_value for one in resource.resource.attributes if one.key == "service.name"}
            spans += [span for scope in resource.scope_spans for span in scope.spans]
    assert services == {"pyrag"}
    names = sorted(span.name for span in spans)
    assert names.count("invoke_workflow pyrag") == 1
    assert names.count("execute_tool retrieve") == names.count("retrieval bm25:bundled corpus") == 2
    assert names.count("execute_tool answer") == 2
    assert names.count("chat embedded") == 4
    ids = {span.span_id for span in spans}
    assert [span.name for span in spans if span.parent_span_id not in ids] == ["invoke_workflow pyrag"]
    assert len({span.trace_id for span in spans}) == 1


def test_the_service_continues_the_trace_of_its_caller(receiver: Receiver, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    pytest.importorskip("uvicorn")
    environment = {key: one for key, one in os.environ.items() if not key.startswith("OTEL_")}
    environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "PYTHONUNBUFFERED": "1"}
    line = [sys.executable, "-m", "pyrag", "serve", "--port", "0"]
    trace_id, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as process:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        headers = {"Content-Type": "application/json", "traceparent": f"00-{trace_id}-{caller}-01"}
        request = urllib.request.Request(url + "/v1/ask", json.dumps({"question": QUESTION}).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as reply:
            assert json.load(reply)["answer"] == "John William Henry II"
        process.terminate()
    spans = exported(receiver)
    (question,) = [span for span in spans if span.name == "invoke_workflow pyrag"]
    assert (question.trace_id.hex(), question.parent_span_id.hex()) == (trace_id, caller)
    assert {span.trace_id for span in spans} == {question.trace_id}


def exported(receiver: Receiver) -> list[Any]:
    """Return the spans that have arrived."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    requests = [ExportTraceServiceRequest.FromString(body) for body in receiver.bodies]
    scopes = [scope for request in requests for one in request.resource_spans for scope in one.scope_spans]
    return [span for scope in scopes for span in scope.spans]


def test_worker_processes_of_a_benchmark_export_too(receiver: Receiver, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    line = ["-m", "pyrag", "bench", "--sets", "mini-popqa", "--limit", "2", "--workers", "1", "--otel", "--out", "out"]
    done = run(*line, cwd=tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert done.returncode == 0, done.stderr
    names = [span.name for span in exported(receiver)]
    assert names.count("invoke_workflow pyrag") == 2


def test_an_unreachable_receiver_costs_no_answer(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = run("-m", "pyrag", "ask", QUESTION, cwd=tmp_path, **variables)
    assert (done.returncode, done.stdout.strip()) == (0, "John William Henry II")


def test_other_protocols_are_refused_in_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    variables = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    done = run("-m", "pyrag", "ask", QUESTION, cwd=tmp_path, **variables)
    assert done.returncode == 2
    assert done.stderr == "pyrag: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not 'grpc'\n"


def test_without_the_extra_only_the_option_complains(tmp_path: Path) -> None:
    start = "import sys; sys.modules['opentelemetry'] = None; from pyrag.cli.main import main; main()"
    quiet = run("-c", start, "ask", QUESTION, cwd=tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (quiet.returncode, quiet.stdout.strip(), quiet.stderr) == (0, "John William Henry II", "")
    loud = run("-c", start, "ask", QUESTION, "--otel", cwd=tmp_path)
    assert loud.returncode == 2
    assert "which is not installed: run pip install '.[otel]' in a checkout of pyrag" in loud.stderr


def test_nothing_is_imported_unless_spans_are_wanted(tmp_path: Path) -> None:
    program = f"import sys; from pyrag import PyRAG; PyRAG().ask({QUESTION!r}); print('opentelemetry' in sys.modules)"
    assert run("-c", program, cwd=tmp_path).stdout == "False\n"


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://host:4318"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://host:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://host:4318"}, False),
    ],
)
def test_the_variables_decide_unless_the_setting_does(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: bool
) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.sdk.trace", raising=False)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, one in variables.items():
        monkeypatch.setenv(name, one)
    assert is_wanted(None) is wanted
    assert is_wanted(True) is True
    assert is_wanted(False) is False
