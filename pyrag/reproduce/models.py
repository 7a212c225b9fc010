"""Models of the papers by short name, options of PyRAG's own runs, and packaged training configurations."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PaperModel:
    """A model of a paper.

    Attributes:
        hub: Name on the hub.
        label: Name in the papers' tables, as in `pyrag.evaluation.reports.paper_scores`.
        billions: Number of weights, in billions.
        tensor_parallel: Number of GPUs of 80 GB for a copy (PyRAG's paper: 2, and 4 for 72B).
        api: Whether a paid service serves the model, rather than this machine.
    """

    hub: str
    label: str
    billions: float = 7.6
    tensor_parallel: int = 2
    api: bool = False


MODELS = {
    "qwen2.5-7b": PaperModel("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B"),
    "qwen2.5-72b": PaperModel("Qwen/Qwen2.5-72B-Instruct", "Qwen2.5-72B", 72.7, 4),
    "qwen2.5-14b": PaperModel("Qwen/Qwen2.5-14B-Instruct", "Qwen2.5-14B", 14.8),
    "qwen2.5-3b": PaperModel("Qwen/Qwen2.5-3B-Instruct", "Qwen2.5-3B", 3.1, 1),
    "qwen2.5-1.5b": PaperModel("Qwen/Qwen2.5-1.5B-Instruct", "Qwen2.5-1.5B", 1.5, 1),
    "qwen2.5-coder-7b": PaperModel("Qwen/Qwen2.5-Coder-7B-Instruct", "Qwen2.5-Coder-7B"),
    "qwen3-4b": PaperModel("Qwen/Qwen3-4B-Instruct-2507", "Qwen3-4B", 4.0, 1),
    "qwen3-8b": PaperModel("Qwen/Qwen3-8B", "Qwen3-8B", 8.2),
    "qwen3-14b": PaperModel("Qwen/Qwen3-14B", "Qwen3-14B", 14.8),
    "llama-3.1-8b": PaperModel("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B", 8.0),
    "llama-3.1-70b": PaperModel("meta-llama/Llama-3.1-70B-Instruct", "Llama-3.1-70B", 70.6, 4),
    "search-r1": PaperModel("PeterJinGo/SearchR1-nq_hotpotqa_train-qwen2.5-7b-em-ppo", "Search-R1"),
    "research": PaperModel("agentrl/ReSearch-Qwen-7B-Instruct", "ReSearch"),
    "zerosearch": PaperModel("Alibaba-NLP/ZeroSearch_wiki_V2_Qwen2.5_7B_Instruct", "ZeroSearch"),
    "stepsearch": PaperModel("Zill1/StepSearch-7B-Instruct", "StepSearch"),
    "r1-searcher": PaperModel("XXsongLALA/Qwen-2.5-7B-base-RAG-RL", "R1-Searcher"),
    "gpt-4o-mini": PaperModel("gpt-4o-mini", "GPT-4o-mini", 0.0, 0, api=True),
}

# Options of every run that follows PyRAG's paper.
PAPER_OPTIONS = ("--prompts", "paper", "--profile", "paper-release")


def config_path(name: str) -> Path:
    """Return the path of a packaged training configuration, in an installation or a checkout."""
    package = Path(str(files("pyrag_rl")))
    paths = (folder / "configs" / f"{name}.yaml" for folder in (package, package.parent))
    return next(path for path in paths if path.is_file())
