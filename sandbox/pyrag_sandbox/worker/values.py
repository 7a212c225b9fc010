"""Worker's side of `Text` and `Record`: the program's view of the objects that the host returned.

They cross the wire as handles, so the host always gets back the same object. Programs cannot use names that start
with an underscore, so they cannot forge a handle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Self


class TextValue(str):
    """`str` with read-only attributes. Anything derived from it is a plain `str`."""

    _handle: int

    @classmethod
    def _make(cls, handle: int, text: str, fields: Mapping[str, Any]) -> Self:
        value = cls(text)
        value.__dict__.update({name: field for name, field in fields.items() if not name.startswith("_")})
        value.__dict__["_handle"] = handle
        return value

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name!r} is read-only")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name!r} is read-only")

    def __str__(self) -> str:
        return str.__str__(self)


class AbsentValue(TextValue):
    """Text that stands for a value that was not found.

    Programs test for this in many ways (`if not x`, `x == "N/A"`, `"not found" in x.lower()`); each test has the
    result that its author meant. Programs that use the text as a value get an exception.
    """

    _spellings: frozenset[str]
    _parts: frozenset[str]
    _message: str
    _error: type[Exception]

    def _mark(self, *, spellings: list[str], parts: list[str], message: str, error: type[Exception]) -> None:
        """Set the texts that it equals and contains, and the error that it raises (see `contract.Absent`)."""
        self.__dict__.update(_spellings=frozenset(spellings), _parts=frozenset(parts), _message=message, _error=error)

    def _refuse(self, *_: object) -> NoReturn:
        raise self._error(self._message)

    # Tests

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        if other is self or other is None:
            return True
        if isinstance(other, TextValue):
            self._refuse()
        return isinstance(other, str) and self._spelled(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __contains__(self, part: object) -> bool:
        if isinstance(part, TextValue):
            self._refuse()
        return isinstance(part, str) and (part in self._parts or part.strip().casefold() == str.casefold(self))

    def _spelled(self, text: str) -> bool:
        return not text.strip() or text in self._spellings or text.casefold() == str.casefold(self)

    def startswith(self, prefix: str | tuple[str, ...], *_: Any) -> bool:
        """Return True if it starts with a prefix or contains it (see `in`).

        Args:
            prefix: A prefix, or several alternatives.
            *_: Positions, ignored.
        """
        return any(part in self or str.startswith(self, part) for part in _several(prefix))

    def endswith(self, suffix: str | tuple[str, ...], *_: Any) -> bool:
        """Return True if it ends with a suffix or contains it (see `in`).

        Args:
            suffix: A suffix, or several alternatives.
            *_: Positions, ignored.
        """
        return any(part in self or str.endswith(self, part) for part in _several(suffix))

    def find(self, part: str, *_: Any) -> int:
        """Return 0 if it contains the part (see `in`), else -1.

        Args:
            part: Text to look for.
            *_: Positions, ignored.
        """
        return 0 if part in self else -1

    def rfind(self, part: str, *_: Any) -> int:
        """Return 0 if it contains the part (see `in`), else -1.

        Args:
            part: Text to look for.
            *_: Positions, ignored.
        """
        return 0 if part in self else -1

    def count(self, part: str, *_: Any) -> int:
        """Return 1 if it contains the part (see `in`), else 0.

        Args:
            part: Text to look for.
            *_: Positions, ignored.
        """
        return int(part in self)

    # Forms of the same value

    def _same(self, *_: Any, **__: Any) -> Any:
        return self

    __str__ = lower = upper = casefold = title = capitalize = swapcase = _same
    strip = lstrip = rstrip = replace = removeprefix = removesuffix = expandtabs = _same

    def __getitem__(self, key: Any) -> Any:
        return self if isinstance(key, slice) else str.__getitem__(self, key)

    def split(self, *_: Any, **__: Any) -> list[Any]:
        """Return itself as the only piece.

        Args:
            *_: Separator and limit, ignored.
            **__: Separator and limit by name, ignored.
        """
        return [self]

    rsplit = splitlines = split

    def partition(self, _: str) -> tuple[Any, Any, Any]:
        return self, "", ""

    rpartition = partition

    # Uses

    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __index__ = _refuse


def _several(text: str | tuple[str, ...]) -> tuple[str, ...]:
    return text if isinstance(text, tuple) else (text,)


class RecordValue:
    """Immutable object with its fields as attributes and as items."""

    __slots__ = ("_fields", "_handle", "_str_field")

    def __init__(self, handle: int, fields: dict[str, Any], str_field: str) -> None:
        object.__setattr__(self, "_handle", handle)
        object.__setattr__(self, "_fields", fields)
        object.__setattr__(self, "_str_field", str_field)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"no attribute {name!r}; there are: {', '.join(self._fields)}") from None

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name!r} is read-only")

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field.

        Args:
            name: Name of the field.
            default: Value if there is no such field.
        """
        return self._fields.get(name, default)

    def keys(self) -> list[str]:
        return list(self._fields)

    def values(self) -> list[Any]:
        return list(self._fields.values())

    def items(self) -> list[tuple[str, Any]]:
        return list(self._fields.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __len__(self) -> int:
        return len(self._fields)

    def __str__(self) -> str:
        return str(self._fields.get(self._str_field, ""))

    def __repr__(self) -> str:
        return f"Record({', '.join(f'{name}={value!r}' for name, value in self._fields.items())})"

    def __eq__(self, other: object) -> bool:
        return type(other) is RecordValue and other._handle == self._handle

    def __hash__(self) -> int:
        return hash(str(self))  # handles are numbered as replies arrive, and the order of a set must not depend on that


class ValueStore:
    """Values of a program by handle. It implements `wire.Opaque` for the codec."""

    def __init__(self, error: Callable[[str], type[Exception]]) -> None:
        self._error = error
        self._by_handle: dict[int, TextValue | RecordValue] = {}

    def pack(self, value: Any) -> int | None:
        return value._handle if isinstance(value, TextValue) or type(value) is RecordValue else None

    def unpack(self, handle: int) -> Any:
        return self._by_handle[handle]

    def receive(self, tag: str, parts: list[Any]) -> TextValue | RecordValue:
        """Store the value that arrived, and return it in the program's form.

        Args:
            tag: "$T" for a text, "$R" for a record.
            parts: Handle, text, fields and optionally the contents of `contract.Absent`; or handle, fields and the
                name of the field that `str` shows.
        """
        value = self._text(*parts) if tag == "$T" else RecordValue(*parts)
        self._by_handle[value._handle] = value
        return value

    def _text(self, handle: int, text: str, fields: dict[str, Any], absent: dict[str, Any] | None = None) -> TextValue:
        if absent is None:
            return TextValue._make(handle, text, fields)
        value = AbsentValue._make(handle, text, fields)
        value._mark(**{**absent, "error": self._error(absent["error"])})
        return value
