"""Plan of a table at tiny scale: the same steps in minutes on one machine, with meaningless figures.

The bundled questions and passages replace the paper's data, the embedded engine replaces its models, and one step on
the CPU replaces its training. Steps that cannot run here are omitted and listed.
"""

from __future__ import annotations

from importlib.util import find_spec

from pyrag.errors import install_extra
from pyrag.evaluation.datasets.suite import BUNDLED, BUNDLED_CORPUS
from pyrag.methods.registry import get_method, writes
from pyrag.reproduce.full import add_measured_row, check_models, run_folder
from pyrag.reproduce.recipes import EVOLVED, RECIPES, Recipe
from pyrag.reproduce.steps import Command, PlanDraft, ReproductionPlan, Service, TableRequest
from pyrag.reproduce.tables import PaperTable, TableRow

QUESTIONS = 3  # questions per set
_LEARNT = 6  # number of questions to learn from
_PRACTICE = "bamboogle"  # its bundled questions are for learning, so tables that learn do not measure it
_STAND_INS = {"nq": "popqa", "ambigqa": "popqa", "multihoprag": "hotpotqa", "hover": ""}
_TASKS = ("answer", "rag", "plan", "goals")  # tasks for which the bundled questions have rows
_CPU = (
    *("--profile", "cpu-smoke", "--set", "gpus=1", "--set", "tensor_parallel=1", "--set", "max_steps=1"),
    *("--set", "batch_size=2", "--set", "group_size=2", "--set", "response_tokens=24"),
)
# A small model on a busy processor is slow, and writes as much as it may.
_PATIENT = ("--deadline", "900", "--request", "max_tokens=64")
TITLE = "Tiny scale: not comparable with the paper"
_ABOUT = (
    "Bundled questions and passages, and the embedded engine (rules, a small reader) in place of the paper's models: "
    "this shows that every step works, and nothing about methods."
)


def tiny_plan(table: PaperTable, request: TableRequest) -> ReproductionPlan:
    """Return the plan of a table at tiny scale.

    Args:
        table: The table.
        request: Backbones, limit, ports, and an engine for methods that write text.

    Raises:
        UsageError: A backbone is not one of the table's.
    """
    return _TinyPlan(table, request).plan()


class _TinyPlan:
    def __init__(self, table: PaperTable, request: TableRequest) -> None:
        self.table, self.request, self.draft = table, request, PlanDraft.empty()
        self.retriever: tuple[str, ...] = ()  # names of servers
        self.passages: tuple[str, ...] = ()  # options that name the passages
        files = {name: _STAND_INS.get(name, name) for name in table.sets}
        self.learns = any(row.training for row in table.rows)
        self.files = {name: file for name, file in files.items() if file and not (self.learns and file == _PRACTICE)}
        for name in files.keys() - self.files.keys():
            reason = "its bundled questions are learnt from" if files[name] else "it has no bundled questions"
            self.draft.skipped[name] = f"{reason} at tiny scale"

    def plan(self) -> ReproductionPlan:
        check_models(self.table, self.request)
        self.draft.note(_ABOUT)
        self._data()
        self._corpus()
        for backbone in self.request.models:
            for row in self.table.rows:
                self._row(row, backbone)
        self.draft.add(self.request.report())
        return self.draft.plan()

    def _data(self) -> None:
        for name, file in self.files.items():
            about = "" if name == file else f"in the manner of {file}, since {name} has no bundled questions"
            argv = ("data", "import", name, str(BUNDLED / f"{file}.jsonl"), "--out", f"data/{name}")
            outputs = (f"data/{name}/questions.jsonl",)
            self.draft.add(Command(name=f"data-{name}", argv=argv, outputs=outputs, about=about))
        if self.learns:
            argv = ("data", "import", _PRACTICE, str(BUNDLED / f"{_PRACTICE}.jsonl"), "--split", "train")
            outputs = ("data/practice/train_questions.jsonl",)
            self.draft.add(Command(name="data-train", argv=(*argv, "--out", "data/practice"), outputs=outputs))

    def _corpus(self) -> None:
        argv: tuple[str, ...] = ("index", "build", str(BUNDLED_CORPUS), "--out", "index")
        self.draft.add(Command(name="corpus-bundled", argv=argv, outputs=("index",)))
        if find_spec("fastapi") is None or find_spec("uvicorn") is None:
            self.draft.skipped["retriever"] = (
                f"each command opens the index, since serve-retriever is missing: {install_extra('serve')}"
            )
            self.passages = ("--index", "index")
            return
        argv = ("serve-retriever", "index", "--port", str(self.request.port + 8))
        self.retriever = (self.draft.serve(Service(name="retriever-bundled", argv=argv, port=self.request.port + 8)),)
        self.passages = ("--retriever", self.request.retriever)

    def _row(self, row: TableRow, backbone: str) -> None:
        learnt = self._learn(row.training, backbone) if row.training else ()
        if not row.method:
            return
        get_method(row.method)
        if writes(row.method) and not self.request.llm:
            self.draft.skipped[row.name] = (
                f"the method {row.method} needs a language model, which the embedded engine does not have: name one "
                "with --llm (make model-env makes a small one)"
            )
            return
        if row.model or row.plan or row.rewrite or row.training:
            self.draft.note("One engine takes the place of all models of a row, trained ones too.")
        engine = self.request.llm if writes(row.method) else "embedded"
        folder = run_folder(self.request, row, backbone)
        sample = ("--limit", str(self.request.limit or QUESTIONS), "--seed", "0")
        argv: tuple[str, ...] = (
            "bench",
            "--data",
            "data",
            "--sets",
            ",".join(self.files),
            "--method",
            row.method,
            *sample,
        )
        argv += (*self.passages, "--llm", engine, *(_PATIENT if engine != "embedded" else ()), *row.options, *learnt)
        argv += ("--out", folder)
        outputs = (f"{folder}/summary.json",)
        name = folder.replace("/", "-")
        self.draft.add(Command(name=name, argv=argv, outputs=outputs, services=self.retriever))
        add_measured_row(self.draft, row, backbone, folder)

    def _learn(self, name: str, backbone: str) -> tuple[str, ...]:
        """Add the commands of a recipe. Return the options that use its result."""
        argv: tuple[str, ...]
        if name in EVOLVED:
            return self._evolve(name, backbone)
        recipe = RECIPES[name]
        if find_spec("pyarrow") is None:
            self.draft.skipped[f"{name}-train"] = f"training sets are Parquet files: {install_extra('rl')}"
            return ()
        out = f"training/{backbone}-{name}"
        if recipe.run:
            argv = ("bench", "--data", "data", "--sets", "practice", "--split", "train", "--method", recipe.run)
            argv += ("--limit", str(_LEARNT), *self.passages, "--llm", "embedded", "--out", f"{out}-run")
            outputs = (f"{out}-run/summary.json",)
            self.draft.add(Command(name=f"{backbone}-{name}-run", argv=argv, outputs=outputs, services=self.retriever))
        if recipe.gate[0]:
            argv = ("train", "gate", "--data", "data", "--sets", "practice", "--limit", "5")
            self.draft.add(Command(name="gate-practice", argv=argv, outputs=("data/practice/gate_questions.jsonl",)))
        for row_set in recipe.rows:
            if row_set.tasks[0] not in _TASKS:
                self.draft.skipped[f"{name}-rows-{row_set.file}"] = "bundled questions have no rows of this task"
                continue
            file = f"{out}-rows/{row_set.file}.parquet"
            argv = ("train", "data", *row_set.tasks, "--leave-out")
            argv += ("--data", "data", "--sets", "practice") if row_set.sets else ()
            argv += ("--from-run", f"{out}-run") if row_set.run else ()
            argv += (
                *self.passages,
                *_without_limit(row_set.options),
                *self._sample(row_set.sets),
            )
            argv += ("--out", file)
            step = f"{backbone}-{name}-rows-{row_set.file}"
            self.draft.add(Command(name=step, argv=argv, outputs=(file,), services=self.retriever))
        if recipe.rows:
            self._train(recipe, name, out)
        else:
            self.draft.skipped[f"{name}-train"] = f"it continues {recipe.after}, whose stages are not run here"
        return ()

    def _train(self, recipe: Recipe, name: str, out: str) -> None:
        """Add one step of training on the CPU; if nothing here can train, add a check of the settings."""
        argv: tuple[str, ...]
        data = f"{out}-rows/{recipe.rows[0].file}.parquet"
        argv = ("train", "--agent", recipe.agent, "--data", data, "--out", out)
        local = self.request.llm.removeprefix("transformers:").partition(",")[0]
        if find_spec("verl") and self.request.llm.startswith("transformers:"):
            argv += ("--algorithm", recipe.algorithm, "--model", local, *_CPU)
            if recipe.agent != "answer" and recipe.algorithm != "sft":
                asked = f"runtime.{self.passages[0].removeprefix('--')}={self.passages[1]}"
                argv += ("--set", asked, "--set", "runtime.llm=embedded")
        elif recipe.agent == "answer" and recipe.algorithm == "grpo" and find_spec("torch") and find_spec("onnx"):
            argv += ("--model", "embedded", "--set", "max_steps=2")
            self.draft.note("The embedded reader is trained in place of the paper's model.")
        else:
            argv += ("--algorithm", recipe.algorithm, "--model", "none", "--dry-run")
            self.draft.skipped[f"{name}-train"] = (
                "nothing is trained: it needs verl (make train-env) and a small model (--llm transformers:FOLDER); its "
                "rows are written and its settings checked"
            )
        asks = any(word.startswith("runtime.retriever=") for word in argv)
        services = self.retriever if asks else ()
        self.draft.add(Command(name=f"{out.partition('/')[2]}-train", argv=argv, services=services))

    def _evolve(self, name: str, backbone: str) -> tuple[str, ...]:
        argv: tuple[str, ...]
        out = f"evolved/{backbone}-{name}"
        argv = ("evolve", "--train", "data/practice/train_questions.jsonl", "--limit", str(_LEARNT), "--group", "2")
        argv += ("--out", out, "--topologies", "--llm", "embedded", *self.passages)
        options = tuple(option for option in EVOLVED[name] if option == "--no-library")
        outputs = (f"{out}/prompts", f"{out}/experience.db")
        self.draft.add(
            Command(name=f"{backbone}-{name}-evolve", argv=(*argv, *options), outputs=outputs, services=self.retriever)
        )
        self.draft.note("The embedded engine evolves topologies only; its agents have no prompts to learn.")
        return ("--prompts", f"{out}/prompts", "--experience", f"{out}/experience.db")

    @staticmethod
    def _sample(sets: tuple[str, ...]) -> tuple[str, ...]:
        return ("--limit", str(_LEARNT)) if sets else ()


def _without_limit(options: tuple[str, ...]) -> tuple[str, ...]:
    at = options.index("--limit") if "--limit" in options else len(options)
    return options[:at] + options[at + 2 :]
