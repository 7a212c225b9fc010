"""Scores that the papers report, for columns next to our figures. HoVer's exact match is its label accuracy.

The papers used other models, corpora and the full sets, so a difference from their figures proves nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LABEL = "reported (other models, corpora and questions)"


@dataclass(frozen=True, slots=True)
class Reported:
    """Row of a paper's table, with figures by set. `method` is the name in our registry."""

    source: str
    method: str
    em: dict[str, float]
    f1: dict[str, float]
    accuracy: dict[str, float]


def _rows(source: str, columns: Sequence[str], table: str) -> tuple[Reported, ...]:
    """Parse a table. Each line has our method, the row's name, and its figures, with a dash for a missing figure.

    Args:
        source: Name of the table, with a placeholder for the row's name.
        columns: METRIC:SET of each figure.
        table: Lines of the table.
    """
    parsed = []
    for line in table.strip().splitlines():
        method, words, figures = (part.strip() for part in line.split("|"))
        by_metric: dict[str, dict[str, float]] = {"em": {}, "f1": {}, "accuracy": {}}
        for column, figure in zip(columns, figures.split(), strict=True):
            metric, name = column.split(":")
            if figure != "-":
                by_metric[metric][name] = float(figure)
        parsed.append(Reported(source.format(words), method, **by_metric))
    return tuple(parsed)


def _columns(sets: str, metrics: str = "em") -> tuple[str, ...]:
    return tuple(f"{metric}:{name}" for name in sets.split() for metric in metrics.split())


_FIVE = _columns("popqa hotpotqa 2wikimultihopqa musique bamboogle")
_FOUR = _FIVE[1:]
_THREE = _columns("hotpotqa 2wikimultihopqa musique", "em f1")
_HERA = (*_columns("hotpotqa 2wikimultihopqa musique ambigqa bamboogle", "accuracy em f1"), "em:hover")

REPORTED = (
    *_rows("PyRAG, {} (table 2)", _FIVE, """
        direct       | Qwen2.5-7B  | 14.0 18.3 12.6  3.1 12.0
        cot          | Qwen2.5-7B  |  5.4  9.2 10.8  2.2 23.2
        vanilla      | Qwen2.5-7B  | 26.7 28.9 18.9  4.7 16.0
        self-ask     | Qwen2.5-7B  | 29.4 30.2 21.5  6.8 22.1
        ircot        | Qwen2.5-7B  | 32.6 32.7 24.8  9.1 24.3
        iter-retgen  | Qwen2.5-7B  | 31.4 32.5 28.9  8.7 29.6
        pyrag        | Qwen2.5-7B  | 33.5 34.0 33.4 11.8 41.5
        direct       | Qwen2.5-72B | 19.7 30.6 20.6  5.5 17.6
        cot          | Qwen2.5-72B | 24.4 33.2 25.4  9.9 19.6
        vanilla      | Qwen2.5-72B | 33.2 36.8 30.4 10.6 21.6
        self-ask     | Qwen2.5-72B | 41.4 48.2 32.5 11.8 26.1
        ircot        | Qwen2.5-72B | 44.6 50.9 35.8 14.2 28.3
        iter-retgen  | Qwen2.5-72B | 43.4 50.5 40.2 13.8 33.6
        pyrag        | Qwen2.5-72B | 45.5 52.0 44.4 16.9 45.5
    """),
    *_rows("PyRAG, {} (table 3)", _FOUR, """
        vanilla                 | RAG-SFT, Qwen2.5-7B    | 32.4 22.6  6.8 27.1
        vanilla                 | RAG-RL, Qwen2.5-7B     | 35.2 34.7  9.6 29.6
        search-agent:zerosearch | ZeroSearch, Qwen2.5-7B | 34.6 35.2 18.4 27.7
        search-agent            | Search-R1, Qwen2.5-7B  | 37.0 41.4 14.6 36.8
        search-agent:stepsearch | StepSearch, Qwen2.5-7B | 38.6 36.6 22.6 40.0
        search-agent:research   | ReSearch, Qwen2.5-7B   | 43.5 47.6 22.3 42.4
        pyrag                   | PyRAG-RL, Qwen2.5-7B   | 40.5 49.4 20.7 46.1
        vanilla                 | Qwen3-4B               | 27.1 16.7  4.3 14.8
        vanilla                 | RAG-SFT, Qwen3-4B      | 30.5 20.1  6.2 25.4
        vanilla                 | RAG-RL, Qwen3-4B       | 33.2 31.8  8.8 27.6
        pyrag                   | PyRAG-RL, Qwen3-4B     | 38.4 45.1 18.6 43.2
        vanilla                 | Llama-3.1-8B           | 30.3 19.4  6.3 17.6
        vanilla                 | RAG-SFT, Llama-3.1-8B  | 34.1 23.3  8.5 29.3
        vanilla                 | RAG-RL, Llama-3.1-8B   | 37.5 35.2 11.4 31.8
        pyrag                   | PyRAG-RL, Llama-3.1-8B | 43.2 50.1 22.1 48.3
    """),
    *_rows("OPERA, {}", _THREE, """
        direct   | Qwen2.5-7B (table 1)          | 18.5 26.8 16.2 23.7  4.1  9.1
        vanilla  | Qwen2.5-7B (table 1)          | 31.5 44.2 25.9 37.6 14.1 18.4
        ircot    | Qwen2.5-7B (table 1)          | 42.7 54.8 43.3 56.2 18.8 23.9
        adaptive | Qwen2.5-7B (table 1)          | 45.7 56.9 30.1 39.3 24.3 35.7
        opera    | CoT, Qwen2.5-7B (table 1)     | 44.9 58.5 42.3 50.7 21.2 26.4
        opera    | MAPGRPO, Qwen2.5-7B (table 1) | 57.3 69.5 60.2 72.7 39.7 51.9
        opera    | CoT, Llama-3.1-8B (table 8)   | 38.7 48.3 35.6 45.1 18.3 23.2
        opera    | CoT, Qwen3-8B (table 8)       | 47.7 61.4 49.3 62.8 30.2 39.1
        opera    | CoT, Llama-3.1-70B (table 8)  | 54.9 65.8 52.8 64.7 34.1 45.2
    """),
    *_rows("OPERA, {}, Qwen2.5-7B (table 2)", _columns("musique", "em f1"), """
        opera                    | CoT     | 21.2 32.1
        opera                    | SFT     | 24.3 38.2
        opera                    | GRPO    | 34.8 51.5
        opera                    | MAPGRPO | 39.7 58.0
        opera:no-plan            | MAPGRPO | 17.1 28.5
        opera:no-rewrite         | MAPGRPO | 34.5 51.8
        opera:no-plan-no-rewrite | MAPGRPO | 16.7 27.2
    """),
    *_rows("OPERA, {}, Qwen2.5-7B (table 3)", _columns("nq multihoprag", "em f1"), """
        opera | CoT     | 23.1 29.5 42.3 51.7
        opera | SFT     | 19.5 23.8 44.6 54.2
        opera | GRPO    | 35.6 43.9 50.9 59.5
        opera | MAPGRPO | 36.6 45.1 55.7 63.8
    """),
    *_rows("OPERA, MAPGRPO, Qwen2.5-7B, {} (table 9)", _columns("hotpotqa", "em f1"), """
        opera | Rewrite by 7B   | 57.9 70.0
        opera | Rewrite by 1.5B | 50.8 63.7
    """),
    *_rows("HERA, {}", _HERA, """
        direct | Llama-3.1-8B (table 3) | \
            15.63  9.60 22.13  24.13 16.53 28.67   0.20  0.99  7.18   4.80  4.80  7.96  10.74  8.29 18.55   5.80
        direct | Qwen2.5-7B (table 3) | \
            19.30 13.17 27.97  24.43 19.70 28.88   2.61  2.40 10.72   8.70  8.00  8.80  16.73 14.04 25.65   3.08
        direct | Qwen3-8B (table 3) | \
            17.83 11.60 26.49  24.37 18.80 28.83   2.69  2.52 10.37  11.20  9.60 18.35  14.19 11.84 23.24   5.90
        direct | Qwen3-14B (table 3) | \
            21.40 14.53 30.68  28.00 20.87 32.69   2.61  2.36 10.03   6.40  4.80 12.97  17.73 14.34 27.98   3.94
        cot | Llama-3.1-8B (table 3) | \
            16.20 10.14 24.34  24.70 16.74 28.73   0.27  1.40  7.64  15.45  5.20 11.90  11.48  9.00 21.33  15.34
        cot | Qwen2.5-7B (table 3) | \
            19.93 13.73 28.24  24.37 18.00 27.94   4.34  4.14 11.47  28.00 25.60 38.16  17.88 15.23 28.14  15.93
        cot | Qwen3-8B (table 3) | \
            21.30 15.47 29.36  25.17 17.63 29.51   3.68  3.56 11.03  29.60 23.20 39.83  16.78 14.29 26.73  20.10
        cot | Qwen3-14B (table 3) | \
            19.80 13.27 28.48  25.33 19.03 29.70   2.61  2.44 10.03  12.00 10.40 19.38  14.89 12.99 24.38  22.09
        vanilla | top-10, Qwen2.5-14B (table 1) | \
            43.53 35.72 46.14  26.64 26.25 31.85   9.23  7.00 13.75  39.78 36.65 50.23  27.20 34.70 34.35  45.50
        vanilla | top-10, Qwen3-14B (table 1) | \
            44.47 36.25 47.56  31.57 31.10 37.79  13.16  9.99 15.72  38.47 36.10 50.91  31.54 29.60 38.31  49.05
        vanilla | top-10, Qwen3-8B (table 1) | \
            41.35 33.70 45.10  26.37 26.10 32.12  11.49  8.71 13.62  36.02 33.80 47.70  23.87 22.40 30.28  50.15
        vanilla | top-10, GPT-4o-mini (table 1) | \
            46.30 37.74 49.30  28.42 28.41 35.11  16.63 13.94 19.60  37.40 33.80 47.99  38.36 36.00 42.81  47.95
        vanilla | top-10, Llama-3.1-8B (table 1) | \
            33.16 27.02 35.14  20.40 20.35 25.11   8.43  6.43 12.61  18.03 18.96 24.60  20.46 19.20 27.24  49.90
        iter-retgen | Qwen2.5-7B (table 1) | \
            20.37 16.71 24.59  47.71 43.54 49.12  19.89 16.79 21.04      -     -     -  35.33 34.12 40.65  51.29
        ircot | GPT-4o-mini (table 1) | \
            40.39 33.14 54.93  38.73 35.50 42.01  19.11 18.23 25.00      -     -     -  34.88 30.73 33.97  55.37
        search-agent | Search-R1-7B (table 1) | \
            51.11 41.94 54.18  48.89 44.69 49.20  20.45 18.58 25.73  47.32 45.88 65.54  35.79 32.64 43.93  47.76
        search-agent:r1-searcher | R1-Searcher-7B (table 1) | \
            41.15 32.54 50.69  40.11 35.38 45.19  18.21 13.51 19.19      -     -     -  41.00 38.85 46.76  51.56
        hera | Qwen3-14B (table 1) | \
            55.38 52.50 63.03  60.02 59.50 64.77  27.19 26.57 35.82  54.43 48.74 67.81  49.01 46.46 60.53  67.35
        hera | Llama-3.1-8B (table 1) | \
            53.28 48.01 57.91  52.62 46.70 55.42  25.04 24.46 31.07  48.53 43.46 60.72  46.60 45.22 56.31  60.31
    """),
)  # fmt: skip
NOTES = (
    "RAG-SFT and RAG-RL are vanilla with a trained model. HERA's single-turn rows read ten passages (vanilla with topk "
    "10), PyRAG's and OPERA's five. OPERA's tables 1 and 2 print two F1 for the same run on MuSiQue; both are here. "
    "Rows of methods that are not here (BGM, SELF-RAG, CORAG …) are left out."
)
_DEFAULTS = {"search-agent:search-r1": "search-agent", "opera:full": "opera"}


def reported_rows(method: str, set_name: str) -> list[Reported]:
    """Return the papers' rows that have a figure for a method on a set.

    Args:
        method: Our registry's name of the method.
        set_name: Name of the set.
    """
    name = _DEFAULTS.get(method, method)
    return [row for row in REPORTED if row.method == name and set_name in row.em]


def reported(method: str, set_name: str) -> dict[str, float]:
    """Return the papers' exact match for a method on a set, by source.

    Args:
        method: Our registry's name of the method.
        set_name: Name of the set.
    """
    return {row.source: row.em[set_name] for row in reported_rows(method, set_name)}
