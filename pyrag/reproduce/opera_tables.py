"""Tables of OPERA's paper. Its Rewrite agent has a model of 3B weights; the other agents have 7B (section 4)."""

from __future__ import annotations

from pyrag.reproduce.tables import NEWS, OWN, WIKI, PaperTable, TableRow

_SETS = ("hotpotqa", "2wikimultihopqa", "musique")
_SMALL = "qwen2.5-3b"
_PASSAGES = (
    "The paper names no corpus: here the sets' own paragraphs, embedded by BGE-M3, in one index (ours).",
    "How many questions were trained on is not printed: here 10,000 of each set (ours).",
)


def _trained(name: str, training: str, paper: str, *, method: str = "opera", **more: object) -> TableRow:
    return TableRow(
        name=name,
        method=method,
        training=training,
        rewrite=_SMALL,
        paper=paper,
        **more,  # type: ignore[arg-type]
    )


def _three(label: str) -> str:
    return f"OPERA, {label}, Qwen2.5-7B (table 3)"


_COT = TableRow(name="opera-cot", method="opera", rewrite=_SMALL, paper="OPERA, CoT, {model} (table 1)")
_MAPGRPO = _trained("opera-mapgrpo", "opera-mapgrpo", "OPERA, MAPGRPO, {model} (table 1)")


def _of_rewriter(model: str, em: float) -> TableRow:
    training = "opera-mapgrpo" if model == _SMALL else f"opera-rewrite-{model.removeprefix('qwen2.5-')}"
    return TableRow(name=f"rewrite-{model}", method="opera", training=training, rewrite=model, figures={"hotpotqa": em})


TABLES = (
    PaperTable(
        key="opera/table1",
        title="OPERA and baselines",
        models=("qwen2.5-7b",),
        corpora={OWN: _SETS},
        rows=(
            *(
                TableRow(name=name, method=name, paper="OPERA, {model} (table 1)")
                for name in ("direct", "vanilla", "ircot")
            ),
            _COT,
            TableRow(name="adaptive", method="adaptive", paper="OPERA, {model} (table 1)"),
            _MAPGRPO,
        ),
        remarks=(
            "BGM is not here. The paper trains Adaptive-RAG's classifier; here a prompt decides.",
            *_PASSAGES,
        ),
    ),
    PaperTable(
        key="opera/table2",
        title="OPERA without parts, and trained in other ways, on MuSiQue",
        models=("qwen2.5-7b",),
        corpora={OWN: ("musique",)},
        rows=(
            *(
                _trained(name, "opera-mapgrpo", "OPERA, MAPGRPO, {model} (table 2)", method=f"opera:{name}")
                for name in ("no-plan", "no-rewrite", "no-plan-no-rewrite")
            ),
            _COT,
            _trained("opera-sft", "opera-sft", "OPERA, SFT, {model} (table 2)"),
            _trained("opera-grpo", "opera-grpo", "OPERA, GRPO, {model} (table 2)"),
            _MAPGRPO,
        ),
        remarks=("F1 of CoT and MAPGRPO on MuSiQue differ between the paper's tables 1 and 2.", *_PASSAGES),
    ),
    PaperTable(
        key="opera/table3",
        title="OPERA on sets that it was not trained on",
        models=("qwen2.5-7b",),
        corpora={WIKI: ("nq",), NEWS: ("multihoprag",)},
        rows=(
            TableRow(name="opera-cot", method="opera", rewrite=_SMALL, paper=_three("CoT")),
            _trained("opera-sft", "opera-sft", _three("SFT")),
            _trained("opera-grpo", "opera-grpo", _three("GRPO")),
            _trained("opera-mapgrpo", "opera-mapgrpo", _three("MAPGRPO")),
        ),
        remarks=("The paper reads NQ over full Wikipedia pages; here over wiki-18's passages (ours).", *_PASSAGES),
    ),
    PaperTable(
        key="opera/table8",
        title="OPERA without training, by model",
        models=("qwen2.5-7b", "llama-3.1-8b", "qwen3-8b", "llama-3.1-70b"),
        corpora={OWN: _SETS},
        rows=(
            TableRow(
                name="opera-cot",
                method="opera",
                rewrite=_SMALL,
                paper="OPERA, CoT, {model} (table 8)|OPERA, CoT, {model} (table 1)",
            ),
        ),
        remarks=_PASSAGES[:1],
    ),
    PaperTable(
        key="opera/table9",
        title="Size of the Rewrite agent, on HotpotQA",
        models=("qwen2.5-7b",),
        corpora={OWN: ("hotpotqa",)},
        rows=(_of_rewriter("qwen2.5-7b", 57.9), _of_rewriter(_SMALL, 57.3), _of_rewriter("qwen2.5-1.5b", 50.8)),
        section="Gold passages per hop",
        remarks=("The paper's nDCG@10: 0.82, 0.79, 0.68.", *_PASSAGES),
    ),
    PaperTable(
        key="opera/table10",
        title="Number of passages, with retrieval and Analysis-Answer agent only",
        models=("qwen2.5-7b",),
        corpora={OWN: ("hotpotqa",)},
        rows=tuple(
            TableRow(
                name=f"top-{k}",
                method="opera:no-plan-no-rewrite",
                training="opera-mapgrpo",
                options=("--topk", str(k)),
                figures={"hotpotqa": em},
            )
            for k, em in ((3, 46.8), (5, 50.4), (10, 51.2), (15, 51.0), (20, 50.2))
        ),
        remarks=("The paper names neither the set nor the training: here HotpotQA, with the trained agent (ours).",),
    ),
    PaperTable(
        key="opera/table11",
        title="Causes of wrong answers",
        models=("qwen2.5-7b",),
        corpora={OWN: _SETS},
        rows=(_MAPGRPO,),
        limit=500,
        section="Wrong answers as in OPERA's table 11",
        remarks=("The paper sorted 200 wrong answers a set, without rules; pyrag sorts all of 500 questions by rule.",),
    ),
    PaperTable(
        key="opera/table12",
        title="Course of right answers",
        models=("qwen2.5-7b",),
        corpora={OWN: _SETS},
        rows=(_MAPGRPO,),
        limit=300,
        section="What the agents did",
        remarks=("The paper looked at 100 right answers; here the right ones of 300 questions a set.",),
    ),
)
