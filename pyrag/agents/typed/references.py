"""References inside a JSON schema, replaced by the schemas that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_PARTS = 2_000
"""Maximum number of schemas inside a schema, with its references in place."""

LEVELS = 4
"""Maximum number of times that a recursive schema is written out inside itself."""

_DEFINITIONS = ("$defs", "definitions")
_VALUES = frozenset(("enum", "const", "default", "examples", "required", "type"))  # keywords without schemas
_NOTHING: Mapping[str, Any] = {"enum": []}  # schema that no value satisfies


class _TooLargeError(ValueError):
    """Error for a schema that has too many parts."""


class _EndlessError(Exception):
    """Error for a schema that cannot be satisfied at this depth of a recursive schema."""


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in which each reference is replaced by the schema that it names.

    A recursive schema is expanded `LEVELS` times, or less often if it becomes too large. Values that are nested more
    deeply do not satisfy the result.

    Args:
        schema: JSON schema, whose references are `#`, `#/$defs/NAME` or `#/definitions/NAME`.

    Raises:
        ValueError: A reference has no target, refers to itself endlessly, or the result has more than `MAX_PARTS`
            schemas.
    """
    for levels in range(LEVELS, 0, -1):
        try:
            return dict(_Inlining(schema, levels).schema(schema, ()))
        except _TooLargeError:
            if levels == 1:
                raise
        except _EndlessError as error:
            raise ValueError(f"the schema in returns refers to itself by {error} without an end") from None
    raise AssertionError("unreachable")


class _Inlining:
    """Expansion of a schema's references in progress. The number of parts is limited, since references multiply."""

    def __init__(self, root: Mapping[str, Any], levels: int) -> None:
        self._root, self._levels, self._count = root, levels, 0

    def schema(self, part: Any, inside: tuple[str, ...]) -> Any:
        """Return a schema without references. Raises `_EndlessError` if no value can satisfy it.

        Args:
            part: The schema; `true` and `false` are valid schemas.
            inside: References that were followed to this schema.
        """
        self._count += 1
        if self._count > MAX_PARTS:
            raise _TooLargeError(f"the schema in returns has more than {MAX_PARTS:,} parts: simplify it")
        if isinstance(part, bool):
            return {} if part else dict(_NOTHING)
        if not isinstance(part, Mapping):
            return part
        hidden = _DEFINITIONS if part is self._root else ()
        own = {name: item for name, item in part.items() if name not in hidden}
        reference = own.pop("$ref", None)
        whole = {name: self._keyword(name, item, own, inside) for name, item in own.items()}
        if "items" in whole and whole["items"] is None:
            del whole["items"]
            whole["maxItems"] = len(whole.get("prefixItems", ()))
        if not isinstance(reference, str):
            return whole if reference is None else {**whole, "$ref": reference}
        target = self._target(reference)
        if inside.count(reference) >= self._levels:
            raise _EndlessError(repr(reference[:80]))
        return {**self.schema(target, (*inside, reference)), **whole}

    def _keyword(self, name: str, value: Any, schema: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
        """Return a keyword's value without references; None for items that cannot exist."""
        match value:
            case _ if name in _VALUES:
                return value
            case Mapping() if name == "properties":
                required = schema.get("required")
                needed = required if isinstance(required, list) else ()
                return {key: self._property(item, inside, needed=key in needed) for key, item in value.items()}
            case list() if name in ("anyOf", "oneOf"):
                return self._forms(value, inside)
            case Mapping() | bool() if name == "items":
                try:
                    return None if value is False else self.schema(value, inside)
                except _EndlessError:
                    if schema.get("minItems"):
                        raise
                    return None
            case Mapping() if name == "additionalProperties":
                return self._property(value, inside, needed=False)
            case Mapping():
                return self.schema(value, inside)
            case list():
                return [self.schema(item, inside) if isinstance(item, Mapping) else item for item in value]
        return value

    def _property(self, value: Any, inside: tuple[str, ...], *, needed: bool) -> Any:
        try:
            return self.schema(value, inside)
        except _EndlessError:
            if needed:
                raise
            return dict(_NOTHING)

    def _forms(self, forms: list[Any], inside: tuple[str, ...]) -> list[Any]:
        """Return the alternatives that are not endless. Raises `_EndlessError` if all are."""
        fitting = []
        endless: _EndlessError | None = None
        for form in forms:
            try:
                fitting.append(self.schema(form, inside))
            except _EndlessError as error:
                endless = error
        if endless is not None and not fitting:
            raise endless
        return fitting

    def _target(self, reference: str) -> Mapping[str, Any]:
        place: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if reference != "#":
                place = place.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
        if not isinstance(place, Mapping) or not reference.startswith("#"):
            raise ValueError(f"the schema in returns refers to {reference[:80]!r}, which it does not hold")
        return place
