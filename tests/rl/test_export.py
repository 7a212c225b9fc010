"""The lines that an export prints; exporting itself is tested where verl is (`make test-rl-e2e`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("yaml")

from pyrag.errors import ConfigError
from pyrag_rl.config import load_config, make_config, save_config
from pyrag_rl.data.examples import Ask, ask_answer, ask_decomposition, ask_joint_program, ask_program
from pyrag_rl.data.rows import RowWriter, SftWriter, TrainRow
from pyrag_rl.folder import RunFolder
from pyrag_rl.prompting import prompt_of
from pyrag_rl.verl.export import commands, export


def exported(folder: Path, rank: int = 24) -> RunFolder:
    run = RunFolder(folder / "planner")
    run.adapter.mkdir(parents=True)
    (run.adapter / "adapter_config.json").write_text(json.dumps({"r": rank}))
    (run.adapter / "adapter_model.safetensors").touch()
    return run


@pytest.mark.parametrize(
    ("agent", "algorithm", "options"),
    [
        ("answer", "grpo", "--answer-llm"),
        ("decompose", "sft", "--decompose-llm"),
        ("plan", "grpo", "--plan-llm"),
        ("plan", "mapgrpo", "--method opera --plan-llm"),
        ("rewrite", "mapgrpo", "--method opera --rewrite-llm"),
    ],
)
def test_the_lines_serve_the_adapter_and_ask_its_agent(
    agent: str, algorithm: str, options: str, tmp_path: Path
) -> None:
    run = exported(tmp_path)
    serve, ask = commands(load_config(agent, algorithm, model="Qwen/x"), run, merged=False)
    assert serve == (
        "vllm serve Qwen/x --host 127.0.0.1 --port 8000 --enable-prefix-caching "
        "--override-generation-config '{\"repetition_penalty\": 1.0}' --enable-lora --max-lora-rank 32 "
        f"--max-loras 1 --lora-modules planner={run.adapter}"
    )
    assert ask == (
        f"pyrag ask --request {agent}.extra_body.repetition_penalty=1.0 {options} "
        "openai:planner@http://127.0.0.1:8000/v1 'Who directed the film Dracula?'"
    )


@pytest.mark.parametrize(
    ("agent", "ask", "prompts", "options"),
    [
        ("plan", ask_joint_program("Who?"), None, "--joint "),
        ("plan", ask_joint_program("Who?"), "small", "--joint --prompts small "),
        ("plan", ask_program("Who?", ("Who?",)), None, ""),
        ("plan", ask_program("Who?", ("Who?",)), "small", "--prompts small "),
        ("decompose", ask_decomposition("Who?"), "small", "--prompts small "),
        ("answer", ask_answer("Who?", None), "small", "--prompts small "),
    ],
)
@pytest.mark.parametrize("supervised", [True, False])
async def test_the_ask_line_has_the_prompts_of_training(
    agent: str, ask: Ask, prompts: str | None, options: str, supervised: bool, tmp_path: Path
) -> None:
    row = TrainRow(
        index=0, id="1", agent=agent, source="toy", question="Who?", answers=("x",),
        messages=await prompt_of(ask, prompts),
    )  # fmt: skip
    data = tmp_path / "train.parquet"
    with SftWriter(data) if supervised else RowWriter(data) as writer:
        writer.add(row, "reply")
    made = load_config(agent, "sft" if supervised else "grpo", model="Qwen/x", data=str(data))
    asked = commands(made, exported(tmp_path), merged=False)[1]
    assert asked.split("/v1 ")[1] == f"{options}'Who directed the film Dracula?'"


def test_settings_of_the_run_stand_in_for_lost_rows(tmp_path: Path) -> None:
    made = load_config("plan", "sft", model="Qwen/x", data="gone", runtime={"joint": True, "prompts": "small"})
    assert "/v1 --joint --prompts small 'Who" in commands(made, exported(tmp_path), merged=False)[1]


def test_the_embedded_reader_needs_no_export(tmp_path: Path) -> None:
    save_config(make_config({"agent": "answer", "model": "embedded"}), tmp_path / "config.yaml")
    with pytest.raises(ConfigError, match=f"embedded:{tmp_path}/reader"):
        export(tmp_path)


def test_a_merged_model_has_the_name_of_its_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "planner")
    serve, _ = commands(load_config("plan", model="Qwen/x"), run, merged=True)
    assert serve.startswith(f"vllm serve {run.merged} ")
    assert "--served-model-name planner" in serve
