"""Settings are declared once: options, variables and the reference pages follow from the declarations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from pyrag.cli.options import with_settings
from pyrag.settings import Settings, declarations, load_settings
from tools.reference_pages import DOCS, commands, commands_page, settings_page


@pytest.mark.parametrize(("name", "page"), [("settings.md", settings_page()), ("commands.md", commands_page())])
def test_reference_pages_are_up_to_date(name: str, page: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == page, "run python -m tools.reference_pages"


def test_every_setting_is_declared_with_help() -> None:
    assert list(declarations()) == list(Settings.__slots__)
    wrong = [item.name for item in declarations().values() if not re.match(r"[A-Z].+\.$", item.help)]
    assert wrong == []


def test_options_named_like_a_setting_show_its_declaration() -> None:
    options = [(path, option) for path, command in commands() for option in command.params]
    shown = [
        (path, option.name)
        for path, option in options
        if option.name in declarations() and option.help == declarations()[option.name].help
    ]
    assert len(shown) > 90
    for path, name in shown:
        option = next(option for place, option in options if (place, option.name) == (path, name))
        assert "/".join([*option.opts, *option.secondary_opts]) == declarations()[name].flag
        assert (option.show_default or "") == declarations()[name].shown_default


@pytest.mark.parametrize("name", sorted(declarations().keys() - {"request"}))
def test_a_setting_is_read_from_its_variable(name: str) -> None:
    declared = declarations()[name]
    text = "0.5" if float in declared.types else "600" if int in declared.types else "text"
    if declared.choices or declared.is_switch or name in ("topk", "boost_topk"):
        text = declared.choices[-1] if declared.choices else "1"
    prices = {"PYRAG_PRICE_IN": "1"} if name == "max_cost" else {}
    value = getattr(load_settings(environ={**prices, declared.variable: text}), name)
    assert value in (text, (text,), True) if isinstance(value, str | tuple | bool) else value == float(text)


def program(*names: str, **texts: str) -> typer.Typer:
    """Return a command line of a group with a command, whose callback takes these settings."""
    app = typer.Typer()

    @app.callback(invoke_without_command=True)
    @with_settings(*names, texts=texts)
    def group(context: typer.Context, settings: Settings, size: Annotated[int, typer.Option(help="Size.")] = 3) -> None:
        typer.echo(f"{size} {settings.topk} {settings.joint} {settings.tools} {settings.request} {settings.index}")

    @app.command()
    def below() -> None:
        typer.echo("below")

    return app


def test_a_command_gets_settings_made_of_its_options(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("topk = 9\njoint = true\n")
    names = ("topk", "joint", "tools", "request", "index")
    words = ["--size", "4", "--no-joint", "--tools", "a:b", "--tools", "c:d", "--request", "seed=7", "--index", "notes"]
    done = CliRunner().invoke(program(*names), [*words, "--config", str(tmp_path / "other.toml")])
    assert done.output == "4 9 False ('a:b', 'c:d') {'seed': 7} notes\n"


def test_settings_of_a_group_do_not_stop_its_commands(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text("no_setting = 1\n")
    assert CliRunner().invoke(program("topk"), ["--config", str(tmp_path / "wrong.toml"), "below"]).output == "below\n"
    assert CliRunner().invoke(program("topk"), ["--config", str(tmp_path / "wrong.toml")]).exit_code == 1


def test_a_command_may_explain_an_option_in_its_own_words() -> None:
    page = CliRunner().invoke(program("index", index="Folder to read."), ["--help"], env={"COLUMNS": "120"}).output
    assert "Folder to read." in page
    assert "the bundled corpus" not in page
    with pytest.raises(KeyError):
        with_settings("no_setting")
