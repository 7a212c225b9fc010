"""Documents over HTTP: who may write, what is found afterwards, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrag.cli.index.content import as_object, print_notes
from pyrag.errors import ConfigError, DataError
from pyrag.retrieval.embedders.embedding import open_embedder
from pyrag.retrieval.index import read_info, update_index
from pyrag.retrieval.indexing.bm25_part import Bm25Part
from pyrag.retrieval.indexing.dense_part import DensePart
from pyrag.retrieval.removal import indexed_files, remove_from_index
from pyrag.retrieval.vectors.faiss_index import Layout
from pyrag.server.config import ServerConfig, read_keys
from pyrag.server.documents.folder import DocumentFolder
from tests.server.live import Live, Reply, live

WRITER, READER, OTHER = "writer-0123456789", "reader-0123456789", "others-0123456789"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/mill.txt").write_text("The otter mill was built in 1872.", encoding="utf-8")
    update_index([tmp_path / "notes"], tmp_path / "ix")
    return tmp_path / "ix"


@pytest.fixture
def server(index: Path, tmp_path: Path) -> Iterator[Live]:
    keys = tmp_path / "keys"
    keys.write_text(f"{WRITER} notes +write\n{READER} notes\n{OTHER} +write\n", encoding="utf-8")
    config = ServerConfig(indexes={"notes": str(index), "far": "http://127.0.0.1:9"}, keys=read_keys(keys, {}))
    with running(config) as live_server:
        yield live_server


def running(config: ServerConfig) -> Any:
    return live(ServerConfig(indexes={"notes": config.indexes["notes"]}, keys=config.keys))


def send(server: Live, path: str, body: Any = None, key: str = WRITER, method: str | None = None) -> Reply:
    return server.send(path, body, method=method, Authorization=f"Bearer {key}")


def found(server: Live, query: str, key: str = WRITER, **fields: Any) -> list[dict[str, Any]]:
    body = {"queries": [query], "topk": 5, **fields}
    return list(send(server, "/retrieve", body, key).json["result"][0])


def test_first_search_after_the_reply_finds_the_document(server: Live, index: Path) -> None:
    document = {
        "id": "weir/1",
        "title": "Weir",
        "text": "The heron weir was repaired in 1950.",
        "metadata": {"year": 1950},
    }
    reply = send(server, "/v1/documents", {"documents": [document]})
    assert reply.json == {"index": "notes", "passages": 2, "added": 1, "changed": 0, "removed": 0}
    (passage,) = found(server, "heron weir", READER, where="year = 1950")
    assert (passage["id"], passage["title"]) == ("weir/1", "Weir")
    assert passage["source"].startswith("documents/weir%2F1-")
    send(
        server,
        "/v1/documents",
        {"documents": [{**document, "text": "The heron weir broke in 1960."}], "index": "notes"},
    )
    assert [passage["text"] for passage in found(server, "heron weir")] == ["The heron weir broke in 1960."]
    assert send(server, "/v1/documents/weir/1", method="DELETE").json["removed"] == 1
    assert found(server, "heron weir") == []
    assert len(found(server, "otter mill")) == 1
    assert send(server, "/v1/documents/weir/1", method="DELETE").status == 404
    assert send(server, "/v1/documents/mill.txt", method="DELETE").status == 404
    assert read_info(index).passages == 1


def test_keys_decide_who_may_write(server: Live, index: Path) -> None:
    body = {"documents": [{"id": "a", "text": "The heron weir."}]}
    before = read_info(index).generation
    for reply in (
        send(server, "/v1/documents", body, READER),
        send(server, "/v1/documents/a", None, READER, "DELETE"),
    ):
        assert (reply.status, reply.json["error"]["code"]) == (403, "may_not_write")
    assert server.send("/v1/documents", body).status == 401
    assert send(server, "/v1/documents", {**body, "index": "secret"}).status == 404
    assert read_info(index).generation == before
    assert send(server, "/v1/documents", body, OTHER).status == 200


def test_servers_without_keys_take_no_documents(index: Path) -> None:
    with live(ServerConfig(indexes={"notes": str(index)})) as server:
        assert server.send("/v1/documents", {"documents": [{"id": "a", "text": "b"}]}).status == 403
        assert server.send("/v1/documents/a", method="DELETE").status == 403


@pytest.mark.parametrize(
    "documents",
    [
        [],
        [{"id": "", "text": "a"}],
        [{"id": "a", "text": ""}],
        [{"id": "a", "text": "…"}],
        [{"id": "a"}],
        [{"id": "a" * 300, "text": "a"}],
        [{"id": "a\nb", "text": "a"}],
        [{"id": "a", "text": "a"}, {"id": "a", "text": "b"}],
        [{"id": "a", "text": "a", "path": "/etc/passwd"}],
        [{"id": str(n), "text": "a"} for n in range(1001)],
    ],
)
def test_wrong_documents_are_refused(server: Live, index: Path, documents: list[Any]) -> None:
    before = read_info(index).generation
    assert send(server, "/v1/documents", {"documents": documents}).status == 400
    assert read_info(index).generation == before


def test_ids_name_no_files_of_the_server(server: Live, index: Path) -> None:
    reply = send(server, "/v1/documents", {"documents": [{"id": ".../../escape", "text": "The heron weir."}]})
    assert reply.status == 200
    assert [path.parent for path in index.parent.rglob("*.jsonl")] == [index / "documents"]
    assert str(index.parent) not in str(found(server, "heron weir"))


def test_other_files_are_not_looked_at(server: Live, index: Path, tmp_path: Path) -> None:
    documents = tmp_path / "notes"
    away = documents.rename(tmp_path / "away")
    (away / "new.txt").write_text("The heron weir is new.")
    sent = {"documents": [{"id": "a", "text": "The kiln burns.", "title": None, "metadata": None}], "index": None}
    assert send(server, "/v1/documents", sent).json["passages"] == 2
    documents.mkdir()
    assert send(server, "/v1/documents/a", method="DELETE").json["passages"] == 1
    assert len(found(server, "otter mill")) == 1
    documents.rmdir()
    away.rename(documents)
    assert update_index([documents], index).added == 1
    assert len(found(server, "heron weir")) == 1


def test_failed_updates_leave_documents_and_index(server: Live, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DataError(f"{index} is damaged")

    monkeypatch.setattr("pyrag.server.documents.folder.update_sent_documents", fail)
    reply = send(server, "/v1/documents", {"documents": [{"id": "a", "text": "The heron weir."}]})
    assert reply.status in (400, 503), reply.json
    assert str(index) not in reply.message
    assert len(found(server, "otter mill")) == 1
    assert not list((index / "documents").iterdir())


def test_key_lines_with_rights(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{WRITER} notes +write  # ops\n{READER} write", encoding="utf-8")
    keys = read_keys(file, {"PYRAG_SERVE_API_KEY": OTHER})
    rights = [(access.writes, access.indexes) for access in map(keys.access, (WRITER, READER, OTHER)) if access]
    assert rights == [(True, {"notes"}), (False, {"write"}), (False, None)]
    file.write_text(f'{WRITER} notes +write where team = "ops"', encoding="utf-8")
    with pytest.raises(ConfigError, match="filter"):
        read_keys(file, {})


@pytest.mark.parametrize("words", [False, True], ids=["dense", "hybrid"])
def test_documents_reach_indexes_with_vectors(tmp_path: Path, words: bool) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/mill.txt").write_text("The otter mill was built in 1872.", encoding="utf-8")
    dense = DensePart(open_embedder("bundled"), Layout())
    update_index([tmp_path / "notes"], tmp_path / "ix", parts=(Bm25Part(words=words), dense))
    dense.close()
    (tmp_path / "keys").write_text(f"{WRITER} notes +write\n", encoding="utf-8")
    config = ServerConfig(indexes={"notes": str(tmp_path / "ix")}, keys=read_keys(tmp_path / "keys", {}))
    weir = {"id": "weir", "text": "The heron weir was repaired in 1950.", "metadata": {"year": 1950}}
    with running(config) as server:
        assert found(server, "Who built a factory?")[0]["source"].endswith("mill.txt")
        assert send(server, "/v1/documents", {"documents": [weir]}).json["passages"] == 2
        first = found(server, "When was the dam mended?")[0]
        assert (first["id"], first["metadata"]) == ("weir", {"year": 1950})
        assert [passage["id"] for passage in found(server, "a dam", where="year = 1950")] == ["weir"]
        changed = {**weir, "text": "A violin concerto was played at night."}
        assert send(server, "/v1/documents", {"documents": [changed]}).json["changed"] == 1
        assert found(server, "classical music")[0]["text"] == changed["text"]
        assert send(server, "/v1/documents/weir", method="DELETE").json["removed"] == 1
        assert [passage["source"].rpartition("/")[2] for passage in found(server, "a dam")] == ["mill.txt"]
    assert read_info(tmp_path / "ix").kind == ("hybrid" if words else "dense")


def test_updates_keep_documents_until_they_are_removed(server: Live, index: Path, tmp_path: Path) -> None:
    notes, other = tmp_path / "notes", tmp_path / "other"
    other.mkdir()
    (other / "sluice.txt").write_text("The egret sluice was dug in 1801.", encoding="utf-8")
    documents = [{"id": f"weir/{number}", "text": f"Heron weir {number} was repaired."} for number in (1, 2)]
    send(server, "/v1/documents", {"documents": documents})
    for paths, options in (
        ([notes], {"replace": False}),
        ([notes, other], {}),
        ([notes], {"add": True}),
        ([other], {}),
    ):
        built = update_index(paths, index, **options)
        assert built.sent == ("weir/1", "weir/2")
        assert {passage["id"] for passage in found(server, "heron weir")} == {"weir/1", "weir/2"}
    with pytest.raises(DataError, match="notes is not among") as refused:
        update_index([notes], index, replace=False)
    assert str(index / "documents") not in str(refused.value)
    first = next(name for name, _ in indexed_files(index) if "weir%2F1" in name)
    remove_from_index(index, [first])
    assert [passage["id"] for passage in found(server, "heron weir")] == ["weir/2"]
    assert update_index([other], index).sent == ("weir/2",)
    assert send(server, "/v1/documents", {"documents": documents[:1]}).json["added"] == 1
    remove_from_index(index, [index / "documents"])
    assert found(server, "heron weir") == []
    assert update_index([other], index).sent == ()
    assert len(found(server, "egret sluice")) == 1
    assert send(server, "/v1/documents/weir/2", method="DELETE").status == 404


def test_summaries_name_documents_that_stay(
    server: Live, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    send(server, "/v1/documents", {"documents": [{"id": "weir", "text": "The heron weir."}]})
    built = update_index([tmp_path / "notes"], index)
    print_notes(built)
    assert "sent over HTTP, still in the index: weir\n" in capsys.readouterr().err
    assert as_object(built, index, 0.1)["sent"] == ["weir"]


def test_a_sent_document_looks_at_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "ix"
    (tmp_path / "notes").mkdir()
    for number in range(60):
        (tmp_path / f"notes/{number}.txt").write_text(f"The mill {number} was built.", encoding="utf-8")
    update_index([tmp_path / "notes"], index)
    folder = DocumentFolder(index)
    folder.put({f"weir{number}": {"id": f"weir{number}", "text": f"Weir {number}."} for number in range(60)})
    looked_at: list[str] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def note(path: Any, *args: Any, **options: Any) -> Any:
            looked_at.append(str(path))
            return function(path, *args, **options)

        return note

    monkeypatch.setattr(os.path, "realpath", noting(os.path.realpath))
    for name in ("stat", "lstat", "open", "scandir", "listdir", "readlink"):
        monkeypatch.setattr(os, name, noting(getattr(os, name)))
    monkeypatch.setattr(Path, "stat", noting(Path.stat))
    monkeypatch.setattr(Path, "open", noting(Path.open))
    built = folder.put({"weir7": {"id": "weir7", "text": "The heron weir."}})
    assert (built.changed, built.added + built.removed) == (1, 0) or (built.added, built.removed) == (1, 1)
    others = [path for path in looked_at if "/notes/" in path or ("/weir" in path and "weir7-" not in path)]
    assert others == []
    assert any("weir7-" in path for path in looked_at)
    monkeypatch.undo()
    assert (folder.delete("weir7") or built).removed == 1
    assert len(indexed_files(index)) == 119


def test_a_damaged_index_is_refused_and_loses_nothing(index: Path) -> None:
    folder = DocumentFolder(index)
    folder.put({"a": {"id": "a", "text": "The heron weir."}})
    (records,) = index.glob("gen-*/records.db")
    whole = records.read_bytes()
    records.write_bytes(whole[:-100])
    with pytest.raises(DataError, match="are missing or cut off: build it again"):
        folder.put({"b": {"id": "b", "text": "The otter."}})
    with pytest.raises(DataError):
        remove_from_index(index, [index.parent / "notes"])
    records.write_bytes(whole)
    assert len(indexed_files(index)) == 2
