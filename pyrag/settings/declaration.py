"""Declarations of settings: a field of `Settings` gives a setting's name, type, default and help.

Its environment variable, its command-line option and its row in docs/settings.md are derived from these.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeVar

ENVIRONMENT_PREFIX = "PYRAG_"
_METADATA = "declaration"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Declaration:
    """Everything known about a setting before it has a value.

    Attributes:
        help: One sentence for the help page of a command and for the reference.
        default_text: Description of a default that depends on other settings; empty for other defaults.
        metavar: Form of the option's value in help pages, if the type does not show it.
    """

    name: str
    type: Any
    default: Any
    help: str
    default_text: str = ""
    metavar: str | None = None

    @property
    def variable(self) -> str:
        """Environment variable."""
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """Command-line option, with both forms if the setting can be switched on and off."""
        words = self.name.replace("_", "-")
        return f"--{words}/--no-{words}" if self.is_switch else f"--{words}"

    @property
    def is_switch(self) -> bool:
        """True if the setting can be switched on and off."""
        return bool in self.types

    @property
    def is_list(self) -> bool:
        """True if the setting takes several values."""
        return any(typing.get_origin(kind) in (tuple, Mapping) for kind in self.types)

    @property
    def types(self) -> tuple[Any, ...]:
        """Types of the setting's values, without None."""
        kinds = typing.get_args(self.type) if isinstance(self.type, types.UnionType) else (self.type,)
        return tuple(kind for kind in kinds if kind is not types.NoneType)

    @property
    def choices(self) -> tuple[str, ...]:
        """All values of the setting, if they are a fixed list."""
        return typing.get_args(self.type) if typing.get_origin(self.type) is Literal else ()

    @property
    def shown_default(self) -> str:
        """Default as text; empty if there is none."""
        if self.default_text or self.default in (None, False, MISSING, ()):
            return self.default_text
        return "on" if self.default is True else str(self.default)


def setting(default: T, text: str, *, default_text: str = "", metavar: str | None = None) -> T:
    """Return a field of `Settings`.

    Args:
        default: The setting's default.
        text: Help, one sentence.
        default_text: See `described`.
        metavar: See `described`.
    """
    return field(default=default, metadata=described(text, default_text=default_text, metavar=metavar))


def described(text: str, *, default_text: str = "", metavar: str | None = None) -> dict[str, Any]:
    """Return the metadata of a field that `setting` cannot declare.

    Args:
        text: Help, one sentence.
        default_text: Description of the default, if it depends on other settings.
        metavar: Form of the value in help pages.
    """
    return {_METADATA: {"help": text, "default_text": default_text, "metavar": metavar}}


def declarations_of(settings: type) -> dict[str, Declaration]:
    """Return the declarations of a dataclass, by name and in order."""
    hints = typing.get_type_hints(settings)
    return {
        item.name: Declaration(item.name, hints[item.name], item.default, **item.metadata[_METADATA])
        for item in fields(settings)
    }
