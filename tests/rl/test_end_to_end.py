"""From a model folder to a served adapter, by the command line: verl's real trainer on the CPU, killed and resumed.

Minutes each: `make test-rl-e2e`. Only the model's weights are a stand-in; Ray, verl, FSDP, vLLM and PEFT are real.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="make test-rl-e2e runs these where verl is installed")

from pyrag_rl.data.rows import SftWriter, read_rows, write_rows
from pyrag_rl.folder import RunFolder, read_lines
from tests.rl import tasks, tiny
from tests.rl.processes import left

pytestmark = pytest.mark.slow
PYRAG = [sys.executable, "-c", "from pyrag.cli.main import main; main()"]
QUESTION, (GOLD,) = tasks.PROGRAMMED[3][:2]
_AGREEMENT = "training/rollout_actor_probs_pearson_corr"  # of the trainer's probabilities and the rollout's
SMALL = [
    "gpus=1", "tensor_parallel=1", "reward_workers=1", "agent_workers=1", "batch_size=6", "group_size=4",
    "micro_batch_size=24", "lora_rank=8", "lora_alpha=16", "learning_rate=0.001", "prompt_tokens=128",
    "response_tokens=512", "epochs=100", "save_every=1", "trace_every=1", "repairs=1",
]  # fmt: skip


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> tuple[tasks.Task, Path]:
    folder = tmp_path_factory.mktemp("task")
    made = tasks.plan_task(folder, faults=1)
    tiny.make(folder / "model", made.texts, vocabulary=1024)
    right = [lesson for lesson in made.lessons[::2] for _ in range(3)]  # so that it is what the model prefers
    tiny.pretrain(folder / "model", [*made.lessons, *right], steps=250)
    return made, folder / "model"


def command(task: tuple[tasks.Task, Path], out: Path, *more: str) -> list[str]:
    made, model = task
    runtime = [f"runtime.prompts={made.prompts}", "runtime.llm=embedded", "runtime.retriever=null"]
    sets = [part for one in (*SMALL, *runtime, *more) for part in ("--set", one)]
    paths = ["--model", str(model), "--data", str(made.data), "--out", str(out)]
    return [*PYRAG, "train", "--agent", "plan", "--profile", "cpu-smoke", *paths, *sets]


def steps_of(folder: RunFolder, session: int) -> list[int]:
    path = folder.metrics / f"{session}.jsonl"
    return [line["step"] for line in read_lines(path)[0]] if path.exists() else []


def test_a_killed_run_resumes_and_ends_as_served_adapter(task: tuple[tasks.Task, Path], tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "planner")
    killed_after_two_steps(command(task, folder.path, "rollout=hf_cpu", "max_steps=4"), folder)
    done = subprocess.run(
        command(task, folder.path, "rollout=hf_cpu", "max_steps=4"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"on from step {steps_of(folder, 2)[0] - 1}" in done.stdout
    assert steps_of(folder, 2)[-1] == folder.latest_step == 4
    learnt(folder)
    served(task, folder)


def killed_after_two_steps(argv: list[str], folder: RunFolder) -> None:
    """As by a machine that goes down: nothing of ours gets to tidy up, and what it started must end all the same."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("step ") and folder.latest_step >= 2:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert 2 <= folder.latest_step < 4
    assert left(str(folder.path)) == []


def learnt(folder: RunFolder) -> None:
    """What the metrics of the steps must show: weights that move, and a rollout that has them."""
    steps = folder.read_metrics()
    assert sorted(steps) == [1, 2, 3, 4]
    assert steps[4]["actor/kl_loss"] > 0
    assert min(step[_AGREEMENT] for step in steps.values()) > 0.999
    scores = [score for path in folder.scores.glob("*.jsonl") for score in read_lines(path)[0]]
    assert {score["reason"] for score in scores} - {""}  # some completions failed, and say why
    assert any(score["score"] == 1.0 for score in scores)
    assert next(folder.traces.glob("*.jsonl")).stat().st_size


def served(task: tuple[tasks.Task, Path], folder: RunFolder) -> None:
    exported = subprocess.run(
        [*PYRAG, "train", "export", str(folder.path), "--merged", "--json"], capture_output=True, text=True, check=True
    )
    told = json.loads(exported.stdout)
    differs_from_base(task[1], folder)
    with vllm(told["serve"]) as url:
        ask = [*PYRAG, "ask", QUESTION, "--plan-llm", f"openai:{folder.path.name}@{url}"]
        asked = subprocess.run(
            [*ask, "--prompts", str(task[0].prompts), "--json"], capture_output=True, text=True, check=False
        )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["answer"] == GOLD
    assert f"openai:{folder.path.name}" in answer["engine"]


def differs_from_base(base: Path, folder: RunFolder) -> None:
    """The adapter loads in PEFT and changes what the model says; merged, it says the same."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        plain = AutoModelForCausalLM.from_pretrained(base)(ids).logits
        adapted = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), folder.adapter)(ids).logits
        merged = AutoModelForCausalLM.from_pretrained(folder.merged)(ids).logits
    assert not torch.allclose(plain, adapted, atol=1e-5)
    assert torch.allclose(merged, adapted, atol=1e-4)


@contextmanager
def vllm(line: str) -> Iterator[str]:
    """The server of the line that the export printed, on a free port and in a size for this machine."""
    from pyrag_rl.cpu_smoke import ENVIRONMENT

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    small = ["--port", str(port), "--dtype", "float32", "--enforce-eager", "--max-model-len", "4096"]
    program, *rest = shlex.split(line)
    env = {**os.environ, **ENVIRONMENT, "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    env.pop("VERL_PLATFORM")
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name(program)), *rest, *small, "--max-num-seqs", "4"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, start_new_session=True,
    )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health", process)
        yield f"{url}/v1"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        assert process.poll() is None, "vllm serve has ended"
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("vllm serve did not come up")


def test_verl_s_own_vllm_rollout_trains_repair_turns(task: tuple[tasks.Task, Path], tmp_path: Path) -> None:
    """With an evaluation before, during and after."""
    folder, held_out = RunFolder(tmp_path / "run"), tmp_path / "eval.parquet"
    asked = [replace(row, question=f"{row.question} Tell me.", split="eval") for row in read_rows(task[0].data)[:2]]
    write_rows(held_out, asked)
    done = subprocess.run(
        command(task, folder.path, "rollout=vllm", "max_steps=2", "gpu_memory=0.1", f"eval_data={held_out}"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    steps = folder.read_metrics()
    assert sorted(steps) == [0, 1, 2]
    assert [step for step in steps if any(key.startswith("val-core/bundled/") for key in steps[step])] == [0, 2]
    assert steps[2]["actor/kl_loss"] > 0
    # The rollout's probabilities stand for the old policy's: at an update they are the policy's own.
    assert max(abs(steps[step]["actor/ppo_kl"]) for step in (1, 2)) < 1e-3
    assert steps[1]["num_turns/max"] == 4  # some programs failed, and were asked for again


def test_supervised_fine_tuning_ends_as_an_adapter(task: tuple[tasks.Task, Path], tmp_path: Path) -> None:
    made, model = task
    data, folder = tmp_path / "sft.parquet", RunFolder(tmp_path / "run")
    with SftWriter(data) as writer:
        for row, (_, _, queries) in zip(read_rows(made.data), tasks.PROGRAMMED, strict=True):
            writer.add(row, tasks.fenced(tasks.good(queries)))
    sizes = ["batch_size=6", "micro_batch_size=6", "epochs=6", "lora_rank=8", "lora_alpha=16", "learning_rate=0.003"]
    lengths = ["prompt_tokens=128", "response_tokens=128", "gpus=1", "save_every=3"]
    sets = [part for one in (*sizes, *lengths) for part in ("--set", one)]
    words = ["--agent", "plan", "--algorithm", "sft", "--profile", "cpu-smoke", "--model", str(model)]
    done = subprocess.run(
        [*PYRAG, "train", *words, "--data", str(data), "--out", str(folder.path), *sets],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    steps = folder.read_metrics()
    assert steps[6]["train/loss"] < steps[1]["train/loss"]
    subprocess.run([*PYRAG, "train", "export", str(folder.path), "--merged"], check=True, capture_output=True)
    differs_from_base(model, folder)
