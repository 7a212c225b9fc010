"""`pyrag serve-model`: the line it prints, and the program that it becomes. The real server is in tests/vllm."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Run, environment
from tests.llm.test_serve_line import adapter_folder
from tests.llm.test_vllm_library import install

KEY = "sk-planted-0123456789abcdef"
LINE = (
    "vllm serve org/model --host 127.0.0.1 --port 8000 --enable-prefix-caching "
    "--override-generation-config '{\"repetition_penalty\": 1.0}'"
)
TELLING = '#!/bin/sh\nprintf "%s\\n" "$0" "$@" "no stats=$VLLM_NO_USAGE_STATS" "key=$VLLM_API_KEY"\n'


@pytest.fixture
def path_with_vllm(tmp_path: Path) -> str:
    """A program of this name that tells how it was called, in place of vLLM."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "vllm").write_text(TELLING)
    (folder / "vllm").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_dry_run_prints_the_line(pyrag: Run, tmp_path: Path) -> None:
    assert pyrag("serve-model", "org/model", "--dry-run").stdout == LINE + "\n"
    planner = adapter_folder(tmp_path / "my planner", {"r": 12})
    options = ("--lora", f"planner={planner}", "--tensor-parallel", "2", "--data-parallel", "2", "--port", "9000")
    done = pyrag("serve-model", "org/model", *options, "--dry-run", "--json", "--", "--enforce-eager")
    found = json.loads(done.stdout)
    assert found["line"][-3:] == ["--lora-modules", f"planner={planner}", "--enforce-eager"]
    assert "--max-lora-rank 16" in shlex.join(found["line"])
    assert "--tensor-parallel-size 2 --data-parallel-size 2" in shlex.join(found["line"])
    url = "http://127.0.0.1:9000/v1"
    assert found["llm"] == [f"openai:org/model@{url}", f"openai:planner@{url}"]


def test_build_for_cpus_takes_less_than_half_of_the_memory(pyrag: Run, tmp_path: Path) -> None:
    install(tmp_path, "0.28.0+cpu")
    paths = f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}"
    line = pyrag("serve-model", "org/model", "--dry-run", PYTHONPATH=paths).stdout
    assert "--gpu-memory-utilization 0.4 " in line
    line = pyrag("serve-model", "org/model", "--gpu-memory", "0.7", "--dry-run", PYTHONPATH=paths).stdout
    assert "--gpu-memory-utilization 0.7 " in line


def test_build_for_cpus_needs_no_compiler(pyrag: Run, tmp_path: Path) -> None:
    install(tmp_path, "0.28.0+cpu")
    paths = f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}"
    without = pyrag("serve-model", "org/model", "--dry-run", PYTHONPATH=paths, CXX="no-such-compiler")
    assert without.stdout.endswith(" --enforce-eager\n")
    assert "faster after installing g++" in without.stderr
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "vllm").write_text('#!/bin/sh\necho "compiles=$TORCHDYNAMO_DISABLE"\n')
    (folder / "vllm").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    served = pyrag("serve-model", "org/model", PYTHONPATH=paths, CXX="no-such-compiler", PATH=path)
    assert served.stdout == "compiles=1\n"
    (tmp_path / "compiler").write_text("#!/bin/sh\n")
    (tmp_path / "compiler").chmod(0o755)
    done = pyrag("serve-model", "org/model", "--dry-run", PYTHONPATH=paths, CXX=str(tmp_path / "compiler"))
    assert "--enforce-eager" not in done.stdout
    assert done.stderr == ""


def test_the_key_goes_through_the_environment_alone(pyrag: Run, path_with_vllm: str) -> None:
    done = pyrag("serve-model", "org/model", PATH=path_with_vllm, PYRAG_API_KEY=KEY, OPENAI_API_KEY="sk-other")
    program, *arguments, stats, key = done.stdout.splitlines()
    assert program.endswith("/vllm")
    assert arguments == shlex.split(LINE)[1:]
    assert (stats, key) == ("no stats=1", f"key={KEY}")
    assert done.stderr.splitlines() == [
        f"pyrag: {LINE}",
        "pyrag: use it with --llm openai:org/model@http://127.0.0.1:8000/v1",
    ]


def test_a_key_for_openai_is_none_for_this_server(pyrag: Run, path_with_vllm: str) -> None:
    done = pyrag("serve-model", "org/model", "--host", "0.0.0.0", PATH=path_with_vllm, OPENAI_API_KEY=KEY)
    assert done.stdout.splitlines()[-1] == "key="
    assert "who can reach 0.0.0.0 can use this model: set PYRAG_API_KEY" in done.stderr
    assert KEY not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("/nowhere",), "there is no model folder /nowhere"),
        (("org/model", "--lora", "p=/nowhere"), "the adapter /nowhere does not exist"),
        (("org/model",), "vLLM is not installed: run pip install '.[vllm]' in a checkout of pyrag"),
    ],
)
def test_mistakes_are_one_sentence(pyrag: Run, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = pyrag("serve-model", *arguments, PATH=str(tmp_path))
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
