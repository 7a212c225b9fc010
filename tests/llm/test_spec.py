"""Specs of chat models: what is accepted, and what a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.errors import ConfigError, DataError
from pyrag.llm.spec import open_chat_model


@pytest.mark.parametrize(
    ("spec", "environ", "name"),
    [
        ("openai:Qwen2.5-7B@http://h:8000/v1", {}, "openai:Qwen2.5-7B@http://h:8000/v1"),
        ("openai:org/model@https://h/v1/", {}, "openai:org/model@https://h/v1"),
        ("openai:@cf/meta/llama@https://h/v1", {}, "openai:@cf/meta/llama@https://h/v1"),
        ("openai:qwen:7b@http://h:11434/v1", {}, "openai:qwen:7b@http://h:11434/v1"),
        ("openai:m", {}, "openai:m@https://api.openai.com/v1"),
        ("openai:m", {"OPENAI_BASE_URL": "http://h:1/v1"}, "openai:m@http://h:1/v1"),
        ("openai:", {"OPENAI_BASE_URL": "http://h:1/v1"}, "openai:@http://h:1/v1"),
        ("openai:@cf/meta/llama", {"OPENAI_BASE_URL": "http://h:1/v1"}, "openai:@cf/meta/llama@http://h:1/v1"),
        ("openai:@http://h:1/v1", {}, "openai:@http://h:1/v1"),
        ("openai:m@http://u:pw@h:1/v1", {"OPENAI_API_KEY": "sk-123456"}, "openai:m@http://h:1/v1"),
    ],
)
def test_names(spec: str, environ: dict[str, str], name: str) -> None:
    assert open_chat_model(spec, environ=environ).name == name


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("opnai:m@http://h/v1", "did you mean 'openai'.*embedded.*scripted:FILE.*replay:FILE"),
        ("", "there is no engine ''"),
        ("gpt-4", "there is no engine 'gpt-4'.*openai:MODEL@http"),
        ("openai:", "needs a model"),
        ("openai:m@localhost:8000/v1", "with http:// or https://"),
        ("openai:m@models.example.com/v1", "with http:// or https://"),
        ("openai:http://h:1/v1", "openai:MODEL@http"),
        ("openai:m@gpubox", "with http:// or https://"),
        ("openai:@gpubox", "with http:// or https://"),
        ("openai:m@http://", "is not the URL of a model server"),
        ("scripted:", "scripted:FILE"),
    ],
)
def test_mistakes(spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_chat_model(spec, environ={})


def test_scripted(tmp_path: Path) -> None:
    script = tmp_path / "s.jsonl"
    script.write_text('"a"\n')
    assert open_chat_model(f"scripted:{script}").name == f"scripted:{script}"
    with pytest.raises(DataError, match="cannot read the script"):
        open_chat_model(f"scripted:{tmp_path}/none.jsonl")
