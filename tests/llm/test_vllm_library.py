"""The system library of vLLM's build for CPUs: named before vLLM starts, and only where it is needed."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import ConfigError
from pyrag.llm.clients.vllm_library import check_library


@pytest.fixture
def without_libnuma(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *_: Any) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    monkeypatch.setattr(sys, "platform", "linux")


def install(folder: Path, version: str) -> None:
    """Write the metadata of a vLLM of this version, without its code."""
    metadata = folder / f"vllm-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


def test_cpu_build_without_libnuma_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_libnuma: None
) -> None:
    install(tmp_path, "0.28.0+cpu")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"libnuma\.so\.1, which is missing: .* apt-get install libnuma1"):
        check_library()


def test_gpu_build_needs_no_libnuma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_libnuma: None) -> None:
    install(tmp_path, "0.28.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    check_library()


def test_cpu_build_with_libnuma_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "0.28.0+cpu")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: name)
    check_library()
