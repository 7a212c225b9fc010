"""Tables and figures of PyRAG's paper."""

from __future__ import annotations

from pyrag.reproduce.tables import WIKI, PaperTable, TableRow

_CODER = "qwen2.5-coder-7b"
_TWO = "PyRAG, {model} (table 2)"
_BASELINES = ("direct", "cot", "vanilla", "self-ask", "ircot", "iter-retgen")
_TABLE_2 = (
    *(TableRow(name=name, method=name, paper=_TWO) for name in _BASELINES),
    TableRow(name="pyrag", method="pyrag", paper=_TWO, plan=_CODER),
)


def _searcher(name: str, method: str) -> TableRow:
    from pyrag.reproduce.models import MODELS

    return TableRow(name=name, method=method, model=name, paper=f"PyRAG, {MODELS[name].label}, Qwen2.5-7B (table 3)")


_RL = "PyRAG, PyRAG-RL, {model} (table 3)"
TABLES = (
    PaperTable(
        key="pyrag/table2",
        title="PyRAG without training, and six baselines",
        models=("qwen2.5-7b", "qwen2.5-72b"),
        corpora={WIKI: ("popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")},
        rows=_TABLE_2,
        remarks=(
            "For 72B the paper says only that the model is substituted: here it decomposes and answers, and the 7B "
            "coder plans (ours).",
        ),
    ),
    PaperTable(
        key="pyrag/table3",
        title="PyRAG-RL and trained baselines",
        models=("qwen2.5-7b", "qwen3-4b", "llama-3.1-8b"),
        corpora={WIKI: ("hotpotqa", "2wikimultihopqa", "musique", "bamboogle")},
        rows=(
            TableRow(name="vanilla", method="vanilla", paper="PyRAG, {model} (table 3)|PyRAG, {model} (table 2)"),
            TableRow(name="rag-sft", method="vanilla", training="rag-sft", paper="PyRAG, RAG-SFT, {model} (table 3)"),
            TableRow(name="rag-rl", method="vanilla", training="rag-rl", paper="PyRAG, RAG-RL, {model} (table 3)"),
            _searcher("zerosearch", "search-agent:zerosearch"),
            _searcher("search-r1", "search-agent"),
            _searcher("stepsearch", "search-agent:stepsearch"),
            _searcher("research", "search-agent:research"),
            TableRow(name="pyrag-rl", method="pyrag", training="pyrag-rl", paper=_RL),
        ),
        remarks=(
            "The paper does not print how RAG-SFT and RAG-RL were trained: the recipes are ours.",
            "The row Vanilla RAG of Qwen2.5-7B is that of table 2.",
        ),
    ),
    PaperTable(
        key="pyrag/figure3a",
        title="What decomposition, plan and execution add",
        models=("qwen2.5-7b",),
        corpora={WIKI: ("hotpotqa", "2wikimultihopqa", "bamboogle")},
        rows=(
            TableRow(name="vanilla", method="vanilla", paper=_TWO),
            TableRow(name="decompose-only", method="decompose-only"),
            TableRow(name="plan-only", method="plan-only", plan=_CODER),
            TableRow(name="pyrag", method="pyrag", plan=_CODER, paper=_TWO),
        ),
        remarks=(
            "The paper draws the figure without its numbers: only the two rows of table 2 are shown next to ours.",
        ),
    ),
    PaperTable(
        key="pyrag/figure3b",
        title="Instruct model and coder, in vanilla RAG and in PyRAG",
        models=("qwen2.5-7b",),
        corpora={WIKI: ("hotpotqa", "2wikimultihopqa", "bamboogle")},
        rows=(
            TableRow(name="vanilla", method="vanilla", paper=_TWO),
            TableRow(
                name="vanilla-coder",
                method="vanilla",
                model=_CODER,
                figures={"hotpotqa": 29.1, "2wikimultihopqa": 18.6},
            ),
            TableRow(name="pyrag-instruct", method="pyrag"),
            TableRow(name="pyrag-coder", method="pyrag", plan=_CODER, paper=_TWO),
        ),
        remarks=("Of the instruct model in PyRAG the paper prints differences only (-1.8, -6.9 and -2.0).",),
    ),
    PaperTable(
        key="pyrag/efficiency",
        title="Exact match against model calls, on 100 questions of HotpotQA",
        models=("qwen2.5-7b",),
        corpora={WIKI: ("hotpotqa",)},
        rows=(
            TableRow(name="vanilla", method="vanilla"),
            TableRow(name="search-r1", method="search-agent", model="search-r1"),
            TableRow(name="pyrag", method="pyrag", plan=_CODER, options=("--joint",)),
            TableRow(name="pyrag-rl", method="pyrag", training="pyrag-rl", options=("--joint",)),
        ),
        limit=100,
        section="Scores",
        remarks=(
            "Which 100 questions the paper drew is not known: ours are drawn with seed 0.",
            "The paper's calls a question: PyRAG 3.7, PyRAG-RL 3.1; self-repair in 5 %, adaptive retrieval in 20 %.",
        ),
    ),
    PaperTable(
        key="pyrag/failures",
        title="Causes of wrong answers on HotpotQA",
        models=("qwen2.5-7b",),
        corpora={WIKI: ("hotpotqa",)},
        rows=(TableRow(name="pyrag", method="pyrag", plan=_CODER),),
        limit=200,
        section="Wrong answers by cause",
        remarks=(
            "The paper sorted 100 wrong answers by hand; pyrag sorts all of them by rule.",
            "The paper's shares: retrieval about half, program errors 5 %.",
        ),
    ),
)
