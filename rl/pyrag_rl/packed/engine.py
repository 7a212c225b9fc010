"""verl's FSDP engine with three savings where rows are packed without padding; it needs no flash-attn.

* Attention pads the rows of a pack apart: over the pack as a whole, most of its products are masked.
* A prompt stands once in a pack, whatever the number of its replies (GRPO).
* Logits are computed for the tokens of replies alone: those of a reader are one in thirty.
"""

from __future__ import annotations

from typing import Any

import torch
from verl.utils.tensordict_utils import get_non_tensor_data, index_select_tensor_dict
from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead

from pyrag_rl.packed.packing import PACKED_ATTENTION, pack_places, prompts_together, share_prompts


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cuda", vendor="nvidia")
class PackedEngine(FSDPEngineWithLMHead):  # type: ignore[misc,unused-ignore]
    """Takes the place of verl's where it is imported; registered for GPUs, where `pyrag_rl.packed` asks for it."""

    def _build_fsdp_module(self, module: Any) -> Any:
        if self.model_config.use_remove_padding:
            # Not by verl's override, which would be written into the configs of checkpoints and whole models.
            module.config._attn_implementation = PACKED_ATTENTION
        return super()._build_fsdp_module(module)

    def forward_backward_batch(self, data: Any, loss_function: Any, forward_only: bool = False) -> Any:
        """Take rows by their prompts: verl orders them by length, which spreads a prompt's replies over the packs.

        Args:
            data: The rows, as verl's tensors.
            loss_function: The loss of a pack.
            forward_only: True where no gradient is wanted; the rows' order is kept then, as that of the outputs.
        """
        if self.model_config.use_remove_padding and not forward_only:
            replies = data["loss_mask"].offsets().diff().tolist()
            data = index_select_tensor_dict(data, prompts_together(data["input_ids"].unbind(), replies))
        return super().forward_backward_batch(data, loss_function, forward_only)

    def prepare_model_inputs(self, micro_batch: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        inputs, kept_for_outputs = super().prepare_model_inputs(micro_batch)
        if not self.model_config.use_remove_padding:
            return inputs, kept_for_outputs
        tokens = micro_batch["input_ids"]
        if "loss_mask" not in micro_batch:
            return inputs | pack_places(tokens.offsets()), kept_for_outputs
        learnt = learnt_places(tokens, micro_batch["loss_mask"])
        kept_for_outputs["learnt"] = learnt
        replies = micro_batch["loss_mask"].offsets().diff().tolist()
        if replies == tokens.offsets().diff().tolist():  # a mask of whole rows (supervised)
            return inputs | pack_places(tokens.offsets()) | {"logits_to_keep": learnt}, kept_for_outputs
        pack = share_prompts(tokens.unbind(), replies)
        shared = {name: inputs[name][:, pack.kept] for name in ("input_ids", "position_ids")}
        return inputs | shared | pack.attention | {"logits_to_keep": pack.places[learnt]}, kept_for_outputs

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


def learnt_places(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the places in a pack whose logits a loss is taken of, shape (learnt tokens,): those before learnt tokens.

    Args:
        tokens: The rows, a nested tensor.
        mask: 1 at learnt tokens, a nested tensor: of whole rows (supervised), or of replies alone (by reward).
    """
    ends, lengths = tokens.offsets()[1:].tolist(), mask.offsets().diff().tolist()
    whole = torch.zeros(len(tokens.values()), dtype=torch.bool, device=mask.device)
    whole[[place for end, length in zip(ends, lengths, strict=True) for place in range(end - length, end)]] = (
        mask.values().bool()
    )
    return torch.roll(whole, shifts=-1).nonzero()[:, 0]
