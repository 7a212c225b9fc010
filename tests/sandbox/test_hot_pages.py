"""Pages copied ahead: which ones a fork has copied is seen, and copying them spares the faults. In real forks."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import pyrag_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
_PREAMBLE = """
import ctypes, json, os, resource, sys
from pyrag_sandbox import hot_pages
PAGE = resource.getpagesize()
buffer = ctypes.create_string_buffer(66 * PAGE)
start = -(-ctypes.addressof(buffer) // PAGE) * PAGE
def write(pages):
    for page in pages:
        ctypes.memset(start + page * PAGE, 1, 1)
write(range(64))
def forked(work):
    "What `work` comes to in a fork."
    read, end = os.pipe()
    if os.fork() == 0:
        os.write(end, json.dumps(work()).encode())
        os._exit(0)
    os.close(end)
    return json.loads(os.read(read, 65536))
"""


def run(script: str) -> Any:
    """In a process of its own: a test process has threads, which forks don't take."""
    source = _PREAMBLE + textwrap.dedent(script)
    path = str(Path(pyrag_sandbox.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", source], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_it_sees_the_pages_that_a_fork_has_copied() -> None:
    found = run("""
        shared = [(first, end) for first, end in hot_pages.shared_memory() if first < start + 64 * PAGE and end > start]
        def work():
            write([3, 4, 9])
            with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
                return list(memoryview(hot_pages.copied(pagemap.fileno(), [(start, start + 64 * PAGE)])).cast("Q"))
        ranges = forked(work)
        print(json.dumps([bool(shared), [(first - start) // PAGE for first in ranges[::2]], ranges[1::2], PAGE]))
    """)
    shared, firsts, lengths, page = found
    assert shared
    assert (firsts, lengths) == ([3, 9], [2 * page, page])


def test_noted_pages_are_copied_without_a_fault_each() -> None:
    faults, faults_of_noted, untouched = run("""
        hot = hot_pages.HotPages()
        def faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            write(range(64))
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        def prepared():
            hot()
            same = ctypes.string_at(start, 1) == b"\\x01"
            return [faults(), same]
        plain = forked(faults)
        hot.note((start).to_bytes(8, sys.byteorder) + (64 * PAGE).to_bytes(8, sys.byteorder))
        print(json.dumps([plain, *forked(prepared)]))
    """)
    assert untouched
    assert faults >= 64
    if faults_of_noted >= 64:
        pytest.skip("this system copies no pages ahead (Linux 6.13 does)")
    assert faults_of_noted <= faults - 60


def test_pages_that_do_not_exist_are_left_alone() -> None:
    assert (
        run("""
        hot = hot_pages.HotPages()
        hot.note((PAGE).to_bytes(8, sys.byteorder) + (PAGE).to_bytes(8, sys.byteorder))
        hot()
        hot.note(b"")
        hot()
        print(json.dumps("alive"))
    """)
        == "alive"
    )
