"""Specs of engines on this machine, and what their clients share, over a runner that holds no weights."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyrag import PyRAG
from pyrag.agents.context_window import WindowedAnswerer
from pyrag.errors import (
    ConfigError,
    ContextLengthError,
    DataError,
    PermanentServiceError,
    PyRAGError,
    RetryableServiceError,
)
from pyrag.llm.clients.adapters import Adapter
from pyrag.llm.clients.local import LocalChat, OnText, explained
from pyrag.llm.clients.local_spec import LocalSpec, file_of, known_window, parse_local_spec
from pyrag.llm.protocol import CHAT_TEMPLATE, Message, ModelInfo, Reply, Sampling
from pyrag.llm.spec import open_chat_model
from pyrag.runtime.engines import open_engines
from pyrag.settings import Settings
from tests.cli.conftest import Run, pyrag
from tests.llm.test_serve_line import adapter_folder

__all__ = ["pyrag"]

KNOWN = {"dtype": str, "max_model_len": int, "gpu_memory": float, "eager": bool}
ASKED = (Message("user", "Who wrote it?"),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model as far as its files tell, without weights."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    return model


@pytest.fixture
def planner(tmp_path: Path) -> Path:
    return adapter_folder(tmp_path / "planner", {"r": 4})


class WeightlessRunner:
    """Counts tokens as words, and replies with how many it was asked for."""

    made: list[list[str]]
    window = 100

    def __init__(self, spec: LocalSpec, adapters: Sequence[Adapter]) -> None:
        self.closed = False
        self.made.append([adapter.name for adapter in adapters])

    def encode(self, messages: Sequence[Message], template: Mapping[str, Any]) -> list[int]:
        return [0 for message in messages for _ in message.content.split()]

    async def generate(
        self, prompt: list[int], sampling: Sampling, adapter: Adapter | None, say: OnText | None
    ) -> Reply:
        await asyncio.sleep(0.01 if sampling.temperature == 0 else 60)
        return Reply(adapter.name if adapter else "base", len(prompt), sampling.max_tokens)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def runner() -> type[WeightlessRunner]:
    return type("Runner", (WeightlessRunner,), {"made": []})


def chat(spec: str, runner: Any, **options: Any) -> LocalChat:
    return LocalChat(parse_local_spec("vllm", spec, KNOWN), runner, **options)


def test_a_spec_says_model_adapter_and_options(folder: Path, planner: Path) -> None:
    spec = parse_local_spec("vllm", f"{folder},gpu_memory=0.5,adapter=p={planner},eager=yes,max_model_len=512", KNOWN)
    assert spec.model == str(folder)
    assert spec.adapter == Adapter("p", str(planner), 4)
    assert dict(spec.options) == {"gpu_memory": 0.5, "eager": True, "max_model_len": 512}
    assert (spec.option("eager"), spec.option("dtype")) == (True, None)
    assert parse_local_spec("vllm", spec.name.removeprefix("vllm:"), KNOWN) == spec
    assert parse_local_spec("vllm", "Qwen/Qwen2.5-7B-Instruct", KNOWN).folder is None


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("", "needs a model: write vllm:FOLDER"),
        ("org/m,dtyp=float32", "no option 'dtyp': did you mean 'dtype'"),
        ("org/m,max_model_len=many", "max_model_len takes a number above 0, not 'many'"),
        ("org/m,max_model_len=-1", "max_model_len takes a number above 0"),
        ("org/m,gpu_memory=0", "gpu_memory takes a number above 0"),
        ("org/m,eager=perhaps", "eager takes true or false"),
        ("org/m,dtype=", "dtype takes a value"),
        ("/nowhere", "no model folder /nowhere"),
        ("no such model", "no model folder no such model"),
        ("a/b/c", "no model folder a/b/c"),
        ("org/m,adapter=p=/nowhere", "the adapter /nowhere does not exist"),
    ],
)
def test_mistakes_in_a_spec(rest: str, said: str) -> None:
    with pytest.raises((ConfigError, DataError), match=said) as failed:
        parse_local_spec("vllm", rest, KNOWN)
    assert "\n" not in str(failed.value)


@example("\0", "~")
@given(st.text(max_size=40), st.sampled_from(["", "org/m,adapter=", "org/m,dtype=", "org/m,max_model_len=", "~"]))
def test_any_text_is_a_spec_or_an_error_of_ours(rest: str, before: str) -> None:
    with contextlib.suppress(PyRAGError):
        assert parse_local_spec("vllm", before + rest, KNOWN).model


@pytest.mark.parametrize(
    ("config", "rest", "window"),
    [
        ('{"max_position_embeddings": 4096}', "", 4096),
        ('{"max_position_embeddings": 4096}', ",max_model_len=512", 512),
        ('{"max_position_embeddings": 4096}', ",max_model_len=9999", 4096),
        ('{"text_config": {"max_position_embeddings": 8192}}', "", 8192),
        ('{"n_positions": 1024}', "", 1024),
        ("{}", "", None),
        ("{}", ",max_model_len=512", 512),
        ("[]", "", None),
        ("{", "", None),
    ],
)
def test_the_window_as_the_models_files_tell(folder: Path, config: str, rest: str, window: int | None) -> None:
    (folder / "config.json").write_text(config)
    assert known_window(parse_local_spec("vllm", f"{folder}{rest}", KNOWN)) == window


def test_files_of_a_model(folder: Path) -> None:
    spec = parse_local_spec("vllm", str(folder), KNOWN)
    assert file_of(spec, "config.json") == folder / "config.json"
    assert file_of(spec, "tokenizer.json") is None
    assert file_of(parse_local_spec("vllm", "org/never-downloaded", KNOWN), "config.json") is None


async def test_clients_share_one_runner_with_all_adapters(folder: Path, planner: Path, runner: Any) -> None:
    base, adapted = chat(str(folder), runner), chat(f"{folder},adapter=p={planner}", runner)
    other = chat(f"{folder},max_model_len=512", runner)
    assert runner.made == []
    replies = await asyncio.gather(base.complete(ASKED), adapted.complete(ASKED), other.complete(ASKED))
    assert [reply.text for reply in replies] == ["base", "p", "base"]
    assert sorted(runner.made) == [[], ["p"]]
    assert await base.offered() == [ModelInfo(str(folder), None, 100), ModelInfo("p", str(folder), 100)]
    assert await adapted.runner() is await base.runner()
    shared: Any = await base.runner()
    await base.aclose()
    await base.aclose()
    assert not shared.closed
    await adapted.aclose()
    assert shared.closed
    await base.complete(ASKED)  # loaded again
    assert len(runner.made) == 3
    await asyncio.gather(base.aclose(), other.aclose())


async def test_two_adapters_of_one_name(folder: Path, planner: Path, tmp_path: Path, runner: Any) -> None:
    first = chat(f"{folder},adapter=p={planner}", runner)
    other = adapter_folder(tmp_path / "other", {"r": 4})
    with pytest.raises(ConfigError, match="two adapters are named p"):
        chat(f"{folder},adapter=p={other}", runner)
    await first.aclose()


async def test_a_start_that_failed_is_told_by_every_call(folder: Path) -> None:
    tried = []

    def make(spec: LocalSpec, adapters: Sequence[Adapter]) -> WeightlessRunner:
        tried.append(spec)
        raise RuntimeError("Free memory on device cuda:0: CUDA out of memory.")

    model = LocalChat(parse_local_spec("vllm", str(folder), KNOWN), make)
    for _ in range(2):
        with pytest.raises(PermanentServiceError, match="could not be loaded: it does not fit into the memory"):
            await model.complete(ASKED)
    assert len(tried) == 1
    await model.aclose()
    with pytest.raises(PermanentServiceError):
        await model.complete(ASKED)
    assert len(tried) == 2
    await model.aclose()


async def test_who_stops_waiting_does_not_stop_the_loading(folder: Path, runner: Any) -> None:
    go = threading.Event()

    def make(spec: LocalSpec, adapters: Sequence[Adapter]) -> Any:
        assert go.wait(120)
        return runner(spec, adapters)

    model = LocalChat(parse_local_spec("vllm", str(folder), KNOWN), make)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(model.complete(ASKED), 0.05)
    go.set()
    assert (await model.complete(ASKED)).text == "base"
    assert len(runner.made) == 1
    await model.aclose()


async def test_a_reply_gets_what_the_window_leaves(folder: Path, runner: Any) -> None:
    model = chat(str(folder), runner)
    assert (await model.complete(ASKED, Sampling(max_tokens=1024))).completion_tokens == 97
    with pytest.raises(ContextLengthError, match="window of 100 tokens, but the prompt takes 90"):
        await model.complete((Message("user", "word " * 90),))
    await model.aclose()


async def test_a_call_has_its_time(folder: Path, runner: Any) -> None:
    model = chat(str(folder), runner, timeout=0.05)
    with pytest.raises(RetryableServiceError, match=r"did not reply within 0\.05 s"):
        await model.complete(ASKED, Sampling(temperature=1.0))
    await model.aclose()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "does not fit into the memory"),
        (ValueError("No available memory for the cache blocks."), "does not fit into the memory"),
        (RuntimeError("a\n  b"), r"failed \(a b\): correct what it complains about"),
        (RuntimeError("x" * 1000), "xxx…"),
        (KeyError(), "KeyError"),
    ],
)
def test_an_engines_errors_are_one_sentence(error: Exception, said: str) -> None:
    failure = explained(error, "vllm:m", "failed")
    with pytest.raises(PermanentServiceError, match=said):
        raise failure
    assert "\n" not in str(failure)
    assert len(str(failure)) < 400


@pytest.mark.parametrize(("engine", "package"), [("vllm", "vllm"), ("transformers", "torch")])
def test_a_package_that_is_missing(folder: Path, engine: str, package: str, pyrag: Run) -> None:
    if find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(
        ConfigError, match=rf"needs the package {package}: run pip install '\.\[{engine}\]' in a checkout"
    ):
        open_chat_model(f"{engine}:{folder}")
    done = pyrag("ask", "Who is Jed Hoyer?", "--llm", f"{engine}:{folder}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{engine}: not installed" in pyrag("doctor").stdout


@pytest.fixture
def without_weights(runner: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Specs are folders, opened with the runner that holds no weights, which takes its time."""

    def make(spec: LocalSpec, adapters: Sequence[Adapter]) -> Any:
        threading.Event().wait(0.6)
        return runner(spec, adapters)

    def opened(spec: str, *_: Any) -> LocalChat:
        return LocalChat(parse_local_spec("vllm", spec, KNOWN), make)

    monkeypatch.setattr("pyrag.llm.spec.open_chat_model", opened)
    return runner


async def test_passages_are_fitted_by_the_models_own_files(folder: Path, without_weights: Any) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save(str(folder / "tokenizer.json"))
    async with PyRAG(str(folder)) as rag:
        answerer = rag.engines.agents.answerer
        assert isinstance(answerer, WindowedAnswerer)
        assert (answerer.window.window, answerer.window.count("three words here")) == (4096, 3)
    assert without_weights.made == []


async def test_loading_takes_no_time_of_a_question(folder: Path, without_weights: Any) -> None:
    async with PyRAG(str(folder), deadline=0.5) as rag:
        trace = await rag.aask("Who is Jed Hoyer?")
    assert len(without_weights.made) == 1
    assert trace.error
    assert trace.error.kind != "deadline"


async def test_request_options_reach_the_template_and_the_runner(folder: Path, runner: Any) -> None:
    told: list[Any] = []

    class Telling(runner):  # type: ignore[misc]
        def encode(self, messages: Sequence[Message], template: Mapping[str, Any]) -> list[int]:
            told.append(dict(template))
            return super().encode(messages, template)  # type: ignore[no-any-return]

        async def generate(self, prompt: list[int], sampling: Sampling, *_: Any) -> Reply:
            told.append((sampling.temperature, sampling.max_tokens, sampling.seed))
            return Reply("x")

    extra = {CHAT_TEMPLATE: {"enable_thinking": False}}
    async with contextlib.aclosing(chat(str(folder), Telling)) as model:
        await model.complete(ASKED, Sampling(temperature=0.7, max_tokens=9, seed=3, extra=extra))
        await model.complete(ASKED)
    assert told == [{"enable_thinking": False}, (0.7, 9, 3), {}, (0.0, 97, None)]


def test_an_engine_here_refuses_fields_of_servers(folder: Path) -> None:
    request = {"plan": {"extra_body": {"reasoning_effort": "low"}}}
    with pytest.raises(ConfigError, match="engine transformers does not support the request field 'reasoning_effort'"):
        open_engines(Settings(plan_llm=f"transformers:{folder}", request=request))


def test_importing_the_engines_is_light() -> None:
    code = (
        "import sys, pyrag.llm.clients.vllm, pyrag.llm.clients.transformers, pyrag.llm.clients.transformers_rows;"
        "heavy = {'torch', 'vllm', 'transformers', 'peft', 'huggingface_hub'} & sys.modules.keys();"
        "sys.exit(str(sorted(heavy)) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
