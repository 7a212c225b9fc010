"""Commands of installed packages, found by the entry points of the group `pyrag.commands` and loaded when used."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from copy import copy
from typing import Any

import typer
from typer.core import TyperGroup

from pyrag._io import plugins
from pyrag.errors import ConfigError

_FIRST = ("index", "ask", "chat", "run", "serve", "mcp", "doctor")  # what a new user needs, in this order


class CommandGroup(TyperGroup):
    """Command group with the usual commands first, then its other commands, then the commands of installed packages."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = PackageCommands(self.commands)


class PackageCommands(UserDict[str, Any]):
    """Commands by name. The command of a package is loaded at its first use."""

    def __init__(self, own: Mapping[str, Any]) -> None:
        names = (*own, *plugins.OWN["commands"], *plugins.names("commands"))
        ordered = dict.fromkeys([name for name in _FIRST if name in names] + list(names))
        super().__init__({name: own.get(name) for name in ordered})

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _load(name)
        return self.data[name]


def _load(name: str) -> Any:
    """Return the command of a package, or a command that reports why it cannot be loaded."""
    try:
        part = plugins.load("commands", name)
        if not (isinstance(part, typer.Typer) or callable(part)):
            package = plugins.package_of_part("commands", name)
            raise ConfigError(f"the command {name} of {package} is neither a function nor a typer.Typer")
    except ConfigError as error:
        return _made(name, _failing(error))
    return _made(name, part)


def _failing(error: ConfigError) -> typer.Typer:
    app = typer.Typer()
    passing = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(help=f"Cannot be used: {error}.", context_settings=passing)
    def fail() -> None:
        raise error

    return app


def _made(name: str, part: Any) -> Any:
    """Make a command from a function or a Typer application.

    Args:
        name: Name of the command.
        part: Function or application. An application becomes a group unless it consists of a single command.
    """
    app = typer.Typer(rich_markup_mode=None)
    if not isinstance(part, typer.Typer):
        app.command(name)(part)
    elif part.registered_groups or part.registered_callback or len(part.registered_commands) != 1:
        app.add_typer(part, name=name)
    else:
        command = copy(part.registered_commands[0])
        command.name = name
        app.registered_commands.append(command)
    return typer.main.get_group(app).commands[name]
