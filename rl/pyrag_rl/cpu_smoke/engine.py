"""Packed engine on a CPU: layers are compiled for long runs, and adapters are merged in fp32 for rollouts."""

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
    """Packed engine for CPUs."""

    def _build_fsdp_module(self, module: Any) -> Any:
        if self.engine_config.use_torch_compile:
            compile_layers(module)
        with _unpinned():
            return super()._build_fsdp_module(module)

    def _merged_lora_per_tensor_param(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights merged with the adapter, for rollouts, in the precision of training.

        verl's own method rounds them to bfloat16, so that log-probabilities of rollout and trainer would differ.
        """
        with merged_lora_context(self.module, backup_adapters=True):
            weights = convert_weight_keys(normalize_peft_param_name(self.module.state_dict()), self.module)
            for name, weight in weights.items():
                yield name, weight.full_tensor() if isinstance(weight, DTensor) else weight.detach().clone()


def compile_layers(module: Any) -> None:
    """Compile each decoder layer, which fuses small operations. Layers share one function; this takes half a minute.

    Args:
        module: A transformers model, with or without adapters.
    """
    torch._dynamo.config.suppress_errors = True  # without a compiler, layers stay unchanged
    for layer in module.modules():
        if type(layer).__name__ in module._no_split_modules:
            layer.forward = torch.compile(layer.forward, dynamic=True)


@contextmanager
def _unpinned() -> Iterator[None]:
    """Run a block without `pin_memory`, which verl sets for every reference model but which needs an accelerator."""

    def policy(pin_memory: bool = True) -> Any:
        return original(pin_memory=False)

    original = replaced(fsdp, "CPUOffloadPolicy", policy)
    try:
        yield
    finally:
        fsdp.CPUOffloadPolicy = original
