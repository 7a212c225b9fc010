"""Frames and values: whatever a worker sends, the host reads it within bounds or refuses it."""

from __future__ import annotations

import json
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrag_sandbox.contract import Record, Text
from pyrag_sandbox.host.program_session import Handles
from pyrag_sandbox.wire import (
    FloodError,
    FrameReader,
    WireError,
    decode,
    encode,
    memory_of,
    pack_frame,
    unpack_body,
)


def frame(body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + body


HOSTILE_FRAMES = {
    "huge length": b"\xff\xff\xff\xff{}",
    "over the cap": frame(b"{" + b" " * 2000 + b"}"),
    "not json": frame(b"{'op': 1}"),
    "not utf-8": frame(b'{"op": "\xff"}'),
    "not an object": frame(b"[1]"),
    "nan": frame(b'{"x": NaN}'),
    "infinity": frame(b'{"x": -Infinity}'),
    "infinity in digits": frame(b'{"x": 1e999}'),
    "deep": frame(b"[" * 900 + b"]" * 900),
    "huge integer": frame(b'{"x": ' + b"9" * 900 + b"9}") + frame(b"[]"),
    "lone surrogate": frame(rb'{"op": "\ud83d"}'),
    "lone surrogate in a key": frame(rb'{"x": {"\uD83D": "\ud83d\ude00"}}'),
    "pickle": frame(b"cos\nsystem\n(S'true'\ntR."),
}


@pytest.mark.parametrize("name", HOSTILE_FRAMES)
def test_hostile_frames_are_refused(name: str) -> None:
    with pytest.raises(WireError):
        list(FrameReader(1024).feed(HOSTILE_FRAMES[name]))


def test_very_deep_json_is_refused() -> None:
    with pytest.raises(WireError):
        list(FrameReader(1 << 20).feed(frame(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")))


def test_an_unfinished_frame_waits_and_takes_no_memory() -> None:
    reader = FrameReader(1 << 20)
    tracemalloc.start()
    assert list(reader.feed(struct.pack("!I", 1 << 20) + b"{")) == []
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_characters_beyond_the_first_plane_are_text() -> None:
    message = {"op": "out", "text": "\U0001f600 \\ud83d"}
    assert list(FrameReader(1024).feed(pack_frame(message, 1024))) == [message]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        messages = list(FrameReader(64).feed(data))
    except WireError:
        return
    assert all(type(message) is dict for message in messages)


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers()), max_size=5), st.integers(1, 7))
def test_messages_survive_any_fragmentation(messages: list[dict[str, Any]], size: int) -> None:
    data = b"".join(pack_frame(message, 1 << 20) for message in messages)
    reader = FrameReader(1 << 20)
    read = [found for at in range(0, len(data), size) for found in reader.feed(data[at : at + size])]
    assert read == messages


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.sampled_from(["$h", "$t"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_values_survive_the_wire(value: Any) -> None:
    handles = Handles(1 << 20)
    data = json.loads(json.dumps(encode(value, handles, 1 << 20)))
    assert decode(data, handles) == value
    assert type(decode(data, handles)) is type(value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$h", "$t", "$d", "$T", "$R", "$x", "a"]), inner, max_size=2)
    ),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_any_json_is_a_value_or_refused(data: Any) -> None:
    handles = Handles(1 << 20)
    handles.pack(Text("known"))
    try:
        decode(data, handles)
    except WireError:
        return


@pytest.mark.parametrize(
    "data",
    [
        {"$h": 2}, {"$h": -1}, {"$h": True}, {"$h": "0"}, {"$h": [0]}, {"$T": [0, "x", {}]}, {"$R": [0, {}, "text"]},
        {"$t": 5}, {"$d": [[1]]}, {"$d": [[[1], 2]]}, {"$new": 1}, {"$h": 0, "x": 1},
    ],
)  # fmt: skip
def test_forged_values_are_refused(data: Any) -> None:
    handles = Handles(1 << 20)
    given_out = [Text("a"), Record({"text": "b"})]
    encode(given_out, handles, 1 << 20)
    assert decode([{"$h": 0}, {"$h": 1}], handles) == given_out
    with pytest.raises(WireError):
        decode(data, handles)


@pytest.mark.parametrize(
    "value",
    [{1, 2}, b"x", 1j, object(), float("inf"), "\ud800", {(1, 2): 3}, {"a": {"\ud800": 1}}, [10**5000], "x" * 2000,
     ["x" * 400] * 3, type("S", (str,), {})("x")],
)  # fmt: skip
def test_what_cannot_cross_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode(value, Handles(1000), 1000)


def test_the_same_object_crosses_once() -> None:
    handles = Handles(1 << 20)
    text = Text("x" * 1000, {"a": 1})
    assert encode([text, text], handles, 1500) == [{"$T": [0, "x" * 1000, {"a": 1}]}, {"$h": 0}]


SHAPES = {
    "numbers": "999,",
    "long numbers": "123456789012345678901234567890,",
    "floats": "1.5,",
    "nothing": "null,",
    "short texts": '"ab",',
    "texts": '"abcdefghijklmnopqrstuvwxyz",',
    "accents": '"aé",',
    "Cyrillic": '"яя",',
    "faces": '"😀",',
    "one face": '"' + "a" * 500 + '😀",',
    "one letter of two bytes": '"' + "a" * 500 + 'я",',
    "escapes": '"' + "a" * 500 + r'\u4e2d",',
    "lists": "[],",
    "lists of one": "[1],",
    "lists of five": "[1.5,2.5,3.5,4.5,5.5],",
    "deep lists": "[[[[]]]],",
    "dicts": "{},",
    "dicts of one": '{"a":1},',
    "dicts of six": '{"a":1,"b":1.5,"c":"x","d":[],"e":1,"f":1},',
    "tuples": '{"$t":[1]},',
    "pairs": '{"$d":[[1,2],[3,4]]},',
}


@pytest.mark.parametrize("item", SHAPES.values(), ids=SHAPES)
def test_memory_of_a_message_is_never_underestimated(item: str) -> None:
    body = ('{"v":[' + (item * 3000)[:-1] + "]}").encode()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        message = unpack_body(body)
        raw, _ = tracemalloc.get_traced_memory()
        value = decode(message["v"], Handles(1 << 20))
        del message
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(value) == 3000
    assert max(raw, kept) - before <= memory_of(body)


def test_small_objects_count_as_what_they_take() -> None:
    body = b'{"op":"out","v":[' + b"1.5," * 20_000 + b"0]}"
    reader = FrameReader(len(body))
    with pytest.raises(FloodError):  # though 16 frames of that many bytes are within 16 times the cap
        list(reader.feed((len(body).to_bytes(4, "big") + body) * 4))


def test_handles_count_for_little() -> None:
    body = b'{"v":[' + b'{"$h":1},' * 1000 + b"0]}"
    assert memory_of(body) < 300 * 1000
