"""Reliability of the embedded engine's confidence on questions about a user's own documents.

python -m benchmarks.own_documents --out FILE            # asks all questions of both halves, prints a table
python -m benchmarks.own_documents --wikipedia DATA      # asks also 200 questions of each Wikipedia set in DATA
python -m benchmarks.own_documents --again FILE          # tables of answers that `--out` wrote
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.own_documents.asking import Judged, ask_own
from benchmarks.own_documents.documents import HALVES, made
from benchmarks.own_documents.wikipedia import SETS, ask_set
from pyrag.cli.main import guarded


def main() -> None:
    """Ask the questions, write the answers, and print how often they are right for each tenth of confidence."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="file for the answers, as JSON lines")
    parser.add_argument("--again", type=Path, help="file of answers to report, instead of asking")
    parser.add_argument("--wikipedia", type=Path, help="folder with the sets popqa, hotpotqa, 2wikimultihopqa, musique")
    parser.add_argument("--limit", type=int, default=200, help="questions of each Wikipedia set")
    options = parser.parse_args()
    rows = _read(options.again) if options.again else asyncio.run(_asked(options.wikipedia, options.limit))
    if options.out:
        options.out.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows), encoding="utf-8")
    for name in dict.fromkeys(row.set for row in rows):
        print(_report(name, [row for row in rows if row.set == name]))


async def _asked(wikipedia: Path | None, limit: int) -> list[Judged]:
    documents, questions = made()
    rows: list[Judged] = []
    for half in HALVES:
        rows += await ask_own(documents, questions, half)
    for name in SETS if wikipedia else ():
        assert wikipedia is not None
        rows += await ask_set(wikipedia / name, limit)
    return rows


def _read(path: Path) -> list[Judged]:
    return [Judged(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _report(name: str, rows: Sequence[Judged]) -> str:
    known = [row for row in rows if row.known]
    sure = [row for row in known if not row.weak]
    lines = [
        f"{name}: {len(rows)} questions, {len(known)} answered, {_right(known)} right; "
        f"not weak {len(sure)}, {_right(sure)} right"
    ]
    for key in (_tenth, lambda row: row.source, lambda row: row.kind if row.kind in _KINDS else ""):
        for label in sorted({key(row) for row in known} - {""}):
            here = [row for row in known if key(row) == label]
            sure_here = [row for row in here if row in sure]
            lines.append(
                f"  {label:16} answered {len(here):4} right {_right(here):4}   not weak {len(sure_here):4} right"
                f" {_right(sure_here):4}"
            )
    return "\n".join(lines)


def _tenth(row: Judged) -> str:
    return "" if row.confidence is None else f"{min(int(row.confidence * 10), 9) / 10:.1f}"


_KINDS = frozenset(question.kind for question in made()[1])


def _right(rows: Sequence[Judged]) -> int:
    return sum(row.right for row in rows)


if __name__ == "__main__":
    guarded(main)
