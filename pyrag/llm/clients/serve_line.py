"""Command line that serves a model with vLLM.

`pyrag serve-model` runs it, and exports of trained adapters print it. vLLM itself listens on all interfaces; here, the
default is loopback. The key is only passed in the environment variable `VLLM_API_KEY`, since all users of a machine can
read command lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyrag.llm.clients.adapters import Adapter, lora_rank

KEY_VARIABLE = "VLLM_API_KEY"
LOOPBACK = "127.0.0.1"
# Training rollouts have no repetition penalty, so a policy is served as it was trained; some models set 1.05.
PLAIN_SAMPLING = '{"repetition_penalty": 1.0}'
_MAX_AT_ONCE = 8  # maximum adapters in GPU memory together; more take turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Options of a server. None leaves the choice to vLLM.

    Attributes:
        tensor_parallel: Number of GPUs that share one copy of the model.
        data_parallel: Number of copies of the model; multiplied by `tensor_parallel`.
        more: Additional arguments, passed on unchanged.
    """

    model: str
    adapters: Sequence[Adapter] = ()
    host: str = LOOPBACK
    port: int = 8000
    served_name: str | None = None
    tensor_parallel: int = 1
    data_parallel: int = 1
    dtype: str | None = None
    max_model_len: int | None = None  # tokens
    gpu_memory: float | None = None  # share of each GPU's memory
    prefix_caching: bool = True
    more: Sequence[str] = ()


def serve_line(serving: Serving) -> list[str]:
    """Return the program and its arguments. Raises `ConfigError` if vLLM cannot serve an adapter's rank."""
    line = ["vllm", "serve", serving.model, "--host", serving.host, "--port", str(serving.port)]
    options = {
        "--served-model-name": serving.served_name,
        "--tensor-parallel-size": serving.tensor_parallel if serving.tensor_parallel > 1 else None,
        "--data-parallel-size": serving.data_parallel if serving.data_parallel > 1 else None,
        "--dtype": serving.dtype,
        "--max-model-len": serving.max_model_len,
        "--gpu-memory-utilization": serving.gpu_memory,
    }
    for flag, value in options.items():
        line += [] if value is None else [flag, str(value)]
    line.append("--enable-prefix-caching" if serving.prefix_caching else "--no-enable-prefix-caching")
    line += ["--override-generation-config", PLAIN_SAMPLING]
    return [*line, *_adapter_flags(serving.adapters), *serving.more]


def _adapter_flags(adapters: Sequence[Adapter]) -> list[str]:
    if not adapters:
        return []
    at_once = min(len(adapters), _MAX_AT_ONCE)
    flags = ["--enable-lora", "--max-lora-rank", str(lora_rank(adapter.rank for adapter in adapters))]
    flags += ["--max-loras", str(at_once)]
    if len(adapters) > at_once:
        flags += ["--max-cpu-loras", str(len(adapters))]
    return [*flags, "--lora-modules", *(f"{adapter.name}={adapter.path}" for adapter in adapters)]
