"""Nothing is reported to anybody: onnxruntime's wheels would, unless they are told not to before they are imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = "from pyrag.embedded.reader.neural.network import load; load()"
EMBED = "from pyrag.retrieval.embedders.embedding import BUNDLED, open_embedder; import asyncio\n"
EMBED += "asyncio.run(open_embedder(BUNDLED).embed_queries(['mill']))"


@pytest.mark.parametrize("code", [READ, EMBED], ids=["reader", "embedder"])
def test_onnxruntime_leaves_no_device_id(code: str, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))])
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": paths}
    loaded = f"import sys\n{code}\nprint('onnxruntime' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], env=environment, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_nobody_else_imports_onnxruntime() -> None:
    for folder in ("pyrag", "rl", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "import onnxruntime" in text or "from onnxruntime" in text:
                assert "forbid_telemetry()" in text, path
