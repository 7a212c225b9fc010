"""verl's FSDP engine with three savings for rows that are packed without padding. It needs no flash-attn.

* Attention pads the rows of a pack separately, because most products over the whole pack would be masked.
* A prompt occurs only once in a pack, regardless of its number of replies (GRPO).
* Logits are only computed for the tokens of replies, which are a small part of all tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from verl.utils.tensordict_utils import get_non_tensor_data, index_select_tensor_dict
from verl.workers.engine import EngineRegistry, FSDPEngineWithLMHead

from pyrag_rl.packed.packing import PACKED_ATTENTION, pack_places, prompts_together, share_prompts


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cuda", vendor="nvidia")
class PackedEngine(FSDPEngineWithLMHead):  # type: ignore[misc,unused-ignore]
    """Engine that replaces verl's when it is imported. It is registered for GPUs if `pyrag_rl.packed` asks for it."""

    def _build_fsdp_module(self, module: Any) -> Any:
        if self.model_config.use_remove_padding:
            # Set here because verl's override would end up in the configurations of checkpoints and whole models.
            module.config._attn_implementation = PACKED_ATTENTION
        return super()._build_fsdp_module(module)

    def forward_backward_batch(self, data: Any, loss_function: Any, forward_only: bool = False) -> Any:
        """Process a batch with its rows grouped by prompt. (verl's order by length separates a prompt's replies.)

        Args:
            data: Rows, as verl's tensors.
            loss_function: Loss of a pack.
            forward_only: Whether no gradient is needed. If so, the order of rows, and therefore of outputs, is kept.
        """
        if self.model_config.use_remove_padding and not forward_only:
            replies = data["loss_mask"].offsets().diff().tolist()
            data = index_select_tensor_dict(data, prompts_together(data["input_ids"].unbind(), replies))
        return super().forward_backward_batch(data, loss_function, forward_only)

    def prepare_model_inputs(self, micro_batch: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        inputs, for_outputs = super().prepare_model_inputs(micro_batch)
        if not self.model_config.use_remove_padding:
            return inputs, for_outputs
        tokens = micro_batch["input_ids"]
        if "loss_mask" not in micro_batch:
            return inputs | pack_places(tokens.offsets()), for_outputs
        learnt = learnt_places(tokens, micro_batch["loss_mask"])
        for_outputs["learnt"] = learnt
        replies = micro_batch["loss_mask"].offsets().diff().tolist()
        if replies == tokens.offsets().diff().tolist():  # supervised: the mask covers whole rows
            return inputs | pack_places(tokens.offsets()) | {"logits_to_keep": learnt}, for_outputs
        pack = share_prompts(tokens.unbind(), replies)
        shared = {name: inputs[name][:, pack.sources] for name in ("input_ids", "position_ids")}
        return inputs | shared | pack.attention | {"logits_to_keep": pack.places[learnt]}, for_outputs

    def prepare_model_outputs(self, output: Any, output_args: Any, micro_batch: Any, logits_processor_func: Any) -> Any:
        """Return the log-probabilities of a pack, and entropies if requested, with zeros at positions without a loss.

        Args:
            output: Output of the model.
            output_args: Result of `prepare_model_inputs`.
            micro_batch: The pack, as verl's tensors.
            logits_processor_func: Function for other losses.
        """
        learnt = output_args.get("learnt")
        if learnt is None:
            return super().prepare_model_outputs(output, output_args, micro_batch, logits_processor_func)
        labels = output_args["input_ids_rmpad_rolled"]
        logits = output.logits[0].float() / output_args["temperature_rmpad"][learnt, None]
        outputs = {"log_probs": -torch.nn.functional.cross_entropy(logits, labels[learnt], reduction="none")}
        if get_non_tensor_data(data=micro_batch, key="calculate_entropy", default=False):
            outputs["entropy"] = self.compute_entropy_from_logits(logits)
        offsets = micro_batch["input_ids"].offsets()
        spread = {name: values.new_zeros(len(labels)).index_copy(0, learnt, values) for name, values in outputs.items()}
        return {name: torch.nested.nested_tensor_from_jagged(values, offsets) for name, values in spread.items()}


def learnt_places(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the positions in a pack whose logits enter the loss, right before learnt tokens: shape (learnt tokens,).

    Args:
        tokens: Rows, as a nested tensor.
        mask: 1 at learnt tokens, as a nested tensor over whole rows (supervised) or over replies (by reward).
    """
    ends, lengths = tokens.offsets()[1:].tolist(), mask.offsets().diff().tolist()
    whole = torch.zeros(len(tokens.values()), dtype=torch.bool, device=mask.device)
    whole[[place for end, length in zip(ends, lengths, strict=True) for place in range(end - length, end)]] = (
        mask.values().bool()
    )
    return torch.roll(whole, shifts=-1).nonzero()[:, 0]
