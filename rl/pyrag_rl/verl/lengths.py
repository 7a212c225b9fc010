"""Lengths of conversations in tokens, and the prompts that verl leaves out because they are too long.

verl leaves them out when it has started, and says so in its log alone: a run whose steps were counted with them ends
before its last step, without its last evaluation. Left out: rows of supervised runs (`pyrag_rl.verl.sft_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyrag.errors import ConfigError, DataError
from pyrag_rl.config import TrainConfig
from pyrag_rl.data.rows import as_columns, read_rows

Length = Callable[[Sequence[Mapping[str, str]]], int]
"""Number of tokens of a conversation."""


def length_by(model: str, *, asking: bool = False) -> Length:
    """Return the counter of tokens of a model: its tokenizer with its chat template.

    Args:
        model: folder or hub name.
        asking: count the tokens that open the reply, too, as in a prompt.

    Raises:
        ConfigError: the tokenizer cannot be loaded, or has no chat template.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the tokenizer of {model} cannot be loaded: {' '.join(str(error).split())}") from error
    if not tokenizer.chat_template:
        raise ConfigError(f"{model} has no chat template: train an instruct model, or add one to its tokenizer")

    def length(messages: Sequence[Mapping[str, str]]) -> int:
        said = [dict(one) for one in messages]
        text = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=asking)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return length


def count_steps(config: TrainConfig, length: Length, console: Callable[[str], None]) -> int:
    """Return the number of steps of a run by reward: those of the prompts that are short enough.

    Args:
        config: the run.
        length: counts a prompt's tokens.
        console: told how many prompts of a set are too long.

    Raises:
        DataError: what remains of a set is less than a batch, or nothing to evaluate on.
    """
    steps = _short(config.data, config, config.batch_size, length, console) // config.batch_size * config.epochs
    if config.eval_data:
        _short(config.eval_data, config, 1, length, console)
    return min(steps, config.max_steps or steps)


def _short(data: str, config: TrainConfig, least: int, length: Length, console: Callable[[str], None]) -> int:
    lengths = [length(as_columns(row)["prompt"]) for row in read_rows(Path(data))]
    short = sum(one <= config.prompt_tokens for one in lengths)
    limit = f"prompt_tokens = {config.prompt_tokens} tokens (the longest has {max(lengths)})"
    if short < least:
        raise DataError(
            f"{len(lengths) - short} of {len(lengths)} prompts of {data} exceed {limit}, and the other {short} are "
            f"fewer than {least}: set it higher"
        )
    if short < len(lengths):
        console(f"{data}: {len(lengths) - short} of {len(lengths)} prompts are left out, since they exceed {limit}")
    return short
