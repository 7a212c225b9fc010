"""Options of model requests: their forms, and what a wrong one is answered with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError
from pyrag.llm.request_options import RequestOptions, options_of, read_requests
from pyrag.settings import Settings, load_settings, make_settings, public

TABLE = {"temperature": 0.2, "plan": {"temperature": 0.7, "extra_body": {"reasoning_effort": "low"}}}
TOML = """
[request]
temperature = 0.2
[request.plan]
temperature = 0.7
extra_body.reasoning_effort = "low"
"""


@pytest.mark.parametrize(
    "given",
    [
        TABLE,
        ["temperature=0.2", "plan.temperature=0.7", "plan.extra_body.reasoning_effort=low"],
        "temperature=0.2; plan.temperature=0.7;plan.extra_body.reasoning_effort=low;",
        '{"temperature": 0.2, "plan": {"temperature": 0.7, "extra_body": {"reasoning_effort": "low"}}}',
    ],
)
def test_every_form_means_the_same(given: Any) -> None:
    assert read_requests(given) == TABLE
    assert make_settings({"request": given}).request == TABLE
    assert Settings(request=given).request == TABLE
    with PyRAG(request=given) as rag:
        assert rag.settings.request == TABLE


def test_a_role_joins_its_options_with_those_of_all() -> None:
    table = read_requests(["seed=7", "extra_body.a=1", "plan.extra_body.b=[2]", "plan.seed=8", "rewrite.max_tokens=64"])
    assert options_of(table, "plan") == RequestOptions(seed=8, extra_body={"a": 1, "b": [2]})
    assert options_of(table, "answer") == RequestOptions(seed=7, extra_body={"a": 1})
    assert options_of(table, "rewrite") == RequestOptions(max_tokens=64, seed=7, extra_body={"a": 1})
    assert options_of({}, "answer") == RequestOptions()


def test_layers_join_key_by_key(tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text(TOML)
    environ = {"PYRAG_REQUEST": "plan.temperature=0.9; seed=1"}
    settings = load_settings({"request": ["seed=2"]}, config=file, environ=environ)
    assert settings.request == {
        "temperature": 0.2,
        "seed": 2,
        "plan": {"temperature": 0.9, "extra_body": {"reasoning_effort": "low"}},
    }
    assert load_settings(config=file, environ={}).request == TABLE


def test_settings_show_options_without_what_looks_secret() -> None:
    fields = {"user_token": "t0ken", "url": "http://bob:pw@h/x?k=v", "thinking": {"budget_tokens": 9}}
    settings = Settings(request={"extra_body": fields})
    shown = {"user_token": "…", "url": "http://h/x", "thinking": {"budget_tokens": 9}}
    assert public(settings)["request"] == {"extra_body": shown}
    assert settings.request["extra_body"] == fields
    assert "t0ken" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"temprature": 1}, "unknown request option 'temprature': did you mean 'temperature'"),
        ({"top_p": 1}, "extra_body.top_p for a field of your server's"),
        ({"plan": {"plan": {}}}, "unknown request option 'plan.plan': choose from temperature"),
        ({"planner": {"seed": 1}}, "did you mean 'plan'"),
        ({"plan": 0.7}, "request.plan must be a table of options, not 0.7"),
        ({"temperature": "hot"}, "request.temperature must be a number from 0 on, not 'hot'"),
        ({"temperature": -1}, "request.temperature must be a number from 0 on"),
        ({"temperature": float("nan")}, "request.temperature must be a number from 0 on"),
        ({"temperature": True}, "request.temperature must be a number from 0 on"),
        ({"answer": {"max_tokens": 0}}, "request.answer.max_tokens must be a whole number from 1 on, not 0"),
        ({"max_tokens": 1.5}, "request.max_tokens must be a whole number from 1 on"),
        ({"seed": -1}, "request.seed must be a whole number from 0 on"),
        ({"extra_body": "low"}, "request.extra_body must be a table of fields, not 'low'"),
        ({"extra_body": {"messages": []}}, "request.extra_body.messages cannot be set"),
        ({"extra_body": {"max_tokens": 9}}, "use the option max_tokens instead"),
        ({"extra_body": {"a": {1, 2}}}, "request.extra_body cannot be sent as JSON"),
        ({"extra_body": {"a": float("inf")}}, "request.extra_body cannot be sent as JSON"),
        (["temperature"], "the request option 'temperature' has no key and value: write it like"),
        (["=1"], "has no key and value"),
        (["plan..seed=1"], "has no key and value"),
        ("{", "request is not a JSON object"),
        (7, "request must be a table of options, not 7"),
    ],
)
def test_a_wrong_option_is_one_sentence(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_settings({"request": given})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
