"""The host's own life: many loops, many programs, processes that die, interpreters that end, nothing left behind."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pyrag_sandbox
from pyrag_sandbox import Call, Limits, Sandbox, SandboxError, WorkerLostError
from pyrag_sandbox.host import process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
ROOT = Path(pyrag_sandbox.__file__).parent.parent


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def gone(pids: list[int]) -> bool:
    for _ in range(100):
        if not any(map(alive, pids)):
            return True
        await asyncio.sleep(0.02)
    return False


class Slow:
    """A primitive that does not answer; `begun` is set once it is called."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, call: Call) -> None:
        self.begun.set()
        await asyncio.sleep(30)


@pytest.fixture
async def slow() -> Slow:
    return Slow()


async def test_one_sandbox_in_one_loop_after_another() -> None:
    """In a thread of its own: `asyncio.run` as a synchronous caller would use it."""
    results: list[Any] = []

    def work() -> None:
        sandbox = Sandbox(prefork=1)
        pids = set()
        for number in range(3):
            results.append(asyncio.run(sandbox.run(f"final_answer = {number}", {})).value)
            pids.add(sandbox.zygotes[0].pid)
        results.append(len(pids))
        sandbox.close()

    await asyncio.to_thread(work)
    assert results == [0, 1, 2, 1]


async def test_one_sandbox_in_two_running_loops(slow: Slow) -> None:
    async with Sandbox(prefork=1) as sandbox:
        running = asyncio.create_task(sandbox.run("final_answer = slow()", {"slow": slow}))
        await slow.begun.wait()
        other = await asyncio.to_thread(lambda: asyncio.run(sandbox.run("final_answer = 1", {})))
        assert other.value == 1
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


def test_loops_of_many_threads_begin_with_one_sandbox() -> None:
    start, results = threading.Barrier(6), []

    def work(number: int) -> None:
        start.wait()
        results.extend(asyncio.run(sandbox.run(f"final_answer = {number}", {})).value for _ in range(3))

    sandbox = Sandbox(prefork=1)
    threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted([*range(6)] * 3)
    assert 1 <= len(sandbox.zygotes) <= 6
    sandbox.close()


async def test_closing_ends_the_programs_of_other_loops() -> None:
    waiting = threading.Event()

    async def wait(call: Call) -> None:
        waiting.set()
        await asyncio.sleep(3600)

    sandbox = Sandbox(prefork=1)
    other = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(sandbox.run("wait()", {"wait": wait}))))
    await asyncio.to_thread(waiting.wait)
    sandbox.close()
    with pytest.raises(SandboxError, match="was closed"):
        await other


async def test_cancelling_run_kills_the_worker_and_its_calls() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> None:
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.set()

    async with Sandbox(prefork=1) as sandbox:
        task = asyncio.create_task(sandbox.run("wait()", {"wait": wait}))
        await started.wait()
        workers = list(sandbox.zygotes[0].busy)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled.is_set()
        assert workers
        assert await gone(workers)


async def test_a_killed_zygote_is_told_and_replaced(slow: Slow) -> None:
    async with Sandbox(prefork=1) as sandbox:
        task = asyncio.create_task(sandbox.run("slow()", {"slow": slow}))
        await slow.begun.wait()
        zygote = sandbox.zygotes[0]
        workers = children_of(zygote.pid)
        os.kill(zygote.pid, signal.SIGKILL)
        with pytest.raises(WorkerLostError, match="ended unexpectedly"):
            await task
        assert workers
        assert await gone(workers)
        assert (await sandbox.run("final_answer = 1", {})).value == 1


async def test_a_zygote_killed_between_programs_is_replaced() -> None:
    async with Sandbox(prefork=1) as sandbox:
        assert (await sandbox.run("final_answer = 1", {})).value == 1
        os.kill(sandbox.zygotes[0].pid, signal.SIGKILL)
        await asyncio.sleep(0.1)
        assert (await sandbox.run("final_answer = 2", {})).value == 2


async def test_a_worker_that_waits_behind_other_limits_is_not_used() -> None:
    source = "final_answer = len(bytearray(100 * 2**20))"
    small = Limits(memory_mb=32)
    async with Sandbox(prefork=2) as sandbox:
        for _ in range(3):
            assert (await sandbox.run(source, {})).status == "ok"
            assert (await sandbox.run(source, {}, limits=small)).reason == "memory"
        both = await asyncio.gather(*(sandbox.run(source, {}, limits=limits) for limits in [small, None] * 4))
        assert [outcome.status for outcome in both] == ["killed", "ok"] * 4
        assert len(sandbox.zygotes[0].idle) <= 2


def test_ready_workers_serve_other_loops_and_limits() -> None:
    small = Limits(memory_mb=32)

    async def run_and_wait(limits: Limits) -> set[float]:
        assert (await sandbox.run("final_answer = 1", {}, limits=limits)).value == 1
        idle = sandbox.zygotes[0].idle
        for _ in range(500):
            sandbox.zygotes[0].on_readable()  # as the next program would
            if len(idle) == 2 and {worker.wall.memory_mb for worker in idle} == {limits.memory_mb}:
                break
            await asyncio.sleep(0.01)
        return {worker.wall.memory_mb for worker in idle if len(idle) == 2}

    sandbox = Sandbox(prefork=2)
    try:
        for limits in (Limits(), Limits(), Limits(), small):
            asyncio.run(sandbox.run("final_answer = 1", {}, limits=limits))  # the loop is gone before its timers fire
            assert asyncio.run(run_and_wait(limits)) == {limits.memory_mb}
    finally:
        sandbox.close()


async def test_a_killed_worker_kills_one_program_only(slow: Slow) -> None:
    async with Sandbox(prefork=1) as sandbox:
        task = asyncio.create_task(sandbox.run("slow()", {"slow": slow}))
        await slow.begun.wait()
        (worker,) = sandbox.zygotes[0].busy
        os.kill(worker, signal.SIGKILL)
        outcome = await task
        assert (outcome.status, outcome.reason) == ("killed", "lost")
        assert outcome.error is not None
        assert "killed from outside" in outcome.error.message
        assert (await sandbox.run("final_answer = 1", {})).value == 1


ENDS = """
import asyncio, os, signal, sys
from pyrag_sandbox import Sandbox
async def slow(call):
    print(os.getpid(), *sandbox.zygotes[0].busy, sandbox.zygotes[0].pid, flush=True)
    {act}
    await asyncio.sleep(30)
sandbox = Sandbox(prefork=2)
asyncio.run(sandbox.run("slow()", {{"slow": slow}}))
"""


def start_host(source: str, **options: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Python 3.12 and later warn of every fork of a process with threads.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", source]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize(
    "act",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os._exit(0)",
        "sys.exit(0)",
        "[task.cancel() for task in asyncio.all_tasks()]",
    ],
)
async def test_no_orphan_when_the_host_ends(act: str) -> None:
    process = start_host(ENDS.format(act=act))
    output, _ = await asyncio.to_thread(process.communicate, timeout=120)
    pids = [int(word) for word in output.split()]
    assert len(pids) == 3
    assert await gone(pids[1:])


async def test_ctrl_c_in_the_host_leaves_nothing() -> None:
    heard = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731 - it may be ignored here
    process = start_host(ENDS.format(act="pass"), start_new_session=True, preexec_fn=heard)
    assert process.stdout is not None
    pids = [int(word) for word in (await asyncio.to_thread(process.stdout.readline)).split()]
    os.killpg(process.pid, signal.SIGINT)
    _, errors = await asyncio.to_thread(process.communicate, timeout=120)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert await gone(pids[1:])


FORKS = """
import asyncio, os, sys
from pyrag_sandbox import Sandbox
sandbox = Sandbox(prefork=1)
def run(number): return sandbox.run(f"final_answer = {{number}}", {{}})
async def main():
    assert (await run(1)).value == 1
    async def fork(call):  # while a program runs, and its reports are being read
        global child
        child = os.fork()
        if child == 0:
            {child}
            os._exit(0)
        return os.waitpid(child, 0)[1]
    outcomes = await asyncio.gather(*(sandbox.run("final_answer = fork()", {{"fork": fork}}) for _ in range(20)))
    print({{outcome.value for outcome in outcomes}}, (await run(2)).value, flush=True)
asyncio.run(main())
if {again}:
    if os.fork() == 0:
        print(asyncio.run(run(3)).value)
        sys.exit(0)
    os.wait()
print(asyncio.run(run(4)).value)
"""


@pytest.mark.parametrize("child", ["sandbox.close()", "del sandbox.zygotes[:]", "pass"])
async def test_a_fork_leaves_the_programs_of_its_parent_alone(child: str) -> None:
    process = start_host(FORKS.format(child=child, again=False))
    output, errors = await asyncio.to_thread(process.communicate, timeout=120)
    assert (output, errors) == ("{0} 2\n4\n", "")


async def test_a_fork_has_a_sandbox_of_its_own() -> None:
    process = start_host(FORKS.format(child="pass", again=True))
    output, errors = await asyncio.to_thread(process.communicate, timeout=120)
    assert (output, errors) == ("{0} 2\n3\n4\n", "")


async def test_an_interpreter_that_ends_without_closing_is_quiet() -> None:
    source = (
        "import asyncio\nfrom pyrag_sandbox import Sandbox\nsandbox = Sandbox()\n"
        "print(asyncio.run(sandbox.run('final_answer = 5', {})).value)"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-W", "error", "-c", source],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("5\n", "")


async def test_a_forgotten_sandbox_ends_its_processes() -> None:
    sandbox = Sandbox(prefork=1)
    await sandbox.run("final_answer = 1", {})
    pid = sandbox.zygotes[0].pid
    del sandbox
    gc.collect()
    assert await gone([pid])


async def test_two_hundred_programs_wait_at_once() -> None:
    arrived = 0
    everyone = asyncio.Event()

    async def wait(call: Call) -> int:
        nonlocal arrived
        arrived += 1
        if arrived == 200:
            everyone.set()
        await everyone.wait()
        return int(call.args[0])

    limits = Limits(own_seconds=30)
    async with Sandbox(prefork=2) as sandbox:
        outcomes = await asyncio.gather(
            *(sandbox.run(f"final_answer = wait({n})", {"wait": wait}, limits=limits) for n in range(200))
        )
    assert [outcome.value for outcome in outcomes] == list(range(200))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


async def test_many_programs_leave_nothing_behind(run: Any, sandboxes: dict[str, Sandbox]) -> None:
    """Some of each kind of end. The thousand in a row are in benchmarks/sandbox_speed.py."""
    kinds = ["final_answer = answer('q')", "import os", "1 / 0", "hash(1)\nx = 'a' * 10**11"]
    for source in kinds * 5:
        await run(source)
    await asyncio.sleep(0.2)
    gc.collect()
    zygote = sandboxes["process"].zygotes[0]
    before = (open_descriptors(), threading.active_count(), len(children_of(zygote.pid)))
    pages = _resident_pages()
    for source in kinds * 40:
        await run(source)
    await asyncio.sleep(0.3)
    gc.collect()
    assert open_descriptors() <= before[0] + 1
    assert threading.active_count() == before[1]
    assert len(children_of(zygote.pid)) <= before[2] + 1
    assert (_resident_pages() - pages) * 4096 < 4_000_000


async def test_hundreds_of_workers_at_once_are_buried() -> None:
    """Reports that nobody reads would fill the socket, and hold the zygote up."""
    calls = 0
    all_there = asyncio.Event()

    async def look(call: Call) -> bool:
        nonlocal calls
        calls += 1
        if calls == 300:
            all_there.set()
        await all_there.wait()
        return True

    async with Sandbox(prefork=1) as sandbox:
        many = (sandbox.run("final_answer = look('together')", {"look": look}) for _ in range(300))
        assert {outcome.status for outcome in await asyncio.gather(*many)} == {"ok"}
        zygote = sandbox.zygotes[0]
        for _ in range(500):
            if len(children_of(zygote.pid)) <= 2:
                break
            await asyncio.sleep(0.02)
        assert len(children_of(zygote.pid)) <= 2


async def test_every_program_has_its_own_process(sandboxes: dict[str, Sandbox]) -> None:
    seen: list[int] = []

    async def note(call: Call) -> None:
        seen.extend(pid for zygote in sandboxes["process"].zygotes for pid in zygote.busy)

    for _ in range(5):
        await sandboxes["process"].run("note()", {"note": note})
    assert len(set(seen)) == 5


async def test_the_deadline_is_kept_when_a_primitive_ignores_cancellation(run: Any) -> None:
    ended = asyncio.Event()

    async def stubborn(call: Call) -> None:
        for _ in range(4):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.4)
        ended.set()

    outcome = await run("stubborn()", {"stubborn": stubborn}, limits=Limits(deadline=0.2))
    assert outcome.reason == "deadline"
    assert not ended.is_set()
    await ended.wait()


def test_the_zygote_gets_the_path_of_each_package() -> None:
    """It runs without `site`: packages need not lie in one folder."""
    imported: set[str] = set()
    for file in Path(pyrag_sandbox.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    imported |= {name.name.split(".")[0] for name in names}
                case ast.ImportFrom(module=str(module), level=0):
                    imported.add(module.split(".")[0])
    assert imported - sys.stdlib_module_names - {"_pylong"} == set(process._NEEDED)


def test_importing_the_package_is_cheap() -> None:
    source = (
        "import sys, pyrag_sandbox\n"
        "print(*sorted({'RestrictedPython', 'greenlet', 'asyncio', 'ctypes'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == ""
    assert done.returncode == 0


def test_the_host_process_never_imports_the_policy() -> None:
    source = (
        "import asyncio, sys\nfrom pyrag_sandbox import Sandbox\n"
        "print(asyncio.run(Sandbox().run('final_answer = 1', {})).value,"
        " 'RestrictedPython' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "1 False"


def test_public_names() -> None:
    for name in pyrag_sandbox.__all__:
        assert getattr(pyrag_sandbox, name) is not None
    with pytest.raises(AttributeError):
        _ = pyrag_sandbox.nothing


@pytest.mark.parametrize("options", [{"require": "x"}, {"kernel": False}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"kernel|process"):
        Sandbox(**options)
