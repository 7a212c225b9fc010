"""Metrics as Prometheus' own parser reads them: `make test-api`."""

# ruff: noqa: E402

from __future__ import annotations

import pytest

parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from tests.server.live import QUESTION, live


def test_prometheus_reads_every_metric() -> None:
    with live() as one:
        one.send("/v1/ask", {"question": QUESTION})
        one.send("/v1/ask", {"question": " "})
        one.send('/nowhere/"quoted"\\')
        text = one.send("/metrics").body.decode()
    families = {found.name: found for found in parser.text_string_to_metric_families(text)}
    named: dict[str, set[str]] = {"histogram": set(), "gauge": set(), "counter": set()}
    for name, found in families.items():
        named[found.type].add(name.removeprefix("pyrag_"))
    assert named["histogram"] == {"question_seconds", "request_seconds", "wait_seconds"}
    assert named["gauge"] == {"requests_in_flight", "questions_running", "questions_waiting", "sandbox_restarts"}
    assert all(found.documentation for found in families.values())
    values = {
        (sample.name, *sample.labels.values()): sample.value for found in families.values() for sample in found.samples
    }
    assert values["pyrag_questions_total", "default", "known"] == 1
    assert values["pyrag_refusals_total", "empty_question"] == 1
    assert values["pyrag_question_seconds_count",] == values["pyrag_wait_seconds_count",] == 1
    assert values["pyrag_retrievals_total",] > 0
    assert values["pyrag_model_calls_total",] == 0  # the embedded engine calls no model
    assert {"pyrag_prompt_tokens", "pyrag_completion_tokens", "pyrag_cost", "pyrag_store_errors"} <= set(families)
