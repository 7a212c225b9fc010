"""verl's FSDP engine on a CPU, with three savings where rows are packed without padding.

* The layers are compiled, which fuses their small operations (supervised fine-tuning).
* Attention pads the rows of a pack apart: over the pack as a whole, most of its products are masked.
* Logits are computed for the tokens of replies alone: those of a reader are one in thirty.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import verl.workers.engine.fsdp.transformer_impl as fsdp
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from verl.utils.tensordict_utils import get_non_tensor_data
from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead

from pyrag_rl.cpu_smoke import replaced

PACKED_ATTENTION = "packed_sdpa"  # its name in transformers


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
class CPUEngine(FSDPEngineWithLMHead):  # type: ignore[misc,unused-ignore]
    def _build_fsdp_module(self, module: Any) -> Any:
        if self.engine_config.use_torch_compile:
            compile_layers(module)
        if self.model_config.use_remove_padding:
            # Not by verl's override, which would be written into the configs of checkpoints and whole models.
            module.config._attn_implementation = PACKED_ATTENTION
        with _unpinned():
            return super()._build_fsdp_module(module)

    def prepare_model_inputs(self, micro_batch: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        inputs, kept_for_outputs = super().prepare_model_inputs(micro_batch)
        if self.model_config.use_remove_padding:
            inputs |= pack_places(micro_batch["input_ids"].offsets())
            if "loss_mask" in micro_batch:
                learnt = learnt_places(micro_batch["input_ids"], micro_batch["loss_mask"])
                inputs["logits_to_keep"] = kept_for_outputs["learnt"] = learnt
        return inputs, kept_for_outputs

    def prepare_model_outputs(self, output: Any, output_args: Any, micro_batch: Any, logits_processor_func: Any) -> Any:
        """Return the log-probabilities of a pack, and the entropies if asked for, zeros where no loss is taken.

        Args:
            output: The model's.
            output_args: Of `prepare_model_inputs`.
            micro_batch: The pack, as verl's tensors.
            logits_processor_func: Of other losses.
        """
        learnt = output_args.get("learnt")
        if learnt is None:
            return super().prepare_model_outputs(output, output_args, micro_batch, logits_processor_func)
        labels = output_args["input_ids_rmpad_rolled"]
        logits = output.logits[0].float() / output_args["temperature_rmpad"][learnt, None]
        found = {"log_probs": -torch.nn.functional.cross_entropy(logits, labels[learnt], reduction="none")}
        if get_non_tensor_data(data=micro_batch, key="calculate_entropy", default=False):
            found["entropy"] = self.compute_entropy_from_logits(logits)
        offsets = micro_batch["input_ids"].offsets()
        spread = {name: one.new_zeros(len(labels)).index_copy(0, learnt, one) for name, one in found.items()}
        return {name: torch.nested.nested_tensor_from_jagged(one, offsets) for name, one in spread.items()}


def compile_layers(module: Any) -> None:
    """Fuse the small operations of each decoder layer. All share one compiled function, so this costs half a minute.

    Args:
        module: A model of transformers, with or without adapters.
    """
    torch._dynamo.config.suppress_errors = True  # without a compiler the layers stay as they are
    for layer in module.modules():
        if type(layer).__name__ in module._no_split_modules:
            layer.forward = torch.compile(layer.forward, dynamic=True)


def learnt_places(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the places in a pack whose logits a loss is taken of, shape (learnt tokens,): those before learnt tokens.

    Args:
        tokens: The rows, a nested tensor.
        mask: 1 at learnt tokens, a nested tensor: of whole rows (supervised), or of replies alone (by reward).
    """
    ends, lengths = tokens.offsets()[1:].tolist(), mask.offsets().diff().tolist()
    whole = torch.zeros(len(tokens.values()), dtype=torch.bool)
    whole[[place for end, length in zip(ends, lengths, strict=True) for place in range(end - length, end)]] = (
        mask.values().bool()
    )
    return torch.roll(whole, shifts=-1).nonzero()[:, 0]


def pack_places(offsets: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the places that lay a pack of rows out as a padded batch, and back.

    Args:
        offsets: Start of each row in the pack and the end of the last, shape (rows + 1,).

    Returns:
        `spread`, the token of the pack at each place of the batch, shape (rows, longest), and `gathered`, the place in
        the flattened batch of each token of the pack, shape (tokens,).
    """
    lengths = offsets.diff()
    steps = torch.arange(int(lengths.max()))
    spread = (offsets[:-1, None] + steps).clamp(max=int(offsets[-1]) - 1)  # what stands after a row is not looked at
    return {"spread": spread, "gathered": (steps < lengths[:, None]).flatten().nonzero()[:, 0]}


def packed_attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: object, *,
    spread: torch.Tensor, gathered: torch.Tensor, dropout: float = 0.0, scaling: float | None = None, **_: object,
) -> tuple[torch.Tensor, None]:  # fmt: skip
    """Causal attention within each row of a pack.

    Args:
        module: The attention layer.
        query: Shape (1, heads, tokens, width), as `key` and `value`, whose heads may be fewer.
        key: The keys.
        value: The values.
        attention_mask: Ignored: transformers makes none for an attention of this kind.
        spread: Of `pack_places`, as `gathered`.
        gathered: Place of each token in the batch.
        dropout: Probability of dropout.
        scaling: Factor of the products.

    Returns:
        Shape (1, tokens, heads, width), and None for the weights.
    """
    apart = (one[0][:, spread].transpose(0, 1) for one in (query, key, value))
    found, _none = sdpa_attention_forward(module, *apart, None, dropout=dropout, scaling=scaling, is_causal=True)
    return found.flatten(0, 1)[gathered][None], None


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


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
