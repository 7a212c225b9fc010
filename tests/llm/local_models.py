"""A tiny random model with an adapter, for engines that load real weights: it stands in for those alone."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from pyrag.agents.schemas import closed
from pyrag.llm.protocol import Message

WINDOW = 8192
ASKED = (Message("system", "You answer questions."), Message("user", "Who wrote the book?"))
VERDICT = closed("verdict", {"decision": {"type": "string", "enum": ["YES", "NO"]}})
PATTERN = r"[\s\S]{0,20}<answer>[^<]{1,9}</answer>"


@dataclass(frozen=True, slots=True)
class TinyModel:
    folder: Path
    adapter: Path  # of rank 4


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """Made once a run. Its weights are large, so that no two tokens are about as likely; it hardly ever ends a text."""
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from tests.rl.tiny import make

    base = tmp_path_factory.mktemp("models")
    prompts = [file.read_text() for file in files("pyrag_prompts").iterdir() if file.name.endswith(".txt")]
    make(base / "tiny", prompts, vocabulary=1500)
    model = AutoModelForCausalLM.from_pretrained(base / "tiny")
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(8 if weights.dim() > 1 else 1)
        model.lm_head.weight[model.config.eos_token_id] = 0
    model.config.max_position_embeddings = WINDOW
    model.save_pretrained(base / "tiny")
    tokenizer = AutoTokenizer.from_pretrained(base / "tiny")
    tokenizer.model_max_length = WINDOW
    tokenizer.save_pretrained(base / "tiny")
    targets = ["q_proj", "v_proj", "gate_proj", "down_proj"]
    torch.manual_seed(1)
    config = LoraConfig(r=4, lora_alpha=16, target_modules=targets, init_lora_weights=False)
    get_peft_model(model, config).save_pretrained(base / "planner")
    return TinyModel(base / "tiny", base / "planner")
