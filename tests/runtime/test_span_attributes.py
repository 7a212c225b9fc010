"""Attributes that spans have of the model behind an agent."""

from __future__ import annotations

import pytest

from pyrag.runtime.spans import _model_of


@pytest.mark.parametrize(
    ("role", "model", "address"),
    [("answer", "org@m", "h"), ("plan", "x", "p"), ("decompose", "org@m", "h")],
)
def test_a_model_keeps_an_at_in_its_name(role: str, model: str, address: str) -> None:
    attributes = _model_of("openai:org@m@http://h:1/v1 (plan: openai:x@http://p/v1)", role)
    assert (attributes["gen_ai.request.model"], attributes["server.address"]) == (model, address)


def test_an_engine_without_a_model_is_pyrags() -> None:
    attributes = _model_of("embedded", "answer")
    assert (attributes["gen_ai.provider.name"], attributes["gen_ai.request.model"]) == ("pyrag", "embedded")
