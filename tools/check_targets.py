"""Run make targets one after the other, each in a fresh clone of this repository, and print a table of their results.

    python tools/check_targets.py TARGET ...

A clone contains only committed files, so each target has to set up its environments again. The clone is removed when
its target is done; the target's output is kept in runs/targets/TARGET.log.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "runs/targets"
_SUMMARY = re.compile(r"^=*\s*((?:\d+ \w+, )*\d+ \w+) in [\d.]+s", re.MULTILINE)
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|error)s?\b")
_HIDDEN = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTEST_ADDOPTS", "CONDA_PREFIX")  # not part of a fresh shell


def main(targets: list[str]) -> int:
    """Run the targets; return 1 if any of them failed, else 0."""
    if not targets:
        raise SystemExit(__doc__)
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        print("check-targets: uncommitted changes are not in the clones, which hold the last commit", file=sys.stderr)
    LOGS.mkdir(parents=True, exist_ok=True)
    print("| target | result | passed | failed | skipped | seconds |\n|---|---|---|---|---|---|", flush=True)
    failures = sum(not run(target) for target in targets)
    print(f"\n{len(targets) - failures} of {len(targets)} targets passed; their output is in {LOGS}")
    return 1 if failures else 0


def run(target: str) -> bool:
    """Run one target in a clone of its own, print its row of the table, and return whether it succeeded."""
    log = LOGS / f"{target}.log"
    environment = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"{target}-", ignore_cleanup_errors=True) as folder:
        clone = Path(folder) / "pyrag"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        with log.open("wb") as output:
            code = subprocess.run(
                ["make", target], cwd=clone, env=environment, stdout=output, stderr=output, check=False
            ).returncode
    counts = counted(log.read_text(encoding="utf-8", errors="replace"))
    cells = [str(counts[kind]) if counts else "–" for kind in ("passed", "failed", "skipped")]
    result = "ok" if code == 0 else f"exit code {code}"
    print(f"| {' | '.join([target, result, *cells, f'{time.monotonic() - start:.0f}'])} |", flush=True)
    return code == 0


def counted(output: str) -> dict[str, int] | None:
    """Return the numbers of passed, failed (including errors) and skipped tests; None if pytest reported none."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    summaries = _SUMMARY.findall(output)
    for summary in summaries:
        for number, kind in _COUNT.findall(summary):
            counts["failed" if kind == "error" else kind] += int(number)
    return counts if summaries else None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
