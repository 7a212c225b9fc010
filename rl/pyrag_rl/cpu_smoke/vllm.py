"""Additions that verl's vLLM rollout needs on a CPU, for tests. vLLM loads this module as its worker extension."""

from __future__ import annotations

from typing import Any

import torch
import verl.workers.rollout.vllm_rollout.bucketed_weight_transfer as transfer
import vllm.model_executor.layers.utils as layers
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from pyrag_rl.cpu_smoke import replaced


def _plain_linear(layer: Any, remove_weight: bool) -> None:
    """Keep linear weights unpacked. vLLM packs them for oneDNN and drops them, so that they could not be updated."""
    layer.cpu_linear = lambda x, weight, bias: torch.nn.functional.linear(x, weight, bias)


def _receive_copies(self: Any, on_bucket_received: Any) -> Any:
    """Copy received weights. On a CPU, `to(device)` returns a view that keeps the shared memory open."""

    def on_bucket(weights: list[tuple[str, torch.Tensor]], is_last: bool) -> Any:
        return on_bucket_received([(name, value.clone()) for name, value in weights], is_last)

    return _receive(self, on_bucket)


replaced(layers, "dispatch_cpu_unquantized_gemm", _plain_linear)
_receive = replaced(transfer.BucketedWeightReceiver, "receive_weights", _receive_copies)


class CPUWorkerExtension(vLLMColocateWorkerExtension):  # type: ignore[misc,unused-ignore]
    pass
