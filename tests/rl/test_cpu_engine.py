"""Packed rows, compiled layers and logits of replies alone: log-probabilities and gradients are those without them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("verl", reason="make test-rl runs these where verl is installed")

import torch
from transformers import LlamaConfig, LlamaForCausalLM

LENGTHS = (7, 3, 12)


def model(attention: str) -> Any:
    torch.manual_seed(0)
    shape = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(vocab_size=50, hidden_size=32, intermediate_size=48, **shape)
    config._attn_implementation = attention
    return LlamaForCausalLM(config)


def pack() -> tuple[Any, Any]:
    rows = [torch.randint(0, 50, (length,)) for length in LENGTHS]
    return rows, torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0).tolist()])


def assert_same(found: Any, wanted: Any, packed: Any, alone: Any) -> None:
    """Compare the logits of two models, then their gradients."""
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    found.square().sum().backward()
    wanted.square().sum().backward()
    for (name, one), (_, other) in zip(packed.named_parameters(), alone.named_parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-3, rtol=1e-3, msg=name)


@pytest.mark.parametrize("compiled", [False, True])
def test_packed_rows_do_not_see_each_other(compiled: bool) -> None:
    from pyrag_rl.cpu_smoke import engine
    from pyrag_rl.packed import packing

    packed, alone = model(packing.PACKED_ATTENTION), model("sdpa")
    if compiled:
        engine.compile_layers(packed)
    rows, offsets = pack()
    positions = torch.cat([torch.arange(length) for length in LENGTHS])[None]
    places = packing.pack_places(offsets)
    found = packed(torch.cat(rows)[None], position_ids=positions, use_cache=False, **places).logits[0]
    wanted = torch.cat([alone(row[None], use_cache=False).logits[0] for row in rows])
    assert_same(found, wanted, packed, alone)


def test_replies_share_their_prompt() -> None:
    from pyrag_rl.packed import packing

    shared, alone = model(packing.PACKED_ATTENTION), model("sdpa")
    first, second = torch.randint(0, 50, (9,)), torch.randint(0, 50, (4,))
    replies = (3, 1, 2, 5)
    rows = [torch.cat([prompt, torch.randint(0, 50, (length,))]) for prompt, length in
            zip((first, second, first, second), replies, strict=True)]  # fmt: skip
    pack = packing.share_prompts(rows, replies)
    tokens, positions = torch.cat(rows), torch.cat([torch.arange(len(row)) for row in rows])
    assert len(pack.sources) == 9 + 4 + sum(replies)
    assert tokens[pack.sources][pack.places].equal(tokens)
    inputs = {"position_ids": positions[pack.sources][None], "use_cache": False, **pack.attention}
    found = shared(tokens[pack.sources][None], **inputs).logits[0][pack.places]
    wanted = torch.cat([alone(row[None], use_cache=False).logits[0] for row in rows])
    assert_same(found, wanted, shared, alone)


def test_replies_to_one_prompt_share_a_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensordict import TensorDict
    from verl.workers.engine import FSDPEngineWithLMHead

    from pyrag_rl.packed.engine import PackedEngine

    given: list[Any] = []
    monkeypatch.setattr(FSDPEngineWithLMHead, "forward_backward_batch", lambda _, data, *__: given.append(data))
    engine = PackedEngine.__new__(PackedEngine)
    engine.model_config = SimpleNamespace(use_remove_padding=True)
    rows = [torch.tensor(row) for row in ([1, 2, 7], [3, 4, 8, 8], [1, 2, 9, 9], [3, 4, 6])]
    masks = [torch.ones(len(row) - 2, dtype=torch.long) for row in rows]
    nested = {"input_ids": rows, "loss_mask": masks}
    data = {name: torch.nested.as_nested_tensor(one, layout=torch.jagged) for name, one in nested.items()}
    batch = TensorDict(data | {"advantages": torch.arange(4)}, batch_size=4)
    for forward_only in (False, True):
        engine.forward_backward_batch(batch, None, forward_only)
    together, as_it_was = given
    assert together["advantages"].tolist() == [0, 2, 1, 3]
    assert [row.tolist() for row in together["input_ids"].unbind()] == [
        [1, 2, 7],
        [1, 2, 9, 9],
        [3, 4, 8, 8],
        [3, 4, 6],
    ]
    assert as_it_was["advantages"].tolist() == [0, 1, 2, 3]


def test_log_probabilities_are_those_of_all_logits() -> None:
    from pyrag_rl.packed.engine import PackedEngine

    rows, offsets = pack()
    tokens, logits = torch.cat(rows), torch.randn(1, sum(LENGTHS), 50)
    rolled = torch.roll(tokens, -1)
    learnt = torch.tensor([2, 5, 8, 20])
    micro = {"input_ids": torch.nested.nested_tensor_from_jagged(tokens, offsets)}
    made = PackedEngine.prepare_model_outputs(
        PackedEngine.__new__(PackedEngine),
        SimpleNamespace(logits=logits[:, learnt]),
        {"learnt": learnt, "input_ids_rmpad_rolled": rolled, "temperature_rmpad": torch.full((len(tokens),), 0.5)},
        micro,
        None,
    )
    wanted = torch.log_softmax(logits[0] / 0.5, -1)[torch.arange(len(tokens)), rolled]
    found = made["log_probs"].values()
    torch.testing.assert_close(found[learnt], wanted[learnt])
    assert found.count_nonzero() == len(learnt)


def test_the_logits_of_a_reply_begin_before_it() -> None:
    from pyrag_rl.packed.engine import learnt_places

    rows, offsets = pack()
    tokens = torch.nested.nested_tensor_from_jagged(torch.cat(rows), offsets)
    whole = torch.zeros(sum(LENGTHS))
    whole[[5, 6, 9, 18, 20, 21]] = 1
    replies = [torch.ones(2), torch.ones(1), torch.tensor([1.0, 0, 1, 1])]
    of_replies = torch.nested.nested_tensor(replies, layout=torch.jagged)
    wanted = [4, 5, 8, 17, 19, 20]
    assert learnt_places(tokens, torch.nested.nested_tensor_from_jagged(whole, offsets)).tolist() == wanted
    assert learnt_places(tokens, of_replies).tolist() == wanted
