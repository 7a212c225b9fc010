"""Commands in processes that need not import anything: forks of a process that has imported pyrag.

A new Python process spends a second of CPU time on imports. A fork has the command's own arguments, folder, variables,
standard streams and exit code, but variables that Python reads only at its start (other than `PYTHONPATH`) have no
effect. Tests of the start, of signals and of servers use new processes. With `PYRAG_TESTS_EXEC=1`, which
`make test-lowest` sets, all tests do.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pyrag._io import plugins
from tests.warm_client import request

EXEC = "PYRAG_TESTS_EXEC"
ROOT = Path(__file__).parent.parent
PATHS = [str(ROOT / name) for name in ("", "sandbox", "rl", "prompts")]
_LIBRARIES = (
    "aiohttp", "http.client", "importlib.metadata", "numpy", "onnxruntime", "rich.progress", "sqlite3", "tantivy",
    "tokenizers", "typer", "RestrictedPython", "pyrag_sandbox.host.sandbox",
)  # fmt: skip


@cache
def address() -> str:
    """Return the socket of the process that forks, which is started at first use and ends with the tests."""
    folder = tempfile.mkdtemp(prefix="warm-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", f"{folder}/socket"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
        start_new_session=True,
    )
    atexit.register(process.kill)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    return f"{folder}/socket"


def program(*arguments: str) -> str:
    """Return a shell command that runs Python with these arguments, followed by the script's."""
    return " ".join(
        ["exec", sys.executable, "-I", "-S", str(ROOT / "tests/warm_client.py"), address(), *arguments, '"$@"']
    )


def run(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str], stdin: str = "", timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run Python, and return its exit code and what it wrote.

    Args:
        arguments: Arguments of Python: `-m MODULE …`, `-c CODE …` or `FILE …`.
        folder: Working directory.
        variables: All environment variables.
        stdin: Text for standard input.
        timeout: Seconds after which the process is killed.
    """
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        streams = [file.fileno() for file in files]
        code = request(address(), arguments, str(folder), variables, streams, timeout)
        for file in files[1:]:
            file.seek(0)
        return subprocess.CompletedProcess([*arguments], code, files[1].read(), files[2].read())


def _serve(listener: socket.socket) -> tuple[list[str], str, dict[str, str]]:
    """Fork for each request, and return the request in the fork. The process ends with the tests."""
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:
            shutil.rmtree(Path(listener.getsockname()).parent, ignore_errors=True)  # if the tests were killed
            sys.exit()
        client, _ = listener.accept()
        if os.fork():
            client.close()
            continue
        listener.close()
        content, streams, _, _ = socket.recv_fds(client, 1, 3)
        while data := client.recv(1 << 16):
            content += data
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if not (process := os.fork()):
            client.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            arguments, folder, variables = json.loads(content)
            return arguments, folder, variables
        client.sendall(f"{process}\n".encode())
        _, status = os.waitpid(process, 0)
        with contextlib.suppress(OSError):  # the client has gone
            client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)


def _become(arguments: list[str], folder: str, variables: dict[str, str], libraries: list[str]) -> None:
    """Run Python's arguments in this process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    is_file = arguments[0] not in ("-m", "-c")
    sys.argv = arguments[not is_file :]
    first = str(Path(arguments[0]).resolve().parent) if is_file else folder
    sys.path[:] = [first, *filter(None, variables.get("PYTHONPATH", "").split(os.pathsep)), *libraries]
    importlib.invalidate_caches()
    if is_file:
        runpy.run_path(arguments[0], run_name="__main__")
    elif arguments[0] == "-m":
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        exec(arguments[1], {"__name__": "__main__"})


def _modules() -> Iterator[str]:
    """Yield the names of pyrag's modules, without `pyrag.cli`, whose import looks for plug-ins."""
    for file in sorted((ROOT / "pyrag").rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        if parts[1] != "cli" and not parts[-1].startswith("__"):
            yield ".".join(parts)


def _main(path: str) -> None:
    for name in (*_LIBRARIES, *_modules()):
        with contextlib.suppress(ImportError):  # of an extra
            importlib.import_module(name)
    plugins.forget()
    libraries = [path for path in sys.path if path not in PATHS and path != str(ROOT) and path]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        gc.freeze()
        os.write(1, b"ready\n")
        request = _serve(listener)
    if os.environ.get(EXEC):
        arguments, folder, variables = request
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, *arguments], variables)
    code = 0
    try:
        _become(*request, libraries)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)  # libraries in C++ would wait for threads that a fork does not have


if __name__ == "__main__":
    _main(sys.argv[1])
