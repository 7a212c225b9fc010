"""What is refused before anything starts, what a run folder tells, and how verl is ended; no verl needed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyrag._io.processes import end
from pyrag.errors import ConfigError, DataError, UsageError
from pyrag.evaluation.runs.folder import locked
from pyrag.llm.protocol import Message
from pyrag_rl.config import TrainConfig, load_config, save_config
from pyrag_rl.data.rows import TrainRow, write_rows
from pyrag_rl.folder import RunFolder, read_lines
from pyrag_rl.verl import launch, preflight
from pyrag_rl.verl.lengths import count_steps
from pyrag_rl.verl.sft import train_sft
from pyrag_rl.verl.watch import Watch


def rows(count: int, agent: str = "answer", prefix: str = "q") -> list[TrainRow]:
    return [
        TrainRow(
            index=i, id=f"{prefix}{i}", agent=agent, source="toy", question=f"{prefix} {i}?", answers=(str(i),),
            messages=(Message("user", f"{prefix} {i}?"),),
        )
        for i in range(count)
    ]  # fmt: skip


def config(tmp_path: Path, **changes: object) -> TrainConfig:
    data = tmp_path / "train.parquet"
    if not data.exists():
        write_rows(data, rows(40))
    made = load_config("answer", model="Qwen/x", data=str(data), out=str(tmp_path / "run"))
    return replace(made, mini_batch_size=None, **changes)  # type: ignore[arg-type]


def words(messages: Sequence[Mapping[str, str]]) -> int:
    """The words of a prompt: stands for a tokenizer."""
    return sum(len(said["content"].split()) for said in messages)


@pytest.mark.parametrize(("max_steps", "steps"), [(None, 6), (4, 4), (9, 6)])
def test_the_steps_of_a_run_are_known_beforehand(max_steps: int | None, steps: int, tmp_path: Path) -> None:
    made = config(tmp_path, batch_size=16, epochs=3, max_steps=max_steps)
    said: list[str] = []
    assert count_steps(made, words, said.append) == steps
    assert not said


def with_long_prompts(tmp_path: Path, long: int) -> TrainConfig:
    message = Message("user", "who is it? " * 10)
    write_rows(tmp_path / "long.parquet", [replace(one, messages=(message,)) for one in rows(long)] + rows(40)[long:])
    return config(tmp_path, batch_size=8, prompt_tokens=20, data=str(tmp_path / "long.parquet"))


def test_prompts_that_are_too_long_make_no_steps(tmp_path: Path) -> None:
    said: list[str] = []
    made = with_long_prompts(tmp_path, 3)
    assert count_steps(made, words, said.append) == 4
    assert said == [
        f"{made.data}: 3 of 40 prompts are left out, since they exceed prompt_tokens = 20 tokens (the longest has 30)"
    ]


def test_a_set_of_long_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"33 of 40 prompts of .* exceed prompt_tokens = 20 .* fewer than 8: set it"):
        count_steps(with_long_prompts(tmp_path, 33), words, print)
    made = replace(config(tmp_path, prompt_tokens=20, batch_size=8), eval_data=str(tmp_path / "eval.parquet"))
    message = Message("user", "who is it? " * 10)
    write_rows(tmp_path / "eval.parquet", [replace(one, messages=(message,)) for one in rows(3, prefix="e")])
    with pytest.raises(DataError, match=r"3 of 3 prompts of .*eval.parquet exceed"):
        count_steps(made, words, print)


@pytest.mark.parametrize("name", ["model", "data", "out"])
def test_what_is_missing_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{name} is missing"):
        preflight.check_named(config(tmp_path, **{name: ""}))


def test_a_missing_package_is_named_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs the package verl.*run pip install '\.\[rl\]' in a checkout"):
        preflight.check_packages(config(tmp_path))


@pytest.mark.parametrize(
    ("found", "said"),
    [(0, r"wants 2 GPUs, and this machine has none: .* --profile cpu"), (1, r"has 1: set gpus to that")],
)
def test_too_few_gpus_are_refused(found: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_gpus = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: found))
    monkeypatch.setitem(sys.modules, "torch", fake_gpus)
    with pytest.raises(ConfigError, match=said):
        preflight.check_gpus(config(tmp_path, gpus=2))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no model"):
        preflight.check_model(config(tmp_path, model=str(tmp_path)))
    with pytest.raises(ConfigError, match="holds no PEFT adapter"):
        preflight.check_model(config(tmp_path, adapter=str(tmp_path)))
    preflight.check_model(config(tmp_path))


def test_a_set_for_another_agent_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path / "plan.parquet", rows(40, "plan"))
    with pytest.raises(DataError, match="is for the agent plan, not answer"):
        preflight.check_data(config(tmp_path, data=str(tmp_path / "plan.parquet")))


def test_a_row_without_gold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no gold answer"):
        write_rows(tmp_path / "bad.parquet", [replace(rows(1)[0], answers=("  ",))])


def test_too_few_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fewer than a batch of 64"):
        preflight.check_data(config(tmp_path, batch_size=64))


def test_a_question_in_both_sets_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path / "eval.parquet", [*rows(3, prefix="e"), replace(rows(1)[0], question="Q  0?")])
    with pytest.raises(DataError, match="1 questions are in both"):
        preflight.check_data(config(tmp_path, eval_data=str(tmp_path / "eval.parquet")))


@pytest.mark.parametrize("content", [b"", b"no parquet"])
def test_what_is_no_training_set_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(DataError, match="cannot read the training set"):
        preflight.check_data(config(tmp_path, data=str(tmp_path / "x.parquet")))


@pytest.mark.parametrize(
    "columns", [{"extra_info": [None]}, {"extra_info": ["x"]}, {"prompt": [None]}, {"prompt": [[1]]}]
)
def test_columns_of_another_kind_are_refused(columns: dict[str, list[Any]], tmp_path: Path) -> None:
    whole = {"prompt": [[]], "data_source": ["s"], "reward_model": [None], "extra_info": [{"index": 0}]}
    pq.write_table(pa.table({**whole, **columns}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="row 1 has a wrong form"):
        preflight.check_data(config(tmp_path, data=str(tmp_path / "x.parquet")))


@pytest.mark.parametrize(
    ("agent", "changes", "task"),
    [
        ("plan", {"sub_queries": ("a?",)}, "goals"),
        ("answer", {}, "analysis"),
        ("rewrite", {}, "rewrite"),
    ],
)
def test_rows_that_opera_s_rewards_cannot_score_are_refused(
    agent: str, changes: dict[str, Any], task: str, tmp_path: Path
) -> None:
    write_rows(tmp_path / "x.parquet", [replace(one, **changes) for one in rows(64, agent)])
    made = load_config(agent, "mapgrpo", data=str(tmp_path / "x.parquet"))
    with pytest.raises(DataError, match=f"row 1 is not for mapgrpo: .* pyrag train data {task}"):
        preflight.check_data(made)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runtime": {"index": "/nowhere"}}, "there is no index at /nowhere"),
        ({"runtime": {"llm": "opnai:x"}}, "did you mean 'openai'"),
        ({"role_weights": {"em": 1.0}}, "leave them out for answer"),
        ({"algorithm": "mapgrpo", "role_weights": {"em": 0.5}}, "sum up to 1"),
    ],
)
def test_what_every_reward_would_fail_by_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        preflight.check_rewards(config(tmp_path, **changes))
    preflight.check_rewards(config(tmp_path))


def test_what_is_no_supervised_set_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "check_setup", lambda config: None)
    made = config(tmp_path, algorithm="sft")
    for changes, said in (({"data": "nowhere"}, "cannot read"), ({}, "no column 'messages': .* with --sft")):
        with pytest.raises(DataError, match=said):
            train_sft(replace(made, **changes), console=lambda _: None)  # type: ignore[arg-type]
    assert not Path(made.out).exists()


def test_a_run_goes_on_with_the_same_settings_only(tmp_path: Path) -> None:
    first = config(tmp_path)
    folder = launch.prepare(first)
    assert folder.agent_loops.is_file()
    launch.prepare(replace(first, max_steps=7, gpus=2))
    with pytest.raises(ConfigError, match="another learning_rate"):
        launch.prepare(replace(first, learning_rate=1.0))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("x")
    with pytest.raises(ConfigError, match="is not empty and holds no run"):
        launch.prepare(config(tmp_path))


def test_a_run_that_is_complete_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = config(tmp_path, batch_size=8)
    folder = launch.prepare(made)
    (folder.checkpoints / "global_step_5").mkdir(parents=True)
    (folder.checkpoints / "latest_checkpointed_iteration.txt").write_text("5")
    monkeypatch.setattr(preflight, "check", preflight.check_data)
    said: list[str] = []
    launch.train(made, console=said.append, length=words)
    assert said == [f"{folder.path} is trained already: 5 of 5 steps"]


def test_only_whole_checkpoints_count(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.latest_step == 0
    with pytest.raises(DataError, match="holds no checkpoint"):
        folder.checkpoint()
    for step in (2, 4, 6):
        (folder.checkpoints / f"global_step_{step}").mkdir(parents=True)
    (folder.checkpoints / "latest_checkpointed_iteration.txt").write_text("4")
    assert (folder.latest_step, folder.checkpoint().name, folder.checkpoint(2).name) == (
        4,
        "global_step_4",
        "global_step_2",
    )
    for step in (3, 6):  # the last one is still being written
        with pytest.raises(DataError, match=f"holds no checkpoint of step {step}"):
            folder.checkpoint(step)


@pytest.mark.parametrize("content", ["", "five"])
def test_a_marker_without_a_step_is_named(content: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.checkpoints.mkdir()
    (folder.checkpoints / "latest_checkpointed_iteration.txt").write_text(content)
    with pytest.raises(DataError, match=r"latest_checkpointed_iteration\.txt names no step"):
        _ = folder.latest_step


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":')
    lines, position = read_lines(path)
    assert (lines, position) == ([{"a": 1}], 8)
    path.write_bytes(b'{"a":1}\n{"a":2}\n')
    assert read_lines(path, position) == ([{"a": 2}], 16)


def watched(tmp_path: Path, **changes: object) -> tuple[RunFolder, Watch, list[str]]:
    folder, said = RunFolder(tmp_path / "run"), list[str]()
    for place in (folder.metrics, folder.scores):
        place.mkdir(parents=True)
    return (
        folder,
        Watch(folder, config(tmp_path, **{"batch_size": 2, "group_size": 2, **changes}), 9, said.append),
        said,
    )


def line(reason: str, detail: str = "") -> bytes:
    return f'{{"step": 1, "reason": "{reason}", "detail": "{detail}"}}\n'.encode()


def test_a_step_is_told_with_what_went_wrong_in_it(tmp_path: Path) -> None:
    folder, watch, said = watched(tmp_path)
    (folder.scores / "1.jsonl").write_bytes(line("") + line("timeout") + line("timeout"))
    (folder.metrics / "1.jsonl").write_bytes(b'{"step": 3, "data": {"critic/score/mean": 0.25, "timing_s/step": 2}}\n')
    assert watch.look() == ""
    assert said == ["step 3/9  reward 0.250  seconds 2.0  (timeout 2)"]
    assert watch.look() == ""
    assert len(said) == 1


@pytest.mark.parametrize(("failed", "ends"), [(12, False), (13, True)])
def test_five_in_a_hundred_outside_failures_end_a_run(failed: int, ends: bool, tmp_path: Path) -> None:
    folder, watch, _ = watched(tmp_path, batch_size=32, group_size=8)
    (folder.scores / "1.jsonl").write_bytes(line("service", "http://x refused") * failed + line("") * (256 - failed))
    fault = watch.look()
    assert bool(fault) is ends
    assert not ends or "13 of 256 rewards could not be computed, on any try (service: http://x refused)" in fault


def test_a_few_failures_in_a_large_evaluation_end_nothing(tmp_path: Path) -> None:
    folder, watch, _ = watched(tmp_path)
    (folder.scores / "1.jsonl").write_bytes(line("service") * 3 + line("") * 60)
    assert watch.look() == ""


def test_numbers_that_ran_off_are_left_out(tmp_path: Path) -> None:
    folder, watch, said = watched(tmp_path)
    written = b'{"step": 1, "data": {"critic/score/mean": 0.5, "actor/kl_loss": null}}\n'  # so verl writes a NaN
    (folder.metrics / "1.jsonl").write_bytes(written)
    assert watch.look() == ""
    assert said == ["step 1/9  reward 0.500"]
    assert folder.read_metrics() == {1: {"critic/score/mean": 0.5}}


def test_a_line_that_a_full_disk_tore_ends_nothing(tmp_path: Path) -> None:
    folder, watch, said = watched(tmp_path)
    (folder.scores / "1.jsonl").write_bytes(b'{"step": 1, "rea' + line("timeout") + line("timeout") + b"\xff\n7\n")
    (folder.metrics / "1.jsonl").write_bytes(b'{"step": 3, "data": {}}\n')
    assert watch.look() == ""
    assert said == ["step 3/9  (timeout 1)"]


def test_the_last_error_of_a_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("old\nValueError: from before\n")
    start = log.stat().st_size
    log.write_text(log.read_text() + "starting\nRuntimeError: no space\n  File x\nbye\n")
    assert launch.last_error(log, start) == "RuntimeError: no space"


def test_ending_a_process_ends_its_group() -> None:
    code = "import subprocess as s, time; print(s.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    end(process)
    process.stdout.close()
    assert process.returncode is not None
    assert gone(child)


def test_what_still_runs_from_our_ray_folder_is_ended(tmp_path: Path) -> None:
    mark = f"pyrag-ray-test-{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark]) as process:
        while mark.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)  # until it is more than a copy of us
        launch.end_leftovers(mark)
        assert process.wait(120) != 0


def gone(pid: int, patience: float = 10.0) -> bool:
    """Whether a process has ended, its parent's reaping aside."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_the_environment_names_no_cpu_plugin_on_gpus(tmp_path: Path) -> None:
    made = config(tmp_path)
    folder = RunFolder(tmp_path)
    assert "VERL_PLATFORM" not in launch.environment(made, folder)
    assert launch.environment(replace(made, profile="cpu-smoke"), folder)["VERL_PLATFORM"] == "cpu"
    save_config(made, tmp_path / "config.yaml")


def session(tmp_path: Path, code: str) -> tuple[RunFolder, Watch, list[str], list[str]]:
    """A trainer that is only a few lines long, in the place of verl."""
    folder, watch, said = watched(tmp_path)
    return folder, watch, said, [sys.executable, "-c", code]


def test_a_session_s_output_and_metrics_are_kept(tmp_path: Path) -> None:
    code = (
        "import os; print('hello'); open(os.environ['VERL_FILE_LOGGER_PATH'], 'w')"
        """.write('{"step": 1, "data": {"critic/score/mean": 1.0}}\\n')"""
    )
    folder, watch, said, command = session(tmp_path, code)
    launch.run_verl(command, config(tmp_path), folder, watch)
    assert folder.log.read_text() == "hello\n"
    assert said == ["step 1/9  reward 1.000"]
    assert folder.read_metrics() == {1: {"critic/score/mean": 1.0}}


def test_a_trainer_that_fails_is_told_by_its_last_error(tmp_path: Path) -> None:
    folder, watch, _, command = session(tmp_path, "raise MemoryError('the node is full')")
    with pytest.raises(launch.TrainingFailedError, match=r"code 1 \(MemoryError: the node is full\)"):
        launch.run_verl(command, config(tmp_path), folder, watch)


def test_a_trainer_whose_rewards_fail_is_ended(tmp_path: Path) -> None:
    code = f"import pathlib, time; pathlib.Path(r'{tmp_path}/run/scores/1.jsonl').write_bytes({line('service') * 4!r})"
    folder, watch, _, command = session(tmp_path, f"{code}; time.sleep(600)")
    with pytest.raises(launch.TrainingFailedError, match="4 of 4 rewards could not be computed"):
        launch.run_verl(command, config(tmp_path), folder, watch)


def raylet(killed: int) -> str:
    """A line of Ray 2.56."""
    return (
        "\x1b[33m(raylet)\x1b[0m [2026-11-27 07:15:43,351 E 1265 1265] (raylet) node_manager.cc:3517: "
        f"{killed} Workers (tasks / actors) killed due to memory pressure (OOM), "
        "0 Workers crashed due to other reasons at node (ID: 45e3)"
    )


@pytest.mark.parametrize("then", ["time.sleep(600)", "raise RuntimeError('actor died')"])
def test_a_trainer_whose_memory_is_full_is_ended(tmp_path: Path, then: str) -> None:
    folder, watch, _, command = session(tmp_path, f"import time; print({raylet(4)!r}, flush=True); {then}")
    with pytest.raises(launch.TrainingFailedError, match=r"memory is full, and Ray ended 4 .*micro_batch_size"):
        launch.run_verl(command, config(tmp_path), folder, watch)


def test_memory_full_in_a_session_before_ends_nothing(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.log.write_text(raylet(4) + "\n")
    _, watch, _ = watched(tmp_path)
    with folder.log.open("a") as log:
        log.write(raylet(0) + "\n")
    assert watch.look() == ""


def test_failed_rewards_of_the_last_moment_are_told_too(tmp_path: Path) -> None:
    code = f"import pathlib; pathlib.Path(r'{tmp_path}/run/scores/1.jsonl').write_bytes({line('service') * 4!r})"
    folder, watch, _, command = session(tmp_path, code)
    with pytest.raises(launch.TrainingFailedError, match="4 of 4 rewards could not be computed"):
        launch.run_verl(command, config(tmp_path), folder, watch)


def test_two_trainers_do_not_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = config(tmp_path)
    folder = launch.prepare(made)
    monkeypatch.setattr(preflight, "check", preflight.check_data)
    with locked(folder.path), pytest.raises(UsageError, match=f"is in use by process {os.getpid()}"):
        launch.train(made, console=lambda _: None, length=words)


def test_an_interrupt_ends_the_trainer(tmp_path: Path) -> None:
    folder, watch, _, command = session(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")

    class Interrupted(Watch):
        def look(self) -> str:
            if folder.log.read_text().strip():
                raise KeyboardInterrupt
            return ""

    watch.__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        launch.run_verl(command, config(tmp_path), folder, watch)
    assert gone(int(folder.log.read_text().splitlines()[0]))
