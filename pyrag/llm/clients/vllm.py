"""`vllm:MODEL`: vLLM's asynchronous engine in this process, without a server.

vLLM provides continuous batching and prefix caching: concurrent requests are computed together, and the system prompts
of agents are computed once. It computes in its own processes, whose output goes to a log file. If they cannot start, a
one-sentence error states the cause. The engine runs in its own event loop, so calls may come from any loop. As always
with processes that are started this way, a script that uses the engine needs `if __name__ == "__main__":`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import multiprocessing
import multiprocessing.process
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyrag._io.hub import unreachable
from pyrag.errors import ConfigError, PermanentServiceError, PyRAGError
from pyrag.llm.clients.adapters import Adapter, lora_rank
from pyrag.llm.clients.local import LocalChat, OnText, encode_chat, explained, missing_package
from pyrag.llm.clients.local_spec import LocalSpec, parse_local_spec
from pyrag.llm.clients.vllm_library import WITHOUT_COMPILER, check_library, has_compiler, is_cpu_build
from pyrag.llm.protocol import Message, Reply, Sampling

ENGINE = "vllm"
OPTIONS: dict[str, type] = {
    "dtype": str,
    "max_model_len": int,
    "tensor_parallel": int,
    "gpu_memory": float,
    "quantization": str,
    "max_num_seqs": int,
    "eager": bool,
    "reasoning_parser": str,
}
_ARGUMENTS = {
    "tensor_parallel": "tensor_parallel_size",
    "gpu_memory": "gpu_memory_utilization",
    "eager": "enforce_eager",
}
# By default vLLM logs to stdout, which belongs to us, and sends usage statistics to its makers.
_ENVIRONMENT = {"VLLM_CONFIGURE_LOGGING": "0", "VLLM_NO_USAGE_STATS": "1"}
_KILLED_SECONDS = 10.0  # time for a process that vLLM killed to disappear
_MAX_ADAPTERS = 8  # maximum adapters in memory at once; more take turns
_CAUSE = re.compile(r"(?:^|\s)((?:[\w.]*\.)?[A-Z]\w*(?:Error|Exception): .+)$", re.MULTILINE)
_USELESS_CAUSE = "Engine core initialization failed"


def open_vllm(rest: str, timeout: float) -> LocalChat:
    """Return the client of a spec, without loading anything.

    Args:
        rest: Text after `vllm:`.
        timeout: Seconds of one call, without loading.

    Raises:
        ConfigError: The spec is malformed, or a package or a system library is missing.
        DataError: A folder holds no model or no adapter.
    """
    spec = parse_local_spec(ENGINE, rest, OPTIONS)
    if missing := missing_package(ENGINE, "vllm"):
        raise missing
    check_library()
    return LocalChat(spec, VLLMRunner, timeout=timeout)


class VLLMRunner:
    """Engine with its event loop, started with room for the given adapters."""

    def __init__(self, spec: LocalSpec, adapters: Sequence[Adapter]) -> None:
        self._name = spec.name
        self._rank = lora_rank(adapter.rank for adapter in adapters) if adapters else 0
        self._loras: dict[Adapter, int] = {}
        self._numbers = itertools.count(1)
        self._tokenizer = _tokenizer_of(spec)
        self._log = _Log()
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            started = asyncio.run_coroutine_threadsafe(self._start(spec, len(adapters)), self._loop)
            self._engine = started.result()
        except BaseException as error:
            self._end_loop()
            raise self._unstarted(error) from error
        self.window = int(self._engine.model_config.max_model_len)

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
        if adapter is not None and adapter.rank > self._rank:
            raise PermanentServiceError(
                f"{self._name} was loaded without room for the adapter {adapter.name} of rank {adapter.rank}: "
                "name all adapters before the first question",
                service=self._name,
            )
        work = self._generate(prompt, sampling, adapter, say)
        # A cancelled future cancels the work in the other loop, which makes vLLM drop the request.
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """Shut the engine down and wait for its processes."""
        asyncio.run_coroutine_threadsafe(_shut_down(self._engine), self._loop).result()
        self._end_loop()
        for process in self._processes:
            process.join(_KILLED_SECONDS)
        self._log.close()

    async def _generate(
        self, prompt: list[int], sampling: Sampling, adapter: Adapter | None, say: OnText | None
    ) -> Reply:
        pieces: list[str] = []
        tokens, finish = 0, "stop"
        params = self._params(sampling, stream=say is not None)
        request = f"pyrag-{next(self._numbers)}"
        lora = self._lora(adapter)
        async for output in self._engine.generate({"prompt_token_ids": prompt}, params, request, lora_request=lora):
            written = output.outputs[0]
            pieces.append(written.text)
            tokens += len(written.token_ids)
            finish = written.finish_reason or finish
            if say is not None and written.text:
                say(written.text)
        return Reply("".join(pieces), len(prompt), tokens, finish)

    def _params(self, sampling: Sampling, *, stream: bool) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        structured = None
        if sampling.schema is not None:
            structured = StructuredOutputsParams(json=dict(sampling.schema))
        elif sampling.pattern is not None:
            structured = StructuredOutputsParams(regex=sampling.pattern)
        # The model authors' recommendations, as in vLLM's server, unless the request overrides them. A repetition
        # penalty is left out, since training rollouts have none.
        recommended = self._engine.model_config.get_diff_sampling_param()
        for name in ("max_tokens", "repetition_penalty"):
            recommended.pop(name, None)
        return SamplingParams(
            **{**recommended, "temperature": sampling.temperature},
            max_tokens=sampling.max_tokens,
            stop=list(sampling.stop),
            seed=sampling.seed,
            structured_outputs=structured,
            output_kind=RequestOutputKind.DELTA if stream else RequestOutputKind.FINAL_ONLY,
        )

    def _lora(self, adapter: Adapter | None) -> Any:
        if adapter is None:
            return None
        from vllm.lora.request import LoRARequest

        number = self._loras.setdefault(adapter, len(self._loras) + 1)
        return LoRARequest(adapter.name, number, adapter.path)

    async def _start(self, spec: LocalSpec, adapters: int) -> Any:
        for variable, value in _ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
        with self._log.of_processes():
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.platforms import current_platform
            from vllm.v1.engine.async_llm import AsyncLLM

            if current_platform.is_unspecified():
                raise ConfigError(
                    f"{spec.name} cannot run here: this vLLM finds no GPU that it was built for; use transformers: "
                    "on the CPU, or a server with openai:MODEL@http://host:port/v1"
                )
            options = {_ARGUMENTS.get(key, key): value for key, value in spec.options}
            if is_cpu_build() and not has_compiler():
                os.environ |= {**WITHOUT_COMPILER, **os.environ}
                options.setdefault("enforce_eager", True)
            if adapters:
                at_once = min(adapters, _MAX_ADAPTERS)
                options |= {"enable_lora": True, "max_lora_rank": self._rank, "max_loras": at_once}
            model = str(spec.folder or spec.model)
            arguments: Any = {"model": model, "enable_prefix_caching": True, "disable_log_stats": True, **options}
            before = multiprocessing.active_children()
            engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))
            self._processes = [process for process in multiprocessing.active_children() if process not in before]
            return engine

    def _unstarted(self, error: BaseException) -> BaseException:
        is_logged = _USELESS_CAUSE in str(error)
        cause = self._log.cause()
        self._log.close(keep=is_logged)
        if isinstance(error, PyRAGError) or not isinstance(error, Exception):
            return error
        if not is_logged:
            return explained(error, self._name, "could not be loaded")
        shown_error = RuntimeError(cause) if cause else error
        return explained(shown_error, self._name, f"could not be loaded; its log is {self._log.path}")

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _shut_down(engine: Any) -> None:
    """Shut the engine down within its own loop, so that its tasks end there."""
    engine.shutdown()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _tokenizer_of(spec: LocalSpec) -> Any:
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    offline = spec.folder is None and unreachable()
    return AutoTokenizer.from_pretrained(str(spec.folder or spec.model), local_files_only=offline)


class _Log:
    """File for vLLM's output, from this process and its own."""

    def __init__(self) -> None:
        number, path = tempfile.mkstemp(prefix="pyrag-vllm-", suffix=".log")
        os.close(number)
        self.path = Path(path)
        self._handler = logging.FileHandler(path, delay=True)
        logger = logging.getLogger(ENGINE)
        logger.addHandler(self._handler)
        logger.propagate = False

    @contextlib.contextmanager
    def of_processes(self) -> Iterator[None]:
        """Use the file as stderr of processes that are started inside the block; this process keeps its own stderr."""
        ours, theirs, terminal = sys.stderr, os.open(self.path, os.O_WRONLY | os.O_APPEND), os.dup(2)
        # It stays open, since loggers that are set up inside keep it.
        sys.stderr = open(terminal, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.dup2(theirs, 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(theirs)
            sys.stderr = ours

    def cause(self) -> str | None:
        """Return the first error in the log; later errors are only consequences."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        return next((cause for cause in _CAUSE.findall(text) if _USELESS_CAUSE not in cause), None)

    def close(self, *, keep: bool = False) -> None:
        logging.getLogger(ENGINE).removeHandler(self._handler)
        self._handler.close()
        if not keep:
            self.path.unlink(missing_ok=True)
