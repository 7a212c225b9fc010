"""Settings of pyrag, each declared once, and filled from `pyrag.toml`, the environment and flags."""

from pyrag.settings.declaration import Declaration
from pyrag.settings.loading import layered, load_settings, make_settings
from pyrag.settings.values import PROFILES, Settings, declarations, public

__all__ = [
    "PROFILES",
    "Declaration",
    "Settings",
    "declarations",
    "layered",
    "load_settings",
    "make_settings",
    "public",
]
