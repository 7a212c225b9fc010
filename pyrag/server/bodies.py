"""Bodies of requests: JSON that is bounded before it is decoded, decoded once, and checked against a struct.

Everything here takes time in proportion to a body's size, whatever the body holds: values are counted before the
decoder makes objects of them, the check ends at the first field that is wrong, and a body above `IN_LOOP` bytes is read
by a thread, one after the other, while the event loop serves other requests.
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
"""Bytes up to which a body is read at once, in the event loop."""

COMPONENT = "#/components/schemas/{name}"
_MEDIA = ("application/json", "text/json")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(one for one in range(256) if one not in _STEPS)
_FIELD = re.compile(r"Object (missing required|contains unknown) field `([^`]*)`", re.DOTALL)
_large_bodies = PerLoop(asyncio.Lock)  # the memory of many is that of one


async def read_request(request: Request, kind: type[T]) -> T:
    """Return the body of a request as a struct.

    Args:
        request: The request; `Guard` has read its body.
        kind: Struct with the fields of the body.

    Raises:
        ApiError: The body is not JSON, may be read in two ways, is too large in some respect, or a field is wrong;
            `param` names the first such field.
    """
    _check_media(request.headers.get("content-type", ""))
    value = await read_value(await request.body())
    if not isinstance(value, dict):
        raise ApiError(400, "invalid_request", "the body must be a JSON object")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from None


async def read_value(body: bytes, noun: str = "body") -> Any:
    """Return the value of a body.

    Args:
        body: JSON in UTF-8.
        noun: Word for the body in messages.

    Raises:
        ApiError: See `read_json`.
    """
    if len(body) <= IN_LOOP:
        return read_json(body, noun)
    async with _large_bodies.get():
        return await asyncio.to_thread(read_json, body, noun)


def _check_media(content_type: str) -> None:
    media = content_type.partition(";")[0].strip().lower()
    if media not in _MEDIA and not media.endswith("+json"):
        raise ApiError(415, "unsupported_media_type", "the body must be JSON: send Content-Type: application/json")


def read_json(body: bytes, noun: str = "body") -> Any:
    """Return the value of a body.

    Args:
        body: JSON in UTF-8.
        noun: Word for the body in messages.

    Raises:
        ApiError: It is not JSON, names a field twice, or holds more values or depth than the limits.
    """
    try:
        names = _count_names(body)
        value = msgspec.json.decode(body)  # refuses NaN, half characters and numbers without end
        if _names_in(value) < names:
            raise ValueError(f"it names {_repeated_name(body)[:80]!r} twice")
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ApiError(400, "invalid_json", f"the {noun} cannot be read ({error}): send JSON in UTF-8") from None
    return value


def _count_names(body: bytes) -> int:
    """Return the number of names in a body's objects. Raises `ApiError` where the limits are exceeded."""
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in body else body
    if bare.count(b'"') > 2 * MAX_VALUES:
        raise _too_many()
    outside = b"".join(bare.split(b'"')[::2])  # what is in no string
    brackets = outside.translate(None, _NO_BRACKETS)
    names = outside.count(b":")
    if outside.count(b",") + names + len(brackets) // 2 > MAX_VALUES:
        raise _too_many()
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise _too_deep()
    return names


def _names_in(value: Any) -> int:
    """Return the number of names in the objects of a value; fewer than in its text if one repeats."""
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
    """Return the refusal of a body whose fields msgspec found wrong."""
    problem, _, path = message.partition(" - at `")  # of a name in an object: "key` in `$.metadata`"
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
    """Return the part of a route's description in the OpenAPI document that describes its body."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def body_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return `described_body` of a struct, whose schema `schemas_of` returns."""
    return described_body({"$ref": COMPONENT.format(name=kind.__name__)})


def schemas_of(*kinds: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schemas of structs by name, for the components of the OpenAPI document."""
    return msgspec.json.schema_components(kinds, ref_template=COMPONENT)[1]
