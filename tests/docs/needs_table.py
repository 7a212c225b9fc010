"""The table of needs in docs/reproduce.md; `python -m tests.docs.needs_table` prints it."""

from __future__ import annotations

from pyrag.reproduce.catalogue import TABLES
from pyrag.reproduce.needs import needs_of


def table() -> str:
    """One row per table of the papers, with the needs of its first model."""
    rows = [
        "| table | models | GPUs | disk, GB | measuring, h | training, h | trains |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, item in TABLES.items():
        needs = needs_of(item, item.models[:1])
        cells = [name, ", ".join(item.models), str(needs.gpus), f"{needs.disk:.0f}"]
        cells += [_hours(needs.measuring), _hours(needs.training), ", ".join(needs.trains)]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _hours(hours: float) -> str:
    if not hours:
        return "–"
    if hours < 0.05:
        return "< 0.1"
    return f"{hours:.0f}" if hours >= 1 else f"{hours:.1f}"


if __name__ == "__main__":
    print(table(), end="")
