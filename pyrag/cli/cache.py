"""`pyrag cache`: size of the cache of model replies, and clearing it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyrag.cli import options
from pyrag.cli.output import print_json
from pyrag.cli.views.words import counted

if TYPE_CHECKING:
    from pyrag.llm.cache import CacheInfo, ReplyStore

cache_app = typer.Typer(
    help="Inspect and clear the cache of model replies.", no_args_is_help=True, rich_markup_mode=None
)

CachePath = Annotated[
    Path | None, typer.Option("--path", help="Cache file.", show_default="that of the settings, else the user's")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@cache_app.command()
def info(path: CachePath = None, json: Json = False, config: options.Config = None) -> None:
    """Print the number and size of the stored replies."""
    _show(_store(path, config).info(), as_json=json, done="")


@cache_app.command()
def clear(path: CachePath = None, json: Json = False, config: options.Config = None) -> None:
    """Delete all replies, or a damaged cache file."""
    _show(_store(path, config).clear(), as_json=json, done="deleted ")


def _store(path: Path | None, config: Path | None) -> ReplyStore:
    from pyrag.llm.cache import ReplyStore, default_path
    from pyrag.settings import load_settings

    if path is None:
        set_to = load_settings(config=config).cache
        path = Path(set_to) if isinstance(set_to, str) else default_path()
    return ReplyStore(path)


def _show(found: CacheInfo, *, as_json: bool, done: str) -> None:
    if as_json:
        print_json(found)
    else:
        print(f"{done}{counted(found.replies, 'reply')}, {found.bytes / 2**20:.1f} MiB: {found.path}")
