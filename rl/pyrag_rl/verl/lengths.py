"""Lengths of conversations in tokens, and the number of prompts that verl drops because they are too long.

verl drops these prompts after its start, and only mentions this in its log. If they were counted for the number of
steps, a run would end before its last step, without its last evaluation. `pyrag_rl.verl.sft_rows` does the same for
supervised runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyrag.errors import ConfigError, DataError
from pyrag_rl.config import TrainConfig
from pyrag_rl.data.rows import as_columns, read_rows

Length = Callable[[Sequence[Mapping[str, str]]], int]
"""Function that counts the tokens of a conversation."""


def length_by(model: str, *, asking: bool = False) -> Length:
    """Return a function that counts the tokens of a conversation with a model's tokenizer and chat template.

    Args:
        model: Folder or hub name of the model.
        asking: Whether to count the tokens that start the reply, as in a prompt.

    Raises:
        ConfigError: The tokenizer cannot be loaded, or has no chat template.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the tokenizer of {model} cannot be loaded: {' '.join(str(error).split())}") from error
    if not tokenizer.chat_template:
        raise ConfigError(f"{model} has no chat template: train an instruct model, or add one to its tokenizer")

    def length(messages: Sequence[Mapping[str, str]]) -> int:
        conversation = [dict(message) for message in messages]
        text = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=asking)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return length


def count_steps(config: TrainConfig, length: Length, console: Callable[[str], None]) -> int:
    """Return the number of steps of a run by reward, counting only prompts that are short enough.

    Args:
        config: Configuration of the run.
        length: Function that counts the tokens of a prompt.
        console: Called with the number of prompts that are too long.

    Raises:
        DataError: Fewer prompts than a batch remain, or there are no prompts to evaluate on.
    """
    steps = _short(config.data, config, config.batch_size, length, console) // config.batch_size * config.epochs
    if config.eval_data:
        _short(config.eval_data, config, 1, length, console)
    return min(steps, config.max_steps or steps)


def _short(data: str, config: TrainConfig, minimum: int, length: Length, console: Callable[[str], None]) -> int:
    lengths = [length(as_columns(row)["prompt"]) for row in read_rows(Path(data))]
    short = sum(tokens <= config.prompt_tokens for tokens in lengths)
    limit = f"prompt_tokens = {config.prompt_tokens} tokens (the longest has {max(lengths)})"
    if short < minimum:
        raise DataError(
            f"{len(lengths) - short} of {len(lengths)} prompts of {data} exceed {limit}, and the other {short} are "
            f"fewer than {minimum}: set it higher"
        )
    if short < len(lengths):
        console(f"{data}: {len(lengths) - short} of {len(lengths)} prompts are left out, since they exceed {limit}")
    return short
