"""Chat models on this machine: shared code of the engines `vllm:` and `transformers:`.

A `LocalChat` is a client; the model itself is a `Runner`, shared by all clients of the model in this process. It is
loaded by the first call, in a thread, and closed with its last client. There are no retries, since no network is
involved.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyrag.errors import (
    ConfigError,
    ContextLengthError,
    PermanentServiceError,
    PyRAGError,
    RetryableServiceError,
    install_extra,
)
from pyrag.llm.clients.adapters import Adapter
from pyrag.llm.clients.local_spec import LocalSpec, file_of, identity_of, known_window
from pyrag.llm.protocol import CHAT_TEMPLATE, Message, ModelInfo, Reply, Sampling

DEFAULT_SAMPLING = Sampling()
_MIN_REPLY = 16  # tokens; a prompt that leaves fewer is too long
_QUOTED = 200  # characters of an engine's own error that are repeated
_OUT_OF_MEMORY = ("out of memory", "OutOfMemory", "not enough memory", "can't allocate memory", "No available memory")

OnText = Callable[[str], None]


class Runner(Protocol):
    """Loaded model.

    `generate` may be called from any event loop, and calls `say` from any thread. Cancelling it stops the generation.
    """

    window: int  # tokens

    def encode(self, messages: Sequence[Message], template: Mapping[str, Any]) -> list[int]:
        """Return the tokens of a prompt.

        Args:
            messages: The conversation.
            template: Additional variables of the chat template.
        """
        ...

    async def generate(
        self, prompt: list[int], sampling: Sampling, adapter: Adapter | None, say: OnText | None
    ) -> Reply:
        """Generate a reply.

        Args:
            prompt: Token ids.
            sampling: Parameters of the reply. Its `max_tokens` must fit into the window.
            adapter: Adapter to use, or None.
            say: Called with each piece of the text, or None.
        """
        ...

    def close(self) -> None:
        """Free all memory. This call blocks."""
        ...


Make = Callable[[LocalSpec, Sequence[Adapter]], Runner]


@dataclass(slots=True)
class _Shared:
    """Runner of a model and its number of users. A failed start is kept until all users have released the runner."""

    spec: LocalSpec
    make: Make
    adapters: dict[str, Adapter] = field(default_factory=dict)
    users: int = 0
    runner: Future[Runner] | None = None

    def started(self) -> Future[Runner]:
        """Return the runner; start loading it if needed.

        Raises:
            PermanentServiceError: This process is a fork, and the engine's threads exist only in its parent.
        """
        with _lock:
            if self.spec.engine in _left_behind:
                raise PermanentServiceError(
                    f"{self.spec.name} was loaded before this process was forked, and a loaded model cannot be forked: "
                    "ask the first question in the child, or start it with the method spawn",
                    service=self.spec.name,
                )
            if self.runner is None:
                self.runner = Future()
                # Loading takes minutes, and must not prevent the process from exiting.
                threading.Thread(target=self._start, args=(self.runner,), daemon=True).start()
            return self.runner

    def _start(self, result: Future[Runner]) -> None:
        try:
            with _one_at_a_time:
                result.set_result(self.make(self.spec, list(self.adapters.values())))
        except PyRAGError as error:
            result.set_exception(error)
        except BaseException as error:
            result.set_exception(explained(error, self.spec.name, "could not be loaded"))


_lock = threading.Lock()
_one_at_a_time = threading.Lock()
_shared: dict[tuple[str, str, tuple[Any, ...]], _Shared] = {}


_left_behind: set[str] = set()  # engines that were loaded in the parent of a fork


def _after_fork() -> None:
    global _lock, _one_at_a_time
    _lock, _one_at_a_time = threading.Lock(), threading.Lock()
    _left_behind.update(key[0] for key, shared in _shared.items() if shared.runner is not None)
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _acquire(spec: LocalSpec, make: Make) -> _Shared:
    key = (spec.engine, spec.model, spec.options)
    with _lock:
        shared = _shared.setdefault(key, _Shared(replace(spec, adapter=None), make))
        if spec.adapter and shared.adapters.setdefault(spec.adapter.name, spec.adapter) != spec.adapter:
            other = shared.adapters[spec.adapter.name].path
            raise ConfigError(
                f"two adapters are named {spec.adapter.name}, {other} and {spec.adapter.path}: name one otherwise"
            )
        shared.users += 1
        return shared


async def _release(shared: _Shared) -> None:
    with _lock:
        shared.users -= 1
        if shared.users:
            return
        for key in [key for key, user in _shared.items() if user is shared]:
            del _shared[key]
    if shared.runner is None:
        return
    if shared.runner.done():
        await asyncio.to_thread(_close, shared.runner)
    else:
        shared.runner.add_done_callback(_close)


def _close(loaded: Future[Runner]) -> None:
    if not loaded.exception():
        loaded.result().close()


class LocalChat:
    """Model on this machine, or one of its adapters. `timeout` limits one call in seconds, without loading."""

    def __init__(self, spec: LocalSpec, make: Make, *, timeout: float = 60.0) -> None:
        self.spec = spec
        self._make = make
        self._timeout = timeout
        self._shared: _Shared | None = _acquire(spec, make)
        self._identity = ""

    async def cache_identity(self) -> str:
        """Return the model's name for keys of stored replies. It does not change while the model is loaded.

        Raises:
            PermanentServiceError: The model's files cannot be read.
        """
        if not self._identity:
            try:
                self._identity = await asyncio.to_thread(identity_of, self.spec)
            except OSError as error:
                raise explained(error, self.name, "cannot be read") from error
        return self._identity

    @property
    def name(self) -> str:
        """Spec of the model."""
        return self.spec.name

    def __repr__(self) -> str:
        return f"<LocalChat {self.name}>"

    @property
    def window(self) -> int | None:
        """Context window in tokens, taken from the model's files until the model is loaded."""
        runner = self._shared.runner if self._shared else None
        if runner is not None and runner.done() and not runner.exception():
            return runner.result().window
        return known_window(self.spec)

    @property
    def tokenizer(self) -> str | None:
        """Path of the model's own tokenizer.json, if it is on this machine."""
        file = file_of(self.spec, "tokenizer.json")
        return str(file) if file else None

    async def context_tokens(self) -> int | None:
        """Return the context window in tokens, if known."""
        return self.window

    async def offered(self) -> list[ModelInfo]:
        """Return the model, and the adapters that clients in this process have named, without loading anything."""
        adapters = (self._shared.adapters if self._shared else {}).values()
        base = ModelInfo(self.spec.model, None, self.window)
        return [base, *(ModelInfo(adapter.name, self.spec.model, self.window) for adapter in adapters)]

    async def models(self) -> list[str]:
        """Return the ids of the model and its adapters."""
        return [model.id for model in await self.offered()]

    async def start(self) -> None:
        """Load the model unless it is already loaded. Raises the same errors as `complete`."""
        await self.runner()

    async def complete(self, messages: Sequence[Message], sampling: Sampling = DEFAULT_SAMPLING) -> Reply:
        """Return one reply, loading the model first if needed.

        Args:
            messages: The conversation.
            sampling: Parameters of the reply.
        """
        return await self._generate(messages, sampling, None)

    async def stream(self, messages: Sequence[Message], sampling: Sampling, on_text: OnText) -> Reply:
        """Return one reply, and show it while it is written.

        Args:
            messages: The conversation.
            sampling: Parameters of the reply.
            on_text: Called with each piece of the text, in the caller's event loop.
        """
        caller = asyncio.get_running_loop()

        def say(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop has ended
                caller.call_soon_threadsafe(on_text, text)

        return await self._generate(messages, sampling, say)

    async def aclose(self) -> None:
        """Release the model; the next call loads it again."""
        shared, self._shared, self._identity = self._shared, None, ""
        if shared is not None:
            await _release(shared)

    async def runner(self) -> Runner:
        """Return the loaded engine, which all clients of the same model share."""
        if self._shared is None:
            self._shared = _acquire(self.spec, self._make)
        return await asyncio.shield(asyncio.wrap_future(self._shared.started()))

    async def _generate(self, messages: Sequence[Message], sampling: Sampling, say: OnText | None) -> Reply:
        runner = await self.runner()
        prompt = self._encoded(runner, messages, (sampling.extra or {}).get(CHAT_TEMPLATE, {}))
        room = runner.window - len(prompt)
        if room < min(sampling.max_tokens, _MIN_REPLY):
            raise ContextLengthError(
                f"{self.name} has a window of {runner.window} tokens, but the prompt takes {len(prompt)}: "
                "lower --topk, or use a model with a larger window",
                service=self.name,
            )
        sampling = replace(sampling, max_tokens=min(sampling.max_tokens, room))
        try:
            async with asyncio.timeout(self._timeout):
                return await runner.generate(prompt, sampling, self.spec.adapter, say)
        except TimeoutError as error:
            raise RetryableServiceError(
                f"{self.name} did not reply within {self._timeout:.3g} s: allow it more time with --call-timeout or a "
                "longer --deadline, or use a smaller model",
                service=self.name,
                timed_out=True,
            ) from error
        except PyRAGError:
            raise
        except Exception as error:
            raise explained(error, self.name, "failed") from error

    def _encoded(self, runner: Runner, messages: Sequence[Message], template: Mapping[str, Any]) -> list[int]:
        try:
            return runner.encode(messages, template)
        except Exception as error:  # a template may raise anything
            raise PermanentServiceError(
                f"the chat template of {self.name} refuses the messages ({_first_line(error)}): use an instruct model",
                service=self.name,
            ) from error


def encode_chat(tokenizer: Any, messages: Sequence[Message], template: Mapping[str, Any]) -> list[int]:
    """Return the token ids of a prompt.

    Args:
        tokenizer: Tokenizer of transformers, with the model's chat template.
        messages: The conversation. If the last message is the assistant's, it is continued.
        template: Additional variables of the chat template.
    """
    going_on = bool(messages) and messages[-1].role == "assistant"
    turns = [{"role": message.role, "content": message.content} for message in messages]
    text = tokenizer.apply_chat_template(
        turns, tokenize=False, add_generation_prompt=not going_on, continue_final_message=going_on, **template
    )
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def explained(error: BaseException, name: str, what: str) -> PyRAGError:
    """Convert an engine's error to a permanent error with a one-sentence message.

    Args:
        error: The engine's own error.
        name: Spec of the model.
        what: Step that failed, such as "could not be loaded".
    """
    text = f"{type(error).__name__}: {error}"
    if any(words in text for words in _OUT_OF_MEMORY):
        cure = "use a smaller model or dtype=bfloat16, or lower max_model_len"
        return PermanentServiceError(f"{name} {what}: it does not fit into the memory: {cure}", service=name)
    message = f"{name} {what} ({_first_line(error)}): correct what it complains about, or use another model"
    return PermanentServiceError(message, service=name)


def _first_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"


def missing_package(engine: str, package: str) -> ConfigError | None:
    """Return an error if a package is not installed, else None. The package is not imported.

    Args:
        engine: Scheme of the spec.
        package: Package that the engine needs.
    """
    import importlib.util

    if importlib.util.find_spec(package) is not None:
        return None
    return ConfigError(
        f"the engine {engine}: needs the package {package}: {install_extra(engine)}, "
        "or use a server with openai:MODEL@http://host:port/v1"
    )
