"""A process of verl's own engine on gloo: a tiny model with an adapter, and what it would send to the rollout engine.

`torchrun tests/rl/lora_sync.py MODEL OUT [nothing]`; rank 0 writes OUT/sent.json. With `nothing`, verl's collecting
function finds no tensor, as with its older FSDP and peft 0.21. `test_lora_sync` runs it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(model: str, out: Path, *, nothing: bool) -> None:
    import verl  # noqa: F401  imports what VERL_USE_EXTERNAL_MODULES names
    from verl.trainer.config import CheckpointConfig
    from verl.utils.distributed import initialize_global_process_group
    from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
    from verl.workers.engine import EngineRegistry

    _, rank, world = initialize_global_process_group()
    engine = EngineRegistry.new(
        model_type="language_model",
        backend="fsdp2",
        model_config=HFModelConfig(
            path=model, lora_rank=4, lora_alpha=8, target_modules="all-linear", use_remove_padding=False,
            override_config={"attn_implementation": "sdpa"},
        ),
        engine_config=FSDPEngineConfig(strategy="fsdp2", fsdp_size=world, use_torch_compile=False),
        optimizer_config=FSDPOptimizerConfig(lr=1e-3, total_training_steps=1),
        checkpoint_config=CheckpointConfig(
            save_contents=["model", "optimizer", "extra"], load_contents=["model", "optimizer", "extra"],
            save_lora_only=True,
        ),
    )  # fmt: skip
    engine.initialize()
    if nothing:
        import verl.workers.engine.fsdp.transformer_impl as fsdp

        fsdp.collect_lora_params = lambda **_: {}
    try:
        tensors, _ = engine.get_per_tensor_param(layered_summon=True, base_sync_done=True)
        found = {"names": [name for name, _ in tensors], "error": ""}
    except RuntimeError as error:
        found = {"names": [], "error": str(error)}
    if not nothing:
        engine.save_checkpoint(str(out / "checkpoint"), global_step=1)
        engine.load_checkpoint(str(out / "checkpoint"))
    if rank == 0:
        (out / "sent.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), nothing="nothing" in sys.argv)
