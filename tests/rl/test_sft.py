"""Supervised fine-tuning up to verl: rows that are too long, questions in both sets, saving; no verl needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrag.errors import ConfigError, DataError
from pyrag.llm.protocol import Message
from pyrag_rl import cpu_smoke, packed
from pyrag_rl.config import TrainConfig, load_config
from pyrag_rl.data.held_out import held_out
from pyrag_rl.data.rows import Conversation, SftWriter, TrainRow, read_conversations, write_conversations
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl import launch, preflight, sft
from pyrag_rl.verl.overrides import verl_overrides
from pyrag_rl.verl.sft_rows import check_sets, fit_rows

CONFIGS = Path(__file__).parents[2] / "rl" / "configs"


def words(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(one["content"].split()) for one in messages)


def write_set(path: Path, lengths: Sequence[int], prefix: str = "q") -> Path:
    """A set of conversations of so many words: a prompt of two, and the reply."""
    with SftWriter(path) as writer:
        for number, length in enumerate(lengths):
            prompt = (Message("user", f"{prefix} {number}"),)
            row = TrainRow(
                index=0, id=str(number), agent="plan", source="toy", question=f"{prefix} {number}?", answers=("x",),
                messages=prompt,
            )  # fmt: skip
            writer.add(row, " ".join(["word"] * (length - 2)))
    return path


def config(tmp_path: Path, **changes: Any) -> TrainConfig:
    given = {"model": "Qwen/x", "data": str(tmp_path / "train.parquet"), "out": str(tmp_path / "run"), **changes}
    return load_config("plan", "sft", **{"prompt_tokens": 6, "response_tokens": 4, "batch_size": 2, **given})


def trained(made: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """The lines that a run prints and the settings that verl gets; verl itself is not started."""
    said: list[str] = []
    command: list[str] = []
    monkeypatch.setattr(preflight, "check_setup", lambda config: None)
    monkeypatch.setattr(sft, "run_verl", lambda told, *_: command.extend(told))
    sft.train_sft(made, console=said.append, length=words)
    return said, command


def test_rows_above_the_limit_are_left_out_and_counted(tmp_path: Path) -> None:
    fitted = fit_rows(str(write_set(tmp_path / "a.parquet", [10, 11, 4, 40])), words, 10)
    assert [words(one.messages) for one in fitted.rows] == [10, 4]
    assert fitted.summary("a.parquet") == (
        "a.parquet: 2 rows of 7 tokens on average; 2 of 4 rows are left out, since prompt and reply exceed "
        "prompt_tokens + response_tokens = 10 tokens"
    )


def test_rows_within_the_limit_all_remain(tmp_path: Path) -> None:
    fitted = fit_rows(str(write_set(tmp_path / "a.parquet", [10, 4])), words, 10)
    assert fitted.summary("a") == "a: 2 rows of 7 tokens on average, all within 10 tokens"


def test_a_set_of_long_rows_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"all 2 rows of .* exceed .* = 10 tokens \(the shortest has 12\)"):
        fit_rows(str(write_set(tmp_path / "a.parquet", [13, 12])), words, 10)


def test_the_order_of_rows_is_the_seeds(tmp_path: Path) -> None:
    data = str(write_set(tmp_path / "a.parquet", [9] * 20))
    first, again, other = (fit_rows(data, words, 10, seed).rows for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(one.id for one in other) == sorted(one.id for one in first)


def test_verl_reads_only_rows_that_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_set(tmp_path / "train.parquet", [9, 9, 30, 9, 9])
    said, command = trained(config(tmp_path), monkeypatch)
    rows = read_conversations(tmp_path / "run" / "rows" / "train.parquet")
    assert len(rows) == 4
    assert max(words(one.messages) for one in rows) == 9
    assert "1 of 5 rows are left out" in said[0]
    assert f"data.train_files={tmp_path}/run/rows/train.parquet" in command
    assert {"data.max_length=10", "data.truncation=error"} <= set(command)
    assert said[1].startswith("fine-tuning the plan agent: 4 steps;")  # of two rows each, twice


def test_refused_rows_leave_no_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_set(tmp_path / "train.parquet", [9, 30])
    with pytest.raises(DataError, match="has 1 rows of at most 10 tokens, fewer than a batch of 2"):
        trained(config(tmp_path), monkeypatch)
    assert not (tmp_path / "run").exists()


def test_a_question_in_both_sets_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_set(tmp_path / "train.parquet", [9] * 4)
    write_set(tmp_path / "eval.parquet", [9] * 5)
    with pytest.raises(DataError, match="4 questions are in both"):
        trained(config(tmp_path, eval_data=str(tmp_path / "eval.parquet")), monkeypatch)


def test_other_questions_may_be_evaluated_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_set(tmp_path / "train.parquet", [9] * 4)
    write_set(tmp_path / "eval.parquet", [9, 9, 30], prefix="other")
    said, command = trained(config(tmp_path, eval_data=str(tmp_path / "eval.parquet")), monkeypatch)
    assert "1 of 3 rows are left out" in said[1]
    assert f"data.val_files={tmp_path}/run/rows/eval.parquet" in command


def test_sets_without_questions_are_compared_by_prompts(tmp_path: Path) -> None:
    talk = ({"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada"})
    paths = [tmp_path / name for name in ("a.parquet", "b.parquet")]
    for path in paths:
        write_conversations(path, [Conversation(messages=talk)])
    with pytest.raises(DataError, match="1 questions are in both"):
        check_sets(*map(str, paths))


def test_a_row_without_a_reply_is_refused(tmp_path: Path) -> None:
    write_conversations(tmp_path / "a.parquet", [Conversation(messages=({"role": "user", "content": "Who?"},))])
    with pytest.raises(DataError, match="row 1 does not end with a reply"):
        read_conversations(tmp_path / "a.parquet")


def test_a_supervised_set_holds_its_questions_out(tmp_path: Path) -> None:
    held = held_out([write_set(tmp_path / "a.parquet", [9])])
    row = TrainRow(index=0, id="other", agent="plan", source="x", question="Q 0", answers=("x",), messages=())
    with pytest.raises(DataError, match="is held out in"):
        held.check(row)


@pytest.mark.parametrize(("steps", "every"), [(1, 1), (9, 1), (35, 3), (1000, 50)])
def test_a_run_is_saved_every_tenth_of_it(steps: int, every: int, tmp_path: Path) -> None:
    assert preflight.saving_often(config(tmp_path), steps).save_every == every


def test_a_short_run_tells_verl_to_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_set(tmp_path / "train.parquet", [9] * 40)
    _, command = trained(config(tmp_path), monkeypatch)
    assert "trainer.save_freq=4" in command


def test_sft_has_its_own_packaged_values() -> None:
    grpo, made = load_config("plan"), load_config("plan", "sft")
    assert (made.learning_rate, made.schedule, made.min_learning_rate) == (2e-4, "cosine", 0.05)
    assert (made.lora_rank, made.lora_alpha, made.batch_size) != (grpo.lora_rank, grpo.lora_alpha, grpo.batch_size)
    assert made.warmup > 0
    assert load_config("answer", "sft") == load_config("answer", "sft", file=None)
    assert not made.runtime


def test_the_embedded_model_is_trained_by_a_recipe() -> None:
    with pytest.raises(ConfigError, match="recipe of the checkout"):
        load_config("answer", "sft", model="embedded")


@pytest.mark.parametrize("name", ["small-planner", "small-answer"])
def test_small_models_train_on_the_cpu(name: str, tmp_path: Path) -> None:
    made = load_config("plan", "sft", file=CONFIGS / f"{name}.yaml", data="x", out=str(tmp_path), threads=2)
    assert (made.profile, made.gpus, made.lora_rank) == ("cpu", 1, 16)
    assert made.prompt_tokens + made.response_tokens == 512
    environment = launch.environment(made, RunFolder(tmp_path))
    assert (environment["OMP_NUM_THREADS"], environment["OMP_WAIT_POLICY"]) == ("2", "passive")
    told = sft.sft_overrides(made, RunFolder(tmp_path))
    wanted = {"trainer.device=cpu", "model.use_remove_padding=True", "data.max_token_len_per_gpu=512"}
    wanted |= {"engine.use_torch_compile=True", "+model.override_config.attn_implementation=sdpa"}
    wanted |= {"+engine.mixed_precision={param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}"}
    assert wanted <= set(told)


@pytest.mark.parametrize("there", [True, False])
def test_gpus_without_flash_attention_pack_rows(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "find_spec", lambda name: object() if there else None)
    folder, made = RunFolder(tmp_path), load_config("plan", "sft", data="x", out=str(tmp_path))
    engine = launch.environment(made, folder).get("VERL_USE_EXTERNAL_MODULES")
    attention = "+model.override_config.attn_implementation=sdpa"
    assert (engine, attention in sft.sft_overrides(made, folder)) == (
        (None, False) if there else ("pyrag_rl.packed.engine", True)
    )
    by_reward = verl_overrides(load_config("plan", data="x", out=str(tmp_path)), folder)
    assert there != ("+actor_rollout_ref.model.override_config.attn_implementation=sdpa" in by_reward)


@pytest.mark.parametrize(("gpus", "kept"), [(1, False), (2, True)])
def test_gpus_choose_what_to_keep_in_memory(gpus: int, kept: bool, tmp_path: Path) -> None:
    made = load_config("plan", "sft", data="x", out=str(tmp_path), gpus=gpus, gradient_checkpointing=kept)
    told = sft.sft_overrides(made, RunFolder(tmp_path))
    assert {f"model.enable_gradient_checkpointing={kept}", f"engine.reshard_after_forward={kept}"} <= set(told)
    assert "engine.strategy=fsdp2" in told


@pytest.mark.parametrize(("there", "given"), [(True, ""), (True, "other.so"), (False, "")])
def test_training_on_the_cpu_takes_tcmalloc(
    there: bool, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libtcmalloc.so"
    if there:
        library.touch()
    monkeypatch.setattr(cpu_smoke, "TCMALLOC", (str(tmp_path / "none.so"), str(library)))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    if given:
        monkeypatch.setenv("LD_PRELOAD", given)
    assert cpu_smoke.threads(2).get("LD_PRELOAD") == (str(library) if there and not given else None)
