"""Errors about prompts that exceed the model's window, and token counts of texts.

Servers have at most the status 400 in common, so the wording of errors is matched: OpenAI and vLLM, SGLang, llama.cpp,
LM Studio, Ollama, TGI, Mistral, Anthropic, Gemini, Groq, xAI, DashScope, Zhipu, Moonshot, GitHub Models. Prompts are
shortened in `pyrag.agents.context_window`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

from pyrag.errors import ConfigError, ContextLengthError, PermanentServiceError

_STATUSES = (400, 413, 422, 429, 500)
_TOO_LARGE = 413  # also sent by proxies, with any words
_WORDS = re.compile(
    r"context_length_exceeded|exceed_context_size|string_above_max_length"
    r"|maximum (?:context|model|allowed) length|max(?:imum)?_model_len"
    r"|exceeds? the (?:available |model's |maximum )*context|longer than the (?:model'?s? )?(?:maximum )?context"
    r"|(?:input|prompt)(?: length)?[^.]{0,60}(?:is too long|too large for model)"
    r"|exceeds?[^.]{0,40}(?:context (?:length|size|window)|maximum length)"
    r"|(?:greater than|exceeds?|over) the (?:model'?s? )?(?:maximum )?context|context (?:length )?of only"
    r"|context size has been exceeded|exceed(?:s|ed)? (?:the )?(?:model'?s? |max(?:imum)? )?(?:token |length )limit"
    r"|exceeds (?:the )?(?:max(?:imum)? (?:prompt |input )?length|maximum number of (?:input )?tokens)"
    r"|(?:exceed|over)(?:s|ed)? model token limit|(?:exceed|over)s? model limit|maximum prompt length"
    r"|range of input length|(?:request|body|request body) too large for|too many (?:input )?tokens"
    r"|must have less than \d+ tokens|inputs` tokens \+ `max_new_tokens` must be",
    re.IGNORECASE,
)
_BYTES_A_TOKEN = 4  # average of common tokenizers on English; other scripts have more bytes and tokens per character

CountTokens = Callable[[str], int]


def too_long(error: PermanentServiceError) -> ContextLengthError | None:
    """Return the error as a `ContextLengthError` if it means that the prompt does not fit, otherwise None."""
    if error.status != _TOO_LARGE and (error.status not in _STATUSES or not _WORDS.search(error.detail)):
        return None
    return ContextLengthError(str(error), service=error.service, status=error.status, detail=error.detail)


def about_tokens(text: str) -> int:
    """Return an estimate of the tokens of a text, without a tokenizer."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN)


@functools.cache
def token_counter(tokenizer: str | None) -> CountTokens:
    """Return a token counter for a `tokenizer.json` or its folder; for None, an estimate. Raises `ConfigError`."""
    if tokenizer is None:
        return about_tokens
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ConfigError("the setting tokenizer needs a package: run pip install tokenizers") from error
    path = Path(tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise ConfigError(f"there is no tokenizer file {path}: give the tokenizer.json of the model, or its folder")
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise ConfigError(f"{path} is not a tokenizer: give the tokenizer.json of the model") from error
    return lambda text: len(loaded.encode(text, add_special_tokens=False).ids)
