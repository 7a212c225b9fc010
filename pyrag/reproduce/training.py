"""Commands that train what a row measures at full scale."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pyrag.reproduce.models import MODELS, config_path
from pyrag.reproduce.recipes import EVOLVE_QUESTIONS, EVOLVED, RECIPES, Recipe, RowSet
from pyrag.reproduce.steps import Command, PlanDraft, Service, TableRequest

ALL = tuple(range(8))
HALF = (0, 1, 2, 3)  # GPUs for training; the packaged curricula serve models on the other four
AUTHOR = "openai:deepseek-reasoner@https://api.deepseek.com/v1"  # OPERA, section 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """Result of training.

    Attributes:
        adapters: Name and folder of each agent's adapter; the empty name stands for the engine of all agents.
        options: Further options of `pyrag bench`.
    """

    adapters: dict[str, tuple[str, str]] = field(default_factory=dict)
    options: tuple[str, ...] = ()


def add_training(
    draft: PlanDraft, name: str, backbone: str, request: TableRequest, retriever: str, prompts: tuple[str, ...]
) -> TrainingResult:
    """Add the commands of a recipe to a plan.

    Args:
        draft: The plan.
        name: Name of the recipe.
        backbone: Short name of the backbone.
        request: Request with ports and the author of candidate plans.
        retriever: Name of the retriever's server.
        prompts: Options of the paper's prompts and profile.

    Returns:
        Adapters and options for the run that measures the row.
    """
    if name in EVOLVED:
        return _evolved(draft, name, backbone, request, retriever)
    recipe = RECIPES[name]
    before = (
        add_training(draft, recipe.after, backbone, request, retriever, prompts) if recipe.after else TrainingResult()
    )
    made = _Training(draft, name, recipe, backbone, request, retriever, prompts)
    made.add()
    return TrainingResult(adapters={**before.adapters, **made.adapters()})


@dataclass(frozen=True, slots=True)
class _Training:
    draft: PlanDraft
    name: str
    recipe: Recipe
    backbone: str
    request: TableRequest
    retriever: str
    prompts: tuple[str, ...]

    @property
    def out(self) -> str:
        return f"training/{self.backbone}-{self.name}"

    @property
    def rows(self) -> str:
        return f"{self.out}-rows"

    @property
    def model(self) -> str:
        return MODELS[self.recipe.model or self.backbone].hub

    @property
    def _prompts(self) -> tuple[str, ...]:
        """Option of the paper's prompts, without the option of its profile."""
        at = self.prompts.index("--prompts") if "--prompts" in self.prompts else None
        return () if at is None else self.prompts[at : at + 2]

    def add(self) -> None:
        self._data()
        if self.recipe.run:
            self._run()
        for row_set in self.recipe.rows:
            self._row_set(row_set)
        if self.recipe.prescored:
            self._prescore()
        if self.recipe.gate[0]:
            self._curriculum()
        else:
            self._single()

    def adapters(self) -> dict[str, tuple[str, str]]:
        if self.recipe.adapters:
            return {
                role: (f"{self.name}-{role}", f"{self.out}/{stage}/adapter") for role, stage in self.recipe.adapters
            }
        role = self.recipe.agent if self.recipe.after else ""
        folder = f"{self.out}/{self.recipe.rows[-1].file}/adapter" if self.recipe.gate[0] else f"{self.out}/adapter"
        return {role: (self.name, folder)}

    def _data(self) -> None:
        argv: tuple[str, ...]
        for source in self.recipe.sources:
            out = "data" if source == "search-r1" else f"data/{source}"
            first = "data/nq" if source == "search-r1" else out
            argv = ("data", "download", source, "--split", "train", "--out", out)
            outputs = (f"{first}/train_questions.jsonl",)
            self.draft.add(Command(name=f"data-{source}-train", argv=argv, outputs=outputs))
        sets, limit = self.recipe.gate
        if sets:
            name = sets[0]
            argv = ("train", "gate", "--data", "data", "--sets", name, "--limit", str(limit))
            about = "questions of the curriculum's gates, which nothing is learnt from"
            outputs = (f"data/{name}/gate_questions.jsonl",)
            self.draft.add(Command(name=f"gate-{name}", argv=argv, outputs=outputs, about=about))

    def _run(self) -> None:
        about = MODELS[self.backbone]
        argv = [
            "serve-model",
            about.hub,
            "--port",
            str(self.request.port),
            "--tensor-parallel",
            str(about.tensor_parallel),
        ]
        argv += ["--data-parallel", str(4 // about.tensor_parallel)] if about.tensor_parallel < 4 else []
        name = f"model-{self.backbone}-{self.request.port}"
        service = self.draft.serve(Service(name=name, argv=tuple(argv), port=self.request.port, gpus=HALF))
        run = f"{self.out}-run"
        argv = ["bench", "--data", "data", "--sets", ",".join(self.recipe.run_sets)]
        argv += ["--split", "train", "--method", self.recipe.run]
        argv += ["--llm", f"openai:{about.hub}@http://127.0.0.1:{self.request.port}/v1", "--retriever"]
        argv += [self.request.retriever, *self.prompts, "--concurrency", "64", "--out", run]
        self.draft.add(
            Command(
                name=f"{self.backbone}-{self.name}-run",
                argv=tuple(argv),
                outputs=(f"{run}/summary.json",),
                services=(self.retriever, service),
                about="answers on training questions, to learn from",
            )
        )

    def _row_set(self, row_set: RowSet) -> None:
        file = f"{self.rows}/{row_set.file}.parquet"
        argv = ["train", "data", *row_set.tasks]
        argv += ["--data", "data", "--sets", ",".join(row_set.sets), "--leave-out"] if row_set.sets else ["--leave-out"]
        argv += ["--from-run", f"{self.out}-run"] if row_set.run else []
        argv += ["--retriever", self.request.retriever, *row_set.options, *self._prompts, "--out", file]
        name = f"{self.backbone}-{self.name}-rows-{row_set.file}"
        self.draft.add(Command(name=name, argv=tuple(argv), outputs=(file,), services=(self.retriever,)))

    def _prescore(self) -> None:
        argv: tuple[str, ...]
        small = MODELS["qwen2.5-3b"]
        services = [self.retriever]
        for place, model in enumerate((MODELS[self.backbone], small)):
            gpus, port = ((0, 1, 2, 3), (4, 5))[place], self.request.port + place
            parallel = str(model.tensor_parallel)
            argv = ("serve-model", model.hub, "--port", str(port), "--tensor-parallel", parallel)
            name = f"model-{PurePosixPath(model.hub).name}-{port}"
            services.append(self.draft.serve(Service(name=name, argv=argv, port=port, gpus=gpus)))
        at = f"@http://127.0.0.1:{self.request.port}/v1"
        rewriter = f"openai:{small.hub}@http://127.0.0.1:{self.request.port + 1}/v1"
        file = f"{self.rows}/prescored.jsonl"
        argv = ("train", "prescore", f"{self.rows}/goals.parquet", "--author", self.request.author or AUTHOR)
        argv += ("--llm", f"openai:{self.model}{at}", "--rewrite-llm", rewriter, "--retriever", self.request.retriever)
        self.draft.add(
            Command(
                name=f"{self.backbone}-{self.name}-prescore",
                argv=(*argv, "--out", file),
                outputs=(file,),
                services=tuple(services),
                about="twelve plans a question by the author; it needs a key in PYRAG_API_KEY, and is paid for",
            )
        )

    def _curriculum(self) -> None:
        argv: tuple[str, ...]
        config = str(config_path(self.recipe.config))
        argv = ("train", "curriculum", config, "--model", self.model, "--rows", self.rows, *self._prompts)
        argv = (*argv, "--out", self.out)
        self.draft.add(
            Command(
                name=f"{self.backbone}-{self.name}-train",
                argv=argv,
                outputs=tuple(folder for _, folder in self.adapters().values()),
                services=(self.retriever,),
                gpus=ALL,
                visible=HALF,
                about="trains on GPUs 0 to 3, and serves the frozen agents on 4 to 7 itself",
            )
        )

    def _single(self) -> None:
        recipe = self.recipe
        before = f"training/{self.backbone}-{recipe.after}"
        data = f"{self.rows}/{recipe.rows[0].file}.parquet" if recipe.rows else f"{before}/{recipe.agent}.parquet"
        argv = ["train", "--agent", recipe.agent, "--algorithm", recipe.algorithm, "--model", self.model]
        argv += ["--config", str(config_path(recipe.config))] if recipe.config else []
        argv += ["--data", data, "--out", self.out]
        services = (self.retriever,) if recipe.agent == "rewrite" else ()
        name = f"{self.backbone}-{self.name}"
        self.draft.add(Command(name=f"{name}-train", argv=tuple(argv), services=services, gpus=ALL,
                               outputs=(f"{self.out}/config.yaml",)))  # fmt: skip
        export = ("train", "export", self.out)
        self.draft.add(Command(name=f"{name}-export", argv=export, outputs=(f"{self.out}/adapter",)))


def _evolved(draft: PlanDraft, name: str, backbone: str, request: TableRequest, retriever: str) -> TrainingResult:
    """Add the commands that evolve HERA, with the backbone as orchestrator and GPT-4o-mini behind the agents."""
    about, out = MODELS[backbone], f"evolved/{backbone}-{name}"
    argv: tuple[str, ...] = ("data", "download", "hotpotqa", "--split", "train", "--out", "data/hotpotqa")
    draft.add(Command(name="data-hotpotqa-train", argv=argv, outputs=("data/hotpotqa/train_questions.jsonl",)))
    argv = ("serve-model", about.hub, "--port", str(request.port), "--tensor-parallel", str(about.tensor_parallel))
    argv += ("--data-parallel", str(4 // about.tensor_parallel))
    server = Service(name=f"model-{backbone}-{request.port}", argv=argv, port=request.port, gpus=HALF)
    argv = ("evolve", "--train", "data/hotpotqa/train_questions.jsonl", "--limit", str(EVOLVE_QUESTIONS), "--out", out)
    argv += ("--llm", "openai:gpt-4o-mini", "--plan-llm", f"openai:{about.hub}@http://127.0.0.1:{request.port}/v1")
    argv += ("--retriever", request.retriever, *EVOLVED[name])
    draft.add(
        Command(
            name=f"{backbone}-{name}-evolve",
            argv=argv,
            outputs=(f"{out}/prompts", f"{out}/experience.db"),
            services=(retriever, draft.serve(server)),
            about="asks OpenAI's service: OPENAI_API_KEY, and it is paid for",
        )
    )
    return TrainingResult(options=("--prompts", f"{out}/prompts", "--experience", f"{out}/experience.db"))
