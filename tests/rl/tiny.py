"""A tiny random Qwen2 with a tokenizer of its own: stands in for a language model's weights, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyrag.llm.protocol import Message

CHAT = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def make(
    out: Path, texts: Iterable[str], *, vocabulary: int = 512, hidden: int = 64, layers: int = 2, seed: int = 0
) -> None:
    """Saves model and tokenizer; the tokenizer is trained on `texts`, so that what it must say takes few tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=_SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template, tokenizer.model_max_length = CHAT, 4096
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer), hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=2,
            num_attention_heads=hidden // 32, num_key_value_heads=1, max_position_embeddings=4096,
            tie_word_embeddings=False, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def pretrain(
    folder: Path, examples: Sequence[tuple[Sequence[Message], str]], *, steps: int, rate: float = 3e-3, seed: int = 0
) -> float:
    """Teaches the model in `folder` to reply to these prompts, all at once a step; returns the last loss."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(seed)
    torch.set_num_threads(1)  # so small a model gains nothing by more, and they wait for each other
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    batch = [_tokens(tokenizer, prompt, reply) for prompt, reply in examples]
    longest = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([one + [tokenizer.pad_token_id] * (longest - len(one)) for one, _ in batch])
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one, _ in batch])
    labels = ids.clone()
    for row, (one, prompt_length) in enumerate(batch):
        labels[row, :prompt_length] = -100
        labels[row, len(one) :] = -100
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        chosen = torch.randperm(len(batch))[:16]
        loss = model(input_ids=ids[chosen], attention_mask=mask[chosen], labels=labels[chosen]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    return float(loss.detach())


def _tokens(tokenizer: Any, prompt: Sequence[Message], reply: str) -> tuple[list[int], int]:
    said = [{"role": one.role, "content": one.content} for one in prompt]
    opening = tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=False)
    start = tokenizer(opening, add_special_tokens=False)["input_ids"]
    end = tokenizer(reply, add_special_tokens=False)["input_ids"]
    return [*start, *end, tokenizer.eos_token_id], len(start)
