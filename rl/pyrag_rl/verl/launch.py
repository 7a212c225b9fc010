"""Runs of verl as a separate process, which is watched through the run folder and ended together with its children.

    train(config, console=print)     a run from its first (or last saved) step to its last
    command_of, environment          command and environment, for `--dry-run`

Ray starts many processes. Their sockets are in a separate folder, so that other clusters are not affected, and
processes that are still running from that folder at the end are killed by their ids.
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
from pyrag.trace.words import counted
from pyrag_rl import packed
from pyrag_rl.config import TrainConfig, absolute, as_values, save_config, saved_config
from pyrag_rl.folder import RunFolder
from pyrag_rl.verl import preflight
from pyrag_rl.verl.lengths import Length, count_steps, length_by
from pyrag_rl.verl.overrides import agent_loops, rendered, verl_overrides
from pyrag_rl.verl.watch import Watch

Console = Callable[[str], None]
_POLL = 0.5  # seconds
_OF_TORCHRUN = "torch.distributed.elastic."  # lines that report that a process failed, but not why
_MODULES = "VERL_USE_EXTERNAL_MODULES"  # modules that verl imports in each of its processes
WEIGHT_CHECK = "pyrag_rl.verl.weight_check"
# Settings that may change between the sessions of a run: its end, its logs and its machines.
_MAY_CHANGE = {
    "epochs", "max_steps", "eval_every", "save_every", "keep_checkpoints", "loggers", "trace_every", "dump_rollouts",
    "out", "gpus", "rollout_gpus", "nodes", "tensor_parallel", "gpu_memory", "reward_workers", "agent_workers",
    "micro_batch_size", "threads",
}  # fmt: skip


class TrainingFailedError(PyRAGError):
    """Failure of a training run."""

    kind = "training"


def train(config: TrainConfig, *, console: Console = print, length: Length | None = None) -> RunFolder:
    """Train to the end. A run that was killed continues from its last checkpoint.

    Args:
        config: Configuration of the run.
        console: Called with one line at a time.
        length: Function that counts the tokens of a prompt; None for the model's own tokenizer.

    Raises:
        ConfigError, DataError: The run was refused before it started.
        TrainingFailedError: verl failed, or most rewards of a step could not be computed.
        KeyboardInterrupt: The run was interrupted; verl has been stopped.
    """
    config = absolute(config)
    preflight.check(config)
    steps = count_steps(config, length or length_by(config.model, asking=True), console)
    config = replace(preflight.saving_often(config, steps), max_steps=steps)  # so that the last step is evaluated
    folder = prepare(config)
    done = folder.latest_step
    if done >= steps:
        console(f"{config.out} is trained already: {done} of {steps} steps")
        return folder
    went_on = f", on from step {done}" if done else ""
    shown = f"{counted(steps, 'step')}{went_on}"
    console(f"training the {config.agent} agent: {shown}; all that verl prints is in {folder.log}")
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
    """Return the run folder with verl's input files. Raises `ConfigError` if it contains another run."""
    folder = claim(config)
    write_loops(folder)
    return folder


def claim(config: TrainConfig) -> RunFolder:
    """Return the run folder, which is new or will be continued. Raises `ConfigError` if it contains another run."""
    folder = RunFolder(Path(config.out))
    if folder.config.is_file():
        before, now = as_values(saved_config(folder.config)), as_values(config)
        changed = [key for key in now if key not in _MAY_CHANGE and now[key] != before[key]]
        if changed:
            raise ConfigError(
                f"{config.out} holds a run with another {changed[0]}, {before[changed[0]]!r} and not "
                f"{now[changed[0]]!r}: pass the same settings to continue it, or another --out"
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
        config: Configuration of the run.
        folder: Folder of the run.
        temp: Folder for Ray's sockets; empty for Ray's default.
    """
    return [sys.executable, "-m", "verl.trainer.main_ppo", *verl_overrides(config, folder, temp), *hydra_rows(folder)]


def hydra_rows(folder: RunFolder) -> list[str]:
    """Return overrides that keep Hydra from creating a folder `outputs` in the current folder."""
    return [f"hydra.run.dir={rendered(str(folder.path))}", "hydra.output_subdir=null"]


def environment(config: TrainConfig, folder: RunFolder) -> dict[str, str]:
    """Return the environment variables to set in addition to the caller's.

    Args:
        config: Configuration of the run.
        folder: Folder of the run.
    """
    variables = {
        "TENSORBOARD_DIR": str(folder.tensorboard),
        "WANDB_DIR": str(folder.path),  # by default, the current folder
        "TOKENIZERS_PARALLELISM": "false",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),  # also works for an uninstalled checkout
    }
    modules = [WEIGHT_CHECK] if config.algorithm != "sft" else []
    if config.on_cpu:
        from pyrag_rl import cpu_smoke

        variables |= cpu_smoke.ENVIRONMENT | (cpu_smoke.threads(config.threads) if config.profile == "cpu" else {})
        modules = [*cpu_smoke.MODULES, *modules]
    elif packed.replaces_flash_attention(config):
        modules = [packed.MODULE, *modules]
    return variables | ({_MODULES: ",".join(modules)} if modules else {})


def composed(config: TrainConfig) -> str:
    """Return the YAML that verl composes from the configuration. Raises `ConfigError` if verl does not know a key."""
    config = absolute(config)
    return composed_by("ppo_trainer", verl_overrides(config, RunFolder(Path(config.out))))


def composed_by(name: str, overrides: list[str]) -> str:
    """Return the YAML of one of verl's configurations with overrides.

    Args:
        name: Name of the configuration in verl.
        overrides: Settings `key=value` in Hydra's grammar.

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
    """Run one session of a verl trainer to its end.

    Args:
        command: Command line of the trainer.
        config: Configuration of the run.
        folder: Folder of the run.
        watch: Watch that reports progress and decides when to give up.

    Raises:
        TrainingFailedError: verl failed, or the watch gave up.
    """
    folder.overrides.write_text("\n".join(word for word in command if "=" in word) + "\n", encoding="utf-8")
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
    if fault := watch.look():  # the cause, if it made verl fail
        raise TrainingFailedError(fault)
    if process.returncode:
        raise TrainingFailedError(
            f"verl ended with code {process.returncode} ({last_error(folder.log, began)}): read {folder.log}; "
            "run the same command to continue from the last checkpoint"
        )


def last_error(log: Path, start: int = 0) -> str:
    """Return the last line of a log that names an exception, without Ray's prefix; else its last line.

    Args:
        log: The log file.
        start: Byte to start from.
    """
    with log.open("rb") as file:
        file.seek(start)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line.partition(":")[0] and not line.startswith((" ", _OF_TORCHRUN))]
    return (named or lines or ["it said nothing"])[-1].strip()[:300]


def end_leftovers(temp: str) -> None:
    """Kill processes that still run from our Ray folder, because Ray's daemons outlive a killed driver."""
    for pid in _pids_naming(temp):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _pids_naming(text: str, processes: Path = Path("/proc")) -> list[int]:
    pids = []
    for folder in processes.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                pids.append(int(folder.name))
    return pids
