"""`pyrag index fetch` against a local server that speaks the hub's protocol, through the hub's own client."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
import pytest

from pyrag._io.hub import Remote, fetch
from pyrag.errors import DataError
from pyrag.retrieval import Options, open_retriever
from pyrag.retrieval.embedders.embedding import TextEmbedder
from pyrag.retrieval.embedders.fingerprint import Fingerprint
from pyrag.retrieval.indexing.stored_vectors import StoredVectors
from pyrag.trace.model import Passage
from tests import warm

from ..cli.conftest import COMMAND, environment
from .embedders import DIMENSION, WordsBackend, vector

pytest.importorskip("huggingface_hub")
COUNT = 300
MODEL = "intfloat/e5-base-v2"
TEXTS = [f"lion number{n} lives in den{n % 7} with zebra{n % 11}" for n in range(COUNT)]


class Hub(http.server.BaseHTTPRequestHandler):
    """What the client asks of the hub: a file's size and tags, and its bytes from any place on."""

    files: dict[str, bytes]
    asked: list[tuple[str, str]]
    cut: set[str]  # files whose next answer breaks off in the middle

    def do_HEAD(self) -> None:
        self._reply(b"")

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.asked.append((name, self.headers.get("Range", "")))
        body = self.files.get(self.path, b"")[start:]
        if name in self.cut:
            self.cut.discard(name)
            body = body[: len(body) // 2]
        self._reply(body, start)

    def _reply(self, body: bytes, start: int = 0) -> None:
        data = self.files.get(self.path)
        if data is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def hub() -> Iterator[tuple[str, type[Hub]]]:
    """The release in small: a corpus, and its vectors cut in two somewhere within a row."""
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(np.stack([vector(text) for text in TEXTS]))
    whole = faiss.serialize_index(index).tobytes()
    rows = [{"id": str(n), "contents": f'"Den {n}"\n{text}'} for n, text in enumerate(TEXTS)]
    corpus = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    base = "/datasets/PeterJinGo"

    class Ours(Hub):
        files = {  # noqa: RUF012
            f"{base}/wiki-18-corpus/resolve/main/wiki-18.jsonl.gz": corpus,
            f"{base}/wiki-18-e5-index/resolve/main/part_aa": whole[:40_001],
            f"{base}/wiki-18-e5-index/resolve/main/part_ab": whole[40_001:],
        }
        asked = []  # noqa: RUF012
        cut = set()  # noqa: RUF012

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ours) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", Ours
        server.shutdown()
        thread.join()


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = environment(HF_HOME=str(folder / "hf"), HF_HUB_DISABLE_TELEMETRY="1")
    return warm.run([*COMMAND[1:], "index", *arguments], folder, variables)


async def test_the_corpus_is_searched_with_the_vectors_of_the_release(
    tmp_path: Path, hub: tuple[str, type[Hub]], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", hub[0], "--shards", "2", "--json")
    assert (done.returncode, json.loads(done.stdout)["passages"]) == (0, COUNT), done.stderr
    assert sorted(path.name for path in (tmp_path / "wiki-18").glob("[!.]*")) == ["vectors.faiss", "wiki-18.jsonl.gz"]
    told = json.loads(run(tmp_path, "info", "ix", "--json").stdout)
    assert (told["embedder"], told["vectors"]["shards"]) == (f"st:{MODEL}", 2)
    made = told["vectors"]["fingerprint"]
    assert (made["query_prefix"], made["passage_prefix"], made["pooling"]) == ("query: ", "passage: ", "mean")
    assert run(tmp_path, "verify", "ix").returncode == 0

    def opened(spec: str, **_: object) -> TextEmbedder:
        assert spec == f"st:{MODEL}"
        return TextEmbedder(_E5Words(), spec)

    monkeypatch.setattr("pyrag.retrieval.embedders.embedding.open_embedder", opened)
    retriever = open_retriever(tmp_path / "ix", options=Options(dense_weight=1.0))
    for row in (0, 156, 157, COUNT - 1):  # around the cut, and the ends
        (best, *_) = await retriever.retrieve(TEXTS[row], 3)
        assert (best.id, best.title, best.text) == (str(row), f"Den {row}", TEXTS[row])
        assert best.parts["dense"] == pytest.approx(1, abs=1e-3)
    before = len(hub[1].asked)
    again = run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", hub[0], "--json")
    assert json.loads(again.stdout)["added"] == 0
    assert len(hub[1].asked) == before, "nothing is downloaded twice"


class _E5Words(WordsBackend):
    """Weights that are not here, in the words of tests; all that an index compares is E5's."""

    async def fingerprint(self) -> Fingerprint:
        return Fingerprint(model=MODEL, dimension=DIMENSION, query_prefix="query: ", passage_prefix="passage: ")

    async def encode(self, texts: object) -> object:  # type: ignore[override]
        assert isinstance(texts, list)
        assert all(text.startswith("query: ") for text in texts)
        return np.stack([vector(text.removeprefix("query: ")) for text in texts])


def test_what_was_broken_off_is_gone_on_with(tmp_path: Path, hub: tuple[str, type[Hub]]) -> None:
    url, server = hub
    missing = next(path for path in server.files if path.endswith("part_ab"))
    data = server.files.pop(missing)
    first = run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", url)
    assert first.returncode != 0
    assert "wiki-18-e5-index/part_ab could not be fetched" in first.stderr
    assert "Traceback" not in first.stderr
    (partial,) = (tmp_path / "wiki-18").glob("vectors.faiss.1-40001")
    with partial.open("ab") as file:
        file.write(b"what a killed process had appended")
    server.files[missing] = data
    assert run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", url).returncode == 0
    assert [name for name, _ in server.asked] == ["wiki-18.jsonl.gz", "part_aa", "part_ab"]
    assert faiss.read_index(str(tmp_path / "wiki-18" / "vectors.faiss")).ntotal == COUNT


def test_a_broken_connection_is_taken_up_where_it_broke(tmp_path: Path, hub: tuple[str, type[Hub]]) -> None:
    url, server = hub
    data = np.random.default_rng(0).bytes(26_000_000)  # the client writes ten megabytes at a time
    server.files["/datasets/some/set/resolve/main/large"] = data
    server.cut = {"large"}
    assert fetch(Remote("some/set", "large"), url, tmp_path).read_bytes() == data
    assert server.asked == [("large", ""), ("large", "bytes=10485760-")]


def test_a_damaged_download_is_refused(tmp_path: Path, hub: tuple[str, type[Hub]]) -> None:
    url, _ = hub
    assert run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", url, "--no-vectors").returncode == 0
    path = tmp_path / "wiki-18" / "wiki-18.jsonl.gz"
    before = path.stat()
    os.truncate(path, before.st_size - 1)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # a file that looks touched is fetched anew at once
    done = run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", url, "--no-vectors")
    assert "is not what the hub says it should be and was deleted: fetch it again" in done.stderr
    assert run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", url, "--no-vectors").returncode == 0


def test_vectors_of_another_corpus_are_refused(tmp_path: Path) -> None:
    index = faiss.IndexFlatIP(4)
    index.add(np.ones((3, 4), np.float32))
    faiss.write_index(index, str(tmp_path / "v"))
    stored = StoredVectors(tmp_path / "v")
    assert stored.embed([Passage("2", "", ""), Passage("0", "", "")])().shape == (2, 4)
    for wrong in ("3", "x", "-1", "²"):
        with pytest.raises(DataError, match="has no vector among the 3 of"):
            stored.embed([Passage(wrong, "", "")])()
    faiss.write_index(faiss.index_factory(4, "HNSW8"), str(tmp_path / "h"))
    with pytest.raises(DataError, match="can only be taken from a flat index"):
        StoredVectors(tmp_path / "h")
    (tmp_path / "b").write_bytes(b"IxFI")
    with pytest.raises(DataError, match="is not a complete FAISS index"):
        StoredVectors(tmp_path / "b")


def test_needs_are_printed_before_a_download(tmp_path: Path, hub: tuple[str, type[Hub]]) -> None:
    options = ("--from", hub[0], "--exact", "--vectors-only", "--dry-run", "--json")
    done = run(tmp_path, "fetch", "wiki-18", "--out", "ix", *options)
    needs = json.loads(done.stdout)
    sizes = {path.rpartition("/")[2]: len(data) for path, data in hub[1].files.items()}
    assert needs["downloads"] == sizes
    assert needs["memory"] == 21_015_324 * 768 * 4
    assert "to download: wiki-18.jsonl.gz 0.0 GB, part_aa 0.0 GB, part_ab 0.0 GB" in done.stderr
    assert "memory for searches, about: 64.6 GB" in done.stderr
    assert hub[1].asked == []
    assert list(tmp_path.glob("*")) in ([], [tmp_path / "hf"])


def test_wiki_fixed_is_found_by_its_only_file_of_records(tmp_path: Path) -> None:
    folder = tmp_path / "mirror" / "ybyby624" / "wiki-fixed"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("about")
    (folder / "any-name.jsonl").write_text(json.dumps({"id": "0", "contents": '"Den"\nA lion.'}) + "\n")
    done = run(tmp_path, "fetch", "wiki-fixed", "--out", "ix", "--from", str(tmp_path / "mirror"), "--json")
    assert (done.returncode, json.loads(done.stdout)["passages"]) == (0, 1), done.stderr
    refused = run(tmp_path, "fetch", "wiki-fixed", "--out", "iy", "--from", str(tmp_path / "mirror"), "--exact")
    assert "wiki-fixed was released without vectors: fetch it with --no-vectors, then embed it" in refused.stderr
    (folder / "more.jsonl").write_text("{}")
    several = run(tmp_path, "fetch", "wiki-fixed", "--out", "iy", "--from", str(tmp_path / "mirror"))
    assert "holds 2 files of records (any-name.jsonl, more.jsonl), not one" in several.stderr


async def test_the_papers_retriever_compares_every_vector(
    tmp_path: Path, hub: tuple[str, type[Hub]], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(tmp_path, "fetch", "wiki-18", "--out", "ix", "--from", hub[0], "--exact", "--vectors-only", "--json")
    assert done.returncode == 0, done.stderr
    about = json.loads(run(tmp_path, "info", "ix", "--json").stdout)
    assert (about["kind"], about["vectors"]["type"]) == ("dense", "Flat")
    monkeypatch.setattr(
        "pyrag.retrieval.embedders.embedding.open_embedder", lambda spec, **_: TextEmbedder(_E5Words(), spec)
    )
    retriever = open_retriever(tmp_path / "ix", options=Options(exact=True))
    rows = np.stack([vector(text) for text in TEXTS]).astype(np.float16).astype(np.float32)
    for question in ("lion number7 zebra3", "den5 with zebra10", "lives"):
        scores = rows @ vector(question)
        results = await retriever.retrieve(question, 10)
        assert sorted((one.score for one in results), reverse=True) == pytest.approx(sorted(scores)[:-11:-1], abs=2e-3)
