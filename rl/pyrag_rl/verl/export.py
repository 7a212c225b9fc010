"""Export of a verl checkpoint: a PEFT adapter, a merged model if requested, and the commands to serve them.

Checkpoints of adapters have no base model, so PEFT makes the merged model.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyrag.agents.prompts import load_prompts
from pyrag.errors import ConfigError, DataError
from pyrag.llm.clients.adapters import read_adapter
from pyrag.llm.clients.serve_line import Serving, serve_line
from pyrag_prompts import PROMPT_SETS
from pyrag_rl.config import EMBEDDED, TrainConfig, saved_config
from pyrag_rl.data.rows import is_supervised, read_conversations, read_rows
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl.launch import TrainingFailedError, environment, last_error

_ADAPTER = "lora_adapter"  # folder that verl's merger writes
_SYSTEM_MESSAGES = {
    "plan": ("plan.system", "joint.system"),
    "decompose": ("decompose.system",),
    "answer": ("answer.evidence.system", "answer.aggregation.system"),
    "rewrite": (),  # a method's prompt, which needs no options
}


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """Exported files. `adapter` is None if all weights were trained; `serve` and `ask` are command lines."""

    step: int
    adapter: Path | None
    merged: Path | None
    serve: str
    ask: str


def export(run: Path, *, step: int | None = None, merged: bool = False) -> ExportedModel:
    """Write `RUN/adapter`, and `RUN/merged` on request or if all weights were trained.

    Args:
        run: Folder of the run.
        step: Step of the checkpoint; None for the last.
        merged: Whether to also write a merged model.

    Raises:
        ConfigError, DataError: The run has nothing to export.
        TrainingFailedError: verl's merger failed.
    """
    folder = RunFolder(run)
    if not folder.config.is_file():
        raise ConfigError(f"{run} is not a run folder: pass the --out of pyrag train")
    config = saved_config(folder.config)
    if config.model == EMBEDDED:
        raise ConfigError(f"{run} needs no export: ask with pyrag ask --llm embedded:{folder.reader}")
    checkpoint = folder.checkpoint(step)
    shards = checkpoint / "actor" if (checkpoint / "actor").is_dir() else checkpoint  # SFT has only one role
    with tempfile.TemporaryDirectory(prefix="pyrag-export-", dir=folder.path) as scratch:
        _merge_shards(config, folder, shards, Path(scratch))
        made = Path(scratch) / _ADAPTER
        if made.is_dir():
            _name_base(made, config.model)
            _put(made, folder.adapter)
        else:
            _put(Path(scratch), folder.merged)
            merged = True
    adapter = folder.adapter if config.lora_rank else None
    if merged and adapter:
        merge_adapter(config.model, adapter, folder.merged)
    number = int(checkpoint.name.removeprefix("global_step_"))
    serve, ask = commands(config, folder, merged=merged and adapter is None)
    return ExportedModel(number, adapter, folder.merged if merged else None, serve, ask)


def commands(config: TrainConfig, folder: RunFolder, *, merged: bool) -> tuple[str, str]:
    """Return the command lines that serve the export with vLLM and send a question to it.

    Args:
        config: Configuration of the run.
        folder: Folder of the run.
        merged: Whether to serve the merged model instead of the adapter.
    """
    name = folder.path.resolve().name
    if merged:
        serving = Serving(model=str(folder.merged.resolve()), served_name=name)
    else:
        serving = Serving(model=config.model, adapters=[read_adapter(f"{name}={folder.adapter.resolve()}")])
    method = ["--method", "opera"] if config.algorithm == "mapgrpo" else []
    engine = [f"--{config.agent}-llm", f"openai:{name}@http://127.0.0.1:8000/v1"]
    # Without this option, servers use the model's own penalty, such as 1.05, which rollouts do not have.
    plain = ["--request", f"{config.agent}.extra_body.repetition_penalty=1.0"]
    ask = ["pyrag", "ask", *plain, *method, *engine, *_serving_options(config), "Who directed the film Dracula?"]
    return shlex.join(serve_line(serving)), shlex.join(ask)


def _serving_options(config: TrainConfig) -> list[str]:
    """Return the options of `pyrag ask` that send the agent the prompts it was trained on.

    The first training row shows these prompts. If it is missing or has none of the known prompts, the run's settings
    are used.
    """
    run_prompts = config.runtime.get("prompts")
    joint, prompts = bool(config.runtime.get("joint")), run_prompts
    system, user, question = _first_prompt(Path(config.data))
    for prompt_set in dict.fromkeys((run_prompts, None, *PROMPT_SETS)):
        templates = load_prompts(prompt_set)
        if system in [templates.render(name) for name in _SYSTEM_MESSAGES[config.agent]]:
            as_joint = (templates.render("joint.system"), templates.render("joint.user", question=question))
            joint, prompts = (system, user) == as_joint, prompt_set
            break
    return [*(["--joint"] if joint else []), *(["--prompts", str(prompts)] if prompts else [])]


def _first_prompt(data: Path) -> tuple[str, str, str]:
    """Return system message, user message and question of a training set's first row; empty if it has none."""
    try:
        if is_supervised(data):
            first = read_conversations(data)[0]
            messages, question = {message["role"]: message["content"] for message in first.messages}, first.question
        else:
            row = read_rows(data)[0]
            messages, question = {message.role: message.content for message in row.messages}, row.question
    except (DataError, IndexError):
        return "", "", ""
    return messages.get("system", ""), messages.get("user", ""), question


def merge_adapter(base: str, adapter: Path, out: Path) -> None:
    """Write the base model with the adapter's weights added to its own.

    Args:
        base: Name or folder of the base model.
        adapter: Folder of a PEFT adapter.
        out: Folder to write; an existing one is replaced.
    """
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), str(adapter)).merge_and_unload()
    if out.is_dir():
        shutil.rmtree(out)
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(base).save_pretrained(out)


def _merge_shards(config: TrainConfig, folder: RunFolder, shards: Path, out: Path) -> None:
    if config.lora_rank:
        command = [sys.executable, "-m", "pyrag_rl.verl.adapter_merger", str(shards), str(out)]
    else:
        command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
        command += ["--local_dir", str(shards), "--target_dir", str(out)]
    log = folder.path / "export.log"
    with log.open("wb") as file:
        done = subprocess.run(  # noqa: S603  our own interpreter and module
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment(config, folder)},
            check=False,
        )
    if done.returncode:
        raise TrainingFailedError(f"verl's merger failed ({last_error(log)}): read {log}")


def _name_base(adapter: Path, base: str) -> None:
    """Write the base model's name into an adapter, because PEFT needs it and verl omits it."""
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "base_model_name_or_path": base}, indent=2))


def _put(made: Path, place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    shutil.copytree(made, place)
