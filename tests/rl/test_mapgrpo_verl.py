"""How a pre-scored candidate enters verl's batch: its tokens, its share in the group, and what is learnt from it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl", reason="make test-rl runs these where verl is installed")

import numpy as np
import torch
from hydra import compose, initialize_config_module
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, compute_policy_loss_vanilla, kl_penalty
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.config import FSDPActorConfig
from verl.workers.rollout.replica import TokenOutput

from pyrag.methods.opera.schemas import GOALS
from pyrag_rl.config import TrainConfig, make_config, save_config
from pyrag_rl.data.rows import TrainRow, as_columns
from pyrag_rl.folder import RunFolder
from pyrag_rl.mapgrpo.prescored import Candidate
from pyrag_rl.verl.loops import PrescoredAgentLoop
from pyrag_rl.verl.overrides import verl_overrides
from tests.rl import tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # verl, Ray and torch warn of their own affairs
PLAN = json.dumps({"goals": [{"step": 1, "goal": "Who wrote Dracula?", "type": "person", "needs": []}]})
PROMPT = [{"role": "system", "content": "You are the Plan Agent."}, {"role": "user", "content": "Who wrote Dracula?"}]
ROW = TrainRow(
    index=0, id="q", agent="plan", source="toy", question="Who wrote Dracula?", answers=("Stoker",), messages=()
)  # fmt: skip
RESPONSE = 96


class Server:
    """Stands in for verl's rollout server: says `said`, with log-probabilities, and counts."""

    def __init__(self, tokenizer: Any, said: str = "a plan") -> None:
        self.calls = 0
        self.params: dict[str, Any] = {}
        self._tokens = [*tokenizer(said, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]

    async def generate(self, sampling_params: dict[str, Any], **_: Any) -> TokenOutput:
        self.calls += 1
        self.params = sampling_params
        steps = {"global_steps": 2, "min_global_steps": 2, "max_global_steps": 2}
        return TokenOutput(token_ids=self._tokens, log_probs=[-1.0] * len(self._tokens), extra_fields=steps)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    tiny.make(folder, [PLAN, "a plan", *(one["content"] for one in PROMPT)] * 8)
    return folder


def config_of(folder: Path, model: Path, injected: str, completion: str = PLAN, score: float = 0.9) -> TrainConfig:
    found = Candidate(id="q", source="toy", question=ROW.question, completion=completion, score=score)
    path = folder / "prescored.jsonl"
    path.write_text(json.dumps(asdict(found)) + "\n")
    values = {
        "agent": "plan",
        "algorithm": "mapgrpo",
        "model": str(model),
        "prescored": str(path),
        "injected": injected,
    }
    return make_config({**values, "out": str(folder / "run"), "response_tokens": RESPONSE})


def roll_out(config: TrainConfig, session: int, row: TrainRow = ROW) -> tuple[AgentLoopOutput, Server, Any]:
    from transformers import AutoTokenizer

    folder = RunFolder(Path(config.out))
    folder.path.mkdir(exist_ok=True)
    save_config(config, folder.config)
    with initialize_config_module("verl.trainer.config", version_base=None):
        made = compose("ppo_trainer", overrides=verl_overrides(config, folder))
    tokenizer = AutoTokenizer.from_pretrained(config.model)
    server = Server(tokenizer)

    async def run() -> AgentLoopOutput:
        loop = PrescoredAgentLoop(
            trainer_config=DictConfigWrap(made),
            server_manager=server,
            tokenizer=tokenizer,
            processor=None,
            dataset_cls=RLHFDataset,
            data_config=DictConfigWrap(made.data),
            hf_model_type="qwen2",
            run=config.out,
        )
        extra = as_columns(row)["extra_info"]
        return await loop.run({}, raw_prompt=PROMPT, extra_info=extra, session_id=session, global_steps=3)

    return asyncio.run(run()), server, tokenizer


class TestTheSlot:
    def test_holds_the_candidates_tokens_and_asks_no_model(self, model: Path, tmp_path: Path) -> None:
        made, server, tokenizer = roll_out(config_of(tmp_path, model, "gradient"), session=0)
        assert server.calls == 0
        assert tokenizer.decode(made.response_ids, skip_special_tokens=True) == PLAN
        assert made.response_ids[-1] == tokenizer.eos_token_id
        assert made.response_mask == [1] * len(made.response_ids)
        assert "Who wrote Dracula?" in tokenizer.decode(made.prompt_ids)
        assert made.reward_score is None  # the reward function scores it, as it does the others
        assert made.extra_fields["min_global_steps"] == 2

    def test_without_gradient_no_token_is_learnt_from(self, model: Path, tmp_path: Path) -> None:
        made, _, _ = roll_out(config_of(tmp_path, model, "no_gradient"), session=0)
        assert made.response_ids
        assert made.response_mask == [0] * len(made.response_ids)

    def test_the_prompt_is_that_of_the_other_slots(self, model: Path, tmp_path: Path) -> None:
        config = config_of(tmp_path, model, "gradient")
        injected, other = roll_out(config, session=0)[0], roll_out(config, session=1)[0]
        assert injected.prompt_ids == other.prompt_ids
        assert "rollout_log_probs" not in injected.as_dict() | other.as_dict()

    def test_the_other_slots_are_held_to_the_form_of_serving(self, model: Path, tmp_path: Path) -> None:
        config = config_of(tmp_path, model, "gradient")
        assert roll_out(config, session=1)[1].params["structured_outputs"].json == GOALS
        free = replace(config, constrained=False)
        assert "structured_outputs" not in roll_out(free, session=1)[1].params

    @pytest.mark.parametrize(
        ("session", "more", "split"),
        [
            (1, {}, "train"),  # another slot
            (0, {"score": 0.5}, "train"),  # no candidate is good enough
            (0, {"completion": PLAN * 9}, "train"),  # too long for a response
            (0, {}, "eval"),
        ],
    )
    def test_else_the_policy_speaks(
        self, model: Path, tmp_path: Path, session: int, more: dict[str, Any], split: str
    ) -> None:

        config = config_of(tmp_path, model, "gradient", **more)
        made, server, tokenizer = roll_out(config, session, replace(ROW, split=split))
        assert server.calls == 1
        assert tokenizer.decode(made.response_ids, skip_special_tokens=True) == "a plan"
        assert set(made.response_mask) == {1}

    def test_verl_composes_it(self, model: Path, tmp_path: Path) -> None:
        config = config_of(tmp_path, model, "gradient")
        with initialize_config_module("verl.trainer.config", version_base=None):
            made = compose("ppo_trainer", overrides=verl_overrides(config, RunFolder(tmp_path)))
        assert made.actor_rollout_ref.rollout.agent.default_agent_loop == "prescored_agent"
        assert made.actor_rollout_ref.rollout.calculate_log_probs is False
        assert made.actor_rollout_ref.rollout.n == 8


class TestTheGroup:
    """verl's own advantage and loss over a group of four, the candidate in the first slot."""

    rewards = torch.tensor([1.0, 0.2, 0.4, 0.0])

    def batch(self, learns: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Rewards at the last token, the response mask, verl's advantages."""
        mask = torch.ones(4, 5)
        mask[0] = float(learns)
        levels = torch.zeros(4, 5)
        levels[:, -1] = self.rewards
        advantages, _ = compute_grpo_outcome_advantage(levels, mask, np.array(["g"] * 4, dtype=object))
        return levels, mask, advantages

    @pytest.mark.parametrize("learns", [True, False])
    def test_its_reward_counts_in_mean_and_deviation(self, learns: bool) -> None:
        _, _, advantages = self.batch(learns)
        expected = (self.rewards - self.rewards.mean()) / (self.rewards.std() + 1e-6)
        assert torch.allclose(advantages[1:, 0], expected[1:])
        assert advantages[0, 0] == pytest.approx(float(expected[0]) if learns else 0.0)

    @pytest.mark.parametrize("mode", ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum"])
    def test_without_gradient_nothing_flows_to_it(self, mode: str) -> None:
        gradients = self.gradients(learns=False, mode=mode)
        assert torch.all(gradients[0] == 0)
        assert torch.all(gradients[1:] != 0)
        assert torch.all(torch.isfinite(gradients))

    def test_with_gradient_it_is_made_likelier(self) -> None:
        gradients = self.gradients(learns=True, mode="token-mean")
        assert torch.all(gradients[0] < 0)  # descent raises its log-probabilities

    def gradients(self, *, learns: bool, mode: str) -> torch.Tensor:
        """Of verl's loss with its KL term, by the log-probabilities of the current policy."""
        from verl.trainer.ppo.core_algos import agg_loss

        _, mask, advantages = self.batch(learns)
        torch.manual_seed(0)
        old = -torch.rand(4, 5)
        now = old.clone().requires_grad_()
        config = FSDPActorConfig(rollout_n=4, ppo_micro_batch_size_per_gpu=4, loss_agg_mode=mode)
        loss, _ = compute_policy_loss_vanilla(old, now, advantages, mask, mode, config)
        kl = agg_loss(kl_penalty(now, old - 0.1, "low_var_kl"), mask, mode)
        (loss + 0.05 * kl).backward()
        assert now.grad is not None
        return now.grad
