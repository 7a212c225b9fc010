"""Our check of sizes against verl's own functions, on the CPU: what we accept verl accepts, and what it refuses we do.

The functions are those that a run meets: the validation of its config, the padding of its batch, the split into
mini-batches with verl's own assertions over a stub engine, micro-batches, and chunks for the agent loops.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("verl", reason="make test-rl runs these where verl is installed")

import torch
from hydra import compose, initialize_config_module
from tensordict import TensorDict
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils import tensordict_utils as tu
from verl.utils.config import validate_config
from verl.workers.engine.utils import prepare_micro_batches
from verl.workers.engine_workers import TrainingWorker

from pyrag.errors import ConfigError
from pyrag_rl.config import TrainConfig, load_config, with_settings
from pyrag_rl.curriculum.stages import load_curriculum
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl.overrides import verl_overrides
from pyrag_rl.verl.sizes import check_sizes

pytestmark = pytest.mark.filterwarnings("ignore")
CONFIGS = Path(__file__).parents[2] / "rl" / "configs"
PACKAGED = [
    ("answer", "grpo"), ("plan", "grpo"), ("decompose", "grpo"), ("rewrite", "grpo"), ("plan", "mapgrpo"),
    ("answer", "mapgrpo"), ("rewrite", "mapgrpo"),
]  # fmt: skip
# The variants that docs/training.md and docs/training show.
DOCUMENTED = [
    [], ["lora_rank=0"], ["norm_adv_by_std=false"], ["trainer_mode=colocate_async"], ["constrained=false"],
    ["gradient_checkpointing=false"], ["batch_size=16"], ["group_size=12"],
]  # fmt: skip


def composed(config: TrainConfig) -> Any:
    folder = RunFolder(Path("/tmp/run"))
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=verl_overrides(config, folder))


def accepted_by_verl(config: TrainConfig) -> bool:
    """Whether verl's own functions pass, with as many data-parallel ranks as GPUs."""
    made = composed(config)
    try:
        validate_config(made, need_reference_policy(made), need_critic(made))
        rollouts(made)
        for rank in range(config.gpus):
            update(made, config.gpus, rank)
    except (AssertionError, ValueError):
        return False
    return True


def rollouts(made: Any) -> None:
    """The replicas of the rollout, and the prompts of a step for the agent loops."""
    world, parts = made.trainer.n_gpus_per_node * made.trainer.nnodes, made.actor_rollout_ref.rollout
    assert world % parts.tensor_model_parallel_size == 0, "as ActorRolloutRefWorker.init_model asserts"
    chunks = TensorDict({"a": torch.arange(made.data.train_batch_size)}, batch_size=made.data.train_batch_size)
    assert sum(map(len, chunks.chunk(parts.agent.num_workers))) == made.data.train_batch_size


def update(made: Any, ranks: int, rank: int) -> None:
    """One rank's share of a step, through verl's `train_mini_batch` up to the engine, which is a stub."""
    actor, n = made.actor_rollout_ref.actor, made.actor_rollout_ref.rollout.n
    trainer = SimpleNamespace(use_critic=False, config=made, global_steps=1)
    multiple = PPOTrainer._get_required_batch_multiple(trainer, ranks)
    size = math.ceil(made.data.train_batch_size * n / multiple) * multiple
    share = TensorDict({"loss_mask": torch.ones(size // ranks, 2)}, batch_size=size // ranks)
    tu.assign_non_tensor(share, mini_batch_size=actor.ppo_mini_batch_size * n, epochs=1)
    worker = SimpleNamespace(engine=StubEngine(ranks, rank), profiler=SimpleNamespace(step=lambda: None))
    worker.train_batch = lambda batch: split(batch, actor)
    TrainingWorker.train_mini_batch.__wrapped__(worker, share)


def split(batch: Any, actor: Any) -> None:
    if not actor.use_dynamic_bsz:
        tu.assign_non_tensor(batch, use_dynamic_bsz=False, micro_batch_size_per_gpu=actor.ppo_micro_batch_size_per_gpu)
        prepare_micro_batches(batch)


class StubEngine:
    def __init__(self, ranks: int, rank: int) -> None:
        self._ranks, self._rank = ranks, rank

    def get_data_parallel_size(self) -> int:
        return self._ranks

    def get_data_parallel_rank(self) -> int:
        return self._rank

    def get_data_parallel_group(self) -> None:
        return None

    def is_mp_src_rank_with_outputs(self) -> bool:
        return False

    def train_mode(self, **_: Any) -> Any:
        from contextlib import nullcontext

        return nullcontext()


def accepted(config: TrainConfig) -> bool:
    try:
        check_sizes(config)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("ranks", [1, 2, 4, 6, 8])
@pytest.mark.parametrize(("agent", "algorithm"), PACKAGED)
def test_packaged_configs_are_judged_as_verl_judges_them(agent: str, algorithm: str, ranks: int) -> None:
    parts = f"tensor_parallel={math.gcd(2, ranks)}"
    config = with_settings(load_config(agent, algorithm, model="m", out="/tmp/run"), [f"gpus={ranks}", parts])
    assert accepted(config) == accepted_by_verl(config) == (ranks != 6)


@pytest.mark.parametrize("pairs", DOCUMENTED, ids=" ".join)
def test_documented_variants_are_judged_as_verl_judges_them(pairs: list[str]) -> None:
    for ranks in (1, 2, 4, 6, 8):
        parts = f"tensor_parallel={math.gcd(2, ranks)}"
        config = with_settings(load_config("plan", model="m", out="/tmp/run"), [f"gpus={ranks}", parts, *pairs])
        assert accepted(config) == accepted_by_verl(config), ranks


def test_every_stage_of_the_packaged_curricula_passes(tmp_path: Path) -> None:
    for name in ("curriculum", "mapgrpo", "opera-grpo"):
        for stage in load_curriculum(CONFIGS / f"{name}.yaml", str(tmp_path)).stages:
            settings = {**stage.settings, "out": "/tmp/run", "prescored": None}
            config = load_config(stage.agent, stage.algorithm, **{"model": "m", **settings})
            assert accepted(config)
            assert accepted_by_verl(config), (name, stage.name)


@pytest.mark.parametrize("profile", ["gpu", "cpu"])
def test_drawn_sizes_are_judged_as_verl_judges_them(profile: str) -> None:
    draw = random.Random(7)
    judged = set()
    for _ in range(40):
        batch = draw.randint(1, 24)
        pairs = [
            f"profile={profile}", f"gpus={draw.choice((1, 2, 3, 4, 6, 8))}", f"batch_size={batch}",
            f"mini_batch_size={draw.randint(1, batch)}", f"group_size={draw.randint(2, 9)}",
            f"micro_batch_size={draw.choice((1, 2, 3, 4, 8))}", f"tensor_parallel={draw.choice((1, 1, 2, 3))}",
            f"lora_rank={draw.choice((0, 8, 512))}",
        ]  # fmt: skip
        config = with_settings(load_config("plan", model="m", out="/tmp/run"), pairs)
        assert accepted(config) == accepted_by_verl(config), pairs
        judged.add(accepted(config))
    assert judged == {True, False}
