"""schemathesis over the OpenAPI document: `make test-api`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("schemathesis", reason="schemathesis is not installed")
pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from pyrag.retrieval.index import update_index
from pyrag.server.config import ServerConfig
from tests.server.live import live

PHASES = "examples,coverage,fuzzing"
# A request may fit the schema and still be refused, such as a question of spaces or an unknown index.
LEFT_OUT = "positive_data_acceptance"


def test_no_request_ends_in_an_undocumented_or_internal_error(tmp_path: Path) -> None:
    (tmp_path / "zoo.md").write_text("A zebra lives in the zoo.")
    update_index([tmp_path / "zoo.md"], tmp_path / "ix")
    config = ServerConfig(indexes={"zoo": str(tmp_path / "ix")})
    with live(config, deadline=5, max_calls=3) as one:
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]
        options = ["--phases", PHASES, "--exclude-checks", LEFT_OUT, "-n", "10", "--continue-on-failure"]
        command += ["run", f"{one.url}/openapi.json", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert one.send("/readyz").status == 200
        counts = one.send("/metrics").body.decode()
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    assert 'code="internal_error"' not in counts
