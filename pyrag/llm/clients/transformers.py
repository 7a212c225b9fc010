"""`transformers:MODEL`: Hugging Face transformers in this process, on the CPU or a GPU.

Concurrent requests are generated in one batch of at most `batch` prompts; later requests wait for the next batch. Every
row of a batch ends on its own: at an end token, at its own limit or stop string, or when its caller is gone. A row's
sampling depends on its seed and never on other rows. For high throughput, use `vllm:`.

Schemas and patterns are ignored, and prefixes are not cached.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import queue
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from pyrag._io.hub import unreachable
from pyrag.errors import ConfigError, DataError
from pyrag.llm.clients.adapters import Adapter
from pyrag.llm.clients.local import LocalChat, OnText, encode_chat, missing_package
from pyrag.llm.clients.local_spec import LocalSpec, known_window, parse_local_spec
from pyrag.llm.clients.transformers_rows import BatchRow, Ending, RowSampler
from pyrag.llm.protocol import Message, Reply, Sampling

ENGINE = "transformers"
OPTIONS: dict[str, type] = {"device": str, "dtype": str, "batch": int, "max_model_len": int}
_BATCH = 8
_GATHER_SECONDS = 0.005  # time that the first prompt of a batch waits for others
_DTYPES = ("auto", "float32", "float16", "bfloat16")
_ANY_WINDOW = 1 << 20  # tokens, for a model that states no window


def open_transformers(rest: str, timeout: float) -> LocalChat:
    """Return the client of a spec, without loading anything.

    Args:
        rest: Text after `transformers:`.
        timeout: Seconds of one call, without loading.

    Raises:
        ConfigError: The spec is malformed, or a package is missing.
        DataError: A folder holds no model or no adapter.
    """
    spec = parse_local_spec(ENGINE, rest, OPTIONS)
    for package in ("torch", "transformers", *(["peft"] if spec.adapter else [])):
        if missing := missing_package(ENGINE, package):
            raise missing
    if (dtype := spec.option("dtype")) not in (None, *_DTYPES):
        raise ConfigError(f"the option dtype is one of {', '.join(_DTYPES)}, not {dtype!r}")
    return LocalChat(spec, TransformersRunner, timeout=timeout)


class TransformersRunner:
    """Loaded model and the thread that generates with it."""

    def __init__(self, spec: LocalSpec, adapters: Sequence[Adapter]) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        self._name = spec.name
        self._batch = spec.option("batch") or _BATCH
        device = _device(spec)
        path, offline = str(spec.folder or spec.model), spec.folder is None and unreachable()
        dtype = spec.option("dtype") or "auto"
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left", local_files_only=offline)
            model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, local_files_only=offline)
        except OSError as error:
            what = " ".join(str(error).split())[:200]
            raise DataError(
                f"{spec.name} holds no model that can be loaded ({what}): check the folder or name"
            ) from error
        self._model = model.to(device).eval()
        self._adapted: Any = None  # PEFT's wrapper of the model, once an adapter was loaded
        self._loaded: dict[Adapter, str] = {}
        self._numbers = itertools.count()
        for adapter in adapters:
            self._load(adapter)
        self.window = _window(spec, self._tokenizer)
        self._waiting: queue.SimpleQueue[BatchRow | None] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def encode(self, messages: Sequence[Message], template: Mapping[str, Any]) -> list[int]:
        """Return the tokens of a prompt.

        Args:
            messages: The conversation.
            template: Additional variables of the chat template.
        """
        return encode_chat(self._tokenizer, messages, template)

    async def generate(
        self, prompt: list[int], sampling: Sampling, adapter: Adapter | None, say: OnText | None
    ) -> Reply:
        """Generate a reply.

        Args:
            prompt: Token ids.
            sampling: Parameters of the reply.
            adapter: Adapter to use, or None.
            say: Called with each piece of the text, or None.
        """
        row = BatchRow(prompt, sampling, adapter, say)
        self._waiting.put(row)
        return await asyncio.wrap_future(row.future)

    def close(self) -> None:
        """End the thread and free the model."""
        self._waiting.put(None)
        self._thread.join()
        del self._model

    def _work(self) -> None:
        """Generate batches of rows for one adapter, in order of arrival. Runs in the thread."""
        waiting: deque[BatchRow] = deque()
        while self._gather(waiting) or waiting:
            batch = _next_batch(waiting, self._batch)
            if batch:
                self._answer(batch)

    def _gather(self, waiting: deque[BatchRow]) -> bool:
        """Add the rows that have arrived, waiting for the first one; return False if no more will come."""
        seconds = None if not waiting else 0.0
        while not self._ended:
            try:
                row = self._waiting.get(timeout=seconds) if seconds else self._waiting.get(block=seconds is None)
            except queue.Empty:
                return True
            if row is None:
                self._ended = True
            else:
                waiting.append(row)
            seconds = 0.0 if len(waiting) >= self._batch else _GATHER_SECONDS
        return False

    def _answer(self, rows: list[BatchRow]) -> None:
        try:
            self._generate(rows)
        except Exception as error:
            if len(rows) > 1 and "OutOfMemory" in type(error).__name__:
                half = self._batch = len(rows) // 2
                self._answer(rows[:half])
                self._answer(rows[half:])
                return
            for row in rows:
                if row.future.set_running_or_notify_cancel():
                    row.future.set_exception(error)
            return
        for row in rows:
            if row.future.set_running_or_notify_cancel():
                row.future.set_result(row.reply())

    def _generate(self, rows: list[BatchRow]) -> None:
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        for row in rows:
            row.begin()
        width = max(len(row.prompt) for row in rows)
        settings, device = _greedy(self._model.generation_config, self._tokenizer), self._model.device
        pads = [width - len(row.prompt) for row in rows]
        ids = [[settings.pad_token_id] * pad + row.prompt for pad, row in zip(pads, rows, strict=True)]
        mask = [[0] * pad + [1] * len(row.prompt) for pad, row in zip(pads, rows, strict=True)]
        sampler = RowSampler(rows, self._model.generation_config, device)
        with torch.inference_mode(), self._chosen(rows[0].adapter):
            self._model.generate(
                torch.tensor(ids, device=device),
                attention_mask=torch.tensor(mask, device=device),
                generation_config=settings,
                max_new_tokens=max(row.sampling.max_tokens for row in rows),
                logits_processor=LogitsProcessorList([sampler]),
                stopping_criteria=StoppingCriteriaList([Ending(rows, self._tokenizer, settings.eos_token_id)]),
            )

    def _chosen(self, adapter: Adapter | None) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which the model generates with an adapter, or without one."""
        if adapter is None:
            return contextlib.nullcontext() if self._adapted is None else self._adapted.disable_adapter()
        self._load(adapter)
        self._adapted.set_adapter(self._loaded[adapter])
        return contextlib.nullcontext()

    def _load(self, adapter: Adapter) -> None:
        """Load an adapter with PEFT unless it is loaded. If it does not fit, the model is unchanged."""
        if adapter in self._loaded:
            return
        from peft import PeftConfig, PeftModel

        name = f"adapter_{next(self._numbers)}"  # PEFT takes no dots in names
        try:
            if self._adapted is None:
                config = PeftConfig.from_pretrained(adapter.path)
                config.inference_mode = True
                self._adapted = PeftModel(self._model, config, adapter_name=name).eval()
            result = self._adapted.load_adapter(adapter.path, name, torch_device=str(self._model.device))
        except (OSError, ValueError, RuntimeError) as error:
            raise self._misfit(adapter, str(error)) from error
        if missing := result.missing_keys:
            raise self._misfit(adapter, f"its file has no weights {missing[0]}")
        self._loaded[adapter] = name

    def _misfit(self, adapter: Adapter, reason: str) -> DataError:
        return DataError(
            f"the adapter {adapter.path} does not fit the model of {self._name} ({' '.join(reason.split())[:300]}): "
            "name an adapter that was trained on this model"
        )


def _next_batch(waiting: deque[BatchRow], limit: int) -> list[BatchRow]:
    """Remove and return the first row and others that fit into its batch; drop rows whose callers are gone."""
    rows = [row for row in waiting if not row.future.cancelled()]
    batch = [row for row in rows if row.adapter == rows[0].adapter][:limit]
    waiting.clear()
    waiting.extend(row for row in rows if row not in batch)
    return batch


def _device(spec: LocalSpec) -> str:
    import torch

    wanted = spec.option("device") or ("cuda" if torch.cuda.is_available() else "cpu")
    if wanted.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"{spec.name} cannot run: PyTorch finds no CUDA device; leave device= out for the CPU")
    return str(wanted)


def _window(spec: LocalSpec, tokenizer: Any) -> int:
    return known_window(spec) or int(min(tokenizer.model_max_length, _ANY_WINDOW))


def _greedy(defaults: Any, tokenizer: Any) -> Any:
    """Return the model's own settings, but with greedy decoding and without a repetition penalty, as in training."""
    settings = copy.deepcopy(defaults)
    settings.do_sample = False
    settings.temperature = settings.top_k = settings.top_p = settings.repetition_penalty = None
    ends = tokenizer.eos_token_id if settings.eos_token_id is None else settings.eos_token_id
    settings.eos_token_id = ends if isinstance(ends, list) else [ends] if ends is not None else []
    pads = (settings.pad_token_id, tokenizer.pad_token_id, *settings.eos_token_id, 0)
    settings.pad_token_id = next(token for token in pads if token is not None)
    return settings
