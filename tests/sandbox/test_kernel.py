"""The kernel wall by itself: the policy is off, the program is plain hostile Python, the worker is locked."""

from __future__ import annotations

import os
import platform
import resource
import sys
from typing import Any

import pytest

from pyrag_sandbox import Limits, Sandbox, SandboxError, capabilities
from pyrag_sandbox.worker import kernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")

FAILS_WITH_EPERM = {
    "open": "open('/etc/passwd')",
    "open for writing": "open('/tmp/pyrag-sandbox-test', 'w')",
    "os.open": "import os; os.open('/', 0)",
    "stat": "import os; os.stat('/')",
    "listdir": "import os; os.listdir('/')",
    "readlink": "import os; os.readlink('/proc/self/exe')",
    "getcwd": "import os; os.getcwd()",
    "getrandom": "import os; os.urandom(1)",
    "raise a limit": "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "new import": "import urllib.request",
}
KILLED = {
    "unlink": "import os; os.unlink('/tmp/x')",
    "mkdir": "import os; os.mkdir('/tmp/x')",
    "chmod": "import os; os.chmod('/tmp', 0)",
    "rename": "import os; os.rename('/tmp/x', '/tmp/y')",
    "socket": "import _socket; _socket.socket(2, 1)",
    "unix socket": "import _socket; _socket.socket(1, 1)",
    "socketpair": "import _socket; _socket.socketpair()",
    "send a descriptor": "import _socket; _socket.socket(fileno=3).sendmsg([b'x'])",
    "pipe": "import os; os.pipe()",
    "fork": "import os; os.fork()",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "thread": "import _thread; _thread.start_new_thread(print, ())",
    "kill the host": "import os; os.kill(1, 9)",
    "kill the group": "import os; os.killpg(1, 9)",
    "signal handler": "import signal; signal.signal(14, signal.SIG_IGN)",
    "timer": "import signal; signal.setitimer(signal.ITIMER_PROF, 0)",
    "alarm": "import signal; signal.alarm(1)",
    "setuid": "import os; os.setuid(0)",
    "nice": "import os; os.nice(1)",
    "dup": "import os; os.dup(3)",
    "memfd": "import os; os.memfd_create('x')",
}
SYSCALL = "import ctypes\nctypes.CDLL(None, use_errno=True).syscall({})"
if platform.machine() == "x86_64":
    KILLED |= {
        "ptrace": SYSCALL.format("101, 0, 1, 0, 0"),
        "process_vm_readv": SYSCALL.format("310, 1, 0, 0, 0, 0, 0"),
        "io_uring": SYSCALL.format("425, 1, 0"),
        "bpf": SYSCALL.format("321, 0, 0, 0"),
        "unshare": SYSCALL.format("272, 0x10000000"),
        "prctl": SYSCALL.format("157, 38, 0, 0, 0, 0"),
        "personality": SYSCALL.format("135, 0"),
        "mmap executable": SYSCALL.format("9, 0, 4096, 7, 34, -1, 0"),
        "mprotect executable": SYSCALL.format("10, 0, 4096, 5"),
        "x32 write": SYSCALL.format("0x40000001, 3, 0, 0"),
        "clone3": SYSCALL.format("435, 0, 0"),
        "unknown": SYSCALL.format("1000"),
    }


async def hostile(sandbox: Sandbox, source: str) -> Any:
    """Run with the policy off; modules the zygote knows are in `sys.modules`, so imports of them work."""
    return await sandbox.run(source, {}, policy=False, limits=Limits(own_seconds=1, cpu_seconds=1))


@pytest.mark.parametrize("name", FAILS_WITH_EPERM)
async def test_what_cannot_be_opened(sandboxes: dict[str, Sandbox], name: str) -> None:
    outcome = await hostile(sandboxes["process"], f"{FAILS_WITH_EPERM[name]}\nfinal_answer = 'reached'")
    if name == "getrandom" and outcome.status == "ok":
        return  # from version 2.41 on, the GNU C library draws numbers without a system call
    assert outcome.status == "error"
    assert outcome.error.type in ("PermissionError", "ModuleNotFoundError", "ValueError", "OSError")


@pytest.mark.parametrize("name", KILLED)
async def test_what_kills_the_worker(sandboxes: dict[str, Sandbox], name: str) -> None:
    outcome = await hostile(sandboxes["process"], f"{KILLED[name]}\nfinal_answer = 'reached'")
    if outcome.status == "error":  # the module itself could not be imported: nothing was reached either
        assert outcome.error.type in ("ModuleNotFoundError", "ImportError", "PermissionError")
        assert name not in ("socket", "fork", "exec", "kill the host", "signal handler", "unlink", "pipe", "thread")
    else:
        assert (outcome.status, outcome.reason) == ("killed", "syscall")


OPEN_DESCRIPTORS = (
    "import os\nopen_ones = []\nfor fd in range(2000):\n"
    "    try:\n        os.write(fd, b'')\n        open_ones.append(fd)\n"
    "    except OSError:\n        pass\nfinal_answer = open_ones"
)


async def test_only_one_descriptor_is_open(sandboxes: dict[str, Sandbox]) -> None:
    outcome = await hostile(sandboxes["process"], OPEN_DESCRIPTORS)
    assert outcome.value == [0, 1, 2, 3]  # /dev/null three times, and the socket


async def test_a_host_with_many_open_files_hands_none_down() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1500:
        pytest.skip("this user may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1500), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        async with Sandbox(prefork=1) as sandbox:
            assert (await hostile(sandbox, OPEN_DESCRIPTORS)).value == [0, 1, 2, 3]
    finally:
        for fd in files:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_the_environment_is_empty(sandboxes: dict[str, Sandbox]) -> None:
    source = "import os, sys\nfinal_answer = [sorted(k for k in os.environ if k != 'LC_CTYPE'), len(sys.argv)]"
    outcome = await hostile(sandboxes["process"], source)
    assert outcome.value[0] == ["PYTHONHASHSEED"]


async def test_a_worker_that_writes_garbage_is_killed(sandboxes: dict[str, Sandbox]) -> None:
    for junk in (r"b'\xff\xff\xff\xff'", r"b'\x00\x00\x00\x02[]'", r"b'\x00\x00\x00\x02{}'"):
        outcome = await hostile(sandboxes["process"], f"import os\nos.write(3, {junk})\nwhile True: pass")
        assert (outcome.status, outcome.reason) == ("killed", "crash")


FORGED_ERROR = '{"type":"E","message":"m","line":%d,"source_line":"","traceback":""}'


async def test_a_forged_message_is_refused(sandboxes: dict[str, Sandbox]) -> None:
    called = []

    async def known(call: Any) -> None:
        called.append(call)

    forged = [
        '{"op":"call","id":0,"name":"unknown","args":[],"kwargs":{},"line":1,"depends_on":[]}',
        '{"op":"call","id":0,"name":"known","args":[{"$h":0}],"kwargs":{},"line":1,"depends_on":[]}',
        '{"op":"call","id":0,"name":"known","args":{},"kwargs":{},"line":1,"depends_on":[]}',
        '{"op":"call","id":0,"name":"known","args":[],"kwargs":{},"line":1,"depends_on":[7]}',
        '{"op":"call","id":true,"name":"known","args":[],"kwargs":{},"line":1,"depends_on":[]}',
        '{"op":"end","status":"fine","reason":"","error":null,"output":""}',
        '{"op":"end","status":"ok","reason":"","error":{"type":1},"output":""}',
        '{"op":"end","status":"ok","reason":"","error":null,"output":"","calls":[3]}',
        '{"op":"end","status":"ok","reason":"","error":null,"output":"","provenance":{"x":[3]}}',
        '{"op":"end","status":"ok","reason":"","error":null,"output":5}',
        '{"op":"end","status":"ok","reason":"","error":null,"output":"","value":1}',
        '{"op":"end","status":"ok","reason":"","error":null,"output":"","has_value":"yes"}',
        '{"op":"end","status":"error","reason":"","error":null,"output":""}',
        '{"op":"end","status":"blocked","reason":"","error":null,"output":"","value":1,"has_value":true}',
        f'{{"op":"end","status":"error","reason":"","error":{FORGED_ERROR % -1},"output":""}}',
        f'{{"op":"end","status":"ok","reason":"","error":{FORGED_ERROR % 1},"output":"","has_value":true}}',
        '{"op":"call","id":-1,"name":"known","args":[],"kwargs":{},"line":1,"depends_on":[]}',
        '{"op":"call","id":0,"name":"known","args":[],"kwargs":{},"line":99999999999,"depends_on":[]}',
        '{"op":"call","id":0,"name":"known","args":[],"kwargs":{"\\ud800":1},"line":1,"depends_on":[]}',
        '{"op":"out","text":"\\ud800"}',
    ]
    for message in forged:
        source = (
            f"import os, struct\nm = {message!r}.encode()\nos.write(3, struct.pack('!I', len(m)) + m)\nwhile True: pass"
        )
        outcome = await sandboxes["process"].run(source, {"known": known}, policy=False, limits=Limits(own_seconds=1))
        assert (outcome.status, outcome.reason) == ("killed", "crash"), message
    assert called == []


async def test_a_forged_error_is_cut() -> None:
    error = FORGED_ERROR.replace('"m"', f'"{"m" * 100_000}"') % 1
    message = f'{{"op":"end","status":"error","reason":"","error":{error},"output":""}}'
    source = f"import os, struct\nm = {message!r}.encode()\nos.write(3, struct.pack('!I', len(m)) + m)"
    async with Sandbox(prefork=1) as sandbox:
        outcome = await sandbox.run(source, {}, policy=False, limits=Limits(source_bytes=200_000))
    assert outcome.status == "error"
    assert 1000 < len(outcome.error.message) < 20_000


async def test_a_worker_that_cannot_be_locked_runs_nothing(sandboxes: dict[str, Sandbox]) -> None:
    with pytest.raises(SandboxError, match="could not be locked: OverflowError"):
        await sandboxes["process"].run("final_answer = 1", {}, limits=Limits(memory_mb=2**50))


@pytest.mark.parametrize("then", ["while True: pass", "os._exit(0)"])
async def test_a_locked_worker_that_says_it_is_not_is_killed(sandboxes: dict[str, Sandbox], then: str) -> None:
    forged = '{"op":"broken","message":"no lock"}'
    source = f"import os, struct\nm = {forged!r}.encode()\nos.write(3, struct.pack('!I', len(m)) + m)\n{then}"
    assert (await hostile(sandboxes["process"], source)).status == "killed"


async def test_a_worker_that_goes_on_after_its_end_is_killed(sandboxes: dict[str, Sandbox]) -> None:
    message = '{"op":"end","status":"ok","reason":"","error":null,"output":"","value":1,"has_value":true}'
    source = (
        f"import os, struct\nm = {message!r}.encode()\nos.write(3, struct.pack('!I', len(m)) + m)\n"
        "while True:\n    os.write(3, struct.pack('!I', len(m)) + m)"
    )
    outcome = await hostile(sandboxes["process"], source)
    assert (outcome.status, outcome.value) == ("ok", 1)


def test_the_filter_knows_both_machines_and_ends_in_kill() -> None:
    for machine in ("x86_64", "aarch64"):
        code = kernel.build_filter(machine)
        assert len(code) % 8 == 0
        assert len(code) // 8 < 4096
        assert code[-8:] == b"\x06\x00\x00\x00\x00\x00\x00\x80"


def test_capabilities_names_every_layer() -> None:
    found = capabilities()
    assert set(found) == {"process", "limits", "memory_limit", "no_new_privs", "seccomp", "seatbelt"}
    assert found["process"]
    assert found["limits"]
    assert not found["seatbelt"]


async def test_a_missing_layer_refuses_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "seccomp_available", lambda: False)
    assert not capabilities()["seccomp"]
    with pytest.raises(SandboxError, match=r"lacks seccomp.*require='policy'"):
        await Sandbox().run("final_answer = 1", {})
    async with Sandbox(require="policy", prefork=1) as sandbox:
        assert (await sandbox.run("final_answer = 1", {})).value == 1
        with pytest.raises(SandboxError, match="cannot be switched off"):
            await sandbox.run("final_answer = 1", {}, policy=False)


async def test_an_unknown_machine_refuses_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel.platform, "machine", lambda: "riscv64")
    with pytest.raises(SandboxError, match="seccomp"):
        await Sandbox().run("final_answer = 1", {})


def test_memory_in_use_can_be_watched() -> None:
    assert kernel.resident_bytes(os.getpid()) > 1_000_000
    assert kernel.resident_bytes(2**22 + 1) == 0


async def test_the_host_watches_memory_where_the_system_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS. The worker's own limit is still there, and set so high that it is not what ends the program."""
    readings = iter([10, 20, 30])
    monkeypatch.setattr(kernel, "MEMORY_LIMIT", False)
    monkeypatch.setattr(kernel, "resident_bytes", lambda pid: next(readings, 50) * 2**20)
    async with Sandbox(prefork=1) as sandbox:
        outcome = await sandbox.run("while True: pass", {}, limits=Limits(memory_mb=32, own_seconds=5))
    assert (outcome.status, outcome.reason) == ("killed", "memory")
