"""The workflows run make targets only, pin what they use, and publish without a token."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import check_distributions

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z][a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
WORKFLOWS: dict[str, dict[str, Any]] = {path.stem: yaml.load(path.read_text(), yaml.BaseLoader) for path in FILES}
JOBS = {f"{name}.{job}": value for name, workflow in WORKFLOWS.items() for job, value in workflow["jobs"].items()}
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]


def test_every_step_that_runs_also_runs_here() -> None:
    lines = [step["run"] for _, step in STEPS if "run" in step]
    named = {words[1] for line in lines if (words := line.split())[0] == "make"}
    matrix = set(JOBS["tests.extras"]["strategy"]["matrix"]["target"])
    assert len(lines) > 8
    assert [line for line in lines if not line.startswith(("make ", ".ci/run"))] == []
    assert named - {'"$TARGET"'} | matrix <= TARGETS
    assert {"lint", "test", "test-lowest", "test-portable", "docs", "check-dist", "audit"} <= named


def test_every_action_is_pinned_by_its_commit() -> None:
    used = [step["uses"] for _, step in STEPS if "uses" in step]
    assert len(used) > 10
    assert [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] == "false" for step in checkouts)


def test_all_supported_pythons_are_tested() -> None:
    assert JOBS["tests.linux"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert {job["runs-on"] for job in JOBS.values()} == {"ubuntu-latest", "macos-latest"}
    assert all(int(job["timeout-minutes"]) <= 90 for job in JOBS.values())


def test_only_the_job_that_publishes_may_sign() -> None:
    assert all(workflow["permissions"] == {"contents": "read"} for workflow in WORKFLOWS.values())
    assert [name for name, job in JOBS.items() if "permissions" in job] == ["release.publish"]
    publish = JOBS["release.publish"]
    assert publish["permissions"] == {"id-token": "write", "attestations": "write"}
    assert (publish["environment"], publish["needs"]) == ("pypi", "build")
    assert list(WORKFLOWS["release"]["on"]["push"]) == ["tags"]
    assert "secrets." not in json.dumps(WORKFLOWS)


def test_templates_ask_for_what_a_report_needs() -> None:
    bug = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text(encoding="utf-8"))
    fields = {field["id"]: field for field in bug["body"] if "id" in field}
    assert fields.keys() == {"what", "trace", "doctor"}
    assert fields["doctor"]["validations"]["required"]
    assert "Report a vulnerability" in (ROOT / "CODE_OF_CONDUCT.md").read_text(encoding="utf-8")


def test_every_package_of_the_wheel_is_typed() -> None:
    packages = check_distributions.packages_of(ROOT / "pyproject.toml")
    packages += [
        Path("sandbox", package) for package in check_distributions.packages_of(ROOT / "sandbox/pyproject.toml")
    ]
    assert len(packages) >= 6
    assert [str(package) for package in packages if not (ROOT / package / "py.typed").is_file()] == []


def test_incomplete_distributions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_distributions.main(str(tmp_path)) == 1
    assert "0 wheels" in capsys.readouterr().out
    (tmp_path / "pyrag").mkdir()
    (tmp_path / "pyrag/__init__.py").write_text("")
    shutil.make_archive(str(tmp_path / "pyrag"), "zip", tmp_path, "pyrag")
    (tmp_path / "pyrag.zip").rename(tmp_path / "a-1-py3-none-any.whl")
    shutil.make_archive(str(tmp_path / "a-1"), "gztar", tmp_path, "pyrag")
    assert check_distributions.main(str(tmp_path), "v99.0.0") == 1
    printed = capsys.readouterr().out
    for fault in (
        "the wheel lacks pyrag/trace/schema.json",
        "the wheel lacks pyrag/py.typed",
        "the tag v99.0.0 is not",
    ):
        assert fault in printed


def test_a_release_has_a_dated_section() -> None:
    assert check_distributions.is_released("0.1.0", "# Changelog\n\n## 0.1.0 - 2026-12-01\n")
    assert not check_distributions.is_released("0.1.0", "# Changelog\n\n## 0.1.0 - unreleased\n")
    assert not check_distributions.is_released("0.1.0", "## 0.1.00 - 2026-12-01\n")
    assert "\n## 0.1.0 - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_checker_of_workflows_parses() -> None:
    subprocess.run(["node", "--check", "tools/actionlint.mjs"], cwd=ROOT, check=True)
