"""Whether a hub is away is told at once, where its own client would try for half a minute."""

from __future__ import annotations

import socket

import pytest

from pyrag._io.hub import Remote, fetch, unreachable
from pyrag.errors import PermanentServiceError


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a port that nobody listens on."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


def test_a_hub_that_refuses_is_away(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unreachable(address)
    monkeypatch.setenv("HF_ENDPOINT", address)
    assert unreachable()


def test_a_hub_that_takes_calls_is_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not unreachable(f"http://127.0.0.1:{server.getsockname()[1]}")


def test_a_slow_hub_is_left_to_its_client(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", slow)
    assert not unreachable(address)


@pytest.mark.parametrize(("name", "value"), [("http_proxy", "http://127.0.0.1:9"), ("HF_HUB_OFFLINE", "1")])
def test_what_only_the_client_can_tell_is_left_to_it(
    name: str, value: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert not unreachable(address)


@pytest.mark.parametrize("source", ["http://", "http://host:port"])
def test_what_is_no_address_is_not_away(source: str) -> None:
    assert not unreachable(source)


def test_an_unreachable_hub_is_one_sentence(address: str) -> None:
    pytest.importorskip("huggingface_hub")
    with pytest.raises(PermanentServiceError, match=f"o/r/f could not be fetched from {address} .no connection."):
        fetch(Remote("o/r", "f"), address)
