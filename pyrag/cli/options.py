"""Command-line options for settings, generated from the settings' declarations.

    @app.command()
    @with_settings(*QUESTION, "stream")
    def ask(question: Annotated[str, typer.Argument()], settings: Settings) -> None: ...

The help page shows the command's own options, then one per named setting, then `--config`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pyrag.settings import declarations, load_settings

ENGINES = ("llm", "plan_llm", "decompose_llm", "answer_llm")
SOURCE = ("index", "retriever")
QUESTION = (
    *ENGINES, "rewrite_llm", "recovery", *SOURCE, "topk", "where", "deadline", "call_timeout", "request", "profile",
    "joint", "synthesis", "whole_question", "max_calls", "sandbox", "prompts", "experience", "concurrency", "cache",
    "max_cost", "otel", "tools", "flow", "search_effects",
)  # fmt: skip
SERVED = (
    *ENGINES, "profile", "method", "topk", "where", "deadline", "max_calls", "max_cost", "sandbox", "concurrency",
    "cache", "otel", "flow", "search_effects",
)  # fmt: skip

# Options of commands that serve questions; they are not settings.
ApiKeyFile = Annotated[Path | None, typer.Option(help="File of API keys, one per line: KEY [INDEX,…].")]
AllowAnonymous = Annotated[bool, typer.Option("--allow-anonymous", help="Serve other hosts without keys.")]
TraceFile = Annotated[Path | None, typer.Option("--traces", help="SQLite file of traces.", show_default="in memory")]

ReturnsType = Annotated[
    str | None,
    typer.Option(
        "--returns",
        help="Type of the value: number, int, date, bool, str, list[str], or a file with a JSON schema.",
        metavar="TYPE|FILE",
    ),
]

_Command = Callable[..., None]
_Config = Annotated[
    Path | None, typer.Option(help="Settings file.", show_default="pyrag.toml of the folder, if there is one")
]


def with_settings(*names: str, texts: Mapping[str, str] | None = None) -> Callable[[_Command], _Command]:
    """Return a decorator that adds options for settings to a command, and passes it the resulting `settings`.

    The callback of a group does not run if the command line names one of the group's commands.

    Args:
        *names: Names of settings, in the order of the help page.
        texts: Help text by option, for options that mean something other than the setting's own help.
    """
    options = [_parameter(name, (texts or {}).get(name, "")) for name in names]

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            if any(getattr(value, "invoked_subcommand", None) for value in values.values()):
                return
            flags = _with_sources({name: values.pop(name) for name in names})
            settings = load_settings(flags, config=values.pop("config"))
            command(**values, settings=settings)

        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [
            *(item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own if item.name != "settings"),
            *options,
            _keyword("config", _Config),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _with_sources(flags: dict[str, Any]) -> dict[str, Any]:
    """Return flags in which a single index or retriever is a text, and several become the setting `sources`."""
    places = {name: flags[name] for name in SOURCE if flags.get(name)}
    own = {name: value for name, value in flags.items() if name not in SOURCE}
    sources = [place for listed in places.values() for place in listed]
    if len(sources) == 1:
        return {**own, **{name: listed[0] for name, listed in places.items()}}
    return {**own, "sources": sources} if sources else own


def _parameter(name: str, text: str) -> inspect.Parameter:
    declaration = declarations()[name]
    if name in SOURCE and not text:
        text = f"{declaration.help} Repeatable."
    option = typer.Option(
        declaration.flag,
        help=text or declaration.help,
        show_default=False if text else declaration.shown_default or False,
        metavar=declaration.metavar,
    )
    kind: Any = str
    if declaration.is_switch:
        kind = bool
    elif declaration.is_list or name in SOURCE:
        kind = list[str]
    elif declaration.types[0] in (int, float):
        kind = declaration.types[0]
    return _keyword(name, Annotated[kind | None, option])


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
