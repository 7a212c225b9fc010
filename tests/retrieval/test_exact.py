"""The papers' retriever: only vectors, all of them compared, also over HTTP."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pyrag.errors import ConfigError
from pyrag.retrieval import Options, open_retriever
from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag.retrieval.index import read_info

from ..cli.conftest import COMMAND, environment, pyrag_in

COUNT = 60
PASSAGES = [
    {"id": f"p{n}", "title": f"Den {n}", "text": f"The lion {n} lives in valley {n % 7} with {n % 11} zebras."}
    for n in range(COUNT)
]
QUESTIONS = ["Which lion lives in valley 3?", "nine zebras", "Den 41"]


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exact")
    (folder / "dens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    done = pyrag_in(folder)("index", "dens.jsonl", "--out", "ix", "--dense", "--exact", "--vectors-only")
    assert done.returncode == 0, done.stderr
    return folder / "ix"


async def brute_force(question: str, topk: int) -> list[str]:
    embedder = open_embedder("bundled")
    rows = await embedder.embed_passages([f"{row['title']}\n{row['text']}" for row in PASSAGES])
    (query,) = await embedder.embed_queries([question])
    await embedder.aclose()
    order = np.argsort(-(np.asarray(rows, np.float16).astype(np.float32) @ query), kind="stable")
    return [PASSAGES[int(place)]["id"] for place in order[:topk]]


@pytest.fixture(scope="module")
def server(exact: Path) -> Iterator[str]:
    line = [*COMMAND, "serve-retriever", str(exact), "--port", "0", "--exact"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split(" at ")[1].split(";")[0]
        process.terminate()


@pytest.mark.parametrize("question", QUESTIONS)
async def test_what_is_served_equals_brute_force(question: str, server: str) -> None:
    body = json.dumps({"queries": [question], "topk": 10, "return_scores": True}).encode()
    request = urllib.request.Request(f"{server}/retrieve", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: ASYNC210
        (results,) = json.loads(reply.read())["result"]
    assert [item["document"]["id"] for item in results] == await brute_force(question, 10)


async def test_an_index_of_vectors_only_knows_no_words(exact: Path) -> None:
    assert read_info(exact).kind == "dense"
    retriever = open_retriever(exact)
    assert [one.id for one in await retriever.retrieve("Den 41", 3)] == await brute_force("Den 41", 3)
    await retriever.aclose()
    with pytest.raises(ConfigError, match="is searched by its vectors only"):
        open_retriever(exact, options=Options(dense_weight=0))


def test_an_update_keeps_the_kind_of_an_index(exact: Path) -> None:
    more = {"id": "more", "title": "Den", "text": "The last lion."}
    (exact.parent / "dens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*PASSAGES, more]))
    run = pyrag_in(exact.parent)
    done = run("index", "dens.jsonl", "--out", "copy", "--dense", "--exact", "--vectors-only")
    assert done.returncode == 0, done.stderr
    (exact.parent / "dens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    done = run("index", "dens.jsonl", "--out", "copy", "--json")
    assert (json.loads(done.stdout)["removed"], read_info(exact.parent / "copy").kind) == (1, "dense")
    assert run("index", "verify", "copy").returncode == 0


@pytest.mark.slow
def test_exact_refuses_approximate_vectors_and_words(tmp_path: Path) -> None:
    (tmp_path / "dens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    run = pyrag_in(tmp_path)
    assert run("index", "dens.jsonl", "--out", "near", "--dense", "--type", "HNSW16").returncode == 0
    done = run("serve-retriever", "near", "--port", "0", "--exact")
    assert (done.returncode, "the vectors of near are approximate (HNSW16" in done.stderr) == (2, True), done.stderr
    assert run("index", "dens.jsonl", "--out", "words").returncode == 0
    done = run("serve-retriever", "words", "--port", "0", "--exact")
    assert (done.returncode, "words has no vectors to search exactly" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--vectors-only",), "--vectors-only leaves nothing to search"),
        (("--dense", "--exact", "--type", "HNSW16"), "--exact means --type Flat, not HNSW16"),
    ],
)
def test_contradicting_options_are_refused(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The lion.")
    done = pyrag_in(tmp_path)("index", "a.txt", "--out", "ix", *options)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "ix").exists()


@pytest.mark.slow
def test_the_weight_of_vectors_is_a_setting_of_the_server(tmp_path: Path) -> None:
    """PYRAG_DENSE_WEIGHT and --dense-weight reach the retriever, as they do in pyrag ask."""
    (tmp_path / "dens.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    assert pyrag_in(tmp_path)("index", "dens.jsonl", "--out", "ix", "--dense").returncode == 0
    names = {}
    for options, variables in (((), {}), (("--dense-weight", "1"), {}), ((), {"PYRAG_DENSE_WEIGHT": "0"})):
        line = [*COMMAND, "serve-retriever", "ix", "--port", "0", *options]
        with subprocess.Popen(
            line, stdout=subprocess.PIPE, text=True, env=environment(**variables), cwd=tmp_path
        ) as process:
            assert process.stdout is not None
            names[options, *variables] = process.stdout.readline().split()[1]
            process.terminate()
    assert list(names.values()) == ["hybrid:ix", "dense:ix", "bm25:ix"]
