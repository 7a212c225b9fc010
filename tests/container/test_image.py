"""The image of Dockerfile, built and run with the rules of compose.yaml. `make test-container` sets the engine.

`PYRAG_CONTAINER_ENGINE` is the engine's command with its options, such as `podman --runtime runc`.
`PYRAG_CONTAINER_BUILD` and `PYRAG_CONTAINER_RUN` are further options of `build` and `run`, such as
`--build-arg PYTHON=3.11` and `--ulimit nofile=1024`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

ENGINE = shlex.split(os.environ.get("PYRAG_CONTAINER_ENGINE", ""))
pytestmark = pytest.mark.skipif(not ENGINE, reason="make test-container names a container engine")

ROOT = Path(__file__).parents[2]
IMAGE, KEY = "pyrag-under-test", "a-key-of-16-characters"
RULES = "--read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --pids-limit 512"
QUESTION, ANSWER = "Who is older, Jed Hoyer or John William Henry II?", "John William Henry II"


def engine(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([*ENGINE, *arguments], capture_output=True, text=True, cwd=ROOT, check=False)
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture(scope="session")
def image() -> str:
    engine("build", *shlex.split(os.environ.get("PYRAG_CONTAINER_BUILD", "")), "--tag", IMAGE, ".")
    return IMAGE


def run_options(*more: str, network: str = "none") -> list[str]:
    further = shlex.split(os.environ.get("PYRAG_CONTAINER_RUN", ""))
    return ["run", "--rm", *shlex.split(RULES), "--network", network, *further, *more]


def in_container(image: str, *arguments: str, program: str = "", check: bool = True) -> str:
    entry = ["--entrypoint", program] if program else []
    result = engine(*run_options(*entry), image, *arguments, check=check)
    return result.stdout if check else result.stdout + result.stderr


def test_it_answers_without_network_as_another_user(image: str) -> None:
    assert in_container(image, "ask", QUESTION) == f"{ANSWER}\n"
    assert in_container(image, "-c", "import os; print(os.getuid(), os.getgid())", program="python") == "10001 10001\n"


def test_only_the_volume_and_tmp_can_be_written(image: str) -> None:
    program = "from pathlib import Path\nfor folder in ('/data', '/tmp', '/', '/opt/pyrag', '/home/pyrag'):\n"
    program += " try: Path(folder, 'x').write_text('x'); print(folder)\n except OSError as error: print(error.strerror)"
    written = in_container(image, "-c", program, program="python").splitlines()
    assert written[:2] == ["/data", "/tmp"]
    assert set(written[2:]) == {"Read-only file system"}


def test_both_walls_stand_under_the_default_profile(image: str) -> None:
    report = json.loads(in_container(image, "doctor", "--json"))
    assert all(finding["ok"] for finding in report), report
    (sandbox,) = [finding["detail"] for finding in report if finding["what"] == "sandbox"]
    for layer in ("process", "limits", "memory_limit", "no_new_privs", "seccomp"):
        assert f"{layer} on" in sandbox


@pytest.mark.parametrize(
    "source",
    ["import os", "().__class__.__base__.__subclasses__()", "final_answer = 'x' * 10 ** 10", "while True: pass"],
)
def test_hostile_programs_end_with_an_error(image: str, source: str) -> None:
    program = f"import pyrag\nwith pyrag.PyRAG(deadline=20) as rag: print(rag.run({source!r}).error)"
    printed = in_container(image, "-c", program, program="python")
    assert printed.strip() not in ("", "None")


@pytest.fixture
def served(image: str) -> Iterator[tuple[str, str]]:
    name = f"pyrag-{uuid4().hex[:8]}"
    options = run_options("--detach", "--name", name, "--env", f"PYRAG_SERVE_API_KEY={KEY}", network="host")
    engine(*options, image, "serve", "--host", "127.0.0.1", "--port", "8017")
    try:
        yield name, "http://127.0.0.1:8017"
    finally:
        engine("rm", "--force", name, check=False)


def status(url: str, key: str = "", body: object = None) -> int:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_the_server_is_healthy_wants_its_key_and_stops(served: tuple[str, str]) -> None:
    name, url = served
    deadline = time.monotonic() + 60
    while status(f"{url}/healthz") != 200:
        assert time.monotonic() < deadline, engine("logs", name, check=False).stderr
        time.sleep(0.2)
    assert status(f"{url}/v1/ask", body={"question": QUESTION}) == 401
    assert status(f"{url}/v1/ask", KEY, {"question": QUESTION}) == 200
    began = time.monotonic()
    engine("stop", "--time", "15", name)
    assert time.monotonic() - began < 15, "the server did not end when it was asked to"
