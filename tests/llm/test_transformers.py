"""`transformers:` with a tiny random model, against plain `generate` of the library. Needs torch and transformers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrag import PyRAG
from pyrag.errors import ConfigError, ContextLengthError, DataError, PermanentServiceError, RetryableServiceError
from pyrag.llm.clients.local import LocalChat
from pyrag.llm.protocol import Message, Reply, Sampling
from pyrag.llm.spec import ModelOptions, open_chat_model
from tests.llm.local_models import ASKED, WINDOW, TinyModel, tiny

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("default")

__all__ = ["tiny"]

GREEDY = Sampling(max_tokens=24)
ENDLESS = Sampling(max_tokens=WINDOW)
PROMPTS = [(ASKED[0], Message("user", "Which book? " * number)) for number in range(1, 7)]


def opened(spec: str, timeout: float = 60.0) -> LocalChat:
    model = open_chat_model(spec, ModelOptions(timeout=timeout))
    assert isinstance(model, LocalChat)
    return model


@pytest.fixture
async def chat(tiny: TinyModel) -> AsyncIterator[LocalChat]:
    model = opened(f"transformers:{tiny.folder},device=cpu,dtype=float32")
    yield model
    await model.aclose()


@pytest.fixture
async def planner(tiny: TinyModel, chat: LocalChat) -> AsyncIterator[LocalChat]:
    model = opened(f"transformers:{tiny.folder},device=cpu,dtype=float32,adapter=planner={tiny.adapter}")
    yield model
    await model.aclose()


def by_the_library(folder: Path, messages: Sequence[Message], adapter: Path | None = None, **options: Any) -> str:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, adapter)
    said = [{"role": message.role, "content": message.content} for message in messages]
    given = tokenizer.apply_chat_template(said, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    written = model.generate(**given, **{"do_sample": False, "max_new_tokens": 24, **options})
    return str(tokenizer.decode(written[0][given["input_ids"].shape[1] :], skip_special_tokens=True))


async def test_greedy_text_is_that_of_the_library(tiny: TinyModel, chat: LocalChat, planner: LocalChat) -> None:
    for messages in PROMPTS[:3]:
        own, adapted = await chat.complete(messages, GREEDY), await planner.complete(messages, GREEDY)
        assert own.text == by_the_library(tiny.folder, messages)
        assert adapted.text == by_the_library(tiny.folder, messages, tiny.adapter)
        assert own.text != adapted.text


async def test_a_batch_is_what_its_rows_are_alone(chat: LocalChat, planner: LocalChat) -> None:
    wanted = [
        (model, messages, Sampling(max_tokens=8 + 4 * number, temperature=number % 2, seed=number))
        for model in (chat, planner)
        for number, messages in enumerate(PROMPTS)
    ]
    together = await asyncio.gather(*(model.complete(messages, sampling) for model, messages, sampling in wanted))
    alone = [await model.complete(messages, sampling) for model, messages, sampling in wanted]
    assert list(together) == alone
    assert [reply.completion_tokens for reply in alone if reply.finish_reason == "length"]


async def test_seeds_choose_the_sample(chat: LocalChat) -> None:
    samples = [
        (await chat.complete(ASKED, Sampling(temperature=1.0, max_tokens=12, seed=seed))).text
        for seed in (1, 1, 2, None, None)
    ]
    assert samples[0] == samples[1]
    assert len(set(samples)) == 4


async def test_samples_follow_the_models_distribution(tiny: TinyModel, chat: LocalChat) -> None:
    """The first token of many samples, against the probabilities that the model gives."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny.folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny.folder, dtype=torch.float32)
    runner = await chat.runner()
    prompt = runner.encode(ASKED, {})
    with torch.no_grad():
        likely = torch.softmax(model(torch.tensor([prompt])).logits[0, -1] / 2.0, -1)
    best = int(likely.argmax())
    count = 400
    replies = await asyncio.gather(
        *(chat.complete(ASKED, Sampling(temperature=2.0, max_tokens=1, seed=seed)) for seed in range(count))
    )
    found = sum(reply.text == tokenizer.decode([best], skip_special_tokens=True) for reply in replies) / count
    assert found == pytest.approx(float(likely[best]), abs=4 * (0.25 / count) ** 0.5)  # four standard errors


async def test_pieces_of_a_stream_are_the_reply(chat: LocalChat) -> None:
    pieces: list[str] = []
    reply = await chat.stream(ASKED, GREEDY, pieces.append)
    assert "".join(pieces) == reply.text == (await chat.complete(ASKED, GREEDY)).text
    assert len(pieces) > 3


async def test_stop_strings_end_a_reply_and_are_left_out(chat: LocalChat) -> None:
    whole = (await chat.complete(ASKED, GREEDY)).text
    stop = whole[10:13]
    pieces: list[str] = []
    reply = await chat.stream(ASKED, Sampling(max_tokens=24, stop=("never said", stop)), pieces.append)
    assert reply.text == "".join(pieces) == whole[: whole.index(stop)]
    assert reply.finish_reason == "stop"


async def test_a_message_of_the_assistant_is_gone_on_from(tiny: TinyModel, chat: LocalChat) -> None:
    runner = await chat.runner()
    begun = runner.encode((*ASKED, Message("assistant", "The answer is")), {})
    assert chat.tokenizer == str(tiny.folder / "tokenizer.json")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny.folder)
    assert tokenizer.decode(begun).endswith("<|im_start|>assistant\nThe answer is")
    assert begun[: len(runner.encode(ASKED, {}))] == runner.encode(ASKED, {})


async def test_a_prompt_that_is_too_long(chat: LocalChat) -> None:
    with pytest.raises(ContextLengthError, match=rf"window of {WINDOW} tokens, but the prompt takes \d+"):
        await chat.complete((Message("user", "book " * WINDOW),), GREEDY)


async def test_cancelling_ends_the_writing(chat: LocalChat) -> None:
    await chat.start()
    task = asyncio.create_task(chat.complete(ASKED, ENDLESS))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    reply = await asyncio.wait_for(chat.complete(ASKED, Sampling(max_tokens=1)), 10)
    assert reply.completion_tokens == 1


async def test_a_call_has_its_time(tiny: TinyModel, chat: LocalChat) -> None:
    hasty = opened(chat.name, timeout=0.2)
    await hasty.start()
    with pytest.raises(RetryableServiceError, match=r"did not reply within 0\.2 s"):
        await hasty.complete(ASKED, ENDLESS)
    await hasty.aclose()


async def test_clients_of_a_model_share_it(tiny: TinyModel, chat: LocalChat, planner: LocalChat) -> None:
    await chat.start()
    assert await planner.runner() is await chat.runner()
    assert [model.id for model in await chat.offered()] == [str(tiny.folder), "planner"]
    first = await chat.complete(ASKED, GREEDY)
    await chat.aclose()
    assert await chat.complete(ASKED, GREEDY) == first  # it can be used again


async def test_a_program_with_two_roles_ends_honestly(tiny: TinyModel) -> None:
    spec = f"transformers:{tiny.folder},dtype=float32"
    patient = {"call_timeout": 600, "deadline": None}
    planner = f"transformers:{tiny.folder},adapter=planner={tiny.adapter},dtype=float32"
    async with PyRAG(spec, plan_llm=planner, joint=True, context_tokens=512, **patient) as rag:
        trace = await rag.aask("Who is Jed Hoyer?")
    assert not trace.answer.known
    assert trace.error
    assert trace.error.kind == "bad_output"
    assert f"{planner} wrote no program" in trace.error.message


@pytest.mark.parametrize("contents", [{}, {"config.json": "{}"}, {"config.json": '{"model_type": "qwen2"}'}])
async def test_folders_that_hold_no_model(tmp_path: Path, contents: dict[str, str]) -> None:
    for name, text in contents.items():
        (tmp_path / name).write_text(text)

    async def ask() -> None:
        model = opened(f"transformers:{tmp_path}")
        try:
            await model.complete(ASKED)
        finally:
            await model.aclose()

    with pytest.raises((DataError, PermanentServiceError)) as failed:
        await ask()
    assert "\n" not in str(failed.value)
    assert str(tmp_path) in str(failed.value)


async def test_an_unreachable_hub_leaves_the_local_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def waited(seconds: float) -> None:
        raise AssertionError("the hub's client tries again")

    monkeypatch.setattr("pyrag.llm.clients.transformers.unreachable", lambda: True)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", waited)
    model = opened("transformers:nobody/nothing")
    with pytest.raises(DataError, match=r"nobody/nothing holds no model that can be loaded .*cached files"):
        await model.complete(ASKED)
    await model.aclose()


async def test_a_model_without_a_chat_template(tiny: TinyModel, tmp_path: Path) -> None:
    for file in tiny.folder.iterdir():
        if "template" not in file.name:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    model = opened(f"transformers:{tmp_path}")
    with pytest.raises(PermanentServiceError, match="chat template"):
        await model.complete(ASKED)
    await model.aclose()


async def test_an_adapter_of_another_model(tiny: TinyModel, tmp_path: Path) -> None:
    model = opened(f"transformers:{tiny.folder},adapter=other={misfits(tiny.adapter, tmp_path / 'other')}")
    with pytest.raises((DataError, PermanentServiceError), match="adapter") as failed:
        await model.complete(ASKED)
    assert "\n" not in str(failed.value)
    await model.aclose()


async def test_an_adapter_that_fails_late_changes_nothing(
    tiny: TinyModel, tmp_path: Path, chat: LocalChat, planner: LocalChat
) -> None:
    """An adapter of another rank, and an adapter without weights for this model, before any other adapter is loaded."""
    wanted = by_the_library(tiny.folder, ASKED), by_the_library(tiny.folder, ASKED, tiny.adapter)
    assert (await chat.complete(ASKED, GREEDY)).text == wanted[0]
    for number, broken in enumerate((misfits(tiny.adapter, tmp_path / "rank"), emptied(tiny.adapter, tmp_path / "no"))):
        late = opened(f"transformers:{tiny.folder},device=cpu,dtype=float32,adapter=late{number}={broken}")
        with pytest.raises(DataError, match=r"the adapter .* does not fit the model of .*trained on this model"):
            await late.complete(ASKED, GREEDY)
        assert (await chat.complete(ASKED, GREEDY)).text == wanted[0]
        await late.aclose()
    assert (await planner.complete(ASKED, GREEDY)).text == wanted[1]
    assert (await chat.complete(ASKED, GREEDY)).text == wanted[0]


def misfits(adapter: Path, folder: Path) -> Path:
    """A copy of an adapter whose configuration names another rank than its weights have."""
    folder.mkdir()
    config = (adapter / "adapter_config.json").read_text()
    (folder / "adapter_config.json").write_text(config.replace('"r": 4', '"r": 2'))
    (folder / "adapter_model.safetensors").write_bytes((adapter / "adapter_model.safetensors").read_bytes())
    return folder


def emptied(adapter: Path, folder: Path) -> Path:
    """A copy of an adapter whose weights belong to modules that the model does not have."""
    from safetensors.torch import load_file, save_file

    folder.mkdir()
    (folder / "adapter_config.json").write_bytes((adapter / "adapter_config.json").read_bytes())
    weights = load_file(adapter / "adapter_model.safetensors")
    renamed = {name.replace(".layers.", ".blocks."): tensor for name, tensor in weights.items()}
    save_file(renamed, folder / "adapter_model.safetensors")
    return folder


async def test_a_device_that_is_not_there(tiny: TinyModel) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    model = opened(f"transformers:{tiny.folder},device=cuda")
    with pytest.raises(ConfigError, match="no CUDA device"):
        await model.complete(ASKED)
    await model.aclose()


async def test_out_of_memory_halves_the_batch(chat: LocalChat, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's own error, raised in place of a full GPU."""
    runner: Any = await chat.runner()
    alone = [await chat.complete(messages, GREEDY) for messages in PROMPTS]
    real, sizes = runner._model.generate, []

    def generate(ids: Any, **options: Any) -> Any:
        sizes.append(len(ids))
        if len(ids) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return real(ids, **options)

    monkeypatch.setattr(runner._model, "generate", generate)
    together: list[Reply] = await asyncio.gather(*(chat.complete(messages, GREEDY) for messages in PROMPTS))
    assert list(together) == alone
    assert max(sizes) > 2
    monkeypatch.setattr(runner._model, "generate", lambda *_, **__: generate([1, 2, 3]))
    with pytest.raises(PermanentServiceError, match="does not fit into the memory"):
        await chat.complete(ASKED, GREEDY)
