"""`pyrag cache`: inspect and clear the cache of model replies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyrag.cli import options
from pyrag.cli.output import print_json
from pyrag.settings import Settings
from pyrag.trace.words import counted

if TYPE_CHECKING:
    from pyrag.llm.cache import CacheInfo, ReplyStore

cache_app = typer.Typer(
    help="Inspect and clear the cache of model replies.", no_args_is_help=True, rich_markup_mode=None
)

CachePath = Annotated[
    Path | None, typer.Option("--path", help="Cache file.", show_default="from the settings, else the user's")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@cache_app.command()
@options.with_settings()
def info(settings: Settings, path: CachePath = None, json: Json = False) -> None:
    """Print the number and size of the stored replies."""
    _show(_store(path, settings).info(), as_json=json, done="")


@cache_app.command()
@options.with_settings()
def clear(settings: Settings, path: CachePath = None, json: Json = False) -> None:
    """Delete all replies, or a damaged cache file."""
    _show(_store(path, settings).clear(), as_json=json, done="deleted ")


def _store(path: Path | None, settings: Settings) -> ReplyStore:
    from pyrag.llm.cache import ReplyStore, default_path

    configured = Path(settings.cache) if isinstance(settings.cache, str) else None
    return ReplyStore(path or configured or default_path())


def _show(cache: CacheInfo, *, as_json: bool, done: str) -> None:
    if as_json:
        print_json(cache)
    else:
        print(f"{done}{counted(cache.replies, 'reply')}, {cache.bytes / 2**20:.1f} MiB: {cache.path}")
