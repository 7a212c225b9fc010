"""Download of released data sets from the hub; they are converted like a user's file."""

from __future__ import annotations

from pathlib import Path

from pyrag._io.hub import HUB, Remote, fetch
from pyrag.errors import UsageError, nearest
from pyrag.evaluation.datasets.importers.convert import Imported, import_set

_FLASHRAG = "RUC-NLPIR/FlashRAG_datasets"


# With their paragraphs where a repository has them; else the questions alone, as FlashRAG collects them.
REMOTES = {
    "popqa": Remote("akariasai/PopQA", "test.tsv"),
    "hotpotqa": Remote("hotpotqa/hotpot_qa", "distractor/validation-00000-of-00001.parquet"),
    "2wikimultihopqa": Remote(_FLASHRAG, "2wikimultihopqa/dev.jsonl"),
    "musique": Remote("dgslibisey/MuSiQue", "musique_ans_v1.0_dev.jsonl"),
    "bamboogle": Remote(_FLASHRAG, "bamboogle/test.jsonl"),
    "nq": Remote(_FLASHRAG, "nq/test.jsonl"),
    "ambigqa": Remote(_FLASHRAG, "ambig_qa/dev.jsonl"),
    "multihoprag": Remote("yixuantt/MultiHopRAG", "MultiHopRAG.json"),
}
_ELSEWHERE = {"hover": "https://github.com/hover-nlp/hover/tree/main/data/hover"}


def download_set(name: str, out: Path, source: str = HUB, remote: Remote | None = None) -> Imported:
    """Download a set, and convert it.

    Args:
        name: The set.
        out: The folder to write.
        source: URL of a hub, or a folder that mirrors one.
        remote: Repository and file; None for the known ones of the set.

    Raises:
        UsageError: No hub has the set.
        PermanentServiceError: It cannot be fetched.
    """
    return import_set(name, fetch(remote or _remote(name), source), out)


def _remote(name: str) -> Remote:
    if address := _ELSEWHERE.get(name):
        raise UsageError(f"{name} is on no hub: fetch its file from {address}, then run pyrag data import {name} FILE")
    if name not in REMOTES:
        raise UsageError(f"there is no data set {name!r} to download{nearest(name, REMOTES)}")
    return REMOTES[name]
