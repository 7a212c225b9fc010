"""A Ray cluster that cannot be joined is named in one sentence. Needs no Ray."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pyrag._io.ray_cluster import connected
from pyrag.errors import ConfigError


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "0")  # put back after the test


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("local", Exception("The node timed out.\nIt\n"), r"at local \(The node timed out\. It\): .*less busy"),
        ("ray://h:1", ConnectionError("no answer"), r"at ray://h:1 \(no answer\): check --ray, or use local"),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_named(
    monkeypatch: pytest.MonkeyPatch, address: str, error: Exception, message: str
) -> None:
    def init(**options: object) -> None:
        raise error

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    with pytest.raises(ConfigError, match=message):
        connected(address, 2)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"--ray needs Ray: .*\[ray\]"):
        connected("local", 2)
