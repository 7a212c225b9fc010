"""The worker's end of the wire."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from pyrag_sandbox.contract import Limits
from pyrag_sandbox.wire import FrameReader, pack_frame
from pyrag_sandbox.worker.execution import Job
from pyrag_sandbox.worker.worker import PipeSession, Reader


@pytest.fixture
def ends() -> Iterator[tuple[PipeSession, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield PipeSession(Job("", (), Limits()), theirs.fileno(), Reader(theirs.fileno()), {}), ours


def arrived(end: socket.socket) -> list[int]:
    """The ids of the messages that have left the worker."""
    try:
        data = end.recv(1 << 16)
    except BlockingIOError:
        return []
    return [message["id"] for message in FrameReader(1 << 16).feed(data)]


def test_messages_at_once_leave_together_but_the_first(ends: tuple[PipeSession, socket.socket]) -> None:
    session, host = ends
    session.send_frame({"id": 0})
    assert arrived(host) == [0]
    session.send_frame({"id": 1})
    session.send_frame({"id": 2})
    assert arrived(host) == []
    session.flush()
    assert arrived(host) == [1, 2]


def test_all_leave_before_a_reply_is_waited_for(ends: tuple[PipeSession, socket.socket]) -> None:
    session, host = ends
    for number in range(3):
        session.send_frame({"id": number})
    host.sendall(pack_frame({"op": "value"}, 100))
    assert session.receive_frame() == {"op": "value"}
    assert arrived(host) == [0, 1, 2]
    session.send_frame({"id": 3})
    assert arrived(host) == [3], "the host sleeps again"


def test_many_do_not_wait_for_each_other(ends: tuple[PipeSession, socket.socket]) -> None:
    session, host = ends
    for number in range(200):
        session.send_frame({"id": number})
    assert len(arrived(host)) > 100
