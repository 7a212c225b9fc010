"""A table at tiny scale by the real command: killed in the middle, resumed, and what its report says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyrag.errors import UsageError
from pyrag.reproduce.running import StepError, free_port, run_plan, saved_port
from pyrag.reproduce.steps import Command, ReproductionPlan, Service

ROOT = Path(__file__).parents[2]
TABLE = "opera/table12"


def started(out: Path) -> subprocess.Popen[str]:
    paths = os.pathsep.join(str(ROOT / one) for one in (".", "sandbox", "rl", "prompts"))
    line = [sys.executable, "-m", "pyrag", "reproduce", TABLE, "--scale", "tiny", "--limit", "1", "--out", str(out)]
    environment, pipe = {**os.environ, "PYTHONPATH": paths}, subprocess.PIPE
    return subprocess.Popen(line, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=environment, cwd=ROOT)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.05)


def is_served(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the server's port in /proc")
def test_a_killed_table_resumes_and_is_reported(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = started(out)
    wait_for(out / "done/qwen2.5-7b-opera-mapgrpo-rows-goals.json", first)
    port = json.loads((out / "reproduce.json").read_text(encoding="utf-8"))["port"] + 8
    assert is_served(port)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    while is_served(port):  # the server ends with its parent
        time.sleep(0.05)
    second = started(out)
    text, _ = second.communicate()
    assert second.returncode == 0, text
    assert "corpus-bundled: done before" in text
    assert f"serve-retriever index --port {port}" in text
    assert "nothing is trained" in text or "-train: " in text
    assert "left out" in text.splitlines()[-1] or "steps done, 0 left out" in text
    report = (out / "report/opera-table12/report.md").read_text(encoding="utf-8")
    assert report.index("Tiny scale: not comparable with the paper") < report.index("opera/table12")
    row = next(line for line in report.splitlines() if line.startswith("| opera-mapgrpo, qwen2.5-7b | musique"))
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[3] == "OPERA, MAPGRPO, Qwen2.5-7B (table 1)"
    ours, paper = float(cells[5].split(" [")[0]), float(cells[6])
    assert paper == 39.7
    assert cells[7].startswith(f"{ours - paper:+.1f} [")
    assert not is_served(port)


def plan_of(*commands: Command, service: Service | None = None) -> ReproductionPlan:
    return ReproductionPlan(commands, {} if service is None else {service.name: service}, (), {}, ())


def test_a_failing_step_names_itself_and_its_log(tmp_path: Path) -> None:
    plan = plan_of(
        Command(name="good", argv=("--version",)), Command(name="bad", argv=("bench", "--sets", "no-such-set"))
    )
    lines: list[str] = []
    with pytest.raises(StepError) as caught:
        run_plan(plan, tmp_path, "x at tiny scale", 1, lines.append)
    assert "step bad ended with code 2: pyrag: there is no bundled set 'no-such-set'" in str(caught.value)
    assert f"{tmp_path}/logs/bad.log" in str(caught.value)
    assert "run the same command again" in str(caught.value)
    with pytest.raises(StepError):
        run_plan(plan, tmp_path, "x at tiny scale", 1, lines.append)
    assert "[1/2] good: done before" in lines


def test_a_step_without_its_output_fails(tmp_path: Path) -> None:
    plan = plan_of(Command(name="empty", argv=("--version",), outputs=("nowhere.txt",)))
    with pytest.raises(StepError, match=r"step empty left no nowhere\.txt"):
        run_plan(plan, tmp_path, "x", 1, lambda line: None)


def test_a_changed_command_runs_again(tmp_path: Path) -> None:
    lines: list[str] = []
    for argv in (("--version",), ("--version",), ("--help",)):
        run_plan(plan_of(Command(name="one", argv=argv)), tmp_path, "x", 1, lines.append)
    assert sum("done before" in line for line in lines) == 1


def test_a_server_that_ends_is_reported_with_its_log(tmp_path: Path) -> None:
    port = free_port()
    service = Service(name="broken", argv=("serve-retriever", "nowhere", "--port", str(port)), port=port)
    plan = plan_of(Command(name="one", argv=("--version",), services=("broken",)), service=service)
    with pytest.raises(Exception, match=r"the server broken did not start: .*logs/broken\.log"):
        run_plan(plan, tmp_path, "x", port, lambda line: None)


def test_a_folder_keeps_its_paper_scale_and_port(tmp_path: Path) -> None:
    assert saved_port(tmp_path, "pyrag at tiny scale") is None
    run_plan(plan_of(), tmp_path, "pyrag at tiny scale", 4321, lambda line: None)
    assert saved_port(tmp_path, "pyrag at tiny scale") == 4321
    with pytest.raises(UsageError, match="holds tables of pyrag at tiny scale"):
        saved_port(tmp_path, "pyrag at full scale")
