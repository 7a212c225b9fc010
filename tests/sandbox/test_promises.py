"""The promises of SECURITY.md, by number. Each is tried with the policy on and, where that says something, off."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from pyrag_sandbox import Call, Limits, Sandbox, capabilities
from pyrag_sandbox.host import check
from pyrag_sandbox.wire import FrameReader, WireError

from .conftest import echo

TIGHT = Limits(own_seconds=0.5, cpu_seconds=5)


async def both_ways(sandbox: Sandbox, source: str, limits: Limits = TIGHT) -> list[Any]:
    return [await sandbox.run(source, {}, policy=policy, limits=limits) for policy in (True, False)]


async def test_1_no_files_and_no_environment(
    sandboxes: dict[str, Sandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    canary.write_text("the secret")
    monkeypatch.setenv("PYRAG_CANARY", "the secret")
    for source in (
        f"final_answer = open({str(canary)!r}).read()",
        f"open({str(canary)!r}, 'w').write('x')\nfinal_answer = 1",
        f"import os\nfinal_answer = os.listdir({str(tmp_path)!r})",
        "import os\nfinal_answer = os.environ['PYRAG_CANARY']",
        "import os\nfinal_answer = os.getenv('PYRAG_CANARY', 'hidden') == 'hidden' or 1 / 0\nos.unlink('x')",
    ):
        blocked, stopped = await both_ways(sandboxes["process"], source)
        assert blocked.status == "blocked"
        assert stopped.status in ("error", "killed")
    assert canary.read_text() == "the secret"


async def test_2_no_network(sandboxes: dict[str, Sandbox]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        source = f"import socket\ns = socket.create_connection(('127.0.0.1', {port}))\nfinal_answer = 1"
        low = f"import _socket\ns = _socket.socket()\ns.connect(('127.0.0.1', {port}))\nfinal_answer = 1"
        for program in (source, low):
            for outcome in await both_ways(sandboxes["process"], program):
                assert outcome.status in ("blocked", "error", "killed")
        with pytest.raises(TimeoutError):
            listener.accept()


async def test_3_no_processes_threads_or_signals(sandboxes: dict[str, Sandbox]) -> None:
    for source in (
        "import os\nos.fork()",
        "import _thread\n_thread.start_new_thread(print, ())",
        "import os\nos.kill(1, 0)",
    ):
        blocked, stopped = await both_ways(sandboxes["process"], f"{source}\nfinal_answer = 1")
        assert blocked.status == "blocked"
        assert (stopped.status, stopped.reason) == ("killed", "syscall")


ENDLESS = {
    "loop": "while True: pass",
    "c loop": "sum(range(10**13))",
    "big integer": "x = 3 ** 10 ** 9",
    "regex": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
    "catches everything": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "recursion in finally": "def f():\n    try: f()\n    finally: f()\nf()",
    "iterator": "'z' in iter(str, 'z')",
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_4_ends_in_time(run: Any, name: str) -> None:
    outcome = await run(ENDLESS[name], limits=TIGHT)
    assert outcome.status == "killed"


async def test_4_processor_time_is_limited_by_itself(run: Any) -> None:
    outcome = await run("while True: pass", limits=Limits(own_seconds=10, cpu_seconds=0.3))
    assert (outcome.status, outcome.reason) == ("killed", "cpu")


GREEDY = {
    "repeat": "x = 'a' * 10**11",
    "list": "x = [0] * 10**10",
    "format": "x = f'{1:>100000000000}'",
    "growth": "x = 'ab'\nwhile True: x = x + x",
    "deque": "from collections import deque\nfrom itertools import count\nx = deque(count())",
    "deque, caught": "from collections import deque\nfrom itertools import count\n"
    "try:\n    deque(count())\nexcept SystemError:\n    final_answer = 'caught'",
    "caught": "try:\n    x = 'a' * 10**11\nexcept MemoryError:\n    final_answer = 'caught'",
    "caught broadly": "try:\n    x = 'a' * 10**11\nexcept BaseException:\n    final_answer = 'caught'",
    "swallowed": "def f():\n    try:\n        return 'a' * 10**11\n    finally:\n        return 1\nfinal_answer = f()",
    "hoard": "x = []\nwhile True:\n    try: x.append('a' * 10**7 + str(len(x)))\n    except MemoryError: pass",
}


@pytest.mark.parametrize("name", GREEDY)
async def test_5_memory_is_limited(sandboxes: dict[str, Sandbox], name: str) -> None:
    for outcome in await both_ways(sandboxes["process"], GREEDY[name], Limits(own_seconds=5, memory_mb=64)):
        assert (outcome.status, outcome.reason, outcome.has_value) == ("killed", "memory", False)


FLOODS = {
    "many calls": "for i in range(100):\n    count(['x' * 900_000])",
    "many lists": "x = [[] for _ in range(15_000)]\nfor i in range(100):\n    count(x)",
}


@pytest.mark.parametrize("name", FLOODS)
async def test_5_what_the_host_keeps_of_a_program_is_limited(run: Any, name: str) -> None:
    kept = 0

    async def count(call: Call) -> None:
        nonlocal kept
        kept += len(str(call.args))

    outcome = await run(FLOODS[name], {"count": count}, limits=Limits())
    assert (outcome.status, outcome.reason) == ("killed", "memory")
    assert 0 < kept < 64 * 2**20


async def test_5_nor_does_a_hostile_worker_fill_the_host(sandboxes: dict[str, Sandbox]) -> None:
    head = '{"op":"call","id":0,"name":"count","args":['
    source = (
        f"import os, struct\nm = ({head!r} + ','.join(['[]'] * 1_300_000) + '],\"kwargs\":{{}},\"line\":1,"
        '"depends_on":[]}\').encode()\nm = struct.pack("!I", len(m)) + m\nwhile m: m = m[os.write(3, m):]\n'
        "while True: pass"
    )
    outcome = await sandboxes["process"].run(source, {}, policy=False, limits=Limits())
    assert (outcome.status, outcome.reason, outcome.calls) == ("killed", "memory", ())


async def test_6_a_crash_kills_only_that_program(sandboxes: dict[str, Sandbox]) -> None:
    crash = "t = ()\nfor _ in range(10**6): t = (t,)\nhash(t)"
    outcomes = await asyncio.gather(
        *(sandboxes["process"].run(source, {}) for source in (crash, "final_answer = 1", crash, "final_answer = 2"))
    )
    assert [outcome.value for outcome in outcomes] == [None, 1, None, 2]


async def test_7_nothing_survives_a_program(sandboxes: dict[str, Sandbox]) -> None:
    sandbox = sandboxes["process"]
    poison = (
        "import builtins, math, json, sys\nbuiltins.sum = lambda x: 0\nmath.pi = 3\njson.left = 1\n"
        "sys.modules['collections'].Counter = dict\nfinal_answer = sum([1, 2])"
    )
    probe = (
        "import builtins, math, json, sys\nfinal_answer = [sum([1, 2]), math.pi > 3, hasattr(json, 'left'), "
        "sys.modules['collections'].Counter is dict]"
    )
    assert (await sandbox.run(poison, {}, policy=False)).value == 0
    for _ in range(3):
        assert (await sandbox.run(probe, {}, policy=False)).value == [3, True, False, False]


def test_8_the_reader_is_bounded() -> None:
    """The table and the fuzzing are in test_wire.py, forged messages in test_kernel.py."""
    with pytest.raises(WireError):
        list(FrameReader(100).feed(b"\x00\x00\x01\x00"))


async def test_9_every_call_is_checked_and_recorded(run: Any) -> None:
    served: list[Call] = []

    async def count(call: Call) -> int:
        served.append(call)
        return len(served)

    source = "for i in range(30):\n    count(i)\nfinal_answer = 1"
    outcome = await run(source, {"count": count}, limits=Limits(calls=30))
    assert list(outcome.calls) == sorted(served, key=lambda call: call.args)
    assert len(served) == outcome.usage.calls == 30
    served.clear()
    outcome = await run(source, {"count": count}, limits=Limits(calls=29))
    assert (outcome.status, outcome.reason) == ("killed", "calls")
    assert len(served) <= 29


async def test_10_a_refusal_cannot_be_caught(run: Any) -> None:
    reached: list[Call] = []

    async def reach(call: Call) -> None:
        reached.append(call)

    for source in (
        "try:\n    import os\nexcept BaseException:\n    pass\nreach()",
        "reach()\nimport os",
        "try:\n    getattr((), '__cla' + 'ss__')\nexcept BaseException:\n    pass\nfinally:\n    reach()",
        "def f():\n    try: return getattr((), '_x')\n    finally: return reach()\nf()",
        "class A:\n    def __eq__(self, o): return getattr(o, '_x')\n"
        "try:\n    1 in [A()]\nexcept BaseException:\n    reach()",
    ):
        assert (await run(source, {"reach": reach})).status == "blocked"
    assert reached == []


SUITE = [
    ("blocked", "import os\nfinal_answer = os.getcwd()"),
    ("blocked", "final_answer = str(().__class__.__base__.__subclasses__())"),
    ("blocked", "final_answer = open('/proc/self/environ').read()"),
    (
        "blocked",
        "found = [c for c in ().__class__.__base__.__subclasses__() if 'wrap_close' in str(c)]\n"
        "final_answer = found[0].__init__.__globals__['environ']['PYRAG_SANDBOX_CANARY']",
    ),
    ("killed", "while True: pass"),
    ("error", "final_answer = 1 / 0"),
    ("error", "final_answer = echo()"),
    ("allowed", "final_answer = echo(echo('q'))"),
]  # fmt: skip


@pytest.mark.parametrize("mode", check.MODES)
async def test_11_either_wall_alone_is_enough(mode: check.Mode) -> None:
    samples = [check.Sample(str(number), program, "", expect) for number, (expect, program) in enumerate(SUITE)]
    limits = Limits(own_seconds=0.5)
    rows = [row async for row in check.judge(samples, primitives={"echo": echo}, mode=mode, limits=limits)]
    summary = check.summarise(rows, mode)
    assert summary.passed, [row for row in rows if row.agrees is False or not row.contained]
    assert len(rows) == len(SUITE) - (mode == "policy")


def test_12_known_tricks_have_a_test_each() -> None:
    names = (Path(__file__).parent / "test_advisories.py").read_text()
    for advisory in ("37271", "41039", "47532", "22153", "76825", "55830", "7_2", "8_5", "9_0"):
        assert advisory in names


def test_13_a_missing_layer_is_named() -> None:
    """Refusing to run is in test_kernel.py."""
    assert all(type(on) is bool for on in capabilities().values())


ORDERS = """
import asyncio, json, os
from pyrag_sandbox import Record, Sandbox
PROGRAM = '''
def f():
    yield 1
docs = [retrieve(name)[0] for name in ["a", "b", "c", "d"]]
objects = [None, (None, 1), f, f(), map, map(str, []), iter([]), [].append, float("nan"), lambda: 1]
final_answer = [
    list({"a", "bb", "ccc", "dddd"}), hash("x"), hash((1, "y")), [hash(one) for one in objects],
    [str(doc) for doc in set(docs)], [str(doc) for doc in {doc: 1 for doc in reversed(docs)}],
]
print(*objects)
shown = [str(one) for one in objects] + [f"{objects}", "{}".format(objects[3]), repr(objects[5])]
retrieve(shown[3])
'''
ORDER = list(os.environ["ORDER"])
async def retrieve(call):
    name = call.args[0]
    while name in ORDER and ORDER[0] != name:
        await asyncio.sleep(0.001)
    if name in ORDER:
        ORDER.remove(name)
    return [Record({"text": name * 9})]
async def main():
    async with Sandbox(prefork=1) as sandbox:
        outcome = await sandbox.run(PROGRAM, {"retrieve": retrieve})
        print(json.dumps(outcome.value), outcome.output, outcome.calls, outcome.variables)
        outcome = await sandbox.run(PROGRAM + "raise ValueError(str(map(str, [])))", {"retrieve": retrieve})
        print(outcome.error)
asyncio.run(main())
"""


def test_14_the_same_outcome_in_any_process() -> None:
    root = Path(check.__file__).parent.parent
    seen = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(ORDERS)],
            env={"PYTHONPATH": str(root), "PYTHONHASHSEED": seed, "PATH": os.environ["PATH"], "ORDER": order},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, order in (("1", "abcd"), ("2", "dcba"), ("3", "bdca"))
    }
    assert len(seen) == 1, seen
    text = seen.pop()
    assert " at 0x" not in text
    assert all(shown in text for shown in ("<map object>", "<function f>", "<generator object f>", "aaaaaaaaa"))


def test_a_full_disk_does_not_matter() -> None:
    """Host, zygote and workers write no file: they do their work where every write to one fails."""
    script = """
        import asyncio, resource, signal, tempfile
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        try:
            with tempfile.TemporaryFile(dir="/dev/shm") as file:
                file.write(b"x")
                file.flush()
            raise SystemExit("files can be written")
        except OSError:
            pass
        from pyrag_sandbox import Sandbox

        async def one(call):
            return 1

        async def main():
            async with Sandbox(prefork=1) as sandbox:
                return [(await sandbox.run("final_answer = one()", {"one": one})).value for _ in range(3)]

        assert asyncio.run(main()) == [1, 1, 1]
    """
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
