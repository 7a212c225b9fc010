"""The table of prompt templates in docs/extending/prompts.md; `python tests/docs/prompt_table.py` prints it."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / "prompts/pyrag_prompts"
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def table() -> str:
    """One row per template of the default set, with the placeholders that are filled in."""
    rows = ["| template | names |", "|---|---|"]
    for file in [*sorted(FOLDER.glob("*.txt")), *sorted((FOLDER / "methods").glob("*.txt"))]:
        names = dict.fromkeys(_PLACEHOLDER.findall(file.read_text(encoding="utf-8")))
        rows.append(f"| `{file.name}` | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
