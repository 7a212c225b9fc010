"""The papers' figures, held against the averages that their tables print, which are not copied."""

from __future__ import annotations

from statistics import fmean

import pytest

from pyrag.evaluation.reports.reported import REPORTED, reported
from pyrag.methods.registry import get_method

AVERAGES = {
    "PyRAG, Qwen2.5-7B (table 2)": {
        "direct": 12.0, "cot": 10.2, "vanilla": 19.0, "self-ask": 22.0, "ircot": 24.7, "iter-retgen": 26.2,
        "pyrag": 30.8,
    },
    "PyRAG, Qwen2.5-72B (table 2)": {
        "direct": 18.8, "cot": 22.5, "vanilla": 26.5, "self-ask": 32.0, "ircot": 34.8, "iter-retgen": 36.3,
        "pyrag": 40.9,
    },
    "PyRAG, RAG-SFT, Qwen2.5-7B (table 3)": {"vanilla": 22.2},
    "PyRAG, RAG-RL, Qwen2.5-7B (table 3)": {"vanilla": 27.3},
    "PyRAG, ZeroSearch, Qwen2.5-7B (table 3)": {"search-agent": 29.0},
    "PyRAG, Search-R1, Qwen2.5-7B (table 3)": {"search-agent": 32.4},
    "PyRAG, StepSearch, Qwen2.5-7B (table 3)": {"search-agent": 34.5},
    "PyRAG, ReSearch, Qwen2.5-7B (table 3)": {"search-agent:research": 38.9},
    "PyRAG, PyRAG-RL, Qwen2.5-7B (table 3)": {"pyrag": 39.2},
    "PyRAG, Qwen3-4B (table 3)": {"vanilla": 15.7},
    "PyRAG, RAG-SFT, Qwen3-4B (table 3)": {"vanilla": 20.6},
    "PyRAG, RAG-RL, Qwen3-4B (table 3)": {"vanilla": 25.4},
    "PyRAG, PyRAG-RL, Qwen3-4B (table 3)": {"pyrag": 36.3},
    "PyRAG, Llama-3.1-8B (table 3)": {"vanilla": 18.4},
    "PyRAG, RAG-SFT, Llama-3.1-8B (table 3)": {"vanilla": 23.8},
    "PyRAG, RAG-RL, Llama-3.1-8B (table 3)": {"vanilla": 29.0},
    "PyRAG, PyRAG-RL, Llama-3.1-8B (table 3)": {"pyrag": 40.9},
}  # fmt: skip


@pytest.mark.parametrize(("source", "averages"), AVERAGES.items())
def test_rows_of_the_papers_have_their_averages(source: str, averages: dict[str, float]) -> None:
    found = {one.method: fmean(one.em.values()) for one in REPORTED if one.source == source}
    assert found == {method: pytest.approx(average, abs=0.06) for method, average in averages.items()}


def test_every_row_is_of_a_method_that_there_is() -> None:
    for one in REPORTED:
        assert get_method(one.method)
    assert len({(one.source, one.method) for one in REPORTED}) == len(REPORTED)


def test_a_default_variant_has_its_methods_figures() -> None:
    assert reported("search-agent:search-r1", "musique") == reported("search-agent", "musique")
    assert reported("opera:full", "nq") == reported("opera", "nq") != {}


def test_heras_single_turn_rows_say_their_ten_passages() -> None:
    assert {one.source for one in REPORTED if one.source.startswith("HERA") and one.method == "vanilla"} == {
        f"HERA, top-10, {model} (table 1)"
        for model in ("Qwen2.5-14B", "Qwen3-14B", "Qwen3-8B", "GPT-4o-mini", "Llama-3.1-8B")
    }
