"""Settings of pyrag: one declaration each, filled from `pyrag.toml`, the environment and flags."""

from pyrag.settings.declaration import Declaration
from pyrag.settings.loading import DATA_TOOLS, layered, load_settings, make_settings, split_tool
from pyrag.settings.values import PROFILES, Settings, declarations, public

__all__ = [
    "DATA_TOOLS",
    "PROFILES",
    "Declaration",
    "Settings",
    "declarations",
    "layered",
    "load_settings",
    "make_settings",
    "public",
    "split_tool",
]
