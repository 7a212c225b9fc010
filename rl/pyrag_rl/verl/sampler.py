"""Sampler for verl's synchronous trainer that removes completions without others to compare them with.

verl removes completions whose reward failed from their group. If only one completion remains, verl's GRPO uses its
reward as the advantage, and would learn from it without any comparison.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import transfer_queue
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer


class ComparableGroups(ReplayBuffer):  # type: ignore[misc,unused-ignore]
    """Buffer that removes groups with a single completion from training batches."""

    def _materialize_batch(self, partition_id: str, selected_prompt_uids: Any, partition_snapshot: Any) -> Any:
        batch = super()._materialize_batch(partition_id, selected_prompt_uids, partition_snapshot)
        lone = set() if partition_id == "val" else lone_keys(batch.keys)
        if not lone:
            return batch
        transfer_queue.kv_clear(partition_id=partition_id, keys=sorted(lone))
        pairs = [(key, tag) for key, tag in zip(batch.keys, batch.tags, strict=True) if key not in lone]
        if not pairs:
            raise RuntimeError(
                "no completion of the step can be compared with another one of its question: most rewards failed"
            )
        batch.keys, batch.tags = [key for key, _ in pairs], [tag for _, tag in pairs]
        return batch


def lone_keys(keys: list[str]) -> set[str]:
    """Return the keys of groups with a single completion.

    Args:
        keys: Keys in verl's form `{group}_{completion}_{part}`.
    """
    groups: defaultdict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key in keys:
        group, completion, _ = key.rsplit("_", 2)
        groups[group][completion].append(key)
    return {key for group in groups.values() if len(group) == 1 for parts in group.values() for key in parts}
