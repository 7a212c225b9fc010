"""verl's merger for checkpoints that contain only an adapter. It joins the shards without a base model.

`python -m pyrag_rl.verl.adapter_merger CHECKPOINT OUT` writes OUT/lora_adapter, in a separate process, like verl's
merger.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from verl.model_merger.base_model_merger import ModelMergerConfig
from verl.model_merger.fsdp_model_merger import FSDPModelMerger


class AdapterMerger(FSDPModelMerger):  # type: ignore[misc,unused-ignore]
    """Merger that writes only the adapter."""

    def save_hf_model_and_tokenizer(self, state_dict: dict[str, Any]) -> None:
        """Write the adapter. Raises `ValueError` if the checkpoint has none."""
        if self.save_lora_adapter(state_dict) is None:
            raise ValueError(f"{self.config.local_dir} holds no adapter")


def merge(checkpoint: Path, out: Path) -> None:
    """Write the adapter of a checkpoint.

    Args:
        checkpoint: Folder of the shards.
        out: Folder to write.
    """
    config = ModelMergerConfig(
        operation="merge",
        backend="fsdp",
        local_dir=str(checkpoint),
        hf_model_config_path=str(checkpoint / "huggingface"),
        target_dir=str(out),
    )
    AdapterMerger(config).merge_and_save()


if __name__ == "__main__":
    merge(Path(sys.argv[1]), Path(sys.argv[2]))
