"""Tables and figures of HERA's paper. The backbone orchestrates, and the agents use GPT-4o-mini (section 4)."""

from __future__ import annotations

from pyrag.reproduce.tables import WIKI_BGE, PaperTable, TableRow

_BOTH = ("qwen3-14b", "llama-3.1-8b")
_SETS = ("hotpotqa", "2wikimultihopqa", "musique", "ambigqa", "bamboogle", "hover")
_ALL = {WIKI_BGE: _SETS}
_API = "gpt-4o-mini"
_ABLATIONS = ("no-library", "no-prompt-evolution", "no-mutation")
_HERA = TableRow(
    name="hera", method="hera", model=_API, plan="{backbone}", training="hera", paper="HERA, {model} (table 1)"
)
_REMARKS = (
    "The paper learns from a mixture that GPT-4o annotated: here 200 training questions of HotpotQA (ours).",
    "The paper names BGE without its size: here bge-base-en-v1.5 over wiki-18 (ours). HoVer is imported by hand.",
    "Question counts are not printed: here 500 of each set (ours).",
)


def _single(model: str) -> TableRow:
    from pyrag.reproduce.models import MODELS

    paper = f"HERA, top-10, {MODELS[model].label} (table 1)"
    return TableRow(name=f"vanilla-{model}", method="vanilla", model=model, options=("--topk", "10"), paper=paper)


def _ablated(key: str, model: str) -> PaperTable:
    rows = (
        _HERA,
        *(
            TableRow(name=f"hera-{name}", method="hera", model=_API, plan="{backbone}", training=f"hera-{name}")
            for name in _ABLATIONS
        ),
    )
    remarks = ("The paper draws the figure without printing its numbers.", *_REMARKS)
    title = f"HERA without its parts ({model})"
    return PaperTable(key=key, title=title, models=(model,), corpora=_ALL, rows=rows, limit=500, remarks=remarks)


def _learning(figure: int, title: str) -> PaperTable:
    row = TableRow(name="hera", method="", model=_API, plan="{backbone}", training="hera")
    remarks = (
        f"Figure {figure}: the curve is in evolved/MODEL-hera/report.html, which pyrag evolve writes.",
        _REMARKS[0],
    )
    return PaperTable(
        key=f"hera/figure{figure}", title=title, models=_BOTH, corpora={WIKI_BGE: ()}, rows=(row,), remarks=remarks
    )


TABLES = (
    PaperTable(
        key="hera/table1",
        title="HERA and baselines",
        models=_BOTH,
        corpora=_ALL,
        rows=(
            *(_single(name) for name in ("qwen2.5-14b", "qwen3-14b", "qwen3-8b", _API, "llama-3.1-8b")),
            TableRow(name="search-r1", method="search-agent", model="search-r1", paper="HERA, Search-R1-7B (table 1)"),
            TableRow(name="iter-retgen", method="iter-retgen", model="qwen2.5-7b", paper="HERA, Qwen2.5-7B (table 1)"),
            TableRow(
                name="r1-searcher",
                method="search-agent:r1-searcher",
                model="r1-searcher",
                paper="HERA, R1-Searcher-7B (table 1)",
            ),
            TableRow(name="ircot", method="ircot", model=_API, paper="HERA, GPT-4o-mini (table 1)"),
            _HERA,
        ),
        limit=500,
        remarks=(
            "Not here, since they need code or checkpoints of their own: Plan-RAG, SELF-RAG, ExSearch, DeepResearcher, "
            "InstructRAG, CORAG, MMOA-RAG, AceSearcher.",
            *_REMARKS,
        ),
    ),
    _ablated("hera/figure2", "qwen3-14b"),
    _learning(3, "Tokens of trajectories while HERA learns"),
    PaperTable(
        key="hera/figure4",
        title="F1 against tokens",
        models=("qwen3-14b",),
        corpora=_ALL,
        rows=(
            _single("qwen3-14b"),
            TableRow(name="iter-retgen", method="iter-retgen", model="qwen2.5-7b"),
            TableRow(name="ircot", method="ircot", model=_API),
            _HERA,
        ),
        limit=500,
        section="Scores",
        remarks=("The paper draws the figure without printing its numbers.", *_REMARKS),
    ),
    _learning(5, "Transition entropy while HERA learns"),
    _learning(6, "Graph measures of topologies while HERA learns"),
    _ablated("hera/figure8", "llama-3.1-8b"),
)
