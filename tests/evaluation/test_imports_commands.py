"""`pyrag data` from the command line: import, download from a mirror folder and from a hub, check."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyrag.cli.app import app
from pyrag.errors import DataError, PermanentServiceError, UsageError
from pyrag.evaluation.datasets.importers.check import check_folder
from pyrag.evaluation.datasets.importers.convert import REMOTES, TRAIN_REMOTES, download_set, import_set
from tests.evaluation.test_imports import FLASHRAG, MUSIQUE, POPQA, lines, table

FILES = {
    "musique": lines(MUSIQUE),
    "popqa": table("\t", POPQA),
    "bamboogle": lines(FLASHRAG),
    "nq": lines(FLASHRAG),
}


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / "mirror" / REMOTES[name].repository / REMOTES[name].file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "mirror"


def test_import_and_check(tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_bytes(lines(MUSIQUE))
    out = tmp_path / "sets" / "musique"
    said = run("import", "musique", tmp_path / "dev.jsonl", "--out", out)
    assert said == f"1 question and 3 passages in {out}. Check with: pyrag data check {out}\n"
    assert "1 question, 3 passages, all gold answers score 1.0" in run("check", tmp_path / "sets")
    as_json = json.loads(run("check", out, "--json"))
    assert as_json == [{"path": str(out / "questions.jsonl"), "questions": 1, "passages": 3, "problems": []}]


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_bytes(lines(MUSIQUE))
    with pytest.raises(DataError, match=r"^cannot write into .*dev\.jsonl: File exists$"):
        import_set("musique", tmp_path / "dev.jsonl", tmp_path / "dev.jsonl")


@pytest.mark.parametrize("name", FILES)
def test_download_from_a_mirror(tmp_path: Path, mirror: Path, name: str) -> None:
    said = json.loads(run("download", name, "--from", mirror, "--out", tmp_path / name, "--json"))
    assert (said["folder"], said["questions"]) == (str(tmp_path / name), 1)
    assert said["passages"] == (3 if name == "musique" else 0)
    assert said["remark"].startswith("PyRAG's table 4 counts ")
    assert check_folder(tmp_path / name)[0].problems == ()


def test_what_cannot_be_downloaded(tmp_path: Path, mirror: Path) -> None:
    with pytest.raises(DataError, match=r"has no file RUC-NLPIR/FlashRAG_datasets/2wikimultihopqa/dev\.jsonl: copy"):
        download_set("2wikimultihopqa", tmp_path / "out", str(mirror))
    with pytest.raises(UsageError, match=r"hover is on no hub: fetch its file from https://github\.com/hover-nlp"):
        download_set("hover", tmp_path / "out", str(mirror))
    with pytest.raises(UsageError, match="no data set 'muzique' to download: did you mean 'musique'"):
        download_set("muzique", tmp_path / "out", str(mirror))


def test_download_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UsageError, match=r"need the hub's client: run pip install '\.\[data\]' in a checkout"):
        download_set("musique", tmp_path / "out")


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub's protocol as a download takes: the file's commit and tag, then the file."""

    def do_HEAD(self) -> None:
        self._reply(body=False)

    def do_GET(self) -> None:
        self._reply(body=True)

    def _reply(self, *, body: bool) -> None:
        found = self.path == "/datasets/dgslibisey/MuSiQue/resolve/main/musique_ans_v1.0_dev.jsonl"
        data = FILES["musique"] if found else b"no such file"
        self.send_response(200 if found else 404)
        if found:
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("ETag", '"1"')
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_download_from_a_hub(tmp_path: Path, hub: str) -> None:
    assert download_set("musique", tmp_path / "out", hub).questions == 1
    with pytest.raises(PermanentServiceError, match=r"PopQA/test\.tsv could not be fetched from .*: check the network"):
        download_set("popqa", tmp_path / "out", hub)


PROBLEMS = [
    ({"id": "a", "question": "q", "answers": ["x"], "supporting": ["p9"]}, "corpus lacks its gold passage 'p9'"),
    ({"id": "a", "question": "q", "answers": ["x"], "decomposition": [{"supporting": "p8"}]}, "gold passage 'p8'"),
    ({"id": "a", "question": "q", "answers": ["x"], "supporting_alt": {"p1": ["p7"]}}, "gold passage 'p7'"),
    ({"id": "a", "question": "q", "answers": []}, "has no gold answer: add one"),
]


@pytest.mark.parametrize(("question", "said"), PROBLEMS)
def test_check_finds(tmp_path: Path, question: dict[str, object], said: str) -> None:
    (tmp_path / "questions.jsonl").write_bytes(lines(question))
    (tmp_path / "corpus.jsonl").write_bytes(lines({"id": "p1", "title": "", "text": "x"}))
    assert said in run("check", tmp_path, code=1)


def test_check_goes_on_after_what_it_finds(tmp_path: Path) -> None:
    passage = {"id": "p1", "title": "", "text": "x"}
    (tmp_path / "corpus.jsonl").write_bytes(lines(passage, passage, {"id": "p2"}, {"text": "y"}) + b"{\n")
    good = {"id": "a", "question": "q", "answers": ["x", "*"], "supporting": ["p1"]}
    (tmp_path / "questions.jsonl").write_bytes(lines(good, {**good, "id": "b", "supporting": ["p3"]}, good))
    checked = check_folder(tmp_path)[0]
    assert (checked.questions, checked.passages) == (2, 3)
    expected = [
        r"corpus.jsonl line 2 repeats the id 'p1' of line 1",
        r"corpus.jsonl line 3 has no \"text\"",
        r"corpus.jsonl line 4 has no \"id\"",
        r"corpus.jsonl line 5 is not a passage",
        r"question b: the corpus lacks its gold passage 'p3'",
        r"line 3 repeats the id 'a' of line 1",
    ]
    assert all(
        found in problem
        for found, problem in zip([one.replace("\\", "") for one in expected], checked.problems, strict=True)
    )


def test_check_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no questions\.jsonl: make one with pyrag data import"):
        check_folder(tmp_path)
    with pytest.raises(DataError, match="there is no folder"):
        check_folder(tmp_path / "none")


def test_training_questions_are_downloaded_in_their_parts(tmp_path: Path) -> None:
    parts = [lines(MUSIQUE)]
    for remote, data in zip(TRAIN_REMOTES["musique"], parts, strict=True):
        path = tmp_path / "mirror" / remote.repository / remote.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    out = tmp_path / "data" / "musique"
    run("download", "musique", "--split", "train", "--from", tmp_path / "mirror", "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["train_corpus.jsonl", "train_questions.jsonl"]
    with pytest.raises(UsageError, match="no training questions of 'popqa' to download"):
        download_set("popqa", out, str(tmp_path / "mirror"), "train")
    with pytest.raises(UsageError, match="search-r1 is a mixture of training questions: add --split train"):
        download_set("search-r1", out, str(tmp_path / "mirror"))
