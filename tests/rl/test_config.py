"""What a run is told: packaged values, files, flags; what is refused, and in which words."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from pyrag.errors import ConfigError
from pyrag_rl.config import TrainConfig, absolute, load_config, make_config, save_config, saved_config, with_settings

CONFIGS = Path(__file__).parents[2] / "rl/configs"
TRAINED = [
    ("answer", "grpo"), ("plan", "grpo"), ("decompose", "grpo"), ("rewrite", "grpo"), ("plan", "mapgrpo"),
    ("answer", "mapgrpo"), ("rewrite", "mapgrpo"), ("answer", "sft"), ("plan", "sft"), ("decompose", "sft"),
]  # fmt: skip


@pytest.mark.parametrize(("agent", "algorithm"), TRAINED)
def test_every_packaged_config_loads(agent: str, algorithm: str) -> None:
    config = load_config(agent, algorithm)
    assert (config.agent, config.algorithm, config.profile) == (agent, algorithm, "gpu")


def test_the_answer_agent_has_the_paper_s_values() -> None:
    config = load_config("answer")
    assert (config.learning_rate, config.schedule, config.warmup) == (1e-6, "cosine", 0.02)
    assert (config.batch_size, config.group_size, config.epochs) == (32, 8, 1)


def test_cosine_end_and_update_size_are_the_release_s() -> None:
    assert [load_config(agent).min_learning_rate for agent in ("answer", "plan", "decompose")] == [0.1, 0.0, 0.0]
    assert {load_config(agent).mini_batch_size for agent in ("answer", "plan", "decompose")} == {32}


def test_a_smaller_batch_takes_its_updates_with_it() -> None:
    assert load_config("plan", batch_size=8).mini_batch_size == 8
    assert with_settings(load_config("plan"), ["batch_size=16"]).mini_batch_size == 16
    assert load_config("plan", batch_size=128).mini_batch_size == 32
    with pytest.raises(ConfigError, match="larger than batch_size"):
        load_config("plan", batch_size=8, mini_batch_size=9)


def test_a_smaller_batch_takes_its_packs_with_it() -> None:
    small = load_config("answer", file=CONFIGS / "small-rl.yaml")
    assert (small.batch_size, small.micro_batch_size) == (8, 64)
    two = with_settings(small, ["batch_size=2"])
    assert (two.mini_batch_size, two.micro_batch_size) == (2, 16)
    assert with_settings(small, ["batch_size=2", "micro_batch_size=4"]).micro_batch_size == 4


def test_profiles_for_a_cpu_take_one_process() -> None:
    assert (load_config("answer").gpus, load_config("answer").tensor_parallel) == (8, 2)
    cpu = load_config("answer", profile="cpu")
    assert (cpu.gpus, cpu.tensor_parallel) == (1, 1)
    assert load_config("answer", profile="cpu", gpus=2).gpus == 2


def test_mapgrpo_s_defaults_follow_the_release_and_the_paper() -> None:
    made = [load_config(agent, "mapgrpo") for agent in ("plan", "answer", "rewrite")]
    assert made[0].injected == "no_gradient"
    assert made[2].ndcg_k == 10
    assert [one.norm_adv_by_std for one in made] == [False] * 3
    assert load_config("plan").norm_adv_by_std
    for algorithm, value in (("grpo", "false"), ("mapgrpo", "true")):
        changed = with_settings(load_config("plan", algorithm), [f"norm_adv_by_std={value}"])
        assert changed.norm_adv_by_std is (value == "true")


def test_a_program_s_reward_includes_recovery_as_released() -> None:
    runtime = load_config("plan").runtime
    assert (runtime["recovery"], runtime["boost_topk"]) == ("boost", 10)


@pytest.mark.parametrize("agent", ["plan", "decompose"])
def test_the_other_agents_have_the_paper_s_values(agent: str) -> None:
    config = load_config(agent)
    assert (config.learning_rate, config.batch_size, config.group_size, config.epochs) == (3e-6, 64, 4, 2)
    assert config.repairs == 0


@pytest.mark.parametrize("agent", ["answer", "plan", "decompose"])
def test_pyrag_s_agents_share_the_rest(agent: str) -> None:
    config = load_config(agent)
    assert (config.kl_coef, config.entropy_coef, config.lora_rank, config.lora_alpha) == (0.001, 0.0, 64, 32)
    assert (config.prompt_tokens, config.response_tokens) == (2048, 1024)
    assert (config.f1_weight, config.em_weight) == (0.7, 0.3)


@pytest.mark.parametrize(
    ("agent", "rate", "epochs", "kl", "weights"),
    [
        ("plan", 5e-6, 3, 0.05, {"logic": 0.4, "structure": 0.3, "execution": 0.3}),
        ("answer", 1e-5, 2, 0.04, {"sufficiency": 0.25, "em": 0.65, "form": 0.1}),
        ("rewrite", 2e-5, 2, 0.04, {"ndcg": 0.9, "form": 0.1}),
    ],
)
def test_opera_s_agents_have_table_6_s_values(
    agent: str, rate: float, epochs: int, kl: float, weights: dict[str, float]
) -> None:
    config = load_config(agent, "mapgrpo")
    assert (config.learning_rate, config.epochs, config.kl_coef, config.role_weights) == (rate, epochs, kl, weights)
    assert (config.batch_size, config.group_size) == (64, 8)


def test_layers_go_from_package_to_file_to_flags_to_set(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("batch_size: 16\nepochs: 3\nruntime: {topk: 3}\n")
    config = load_config("plan", file=file, model="m", adapter=None)
    config = with_settings(config, ["epochs=4", "runtime.deadline=7.5", "loggers=[wandb]"])
    assert (config.batch_size, config.epochs, config.model, config.adapter) == (16, 4, "m", None)
    assert config.runtime["topk"] == 3
    assert config.runtime["deadline"] == 7.5
    assert config.runtime["recovery"] == "boost"  # the package's
    assert config.loggers == ("wandb",)


def test_one_source_of_passages_replaces_the_packaged_one(tmp_path: Path) -> None:
    config = with_settings(load_config("plan"), ["runtime.index=wiki"])
    assert (config.runtime.get("index"), config.runtime.get("retriever")) == ("wiki", None)
    file = tmp_path / "mine.yaml"
    file.write_text("runtime: {index: wiki}\n")
    assert load_config("plan", file=file) == config
    with pytest.raises(ConfigError, match="exclude each other"):
        make_config({**save_values(config), "runtime": {"index": "wiki", "retriever": "http://h:1"}})


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["epoch=3"], "did you mean 'epochs'"),
        (["epochs=many"], "Expected `int`"),
        (["epochs=0"], "epochs must be above 0"),
        (["group_size=1"], "group_size must be at least 2"),
        (["mini_batch_size=99", "batch_size=9"], "larger than batch_size"),
        (["profile=tpu"], "Invalid enum value"),
        (["trainer_mode=async"], "Invalid enum value"),
        (["reward=coverage"], "use it with grpo and the agents plan and decompose, not with grpo and answer"),
        (["runtime.topkk=3"], "did you mean 'topk'"),
        (["runtime.topk=0"], "topk must be above 0"),
        (["repairs=1"], "repairs are turns of the plan agent"),
        (["warmup=2"], "between 0 and 1"),
        (["epochs"], "takes key=value"),
        (["epochs=[1"], "is not YAML"),
        (["runtime=", "runtime.topk=0"], "topk must be above 0"),
        (["runtime=[1]", "runtime.topk=3"], "runtime holds settings of pyrag"),
        (["learning_rate=.nan"], "learning_rate must be above 0"),
        (["kl_coef=-0.1"], "kl_coef must be at least 0"),
        (["save_every=0"], "save_every must be at least 1"),  # verl would never save
        (["mini_batch_size=-1"], "mini_batch_size must be at least 1"),
        (["agent=plan"], "pass --agent plan"),  # else it would have the answer agent's packaged settings
        (["model=embedded"], "run python -m recipes.span_policy"),
    ],
)
def test_what_is_wrong_is_said(pairs: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("[", r"\[")):
        with_settings(load_config("answer"), pairs)


def test_a_number_may_be_written_as_people_do() -> None:
    config = with_settings(load_config("answer", model="m", data="d", out="o"), ["learning_rate=3e-5"])
    assert config.learning_rate == 3e-5


def test_an_unknown_agent_or_algorithm_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'answer'"):
        load_config("anwser")
    with pytest.raises(ConfigError, match="did you mean 'grpo'"):
        load_config("answer", "grop")
    with pytest.raises(ConfigError, match="no packaged config"):
        load_config("decompose", "mapgrpo")


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "\xff", "1: 2\n", "[" * 5000, "runtime: [a]\n", "null\n"])
def test_a_file_that_is_no_mapping_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"bad\.yaml|runtime holds settings"):
        load_config("answer", file=file)


def test_an_empty_runtime_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("runtime:\n#  topk: 3\n")
    assert load_config("plan", file=file) == load_config("plan")


def test_a_path_of_one_s_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    config = absolute(load_config("answer", model="~/model", data="~/none.parquet", out="~/run"))
    assert (config.model, config.data) == (str(tmp_path / "model"), "~/none.parquet")
    assert config.out == str(tmp_path / "run")


def test_a_saved_config_comes_back(tmp_path: Path) -> None:
    config = with_settings(load_config("plan", model="m", data="d", out="o"), ["repairs=2", "max_steps=5"])
    save_config(config, tmp_path / "config.yaml")
    assert saved_config(tmp_path / "config.yaml") == config


def test_every_field_can_be_written_as_yaml() -> None:
    config = load_config("plan", "mapgrpo")
    assert {one.name for one in fields(TrainConfig)} == set(save_values(config))


def save_values(config: TrainConfig) -> dict[str, object]:
    from pyrag_rl.config import as_values

    values = as_values(config)
    assert make_config(values) == config
    return values


def test_rag_rl_is_the_answer_agent_with_longer_prompts() -> None:
    config = load_config("answer", file=Path(__file__).parents[2] / "rl" / "configs" / "rag-rl.yaml")
    assert replace(config, prompt_tokens=2048) == load_config("answer")


def test_both_rag_baselines_keep_their_agents_settings() -> None:
    configs = Path(__file__).parents[2] / "rl" / "configs"
    sft, base = load_config("answer", "sft", file=configs / "rag-sft.yaml"), load_config("answer", "sft")
    assert (sft.prompt_tokens, sft.learning_rate, sft.batch_size) == (4096, base.learning_rate, base.batch_size)
    for name, build in (("rag-sft", "data rag --sft"), ("rag-rl", "data rag")):
        recipe = (configs / f"{name}.yaml").read_text()
        assert f"pyrag train {build} --data data --sets nq,hotpotqa --depths 5" in recipe
