"""Plan of a table at full scale: data, corpus, retriever, models, training, every method, report."""

from __future__ import annotations

from collections.abc import Mapping

from pyrag.errors import UsageError, nearest
from pyrag.evaluation.reports.paper_scores import REPORTED
from pyrag.reproduce.models import MODELS, PAPER_OPTIONS
from pyrag.reproduce.steps import Command, MeasuredRow, PlanDraft, ReproductionPlan, Service, TableRequest
from pyrag.reproduce.tables import NEWS, OWN, WIKI, WIKI_BGE, PaperTable, TableRow
from pyrag.reproduce.training import TrainingResult, add_training

_GPUS = ((0, 1, 2, 3), (4, 5), (6, 7))  # GPUs of a row's servers: first its main model, then the others
_E5, _BGE, _BGE_M3 = "wiki-index", "st:BAAI/bge-base-en-v1.5", "st:BAAI/bge-m3"
_OWN_SETS = ("hotpotqa", "2wikimultihopqa", "musique")
_LEARNT_OVER = {"pyrag": WIKI, "opera": OWN, "hera": WIKI_BGE}  # passages on which a paper's models are trained
NEWS_FILE = "data/multihoprag-corpus.json"
# Sets that need a file which no command can download: the file, and what to do.
ELSEWHERE = {
    "hover": (
        "data/hover/questions.jsonl",
        "HoVer is not on the hub: pyrag data import hover FILE --out data/hover in the folder, then run this again",
    ),
    "multihoprag": (
        NEWS_FILE,
        f"its passages are a file of their own: save corpus.json of yixuantt/MultiHopRAG on the hub as {NEWS_FILE} in "
        "the folder, then run this again",
    ),
}


def full_plan(table: PaperTable, request: TableRequest, present: frozenset[str] = frozenset()) -> ReproductionPlan:
    """Return the plan of a table.

    Args:
        table: The table.
        request: Backbones, limit and ports.
        present: Sets of `ELSEWHERE` that have already been imported.

    Raises:
        UsageError: A backbone is not one of the table's.
    """
    return _FullPlan(table, request, present).plan()


class _FullPlan:
    def __init__(self, table: PaperTable, request: TableRequest, present: frozenset[str]) -> None:
        self.table, self.request, self.draft = table, request, PlanDraft.empty()
        self.missing = {name for name in table.sets if name in ELSEWHERE and name not in present}
        for sentence in table.remarks:
            self.draft.note(sentence)
        for name in self.missing:
            self.draft.skipped[name] = ELSEWHERE[name][1]

    def plan(self) -> ReproductionPlan:
        check_models(self.table, self.request)
        self._data()
        learns = any(row.training for row in self.table.rows)
        measured = [corpus for corpus, sets in self.table.corpora.items() if not sets or set(sets) - self.missing]
        names = [*measured, *([_LEARNT_OVER[self.table.paper]] if learns else [])]
        corpora = {corpus: self._corpus(corpus) for corpus in dict.fromkeys(names)}
        for backbone in self.request.models:
            for row in self.table.rows:
                self._row(row, backbone, corpora)
        self.draft.add(self.request.report())
        return self.draft.plan()

    def _data(self) -> None:
        for name in self.table.sets:
            if name != "hover" and name not in self.missing:
                argv = ("data", "download", name, "--out", f"data/{name}")
                self.draft.add(Command(name=f"data-{name}", argv=argv, outputs=(f"data/{name}/questions.jsonl",)))

    def _corpus(self, corpus: str) -> str:
        """Add the commands that make an index and serve it. Return the name of the server."""
        argv: tuple[str, ...]
        index = {WIKI: _E5, WIKI_BGE: "wiki-bge", OWN: "opera-index", NEWS: "news-index"}[corpus]
        if corpus == WIKI:
            argv = ("index", "fetch", "wiki-18", "--out", index, "--exact", "--vectors-only")
            self.draft.add(Command(name="corpus-wiki-18", argv=argv, outputs=(index,), about="64.6 GB to download"))
        elif corpus == WIKI_BGE:
            self._wiki_bge(index)
        elif corpus == NEWS:
            line = (
                f"index build {NEWS_FILE} --text-column body --out {index} --embedder {_BGE_M3} --exact --vectors-only"
            )
            argv = tuple(line.split())
            self.draft.add(Command(name=f"corpus-{index}", argv=argv, outputs=(index,), gpus=(*range(8),)))
        else:
            self._own(index)
        argv = ("serve-retriever", index, "--port", str(self.request.port + 8), "--exact")
        return self.draft.serve(Service(name=f"retriever-{index}", argv=argv, port=self.request.port + 8))

    def _wiki_bge(self, index: str) -> None:
        argv: tuple[str, ...] = ("index", "fetch", "wiki-18", "--out", "wiki-words", "--no-vectors")
        self.draft.add(Command(name="corpus-wiki-18-words", argv=argv, outputs=("wiki-18/wiki-18.jsonl.gz",)))
        line = f"index build wiki-18/wiki-18.jsonl.gz --out {index} --embedder {_BGE} --exact --vectors-only --shards 8"
        argv = tuple(line.split())
        self.draft.add(Command(name="corpus-wiki-18-bge", argv=argv, outputs=(index,), gpus=(*range(8),)))

    def _own(self, index: str) -> None:
        """Add the index of all paragraphs of OPERA's sets, including their training questions, for all its tables."""
        files = []
        for split in ((), ("--split", "train")):
            for name in _OWN_SETS:
                stem, label = ("train_", "-train") if split else ("", "")
                argv: tuple[str, ...] = ("data", "download", name, *split, "--out", f"data/{name}")
                outputs = (f"data/{name}/{stem}questions.jsonl",)
                self.draft.add(Command(name=f"data-{name}{label}", argv=argv, outputs=outputs))
                files.append(f"data/{name}/{stem}corpus.jsonl")
        argv = ("index", "build", *files, "--out", index, "--embedder", _BGE_M3, "--exact", "--vectors-only")
        self.draft.add(Command(name=f"corpus-{index}", argv=argv, outputs=(index,), gpus=(*range(8),)))

    def _row(self, row: TableRow, backbone: str, corpora: Mapping[str, str]) -> None:
        trained = TrainingResult()
        if row.training:
            retriever = corpora[_LEARNT_OVER[self.table.paper]]
            trained = add_training(
                self.draft, row.training, backbone, self.request, retriever, paper_options(self.table)
            )
        if not row.method:
            return
        engines, services = self._engines(row, backbone, trained)
        for corpus, names in self.table.corpora.items():
            sets = [name for name in names if name not in self.missing]
            if not sets:
                continue
            folder = run_folder(self.request, row, backbone, corpus if len(self.table.corpora) > 1 else "")
            argv = ("bench", "--data", "data", "--sets", ",".join(sets), "--method", row.method, *self._sample())
            argv += ("--retriever", self.request.retriever, *engines, *self._options(row), *trained.options)
            command = Command(
                name=folder.replace("/", "-"),
                argv=(*argv, "--concurrency", "64", "--out", folder),
                outputs=(f"{folder}/summary.json",),
                services=(corpora[corpus], *services),
            )
            self.draft.add(command)
            add_measured_row(self.draft, row, backbone, folder)

    def _sample(self) -> tuple[str, ...]:
        limit = self.request.limit or self.table.limit
        return ("--limit", str(limit), "--seed", "0") if limit else ()

    def _options(self, row: TableRow) -> tuple[str, ...]:
        return (*row.options, *(() if "--prompts" in row.options else paper_options(self.table)))

    def _engines(self, row: TableRow, backbone: str, trained: TrainingResult) -> tuple[tuple[str, ...], list[str]]:
        """Return the options that name engines, and the names of their servers."""
        main = row.model or backbone
        roles = {"": main, "plan": row.plan.format(backbone=backbone) or main, "rewrite": row.rewrite or main}
        if any(role in trained.adapters for role in ("answer", "plan")):
            roles["answer"] = main
        services: list[str] = []
        options: list[str] = []
        models = list(dict.fromkeys(name for name in roles.values() if not MODELS[name].api))
        for place, model in enumerate(models):
            own = {trained.adapters[role] for role in roles if roles[role] == model and role in trained.adapters}
            services.append(self.draft.serve(self._server(model, place, sorted(own))))
        for role, model in roles.items():
            adapter = trained.adapters.get(role)
            if role and model == main and adapter is None:
                continue
            name = adapter[0] if adapter else MODELS[model].hub
            place = 0 if MODELS[model].api else models.index(model)
            at = "" if MODELS[model].api else f"@http://127.0.0.1:{self.request.port + place}/v1"
            options += [f"--{role}-llm" if role else "--llm", f"openai:{name}{at}"]
        return tuple(options), services

    def _server(self, model: str, place: int, adapters: list[tuple[str, str]]) -> Service:
        about, gpus, port = MODELS[model], _GPUS[place], self.request.port + place
        parallel = min(about.tensor_parallel, len(gpus))
        argv = ["serve-model", about.hub, "--port", str(port), "--tensor-parallel", str(parallel)]
        argv += ["--data-parallel", str(len(gpus) // parallel)] if len(gpus) > parallel else []
        for name, folder in adapters:
            argv += ["--lora", f"{name}={folder}"]
        name = "-".join(["model", model, *(name for name, _ in adapters), str(port)])
        return Service(name=name, argv=tuple(argv), port=port, gpus=gpus)


def check_models(table: PaperTable, request: TableRequest) -> None:
    """Check that a table has the requested backbones.

    Args:
        table: The table.
        request: Request that names the backbones.

    Raises:
        UsageError: A backbone is unknown or not one of the table's.
    """
    for name in request.models:
        if name not in table.models:
            hint = nearest(name, table.models)
            raise UsageError(f"{table.key} has no rows of {name}{hint}: it has {', '.join(table.models)}")


def paper_options(table: PaperTable) -> tuple[str, ...]:
    """Return the options of PyRAG's own prompts and profile; none for tables of other papers."""
    return PAPER_OPTIONS if table.paper == "pyrag" else ()


def run_folder(request: TableRequest, row: TableRow, backbone: str, corpus: str = "") -> str:
    """Return the folder of a row's run.

    Args:
        request: Request for the table.
        row: The row.
        backbone: Short name of the backbone.
        corpus: Name of the row's passages, if the table has several corpora.
    """
    parts = [row.name] if row.fixed else [backbone, row.name]
    return f"runs/{request.label}/" + "-".join([*parts, *([corpus] if corpus else [])])


def add_measured_row(draft: PlanDraft, row: TableRow, backbone: str, folder: str) -> None:
    """Record which run measures a row.

    Args:
        draft: The plan.
        row: The row.
        backbone: Short name of the backbone, which selects the paper's row.
        folder: Folder of the run.
    """
    if any(measured.folder == folder for measured in draft.measured):
        return
    name = row.name if row.fixed else f"{row.name}, {backbone}"
    draft.measured.append(MeasuredRow(row=name, method=row.method, folder=folder, paper=source_of(row, backbone),
                                   figures=dict(row.figures)))  # fmt: skip


def source_of(row: TableRow, backbone: str) -> str:
    """Return the source of the paper's figures for a row; empty if `reported` has none.

    Args:
        row: The row.
        backbone: Short name of the backbone.
    """
    label = MODELS[backbone].label
    wanted = [text.format(model=label) for text in row.paper.split("|")]
    sources = {reported.source for reported in REPORTED}
    return next((text for text in wanted if text in sources), "")
