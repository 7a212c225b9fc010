"""Request bodies: JSON whose size is limited before it is decoded, decoded once, and checked against a struct.

Reading a body takes time proportional to its size, regardless of its content: values are counted before the decoder
creates objects, and validation stops at the first wrong field. A body larger than `IN_LOOP` bytes is read in a thread,
one body at a time, while the event loop serves other requests.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pyrag._io.threads import PerLoop
from pyrag.agents.typed.contract import Contract, contract_of
from pyrag.errors import UsageError
from pyrag.server.errors import ApiError

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")

MAX_VALUES = 50_000
"""Maximum number of values and names in a body. A conversation of 1,000 messages has some 5,000."""

MAX_DEPTH = 64
MAX_NAME = 256
"""Maximum number of characters of an index's, method's or model's name, or of an id."""

IN_LOOP = 64 << 10
"""Largest body that is read in the event loop, in bytes."""

COMPONENT = "#/components/schemas/{name}"
_MEDIA = ("application/json", "text/json")
_ANNOTATIONS = frozenset(("title", "description", "default", "examples"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(code for code in range(256) if code not in _STEPS)
_FIELD = re.compile(r"Object (missing required|contains unknown) field `([^`]*)`", re.DOTALL)
_large_bodies = PerLoop(asyncio.Lock)  # limits memory to one large body


async def read_request(request: Request, kind: type[T]) -> T:
    """Return the body of a request as a struct. A field that is null counts as left out.

    Args:
        request: The request, whose body `Guard` has already read.
        kind: Struct with the fields of the body.

    Raises:
        ApiError: The body is not JSON, is ambiguous or too large, or has a wrong field. `param` names the first wrong
            field.
    """
    _check_media(request.headers.get("content-type", ""))
    value = await read_value(await request.body())
    if not isinstance(value, dict):
        raise ApiError(400, "invalid_request", "the body must be a JSON object")
    try:
        return msgspec.convert({name: item for name, item in value.items() if item is not None}, kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from None


async def read_value(body: bytes, noun: str = "body") -> Any:
    """Return the value of a body.

    Args:
        body: JSON in UTF-8.
        noun: Word for the body in messages.

    Raises:
        ApiError: The body is not JSON, names a field twice, or exceeds the limits on values and depth.
    """
    if len(body) <= IN_LOOP:
        return read_json(body, noun)
    async with _large_bodies.get():
        return await asyncio.to_thread(read_json, body, noun)


def contract_in(returns: Any, param: str, *, strict: bool = True) -> Contract | None:
    """Return the type that a request specifies for its value.

    Args:
        returns: Name of a type or JSON schema; None for a text.
        param: Field of the request.
        strict: Whether a schema's keywords that cannot be checked are refused.

    Raises:
        ApiError: The type does not exist, or values of the schema cannot be checked.
    """
    try:
        return contract_of(returns, strict=strict)
    except UsageError as error:
        raise ApiError(400, "invalid_request", str(error), param=param) from None


def _check_media(content_type: str) -> None:
    media = content_type.partition(";")[0].strip().lower()
    if media not in _MEDIA and not media.endswith("+json"):
        raise ApiError(415, "unsupported_media_type", "the body must be JSON: send Content-Type: application/json")


def read_json(body: bytes, noun: str = "body") -> Any:
    """Return the JSON value of a body.

    Args:
        body: JSON in UTF-8.
        noun: Word for the body in messages.

    Raises:
        ApiError: The body is not JSON, names a field twice, or exceeds the limits on values and depth.
    """
    try:
        names = _count_names(body)
        value = msgspec.json.decode(body)  # refuses NaN, lone surrogates and numbers out of range
        if _names_in(value) < names:
            raise ValueError(f"it names {_repeated_name(body)[:80]!r} twice")
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the {noun} cannot be read ({error}): send JSON in UTF-8") from None
    return value


def _count_names(body: bytes) -> int:
    """Return the number of names in a body's objects. Raises `ApiError` if the body exceeds the limits."""
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in body else body
    if bare.count(b'"') > 2 * MAX_VALUES:
        raise _too_many()
    outside = b"".join(bare.split(b'"')[::2])  # text outside of strings
    brackets = outside.translate(None, _NO_BRACKETS)
    names = outside.count(b":")
    if outside.count(b",") + names + len(brackets) // 2 > MAX_VALUES:
        raise _too_many()
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise _too_deep()
    return names


def _names_in(value: Any) -> int:
    """Return the number of names in a value's objects; lower than in its text if a name is repeated."""
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            count += len(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return count


def _repeated_name(body: bytes) -> str:
    repeated: list[str] = []

    def read(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                repeated.append(name)
            seen.add(name)

    json.loads(body, object_pairs_hook=read)
    return repeated[0]


def _wrong_field(message: str) -> ApiError:
    """Return the refusal of a body whose fields failed msgspec's validation."""
    problem, _, path = message.partition(" - at `")  # a wrong name in an object reads "key` in `$.metadata`"
    place = path.removesuffix("`").rpartition("$")[2].lstrip(".")
    if field := _FIELD.match(problem):
        place = f"{place}.{field[2]}" if place else field[2]
        problem = "Field required" if field[1].startswith("missing") else "Extra inputs are not permitted"
    return ApiError(400, "invalid_request", f"{place or 'the body'}: {problem}", param=place[:MAX_NAME] or None)


def _too_many() -> ApiError:
    return ApiError(400, "too_many_values", f"the body holds more than {MAX_VALUES:,} values: send less at once")


def _too_deep() -> ApiError:
    return ApiError(400, "invalid_json", f"the body is nested too deeply: send JSON of at most {MAX_DEPTH} levels")


def described_body(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a route's body for the OpenAPI document."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def body_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Describe a body that has the fields of a struct; `schemas_of` returns the struct's schema."""
    return described_body({"$ref": COMPONENT.format(name=kind.__name__)})


def schemas_of(*kinds: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schemas of structs by name, for the components of the OpenAPI document.

    Args:
        *kinds: Structs of bodies, whose optional fields may be null.
    """
    schemas = msgspec.json.schema_components(kinds, ref_template=COMPONENT)[1]
    for kind in kinds:
        schema = schemas[kind.__name__]
        optional = schema["properties"].keys() - schema.get("required", ())
        schema["properties"] |= {name: _or_null(schema["properties"][name]) for name in optional}
    return schemas


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    outer = {name: schema[name] for name in _ANNOTATIONS & schema.keys()}
    inner = {name: value for name, value in schema.items() if name not in outer}
    choices = inner["anyOf"] if inner.keys() == {"anyOf"} else [inner]
    null = {"type": "null"}
    return {"anyOf": choices if null in choices else [*choices, null], **outer}
