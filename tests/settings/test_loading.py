"""Settings: layers, types, and messages that name the cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrag.errors import ConfigError
from pyrag.settings import Settings, load_settings, make_settings


def test_flags_beat_environment_beats_file(tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text("topk = 3\nboost_topk = 30\nmax_calls = 7\n")
    settings = load_settings({"topk": 9, "method": None}, config=file, environ={"PYRAG_BOOST_TOPK": "40", "HOME": "/"})
    assert (settings.topk, settings.boost_topk, settings.max_calls, settings.method) == (9, 40, 7, "pyrag")


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('llm = "scripted:x.json"')
    assert load_settings(environ={"PYRAG_CONFIG": str(file)}).llm == "scripted:x.json"


def test_paths_of_a_file_count_from_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text('index = "notes"')
    assert load_settings(config=file, environ={}).index == str(tmp_path / "notes")
    file.write_text('prompts = "mine"')
    assert load_settings(config=file, environ={}).prompts == str(tmp_path / "mine")
    file.write_text('prompts = "small"')  # a packaged set
    assert load_settings(config=file, environ={}).prompts == "small"


def test_a_retriever_flag_replaces_the_index_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text('index = "notes"')
    settings = load_settings({"retriever": "http://127.0.0.1:1"}, config=file, environ={})
    assert (settings.index, settings.retriever) == (None, "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"topkk": 3}, "unknown setting 'topkk': did you mean 'topk'?"),
        ({"topk": "many"}, "topk must be of type int, not 'many'"),
        ({"topk": True}, "topk must be of type int"),
        ({"joint": 2}, "joint must be of type bool"),
        ({"topk": 0}, "topk must be above 0"),
        ({"max_tokens": 0}, "max_tokens must be above 0"),
        ({"llm_body_mb": 0}, "llm_body_mb must be above 0"),
        ({"retriever_body_mb": -1}, "retriever_body_mb must be above 0"),
        ({"deadline": -1}, "deadline must be above 0"),
        ({"deadline": "nan"}, "deadline must be above 0"),
        ({"call_timeout": "nan"}, "call_timeout must be above 0"),
        ({"price_in": "nan"}, "price_in must not be negative"),
        ({"unknown": "maybe"}, "unknown must be one of repair, allow"),
        ({"index": "a", "retriever": "http://b"}, "exclude each other"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
        make_settings(values)


def test_a_typo_in_file_or_environment_names_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text("retreiver = 'http://127.0.0.1:1'")
    with pytest.raises(ConfigError, match=r"pyrag\.toml.*did you mean 'retriever'"):
        load_settings(config=file, environ={})
    with pytest.raises(ConfigError, match="did you mean 'PYRAG_DEADLINE'"):
        load_settings(environ={"PYRAG_DEDLINE": "3"})


def test_broken_toml_and_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "pyrag.toml"
    file.write_text("topk = = 3")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_settings(config=file, environ={})
    with pytest.raises(ConfigError, match="cannot read the config file"):
        load_settings(config=tmp_path / "none.toml", environ={})


def test_none_and_numbers_from_the_environment() -> None:
    settings = load_settings(environ={"PYRAG_DEADLINE": "none", "PYRAG_JOINT": "yes", "PYRAG_CALL_TIMEOUT": "5"})
    assert (settings.deadline, settings.joint, settings.call_timeout) == (None, True, 5.0)


def test_defaults_are_those_of_the_paper() -> None:
    settings = Settings()
    assert (settings.topk, settings.boost_topk, settings.repairs, settings.max_calls) == (5, 10, 3, None)


def test_a_profile_is_the_lowest_layer() -> None:
    assert make_settings({}).profile == "paper"
    fast = make_settings({"profile": "fast"})
    assert (fast.joint, fast.synthesis, fast.prompts) == (True, "needed", "fast")
    own = load_settings({"profile": "fast", "joint": False}, environ={"PYRAG_SYNTHESIS": "always"})
    assert (own.joint, own.synthesis, own.prompts) == (False, "always", "fast")


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ConfigError, match="profile must be one of paper, fast, corpus, paper-release, not 'cheap'"):
        make_settings({"profile": "cheap"})
