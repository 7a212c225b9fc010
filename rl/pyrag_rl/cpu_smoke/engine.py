"""The packed engine on a CPU: layers compiled for long runs, and adapters merged in fp32 for rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import verl.workers.engine.fsdp.transformer_impl as fsdp
from torch.distributed.tensor import DTensor
from verl.utils.fsdp_utils import merged_lora_context, normalize_peft_param_name
from verl.utils.model import convert_weight_keys
from verl.workers.engine import EngineRegistry

from pyrag_rl.cpu_smoke import replaced
from pyrag_rl.packed.engine import PackedEngine


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
class CPUEngine(PackedEngine):
    def _build_fsdp_module(self, module: Any) -> Any:
        if self.engine_config.use_torch_compile:
            compile_layers(module)
        with _unpinned():
            return super()._build_fsdp_module(module)

    def _merged_lora_per_tensor_param(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights with the adapter in them, for rollouts, in the precision in which they are learnt: verl's
        rounds them to bfloat16, and log-probabilities of the two sides would differ."""
        with merged_lora_context(self.module, backup_adapters=True):
            weights = convert_weight_keys(normalize_peft_param_name(self.module.state_dict()), self.module)
            for name, one in weights.items():
                yield name, one.full_tensor() if isinstance(one, DTensor) else one.detach().clone()


def compile_layers(module: Any) -> None:
    """Fuse the small operations of each decoder layer. All share one compiled function, so this costs half a minute.

    Args:
        module: A model of transformers, with or without adapters.
    """
    torch._dynamo.config.suppress_errors = True  # without a compiler the layers stay as they are
    for layer in module.modules():
        if type(layer).__name__ in module._no_split_modules:
            layer.forward = torch.compile(layer.forward, dynamic=True)


@contextmanager
def _unpinned() -> Iterator[None]:
    """Without `pin_memory`, which needs an accelerator: verl sets it for every reference model."""

    def policy(pin_memory: bool = True) -> Any:
        return original(pin_memory=False)

    original = replaced(fsdp, "CPUOffloadPolicy", policy)
    try:
        yield
    finally:
        fsdp.CPUOffloadPolicy = original
