"""The cache of replies: what counts as the same request, several processes, its size limit, damage."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError, DataError
from pyrag.llm.cache import CachedChat, ReplyStore, default_path, request_key
from pyrag.llm.clients.local_spec import identity_of, parse_local_spec
from pyrag.llm.clients.openai import OpenAIChat
from pyrag.llm.clients.scripted import DEFAULT_SAMPLING, ScriptedChat
from pyrag.llm.protocol import Message, Reply, Sampling
from tests.llm.test_serve_line import adapter_folder

ASKED = (Message("system", "s"), Message("user", "Grüße?"))


@pytest.fixture
def store(tmp_path: Path) -> ReplyStore:
    return ReplyStore(tmp_path / "sub" / "replies.sqlite")


async def test_the_same_request_is_made_once(store: ReplyStore) -> None:
    model = ScriptedChat(lambda messages: Reply("hé\ud800", 7, 2, "tool_calls"))
    chat = CachedChat(model, store)
    first, second = await chat.complete(ASKED), await chat.complete(ASKED)
    assert len(model.calls) == 1
    assert (first.cached, second.cached) == (False, True)
    assert (second.text, second.prompt_tokens, second.finish_reason) == ("hé\ufffd", 7, "tool_calls")
    assert chat.name == "scripted"
    assert store.tokens() == 9
    await chat.aclose()


@pytest.mark.parametrize(
    "other",
    [
        ("m2", Sampling(), ASKED),
        ("m", Sampling(temperature=0.5), ASKED),
        ("m", Sampling(seed=1), ASKED),
        ("m", Sampling(stop=("x",)), ASKED),
        ("m", Sampling(), ASKED[1:]),
        ("m", Sampling(), (Message("user", "s"), ASKED[1])),
    ],
)
def test_what_makes_another_request(other) -> None:
    assert request_key(*other) != request_key("m", Sampling(), ASKED)


async def test_a_failure_is_not_kept(store: ReplyStore) -> None:
    model = ScriptedChat(["only one"])
    chat = CachedChat(model, store)
    await chat.complete(ASKED)
    for _ in range(2):
        with pytest.raises(Exception, match="no reply left"):
            await chat.complete(ASKED[1:])
    assert store.info().replies == 1


async def test_the_first_offered_model_is_resolved_before_the_lookup(server, store: ReplyStore) -> None:
    for offered in ("tiny", "other"):
        server.say((200, {"data": [{"id": offered}]}))
        chat = CachedChat(OpenAIChat("", server.url), store)
        assert not (await chat.complete(ASKED)).cached
        await chat.aclose()
    assert store.info().replies == 2


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr("pyrag.llm.cache.time.time", lambda: now[0])
    store = ReplyStore(tmp_path / "c", limit=20_000)
    for number in range(10):
        now[0] += 100
        store.put(bytes([number]), Reply("x" * 1_500))
    now[0] += 100
    assert store.get(b"\x00")
    for number in range(10, 14):
        now[0] += 100
        store.put(bytes([number]), Reply("x" * 1_500))
    found = store.info()
    assert found.bytes <= 20_000
    assert 8 <= found.replies < 14
    assert store.get(b"\x00")
    assert store.get(bytes([13]))
    assert store.get(b"\x01") is None
    store.put(b"huge", Reply("x" * 30_000))
    assert store.get(b"huge") is None


def test_processes_write_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pyrag.llm.cache import ReplyStore; from pyrag.llm.protocol import Reply\n"
        "store = ReplyStore(sys.argv[1])\n"
        "keys = [bytes([n, int(sys.argv[2]) // 2]) for n in range(100)]\n"
        "for key in keys: store.put(key, Reply('x')); assert store.get(key)\n"
    )
    file = tmp_path / "c"
    running = [subprocess.Popen([sys.executable, "-c", code, str(file), str(n)]) for n in range(4)]
    assert [one.wait() for one in running] == [0] * 4
    assert ReplyStore(file).info().replies == 200  # two of the four wrote the same


@pytest.mark.parametrize(
    ("name", "content"),
    [("pyrag/replies.sqlite", b"no database, " * 100), ("c", b"SQLite format 3\0" + b"\xff" * 5_000)],
)
def test_damage_is_one_sentence_and_clear_mends_it(
    tmp_path: Path, name: str, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    store = ReplyStore(file)
    for attempt in (store.check, store.info, lambda: store.get(b"k"), lambda: store.put(b"k", Reply("x"))):
        with pytest.raises(DataError, match=r"^the cache .* cannot be used \(.*\): run pyrag cache clear"):
            attempt()
    assert store.clear().file_bytes == len(content)
    store.put(b"k", Reply("x"))
    assert store.get(b"k")
    assert store.clear().replies == 1
    assert store.info().replies == 0


def test_a_file_that_never_was_a_cache_is_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    others = tmp_path / "others.sqlite"
    with contextlib.closing(sqlite3.connect(others)) as db:
        db.execute("CREATE TABLE accounts (id)")
    for file in (notes, others, tmp_path):
        before = file.read_bytes() if file.is_file() else b""
        for attempt in (ReplyStore(file).clear, ReplyStore(file).info, ReplyStore(file).check):
            with pytest.raises(DataError, match=r"cannot be used \(.*\): name another file"):
                attempt()
        assert file.is_dir() or file.read_bytes() == before


def test_a_locked_file_costs_the_entry_only(store: ReplyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrag.llm.cache.BUSY_SECONDS", 0.01)
    store.put(b"a", Reply("x"))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.close()
    store.put(b"b", Reply("x"))
    assert store.get(b"a")
    assert store.get(b"b") is None
    other.close()
    store.put(b"b", Reply("x"))
    assert store.get(b"b")


def test_only_the_user_may_read_it(store: ReplyStore) -> None:
    store.put(b"a", Reply("x"))
    assert store.path.stat().st_mode & 0o077 == 0
    assert store.path.parent.stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be used"):
        ReplyStore(tmp_path / "file" / "c").check()
    with pytest.raises(DataError, match="cannot be used"):
        ReplyStore(tmp_path).check()


def test_default_path_respects_xdg() -> None:
    assert default_path({"XDG_CACHE_HOME": "/x"}) == Path("/x/pyrag/replies.sqlite")
    assert default_path({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache/pyrag/replies.sqlite"


def test_without_a_home_folder_the_cache_needs_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(user: int) -> None:
        raise KeyError(user)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(ConfigError, match="HOME is not known: name a file, or set XDG_CACHE_HOME"):
        default_path({})
    assert default_path({"XDG_CACHE_HOME": "/x"}) == Path("/x/pyrag/replies.sqlite")


async def test_many_calls_at_once(store: ReplyStore) -> None:
    chat = CachedChat(ScriptedChat(lambda messages: messages[0].content), store)
    for cached in (False, True):
        replies = await asyncio.gather(*(chat.complete((Message("user", str(n)),)) for n in range(50)))
        assert [reply.text for reply in replies] == [str(n) for n in range(50)]
        assert {reply.cached for reply in replies} == {cached}


async def test_equal_requests_at_once_are_made_once(tmp_path: Path) -> None:
    model = SlowChat()
    chat = CachedChat(model, ReplyStore(tmp_path / "replies.sqlite"))
    replies = await asyncio.gather(*(chat.complete((Message("user", text),)) for text in "aabab"))
    assert [reply.text for reply in replies] == list("aabab")
    assert sorted(model.asked) == ["a", "b"]
    assert [reply.cached for reply in replies].count(False) == 2


class SlowChat:
    """Says what it is asked, after a while."""

    name = "slow"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        self.asked.append(messages[0].content)
        await asyncio.sleep(0.01)
        return Reply(messages[0].content)

    async def aclose(self) -> None:
        return


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_reply_that_was_cut_off_is_not_kept(store: ReplyStore, reason: str) -> None:
    model = ScriptedChat(lambda messages: Reply("<answer>Ysta", 7, 2, reason))
    chat = CachedChat(model, store)
    assert [(await chat.complete(ASKED)).cached for _ in range(2)] == [False, False]
    assert store.info().replies == 0


@pytest.mark.parametrize(
    "ending", ["length", "content_filter", "insufficient_system_resource", "abort", "error", "network_error", "odd"]
)
async def test_only_replies_that_ended_normally_are_kept(store: ReplyStore, ending: str) -> None:
    model = ScriptedChat(lambda messages: Reply("half", 7, 2, ending))
    chat = CachedChat(model, store)
    assert [(await chat.complete(ASKED)).cached for _ in range(2)] == [False, False]
    store.put(b"key", Reply("half", finish_reason=ending))
    assert store.get(b"key") is None
    await chat.aclose()


async def test_unconstrained_requests_have_keys_of_their_own(tmp_path: Path) -> None:
    """What was asked for without a schema does not answer what is asked for with one."""
    asked: list[Sampling] = []

    class Model:
        name = "own"

        async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
            asked.append(sampling)
            return Reply('["Who?"]' if sampling.schema else "1. Who?")

        async def aclose(self) -> None:
            return

    for structured in (False, True, False, True):
        async with PyRAG(Model(), structured=structured, cache=str(tmp_path / "c.sqlite")) as rag:
            found = await rag.engines.agents.decomposer.decompose("Who?")
        assert found.raw == ('["Who?"]' if structured else "1. Who?",)
    assert [one.schema is not None for one in asked] == [False, True]


def local(folder: Path, options: str = "") -> str:
    return identity_of(parse_local_spec("transformers", f"{folder}{options}", {"dtype": str}))


def test_local_models_are_keyed_by_path_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    weights = model / "model.safetensors"
    weights.write_bytes(bytes(3 << 20))
    first = local(model)
    monkeypatch.chdir(tmp_path)
    assert local(Path("./model")) == first, "the same folder by another name"
    assert local(model, ",dtype=float32") != first
    status = weights.stat()
    weights.write_bytes(bytes(2 << 20) + b"\x01" * (1 << 20))
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    other = local(model)
    assert other != first, "other weights of the same size and time"
    os.utime(weights, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert local(model) != other
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path / "b")
    assert local(Path("../b")) != local(model)


def test_adapters_belong_to_the_key(tmp_path: Path) -> None:
    model, adapter = tmp_path / "model", adapter_folder(tmp_path / "planner", {"r": 4})
    model.mkdir()
    (model / "config.json").write_text("{}")
    plain, first = local(model), local(model, f",adapter=p={adapter}")
    assert plain != first
    next(adapter.glob("adapter_model.*")).write_bytes(b"trained further")
    assert local(model, f",adapter=p={adapter}") != first
