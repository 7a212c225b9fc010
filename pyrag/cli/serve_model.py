"""`pyrag serve-model`: vLLM's server, which replaces this process."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyrag.cli.output import print_json, tell
from pyrag.errors import UsageError, install_extra

if TYPE_CHECKING:
    from pyrag.llm.clients.serve_line import Serving


_CPU_MEMORY = 0.4  # share of the machine's memory; vLLM's own 0.92 is rarely free beside other programs


def serve_model(serving: Serving, *, dry_run: bool, as_json: bool) -> None:
    """Replace this process with vLLM's server, with the flags that pyrag needs, or print its command.

    Args:
        serving: Model, adapters and resources.
        dry_run: Only print the command.
        as_json: Print the command as JSON.

    Raises:
        ConfigError: The options contradict each other, or vLLM lacks a system library.
        DataError: The model's folder is incomplete.
        UsageError: vLLM is not installed.
    """
    from pyrag.llm.clients.local_spec import model_folder
    from pyrag.llm.clients.serve_line import KEY_VARIABLE, LOOPBACK, serve_line
    from pyrag.llm.clients.vllm_library import WITHOUT_COMPILER, check_library, has_compiler, is_cpu_build

    serving = replace(serving, model=str(model_folder(serving.model) or serving.model))
    if is_cpu_build():
        serving = _for_cpu(serving)
    line = serve_line(serving)
    if dry_run:
        print_json({"line": line, "llm": _specs(serving)}) if as_json else print(shlex.join(line))
        return
    program = shutil.which(line[0], path=str(Path(sys.executable).parent)) or shutil.which(line[0])
    if program is None:
        raise UsageError(
            f"vLLM is not installed: {install_extra('vllm')}, or copy the line of --dry-run to where it is"
        )
    if Path(program).parent == Path(sys.executable).parent:  # vLLM of another environment cannot be checked
        check_library()
    key = _key(os.environ)
    if key is None and serving.host not in (LOOPBACK, "localhost", "::1"):
        tell(f"who can reach {serving.host} can use this model: set PYRAG_API_KEY to a key that it asks for")
    tell(shlex.join(line))
    tell(f"use it with --llm {' or --llm '.join(_specs(serving))}")
    is_eager = is_cpu_build() and not has_compiler()
    defaults = {"VLLM_NO_USAGE_STATS": "1", **(WITHOUT_COMPILER if is_eager else {})}
    environment = {**defaults, **os.environ, **({KEY_VARIABLE: key} if key else {})}
    # Replace this process, so that signals and exit codes are vLLM's own.
    os.execve(program, line, environment)  # noqa: S606


def _for_cpu(serving: Serving) -> Serving:
    """Return options with which vLLM starts on an ordinary machine without a GPU."""
    from pyrag.llm.clients.vllm_library import has_compiler

    eager = "--enforce-eager"
    if not has_compiler() and eager not in serving.more:
        tell("there is no C++ compiler, so the model's layers are not compiled: it is faster after installing g++")
        serving = replace(serving, more=(eager, *serving.more))
    return replace(serving, gpu_memory=_CPU_MEMORY) if serving.gpu_memory is None else serving


def _key(environ: Mapping[str, str]) -> str | None:
    """Return the key in vLLM's own variable, else pyrag's. OpenAI's key is not used, since it is for another server."""
    from pyrag.llm.clients.openai import key_from_environment
    from pyrag.llm.clients.serve_line import KEY_VARIABLE

    key = environ.get(KEY_VARIABLE, "").strip()
    return key or key_from_environment({name: text for name, text in environ.items() if name != "OPENAI_API_KEY"})


def _specs(serving: Serving) -> list[str]:
    host = f"[{serving.host}]" if ":" in serving.host else serving.host
    names = [serving.served_name or serving.model, *(adapter.name for adapter in serving.adapters)]
    return [f"openai:{name}@http://{host}:{serving.port}/v1" for name in names]
