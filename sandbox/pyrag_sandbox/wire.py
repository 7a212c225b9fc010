"""Wire between host and worker: frames (4-byte length, JSON) and the values inside them.

Both sides use this module. The host treats all frames as hostile: their size is limited before they are read, NaN and
unknown shapes are refused, and nothing is unpickled. Values have exact built-in types; values that JSON cannot express
are wrapped in an object with one key:

    {"$t": [...]}                     a tuple
    {"$d": [[key, value], ...]}       a dict whose keys are not all plain strings
    {"$h": 7}                         a Text or Record that the receiver already knows, by handle
    {"$T": [7, "text", {...}]}        a new Text       (host to worker only; an optional fourth item is its `Absent`)
    {"$R": [7, {...}, "str_field"]}   a new Record     (host to worker only)
"""

from __future__ import annotations

import binascii
import math
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

import msgspec

HEADER = struct.Struct("!I")
MAX_DEPTH = 50
EXIT_MEMORY = 77  # exit status of a worker without memory left for a message


_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode  # refuses NaN and lone surrogates

_VALUE_BYTES = 8  # minimum size of any value
_CONTAINER_BYTES = 56  # memory of an empty list, which takes two bytes on the wire
_FRAMES_WORTH = 16  # limit on the memory of all messages of a worker, in frames

# Memory of a decoded message, estimated from the structural characters of its JSON. Text that contains them counts
# for slightly more than it takes. `test_wire.py` compares the estimate with the allocated memory.
_FRAME_BYTES = 512
_SEPARATOR_BYTES = 40  # per comma and colon: a number, its place in a list, or an entry of a dict
_QUOTE_BYTES = 38  # per quotation mark, half of a string
_LIST_BYTES = 96
_DICT_BYTES = 240
_HANDLE = b'{"$h":'  # the dict is temporary, since it stands for an existing object
_NO_STRUCTURE = bytes(set(range(256)) - set(b'[{,:"'))
_NOT_WIDE = bytes(range(0xF0))  # all others are in characters that make a whole string take 4 bytes for each ...
_NARROW = bytes(range(0xC4))  # ... or 2


def memory_of(body: bytes | bytearray) -> int:
    """Return the maximum memory in bytes that a decoded message may take.

    Args:
        body: JSON of the message.
    """
    structure = body.translate(None, _NO_STRUCTURE)
    handles = body.count(_HANDLE) if b"{" in structure else 0
    dicts = structure.count(b"{") - handles
    separators = structure.count(b",") + structure.count(b":")
    return (
        _FRAME_BYTES
        + _width(body) * len(body)
        + _SEPARATOR_BYTES * separators
        + _QUOTE_BYTES * structure.count(b'"')
        + _LIST_BYTES * (structure.count(b"[") + handles)
        + _DICT_BYTES * dicts
    )


def _width(body: bytes | bytearray) -> int:
    """Return the maximum bytes that a character of a message may take."""
    if b"\\" in body and b"\\u" in body:
        return 4
    if body.isascii():
        return 1
    return 4 if body.translate(None, _NOT_WIDE) else 2 if body.translate(None, _NARROW) else 1


class WireError(Exception):
    """Error for a frame that breaks the protocol."""


class FloodError(WireError):
    """Error for more messages than the host will keep."""


class Opaque(Protocol):
    """Table of the objects that cross the wire by handle."""

    def pack(self, value: Any) -> int | dict[str, Any] | None: ...
    def unpack(self, handle: int) -> Any: ...
    def receive(self, tag: str, parts: list[Any]) -> Any:
        """Return the Text or Record that arrived.

        Args:
            tag: "$T" or "$R".
            parts: Decoded data after the tag.

        Raises:
            WireError: This side does not accept such objects.
        """
        ...


def pack_frame(message: dict[str, Any], cap: int) -> bytes:
    """Return a message as one frame: 4 bytes of length, then JSON.

    Args:
        message: Data that JSON can express.
        cap: Maximum size of the JSON in bytes.

    Raises:
        WireError: The message is larger than `cap`, or contains a lone surrogate.
    """
    try:
        body = _write(message)
    except UnicodeEncodeError:
        raise WireError("text with lone surrogates") from None
    if len(body) > cap:
        raise WireError(f"a message of {len(body)} bytes is over the limit of {cap}")
    return HEADER.pack(len(body)) + body


def unpack_body(body: bytes | bytearray) -> dict[str, Any]:
    """Return the message in a frame. Raises `WireError` for any fault."""
    try:
        message = _read(body)
    except (ValueError, RecursionError, MemoryError) as error:
        raise WireError(f"not a JSON message: {type(error).__name__}") from None
    if type(message) is not dict:
        raise WireError("a message is an object")
    return message


def pack_source(source: str) -> bytes:
    """Encode a program as bytes. It may contain lone surrogates, which workers refuse like other mistakes."""
    return source.encode("utf-8", "surrogatepass")


def unpack_source(packed: str) -> str:
    """Return a program from its packed form."""
    return binascii.a2b_base64(packed).decode("utf-8", "surrogatepass")


class FrameReader:
    """Reader of a worker's messages from its bytes. It never holds more than one frame over the cap.

    All messages from a worker are kept until its program ends, so their total size is limited too (`FloodError`).
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._left = cap * _FRAMES_WORTH
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            (size,) = HEADER.unpack_from(self._buffer)
            if size > self._cap:
                raise WireError(f"a message of {size} bytes is over the limit of {self._cap}")
            end = HEADER.size + size
            if len(self._buffer) < end:
                return
            body = self._buffer[HEADER.size : end]
            del self._buffer[:end]
            self._left -= memory_of(body)
            if self._left < 0:
                raise FloodError(f"messages of more than {self._cap * _FRAMES_WORTH} bytes of memory")
            yield unpack_body(body)


class _Encoder:
    def __init__(self, opaque: Opaque, budget: int) -> None:
        self._opaque = opaque
        self._limit = budget
        self.left = budget

    def encode(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
        self.left -= _VALUE_BYTES
        if self.left < 0:
            self._refuse_size()
        if depth > MAX_DEPTH:
            raise ValueError(f"a value nested deeper than {MAX_DEPTH} levels (or inside itself) cannot cross")
        simple = _ENCODERS.get(kind)
        if simple is not None:
            return simple(self, value, depth)
        packed = self._opaque.pack(value)
        if packed is None and isinstance(value, int | float):  # of a class of the caller's helpers
            return self.encode((int if isinstance(value, int) else float)(value), depth)
        if packed is None:
            raise TypeError(
                f"a value of type {kind.__name__} cannot cross: use text, numbers, lists, dicts, True, False or None"
            )
        return {"$h": packed} if type(packed) is int else packed

    def _spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            self._refuse_size()

    def _refuse_size(self) -> NoReturn:
        raise ValueError(f"a value larger than {self._limit} bytes cannot cross")

    def same(self, value: Any, depth: int) -> Any:
        return value

    def text(self, value: str) -> str:
        self.left -= _VALUE_BYTES + len(value)
        if self.left < 0:  # checked before encoding, which takes memory
            self._refuse_size()
        if not value.isascii():
            self._spend(len(value.encode()) - len(value))  # also refuses lone surrogates
        return value

    def integer(self, value: int, depth: int) -> int:
        if value.bit_length() > 14_000:  # Python itself refuses to write more than 4300 digits
            raise ValueError("an integer of more than 4200 digits cannot cross")
        self._spend(value.bit_length() // 3)
        return value

    def number(self, value: float, depth: int) -> float:
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot cross: use finite numbers")
        return value

    def sequence(self, value: list[Any], depth: int) -> list[Any]:
        self._spend(_CONTAINER_BYTES)
        return [self.encode(item, depth + 1) for item in value]

    def tuple_(self, value: tuple[Any, ...], depth: int) -> dict[str, Any]:
        self._spend(_CONTAINER_BYTES)
        return {"$t": [self.encode(item, depth + 1) for item in value]}

    def mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        self._spend(_CONTAINER_BYTES)
        for key in value:
            if type(key) is not str or key.startswith("$"):
                return {"$d": [[self._key(key), self.encode(item, depth + 1)] for key, item in value.items()]}
        return {self.text(key): self.encode(item, depth + 1) for key, item in value.items()}

    def _key(self, key: Any) -> Any:
        if type(key) not in _KEYS:
            field = ", such as a field of the record" if self._opaque.pack(key) is not None else ""
            raise TypeError(f"a dict with keys of type {type(key).__name__} cannot cross: use text as keys{field}")
        return self.encode(key)


_KEYS = frozenset({str, int, float, bool, type(None)})
_ENCODERS: dict[type, Callable[[_Encoder, Any, int], Any]] = {
    type(None): _Encoder.same,
    bool: _Encoder.same,
    int: _Encoder.integer,
    float: _Encoder.number,
    list: _Encoder.sequence,
    tuple: _Encoder.tuple_,
    dict: _Encoder.mapping,
    Counter: _Encoder.mapping,
    OrderedDict: _Encoder.mapping,
    defaultdict: _Encoder.mapping,
}


def encode(value: Any, opaque: Opaque, budget: int) -> Any:
    """Return a value as data that JSON can express.

    Args:
        value: Plain data, or an object known to `opaque`.
        opaque: Table of the objects that cross by handle.
        budget: Maximum size in bytes.

    Raises:
        TypeError: The value has a type that cannot cross; the message names it.
        ValueError: The value is too large or otherwise cannot cross; the message states the reason.
    """
    return _Encoder(opaque, budget).encode(value)


def encode_counted(value: Any, opaque: Opaque, budget: int) -> tuple[Any, int]:
    """Return a value as data that JSON can express, and the part of the budget that it used.

    Args:
        value: Plain data, or an object known to `opaque`.
        opaque: Table of the objects that cross by handle.
        budget: Maximum size in bytes.

    Returns:
        The data, and its size in bytes.

    Raises:
        TypeError: The value has a type that cannot cross; the message names it.
        ValueError: The value is too large or otherwise cannot cross; the message states the reason.
    """
    encoder = _Encoder(opaque, budget)
    return encoder.encode(value), budget - encoder.left


def decode(data: Any, opaque: Opaque) -> Any:
    """Return the value in `data`.

    Args:
        data: Result of `encode` on the other side of the wire.
        opaque: Table of the objects that cross by handle.

    Raises:
        WireError: The data cannot be a result of `encode`.
    """
    try:
        return _decode(data, opaque, 0)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise WireError(f"not a value: {type(error).__name__}: {error}") from None


def _decode(data: Any, opaque: Opaque, depth: int) -> Any:
    if depth > 2 * MAX_DEPTH:
        raise WireError("a value nested too deeply")
    if type(data) is list:
        return [_decode(item, opaque, depth + 1) for item in data]
    if type(data) is not dict:
        return data
    if len(data) == 1:
        ((key, inside),) = data.items()
        tag = _TAGS.get(key)
        if tag is not None:
            return tag(inside, opaque, depth + 1)
    if any(key.startswith("$") for key in data):
        raise WireError("an unknown kind of value")
    return {key: _decode(item, opaque, depth + 1) for key, item in data.items()}


def _tuple(inside: Any, opaque: Opaque, depth: int) -> Any:
    if type(inside) is not list:
        raise WireError("a tuple is a list of items")
    return tuple(_decode(item, opaque, depth) for item in inside)


def _dict(inside: Any, opaque: Opaque, depth: int) -> Any:
    if type(inside) is not list or any(type(pair) is not list or len(pair) != 2 for pair in inside):
        raise WireError("a dict is a list of pairs")
    if any(type(key) not in _KEYS for key, _ in inside):
        raise WireError("a dict key is a plain value")
    return {key: _decode(item, opaque, depth) for key, item in inside}


def _handle(inside: Any, opaque: Opaque, depth: int) -> Any:
    if type(inside) is not int:
        raise WireError("a handle is a number")
    return opaque.unpack(inside)


_TAGS: dict[str, Callable[[Any, Opaque, int], Any]] = {
    "$t": _tuple,
    "$d": _dict,
    "$h": _handle,
    "$T": lambda inside, opaque, depth: opaque.receive("$T", _decode(inside, opaque, depth)),
    "$R": lambda inside, opaque, depth: opaque.receive("$R", _decode(inside, opaque, depth)),
}
