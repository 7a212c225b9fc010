"""Our side of verl against verl itself, without training: `make test-rl`, where verl is installed."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("verl", reason="make test-rl runs these where verl is installed")

import numpy as np
import torch
from hydra import compose, initialize_config_module
from hypothesis import given
from hypothesis import strategies as st
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.trainer.ppo.reward import load_reward_manager
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import validate_config
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from verl.workers.rollout.replica import TokenOutput

from pyrag.errors import ConfigError
from pyrag_rl.config import TrainConfig, load_config, save_config, with_settings
from pyrag_rl.data.rows import as_columns, read_rows
from pyrag_rl.folder import RunFolder
from pyrag_rl.rewards.environment import OutsideFailureError
from pyrag_rl.rewards.score import ERRORS, KEYS
from pyrag_rl.verl import sft
from pyrag_rl.verl.launch import composed, composed_by, train, write_loops
from pyrag_rl.verl.loops import ProgramAgentLoop
from pyrag_rl.verl.overrides import verl_overrides
from tests.rl import tasks, tiny

pytestmark = pytest.mark.filterwarnings("ignore")  # verl, Ray and torch warn of their own affairs


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> tuple[tasks.Task, Path]:
    folder = tmp_path_factory.mktemp("plan")
    task = tasks.plan_task(folder)
    tiny.make(folder / "model", task.texts)
    return task, folder


def config_of(plan: tuple[tasks.Task, Path], *pairs: str) -> TrainConfig:
    task, folder = plan
    runtime = {"llm": "embedded", "retriever": None, "prompts": str(task.prompts), "deadline": 60}
    made = load_config(
        "plan", model=str(folder / "model"), data=str(task.data), out=str(folder / "run"), runtime=runtime
    )
    return with_settings(made, ["response_tokens=192", "prompt_tokens=256", *pairs])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_reported_before_the_start(plan: tuple[tasks.Task, Path]) -> None:
    made = config_of(plan, "batch_size=6")
    with pytest.raises(ConfigError, match="wants 8 GPUs, and this machine has none"):
        train(made)
    assert not Path(made.out).exists()


def compose_of(config: TrainConfig) -> Any:
    folder = RunFolder(Path(config.out))
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=verl_overrides(config, folder))


@pytest.mark.parametrize("profile", ["gpu", "cpu-smoke"])
@pytest.mark.parametrize("rollout", ["vllm", "hf_cpu"])
def test_verl_composes_both_profiles(plan: tuple[tasks.Task, Path], profile: str, rollout: str) -> None:
    made = compose_of(config_of(plan, f"profile={profile}", f"rollout={rollout}", "repairs=1"))
    assert made.reward.custom_reward_function.path == "pkg://pyrag_rl.rewards.environment"
    assert made.reward.custom_reward_function.reward_kwargs.run == str(plan[1] / "run")
    assert made.custom_reward_function.path is None  # the key that verl ignores
    assert made.algorithm.adv_estimator == "grpo"
    assert made.actor_rollout_ref.actor.optim.lr == 3e-6
    assert made.actor_rollout_ref.rollout.n == 4
    assert made.actor_rollout_ref.rollout.agent.default_agent_loop == "program_agent"
    assert made.actor_rollout_ref.model.lora_rank == 64


def test_verl_accepts_the_gpu_profile(plan: tuple[tasks.Task, Path]) -> None:
    made = compose_of(config_of(plan))
    validate_config(made, need_reference_policy(made), need_critic(made))
    assert need_reference_policy(made)


@pytest.mark.parametrize("profile", ["gpu", "cpu-smoke"])
def test_verl_composes_supervised_fine_tuning(plan: tuple[tasks.Task, Path], profile: str) -> None:
    made = config_of(plan, f"profile={profile}", "min_learning_rate=0.125")
    text = sft.composed(replace(made, algorithm="sft"))
    assert "lora_rank: 64" in text
    assert "min_lr_ratio: 0.125" in text


def test_a_dry_run_shows_what_verl_composes(plan: tuple[tasks.Task, Path]) -> None:
    assert "kl_loss_type: low_var_kl" in composed(config_of(plan))


def test_a_key_that_verl_lost_is_said() -> None:
    with pytest.raises(ConfigError, match=r"install verl 0\.9\.1"):
        composed_by("ppo_trainer", ["algorithm.adv_estimater=grpo"])


def dataset(plan: tuple[tasks.Task, Path]) -> tuple[Any, RLHFDataset]:
    from transformers import AutoTokenizer

    made = compose_of(config_of(plan))
    tokenizer = AutoTokenizer.from_pretrained(plan[1] / "model")
    return tokenizer, RLHFDataset(data_files=made.data.train_files, tokenizer=tokenizer, config=made.data)


def test_verl_reads_our_parquet(plan: tuple[tasks.Task, Path]) -> None:
    _, found = dataset(plan)
    rows = read_rows(plan[0].data)
    assert len(found) == len(rows)
    batch = collate_fn([found[0], found[1]])
    assert [list(prompt) for prompt in batch["raw_prompt"]] == [as_columns(row)["prompt"] for row in rows[:2]]
    assert list(batch["index"]) == [0, 1]
    assert batch["extra_info"][0]["sub_queries"] == list(rows[0].sub_queries)


@pytest.mark.parametrize(
    ("completion", "score", "reason"),
    [(tasks.fenced(tasks.good(tasks.PROGRAMMED[3][2])), 1.0, ""), ("Let me think.", 0.0, "no_program")],
)
def test_verl_s_reward_manager_runs_our_function(
    plan: tuple[tasks.Task, Path], completion: str, score: float, reason: str
) -> None:
    config = config_of(plan)
    save_into(config)
    tokenizer, found = dataset(plan)
    item = found[3]
    response = tokenizer(completion, add_special_tokens=False, return_tensors="pt")["input_ids"]
    prompt = torch.ones(1, 4, dtype=torch.long)
    mask = torch.ones(1, 4 + response.shape[1], dtype=torch.long)
    data = DataProto.from_dict(
        tensors={"prompts": prompt, "responses": response, "attention_mask": mask},
        non_tensors={key: np.array([item[key]], dtype=object) for key in ("data_source", "reward_model", "extra_info")},
    )

    async def run() -> dict[str, Any]:
        return await load_reward_manager(compose_of(config), tokenizer).run_single(data)

    told = asyncio.run(run())
    assert told["reward_score"] == score
    assert tuple(told["reward_extra_info"]) == KEYS
    assert ERRORS[int(told["reward_extra_info"]["error"])] == reason


def save_into(config: TrainConfig) -> RunFolder:
    folder = RunFolder(Path(config.out))
    folder.path.mkdir(exist_ok=True)
    save_config(config, folder.config)
    write_loops(folder)
    return folder


# Exact in float32: where the rewards of a group are equal, a rounding of their mean would be divided by 1e-6.
rewards = st.lists(st.sampled_from([0.0, 0.25, 0.75, 1.0]), min_size=2, max_size=8)


@given(st.lists(rewards, min_size=1, max_size=4))
def test_verl_s_advantage_is_the_formula_of_grpo(groups: list[list[float]]) -> None:
    """(r - mean of its group) / standard deviation of its group, the same for every token (OPERA, equation 2)."""
    flat = [reward for group in groups for reward in group]
    length = 3
    given_rewards = torch.zeros(len(flat), length)
    given_rewards[:, -1] = torch.tensor(flat)
    index = np.array([str(number) for number, group in enumerate(groups) for _ in group], dtype=object)
    found, _ = compute_grpo_outcome_advantage(given_rewards, torch.ones(len(flat), length), index)
    wanted = [ours(group, reward) for group in groups for reward in group]
    assert torch.allclose(found, torch.tensor(wanted)[:, None].expand(-1, length), atol=1e-4)


def ours(group: list[float], reward: float) -> float:
    mean = sum(group) / len(group)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in group) / (len(group) - 1))
    return (reward - mean) / (deviation + 1e-6)


class FakeServer:
    """Replies instead of a rollout server, token by token like one."""

    def __init__(self, tokenizer: Any, texts: list[str]) -> None:
        self._tokenizer, self._texts = tokenizer, texts
        self.prompts: list[list[int]] = []

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: Any, **_: Any) -> TokenOutput:
        self.prompts.append(list(prompt_ids))
        said = self._tokenizer(self._texts.pop(0), add_special_tokens=False)["input_ids"]
        ids = [*said, self._tokenizer.eos_token_id][: sampling_params["max_tokens"]]
        steps = {"global_steps": 3, "min_global_steps": 3, "max_global_steps": 3}
        return TokenOutput(token_ids=ids, log_probs=[-1.0] * len(ids), stop_reason="completed", extra_fields=steps)


def rolled_out(plan: tuple[tasks.Task, Path], texts: list[str], *pairs: str) -> tuple[Any, FakeServer, Any]:
    config = config_of(plan, f"out={plan[1] / 'loop'}", *pairs)
    folder = save_into(config)
    tokenizer, found = dataset(plan)
    server, made, item = FakeServer(tokenizer, texts), compose_of(config), found[3]

    async def run() -> Any:
        loop = ProgramAgentLoop(
            trainer_config=DictConfigWrap(made), server_manager=server, tokenizer=tokenizer, processor=None,
            dataset_cls=RLHFDataset, data_config=DictConfigWrap(made.data), hf_model_type="qwen2", run=str(folder.path),
        )  # fmt: skip
        return await loop.run({"temperature": 1.0}, raw_prompt=item["raw_prompt"], extra_info=item["extra_info"])

    return asyncio.run(run()), server, tokenizer


def whole(out: Any) -> None:
    """What holds of every output: mask, log-probabilities and response have one length, within the limit."""
    assert len(out.response_ids) == len(out.response_mask) == len(out.response_logprobs) <= 192
    assert {one for one, kept in zip(out.response_logprobs, out.response_mask, strict=True) if kept} <= {-1.0}
    assert tuple(out.extra_fields["reward_extra_info"]) == KEYS
    assert out.reward_score == out.extra_fields["reward_extra_info"]["score"]


_GOOD, (_SYNTAX, _NAME, _) = (
    tasks.fenced(tasks.good(tasks.PROGRAMMED[3][2])),
    [tasks.fenced(one) for one in tasks.faulty(tasks.PROGRAMMED[3][2])],
)
_RAISES = tasks.fenced(tasks.good(tasks.PROGRAMMED[3][2]).replace("= second", "= second[999]"))


def test_a_program_that_runs_is_one_turn(plan: tuple[tasks.Task, Path]) -> None:
    out, server, tokenizer = rolled_out(plan, [_GOOD], "repairs=1", "response_tokens=192")
    whole(out)
    assert (out.reward_score, out.num_turns, len(server.prompts)) == (1.0, 2, 1)
    assert set(out.response_mask) == {1}
    assert tokenizer.decode(out.response_ids, skip_special_tokens=True) == _GOOD
    assert out.extra_fields["global_steps"] == 3


@pytest.mark.parametrize("first", [_RAISES, _SYNTAX, _NAME], ids=["traceback", "syntax", "check"])
def test_only_the_policys_own_turns_are_learnt(plan: tuple[tasks.Task, Path], first: str) -> None:
    out, server, tokenizer = rolled_out(plan, [first, _GOOD], "repairs=1", "response_tokens=2048")
    assert len(out.response_ids) == len(out.response_mask) == len(out.response_logprobs)
    assert (out.reward_score, out.num_turns) == (1.0, 4)
    learnt = [token for token, kept in zip(out.response_ids, out.response_mask, strict=True) if kept]
    told = [token for token, kept in zip(out.response_ids, out.response_mask, strict=True) if not kept]
    assert tokenizer.decode(learnt, skip_special_tokens=True) == first + _GOOD
    assert "Error" in tokenizer.decode(told) or "final_answer" in tokenizer.decode(told)
    assert server.prompts[1][: len(server.prompts[0])] == server.prompts[0]  # one conversation that grows
    assert out.prompt_ids == server.prompts[0]


def test_turns_are_as_many_as_repairs_allow(plan: tuple[tasks.Task, Path]) -> None:
    out, server, _ = rolled_out(plan, [_RAISES, _RAISES + "\n", _GOOD], "repairs=1", "response_tokens=2048")
    assert len(server.prompts) == 2
    assert out.reward_score == 0.0
    assert ERRORS[int(out.extra_fields["reward_extra_info"]["error"])] == "runtime_error"


def test_without_room_there_is_no_other_turn(plan: tuple[tasks.Task, Path]) -> None:
    out, server, _ = rolled_out(plan, [_RAISES, _GOOD], "repairs=1", "response_tokens=192")
    whole(out)
    assert len(server.prompts) == 1


@pytest.mark.parametrize(("said", "reason"), [("Well, no.", "no_program"), (_SYNTAX, "syntax_error")])
def test_the_loop_names_reasons_as_the_reward_does(plan: tuple[tasks.Task, Path], said: str, reason: str) -> None:
    out, _, _ = rolled_out(plan, [said], "response_tokens=192")
    whole(out)
    assert ERRORS[int(out.extra_fields["reward_extra_info"]["error"])] == reason


def test_a_group_of_one_is_taken_out_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """verl's GRPO would take its reward itself for its advantage."""
    import transfer_queue
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

    from pyrag_rl.verl.sampler import ComparableGroups

    cleared: list[str] = []
    monkeypatch.setattr(transfer_queue, "kv_clear", lambda keys, partition_id: cleared.extend(keys))
    sampler = ComparableGroups.__new__(ComparableGroups)
    keys = ["a_0_0", "a_2_0", "b_1_0", "b_1_1", "c_0_0", "c_1_0"]
    whole = {key: {"seq_len": place} for place, key in enumerate(keys)}
    batch = sampler._materialize_batch("train", ["a", "b", "c"], whole)
    assert batch.keys == ["a_0_0", "a_2_0", "c_0_0", "c_1_0"]
    assert [tag["seq_len"] for tag in batch.tags] == [0, 1, 4, 5]
    assert {"b_1_0", "b_1_1"} <= set(cleared)
    assert sampler._materialize_batch("val", ["b"], whole).keys == ["b_1_0", "b_1_1"]
    with pytest.raises(RuntimeError, match="no completion of the step can be compared"):
        sampler._materialize_batch("train", ["b"], whole)
    assert issubclass(ComparableGroups, ReplayBuffer)


def test_verl_finds_our_sampler(plan: tuple[tasks.Task, Path]) -> None:
    from verl.utils.import_utils import load_extern_type

    from pyrag_rl.verl.sampler import ComparableGroups

    custom = compose_of(config_of(plan)).trainer.v1.sampler.custom_sampler
    assert load_extern_type(custom.path, custom.name) is ComparableGroups


@pytest.mark.parametrize("mode", ["sync", "colocate_async", "separate_async"])
def test_verl_knows_every_trainer_mode(plan: tuple[tasks.Task, Path], mode: str) -> None:
    from verl.trainer.ppo.v1 import get_trainer_cls

    more = ["rollout_gpus=2", "sync_every=2", "batch_size=64", "gpus=4"] if mode == "separate_async" else []
    made = compose_of(config_of(plan, f"trainer_mode={mode}", *more))
    validate_config(made, need_reference_policy(made), need_critic(made))
    assert get_trainer_cls(made.trainer.v1.trainer_mode).__name__
    if mode == "separate_async":  # what its trainer asserts
        assert made.data.train_batch_size == 2 * made.actor_rollout_ref.actor.ppo_mini_batch_size
        assert made.actor_rollout_ref.rollout.n_gpus_per_node == 2
        assert made.actor_rollout_ref.rollout.checkpoint_engine.backend == "nccl"
        assert made.actor_rollout_ref.model.lora.merge  # its way of sending weights knows no adapters


@pytest.mark.parametrize("profile", ["gpu", "cpu"])
def test_actor_and_reference_are_fsdp2_and_seeds_reach_sampling(plan: tuple[tasks.Task, Path], profile: str) -> None:
    made = compose_of(config_of(plan, f"profile={profile}", "seed=17")).actor_rollout_ref
    assert (made.actor.strategy, made.ref.strategy) == ("fsdp2", "fsdp2")
    assert made.rollout.seed == made.actor.data_loader_seed == made.actor.fsdp_config.seed == 17
    assert made.actor.checkpoint.save_lora_only


def test_forms_keep_rollout_probabilities_out_of_the_ratio(plan: tuple[tasks.Task, Path]) -> None:
    """Under a form the rollout chooses from fewer tokens: its log-probabilities are not the policy's."""
    task, folder = plan
    paths = {"model": str(folder / "model"), "data": str(task.data), "out": str(folder / "run")}
    for agent, constrained, bypassed in (("answer", True, False), ("answer", False, True), ("plan", True, True)):
        made = load_config(agent, profile="cpu", constrained=constrained, runtime={"retriever": None}, **paths)
        assert compose_of(made).algorithm.rollout_correction.bypass_mode is bypassed


class SlowServer(FakeServer):
    """A rollout server whose replies take longer than the question may."""

    async def generate(self, *args: Any, **kwargs: Any) -> TokenOutput:
        await asyncio.sleep(2.5)
        return await super().generate(*args, **kwargs)


def test_the_policys_own_writing_is_outside_the_deadline(
    plan: tuple[tasks.Task, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.rl.test_verl.FakeServer", SlowServer)
    limits = ("repairs=1", "response_tokens=2048", "runtime.deadline=4")
    out, server, _ = rolled_out(plan, [_RAISES, _GOOD], *limits)
    assert len(server.prompts) == 2
    assert out.reward_score == 1.0


def test_a_program_whose_services_fail_has_no_reward(
    plan: tuple[tasks.Task, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrag_rl.rewards.environment._PAUSES", (0.0, 0.0))
    down = "runtime.llm=openai:x@http://127.0.0.1:9/v1"
    with pytest.raises(OutsideFailureError, match="service"):
        rolled_out(plan, [_GOOD], f"out={plan[1] / 'down'}", down, "repairs=1")


def test_patches_fail_where_what_they_replace_is_gone() -> None:
    from pyrag_rl.cpu_smoke import replaced

    with pytest.raises(AttributeError, match="another verl or vLLM"):
        replaced(SimpleNamespace(), "gone", None)
