"""Runs verl as a process of its own, watches what it leaves in the run folder, and ends it whole.

    train(config, console=print)     a run from its first to its last step, or on from its last checkpoint
    command_of, environment          what is run, for `--dry-run`

Ray starts many processes: they get a folder of their own for their sockets, so that no other cluster is touched, and
whatever still runs from it afterwards is ended by its id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyrag._io.processes import die_with_parent, end
from pyrag.errors import ConfigError, PyRAGError
from pyrag.evaluation.runs.folder import locked, make_folder
from pyrag_rl import packed
from pyrag_rl.config import TrainConfig, absolute, as_values, save_config, saved_config
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl import preflight
from pyrag_rl.verl.lengths import Length, count_steps, length_by
from pyrag_rl.verl.overrides import agent_loops, rendered, verl_overrides
from pyrag_rl.verl.watch import Watch

Console = Callable[[str], None]
_POLL = 0.5  # seconds
_OF_TORCHRUN = "torch.distributed.elastic."  # says that a process failed, not why
_MODULES = "VERL_USE_EXTERNAL_MODULES"  # what verl imports in each of its processes
WEIGHT_CHECK = "pyrag_rl.verl.weight_check"
# What may change between two sessions of a run: it ends later, is watched otherwise, or runs on other machines.
_MAY_CHANGE = {
    "epochs", "max_steps", "eval_every", "save_every", "keep_checkpoints", "loggers", "trace_every", "dump_rollouts",
    "out", "gpus", "rollout_gpus", "nodes", "tensor_parallel", "gpu_memory", "reward_workers", "agent_workers",
    "micro_batch_size", "threads",
}  # fmt: skip


class TrainingFailedError(PyRAGError):
    kind = "training"


def train(config: TrainConfig, *, console: Console = print, length: Length | None = None) -> RunFolder:
    """Trains to the end; a run that was killed goes on from its last checkpoint.

    Args:
        console: is told one line at a time.
        length: counts a prompt's tokens; the model's own tokenizer, if None.

    Raises:
        ConfigError, DataError: before anything starts.
        TrainingFailedError: verl failed, or most rewards of a step could not be computed.
        KeyboardInterrupt: after verl was ended.
    """
    config = absolute(config)
    preflight.check(config)
    steps = count_steps(config, length or length_by(config.model, asking=True), console)
    config = replace(preflight.saving_often(config, steps), max_steps=steps)  # the last step is the one evaluated
    folder = prepare(config)
    done = folder.latest_step
    if done >= steps:
        console(f"{config.out} is trained already: {done} of {steps} steps")
        return folder
    went_on = f", on from step {done}" if done else ""
    console(f"training the {config.agent} agent: {steps} steps{went_on}; all that verl prints is in {folder.log}")
    temp = tempfile.mkdtemp(prefix="pyrag-ray-")
    try:
        with locked(folder.path):
            run_verl(command_of(config, folder, temp), config, folder, Watch(folder, config, steps, console))
    finally:
        end_leftovers(temp)
        shutil.rmtree(temp, ignore_errors=True)
    console(f"trained: export it with pyrag train export {config.out}")
    return folder


def prepare(config: TrainConfig) -> RunFolder:
    """The run folder with what verl reads from it. Raises `ConfigError` where it holds another run."""
    folder = claim(config)
    write_loops(folder)
    return folder


def claim(config: TrainConfig) -> RunFolder:
    """The run folder, made or gone on with. Raises `ConfigError` where it holds another run."""
    folder = RunFolder(Path(config.out))
    if folder.config.is_file():
        before, now = as_values(saved_config(folder.config)), as_values(config)
        changed = [key for key in now if key not in _MAY_CHANGE and now[key] != before[key]]
        if changed:
            raise ConfigError(
                f"{config.out} holds a run with another {changed[0]}, {before[changed[0]]!r} and not "
                f"{now[changed[0]]!r}: pass the same settings to go on with it, or another --out"
            )
    elif folder.path.is_dir() and any(folder.path.iterdir()):
        raise ConfigError(f"{config.out} is not empty and holds no run: pass another --out")
    make_folder(folder.path)
    save_config(config, folder.config)
    return folder


def write_loops(folder: RunFolder) -> None:
    import yaml

    folder.agent_loops.write_text(yaml.safe_dump(agent_loops(folder)), encoding="utf-8")


def command_of(config: TrainConfig, folder: RunFolder, temp: str = "") -> list[str]:
    """Return the command of verl's GRPO trainer.

    Args:
        config: the run.
        folder: its folder.
        temp: Ray's folder for sockets; Ray's default, if empty.
    """
    return [sys.executable, "-m", "verl.trainer.main_ppo", *verl_overrides(config, folder, temp), *hydra_rows(folder)]


def hydra_rows(folder: RunFolder) -> list[str]:
    """Keeps Hydra from leaving a folder `outputs` wherever the command is called."""
    return [f"hydra.run.dir={rendered(str(folder.path))}", "hydra.output_subdir=null"]


def environment(config: TrainConfig, folder: RunFolder) -> dict[str, str]:
    """Return the environment variables that are set beyond the caller's own.

    Args:
        config: the run.
        folder: its folder.
    """
    found = {
        "TENSORBOARD_DIR": str(folder.tensorboard),
        "WANDB_DIR": str(folder.path),  # else it is wherever the command was called
        "TOKENIZERS_PARALLELISM": "false",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONPATH": os.pathsep.join(one for one in sys.path if one),  # a checkout that is not installed works too
    }
    modules = [WEIGHT_CHECK] if config.algorithm != "sft" else []
    if config.on_cpu:
        from pyrag_rl import cpu_smoke

        found |= cpu_smoke.ENVIRONMENT | (cpu_smoke.threads(config.threads) if config.profile == "cpu" else {})
        modules = [*cpu_smoke.MODULES, *modules]
    elif packed.replaces_flash_attention(config):
        modules = [packed.MODULE, *modules]
    return found | ({_MODULES: ",".join(modules)} if modules else {})


def composed(config: TrainConfig) -> str:
    """The YAML that verl makes of the config. Raises `ConfigError` where verl does not know a key."""
    config = absolute(config)
    return composed_by("ppo_trainer", verl_overrides(config, RunFolder(Path(config.out))))


def composed_by(name: str, overrides: list[str]) -> str:
    """Return the YAML of one of verl's configs with overrides.

    Args:
        name: the config's name in verl.
        overrides: `key=value`, in Hydra's grammar.

    Raises:
        ConfigError: verl is not installed, or does not know a key.
    """
    try:
        from hydra import compose, initialize_config_module
        from hydra.errors import HydraException
        from omegaconf import OmegaConf
    except ImportError as error:
        raise ConfigError(f"what verl composes can be shown where verl is installed: {preflight.INSTALL}") from error
    try:
        with initialize_config_module("verl.trainer.config", version_base=None):
            made = compose(name, overrides=overrides)
    except (HydraException, ModuleNotFoundError) as error:
        raise ConfigError(f"this verl does not take our settings ({error}): install verl 0.9.1") from error
    text: str = OmegaConf.to_yaml(made)
    return text


def run_verl(command: list[str], config: TrainConfig, folder: RunFolder, watch: Watch) -> None:
    """Run one session of a trainer of verl to its end.

    Args:
        command: the trainer's command line.
        config: the run.
        folder: its folder.
        watch: reports progress, and decides when to give up.

    Raises:
        TrainingFailedError: verl failed, or `watch` gave up.
    """
    folder.overrides.write_text("\n".join(one for one in command if "=" in one) + "\n", encoding="utf-8")
    session = {"VERL_FILE_LOGGER_PATH": str(folder.new_metrics_file())}
    env = {**os.environ, **environment(config, folder), **session}
    with folder.log.open("ab") as log:
        began = log.tell()
        process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        try:
            while process.poll() is None:
                time.sleep(_POLL)
                if fault := watch.look():
                    raise TrainingFailedError(fault)
        finally:
            end(process)
    if fault := watch.look():  # the cause, where verl failed by it
        raise TrainingFailedError(fault)
    if process.returncode:
        raise TrainingFailedError(
            f"verl ended with code {process.returncode} ({last_error(folder.log, began)}): read {folder.log}; "
            "the same command goes on from the last checkpoint"
        )


def last_error(log: Path, start: int = 0) -> str:
    """Return the last line of a log that names an exception, without Ray's prefix; else its last line.

    Args:
        log: the log file.
        start: byte to start from.
    """
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line.partition(":")[0] and not line.startswith((" ", _OF_TORCHRUN))]
    return (named or lines or ["it said nothing"])[-1].strip()[:300]


def end_leftovers(temp: str) -> None:
    """Kills what still runs from our Ray folder: its daemons outlive a driver that was killed."""
    for pid in _pids_naming(temp):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _pids_naming(text: str, processes: Path = Path("/proc")) -> list[int]:
    found = []
    for folder in processes.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found
