"""Writer of docs/settings.md and docs/commands.md from the code: `python -m tools.reference_pages`."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from pyrag.cli.app import app
from pyrag.settings import PROFILES, Declaration, declarations

DOCS = Path(__file__).parent.parent / "docs"
_SETTINGS = """\
# Settings

Commands read settings from three places. If several have a setting, the last of these counts:

1. the file `pyrag.toml` in the current folder, or the file that `--config` or `PYRAG_CONFIG` names: `topk = 8`
2. the environment: `PYRAG_TOPK=8`
3. an option: `--topk 8` ([commands.md](commands.md) shows which commands have it)

In Python, `PyRAG(topk=8)` and `Settings(topk=8)` take the same names, and read neither the file nor these variables.

Relative paths in a file are relative to its folder. [models.md](models.md#settings) has an example of a file.
A *profile* sets several settings at once, see [below](#profiles). `python -m tools.reference_pages` writes this page.
"""
# First setting of each section, in the order of the declarations.
_SECTIONS = {
    "profile": "Models",
    "index": "What is searched",
    "method": "How a question is answered",
    "parallel": "How programs run",
    "max_calls": "Limits and costs",
    "proxy": "Network and cache",
    "context_tokens": "Prompts and formats",
    "sandbox": "Sandbox and monitoring",
    "tools": "Tools and effects",
    "request": "Requests to models",
}
_SETTING_HEAD = "| setting | meaning | default | type | variable, option |\n| --- | --- | --- | --- | --- |\n"
_COMMANDS = """\
# Commands and options

Options that set a setting are explained in [settings.md](settings.md), the use of the command line in
[command-line.md](command-line.md). `python -m tools.reference_pages` writes this page.
"""


def settings_page() -> str:
    """Return the reference page of settings and profiles."""
    options = {name for _, command in commands() for parameter in command.params for name in parameter.opts}
    sections = "".join(_setting_lines(setting, options) for setting in declarations().values())
    profiles = [_row(f"`{name}`", _profile(values)) for name, values in PROFILES.items()]
    head = "\n## Profiles\n\n| profile | settings |\n| --- | --- |\n"
    return _SETTINGS + sections + head + "".join(profiles)


def commands_page() -> str:
    """Return the reference page of commands."""
    overview = [
        _row(f"[`pyrag {name}`](#pyrag-{name})", command.get_short_help_str(200))
        for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    ]
    head = "\n| command | what it does |\n| --- | --- |\n"
    return _COMMANDS + head + "".join(overview) + "".join(_section(path, command) for path, command in commands())


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command with its name, groups before their commands."""
    yield from _below("pyrag", typer.main.get_command(app))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _below(f"{path} {name}", inner)


def _setting_lines(setting: Declaration, options: set[str]) -> str:
    """Return the row of a setting, below a heading if it is the first of a section."""
    section = _SECTIONS.get(setting.name)
    return (f"\n## {section}\n\n{_SETTING_HEAD}" if section else "") + _setting_row(setting, options)


def _setting_row(setting: Declaration, options: set[str]) -> str:
    flag = setting.flag.partition("/")[0]
    names = [f"`{setting.variable}`", *([f"`{flag}`"] if flag in options else [])]
    default = setting.shown_default or ("off" if setting.default is False else "")
    return _row(f"`{setting.name}`", setting.help, default, _type(setting), ", ".join(names))


def _type(setting: Declaration) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    kinds = {bool: "on or off", str: "text", int: "whole number", float: "number"}
    return " or ".join(kinds.get(kind, _list_type(kind)) for kind in setting.types)


def _list_type(kind: Any) -> str:
    return "table" if typing.get_origin(kind) is Mapping else "list of texts"


def _profile(values: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}` = {_value(value)}" for name, value in values.items()) or "the defaults"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _section(path: str, command: Any) -> str:
    context = typer.Context(command, info_name=path)
    words = " ".join([path, *command.collect_usage_pieces(context)])
    usage = "" if getattr(command, "commands", None) else f"`{words}`\n\n"
    text = " ".join((command.help or "").split())
    rows = "".join(map(_parameter_row, command.params))
    table = f"\n| argument, option | default | meaning |\n| --- | --- | --- |\n{rows}" if rows else ""
    return f"\n## {path}\n\n{usage}{text}\n{table}"


def _parameter_row(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.param_type_name == "argument":
        names = [parameter.metavar or parameter.human_readable_name]
    return _row(", ".join(f"`{name}`" for name in names), _default(parameter), parameter.help or "")


def _default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    if parameter.required:
        return "required"
    value = parameter.default
    if isinstance(value, bool):
        return "on" if value else ""
    return "" if value is None or not str(value) or callable(value) else str(value)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


def main() -> None:
    """Write both reference pages."""
    (DOCS / "settings.md").write_text(settings_page(), encoding="utf-8")
    (DOCS / "commands.md").write_text(commands_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
