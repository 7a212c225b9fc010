"""The order of a curriculum, what each stage meets, and how it goes on after a kill.

`ScriptedBackend` stands in for verl, vLLM and benchmarks of hours: it records its calls and replies from a script.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")

from pyrag.errors import ConfigError, ServiceError, UsageError
from pyrag.evaluation.runs.folder import locked
from pyrag.llm.protocol import Message
from pyrag_rl.config import Algorithm, TrainConfig, load_config, read_yaml
from pyrag_rl.curriculum import backend as curriculum_backend
from pyrag_rl.curriculum.backend import real_backend, settings_of
from pyrag_rl.curriculum.notes import NOTES, asked_in, chance_loss, table
from pyrag_rl.curriculum.stages import (
    Curriculum,
    CurriculumBackend,
    Questions,
    Serving,
    Stage,
    WorseError,
    load_curriculum,
    run,
)
from pyrag_rl.data.rows import TrainRow, write_rows

CONFIGS = Path(__file__).parents[2] / "rl" / "configs"


class KilledError(Exception):
    """What the process that runs a curriculum dies of here."""


@dataclass
class ScriptedBackend:
    scores: list[float]
    killed_at: str = ""  # "train" or "ask" of the next call
    trained: list[TrainConfig] = field(default_factory=list)
    served: list[Mapping[str, tuple[str, str]]] = field(default_factory=list)
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    built: list[tuple[str, str, str]] = field(default_factory=list)
    checked: list[TrainConfig] = field(default_factory=list)
    merged: list[tuple[str, str, Path]] = field(default_factory=list)
    running: int = 0

    def backend(self) -> CurriculumBackend:
        return CurriculumBackend(
            self.checked.append,
            self.train,
            self.serve,
            self.ask,
            self.build,
            merge=lambda *one: self.merged.append(one),
        )

    def train(self, config: TrainConfig) -> Path:
        assert self.running, "the frozen agents must be served while a stage trains"
        self._die("train")
        self.trained.append(config)
        return Path(config.out) / "adapter"

    @contextmanager
    def serve(self, curriculum: Curriculum, adapters: Mapping[str, tuple[str, str]]) -> Iterator[dict[str, str]]:
        self.served.append(dict(adapters))
        self.running += 1
        try:
            models = [curriculum.model, *(model for model, _ in adapters.values())]
            yield settings_of(curriculum.model, adapters, dict.fromkeys(models, 8000))
        finally:
            self.running -= 1

    def ask(self, questions: Questions, settings: Mapping[str, Any], out: Path) -> float:
        self._die("ask")
        self.asked.append((out.name, dict(settings)))
        return 0.0 if out.name.endswith("practice") else self.scores.pop(0)

    def build(self, task: str, run: Path, out: Path, settings: Mapping[str, Any]) -> None:
        self.built.append((task, run.name, out.name))

    def _die(self, at: str) -> None:
        if self.killed_at == at:
            self.killed_at = ""
            raise KilledError


def curriculum(name: str, out: Path) -> Curriculum:
    return load_curriculum(CONFIGS / f"{name}.yaml", str(out))


def test_pyrag_s_stages_go_on_from_one_another(tmp_path: Path) -> None:
    scripted = ScriptedBackend([0.2, 0.3, 0.35, 0.4])
    done = run(curriculum("curriculum", tmp_path), scripted.backend(), lambda _: None)
    assert [(one.name, one.before, one.after) for one in done] == [
        ("answer", 0.2, 0.3),
        ("plan", 0.3, 0.35),
        ("decompose", 0.35, 0.4),
    ]
    answer, plan, decompose = scripted.trained
    assert (answer.adapter, plan.adapter) == (None, str(tmp_path / "answer" / "adapter"))
    assert decompose.adapter == str(tmp_path / "plan" / "adapter")
    assert (answer.learning_rate, plan.learning_rate, decompose.group_size) == (1e-6, 3e-6, 4)
    frozen = "openai:plan@http://127.0.0.1:8000/v1"  # all agents are the model of the stage before
    assert {decompose.runtime[key] for key in ("answer_llm", "plan_llm")} == {frozen}
    assert plan.runtime["topk"] == 5  # the packaged config's own runtime stays
    assert [name for name, _ in scripted.asked] == [
        "start-evaluation",
        "answer-evaluation",
        "plan-evaluation",
        "decompose-evaluation",
    ]
    assert scripted.asked[-1][1]["answer_llm"] == "openai:decompose@http://127.0.0.1:8000/v1"
    assert len(scripted.served) == 4  # what measured a stage stays for the training of the next
    assert [config.agent for config in scripted.checked] == ["answer", "plan", "decompose"]
    assert "decompose" in table(done)


def test_opera_s_later_stages_learn_from_what_their_predecessors_ran(tmp_path: Path) -> None:
    scripted = ScriptedBackend([0.1, 0.2, 0.3, 0.4])
    run(curriculum("mapgrpo", tmp_path), scripted.backend(), lambda _: None)
    assert scripted.built == [
        ("analysis", "answer-practice", "answer.parquet"),
        ("rewrite", "rewrite-practice", "rewrite.parquet"),
    ]
    plan, answer, rewrite = scripted.trained
    assert [config.algorithm for config in scripted.trained] == ["mapgrpo"] * 3
    assert plan.prescored == "data/prescored.jsonl"
    assert answer.adapter is None  # each agent has an adapter of its own
    assert rewrite.model == "Qwen/Qwen2.5-3B-Instruct"
    practised = dict(scripted.asked)["answer-practice"]
    assert practised["plan_llm"] == "openai:plan@http://127.0.0.1:8000/v1"
    assert practised["answer_llm"] == "openai:Qwen/Qwen2.5-7B-Instruct@http://127.0.0.1:8000/v1"
    small = "openai:Qwen/Qwen2.5-3B-Instruct@http://127.0.0.1:8000/v1"  # not trained yet, and its own model already
    assert {settings["rewrite_llm"] for name, settings in scripted.asked[:-1]} == {small}
    assert set(scripted.served[-1]) == {"plan", "answer", "rewrite"}


def test_a_harmful_stage_ends_the_curriculum_unused(tmp_path: Path) -> None:
    scripted = ScriptedBackend([0.2, 0.3, 0.25])
    with pytest.raises(WorseError, match=r"stage plan made .* 30\.0 before and 25\.0 after.*answer/adapter"):
        run(curriculum("curriculum", tmp_path), scripted.backend(), lambda _: None)
    assert len(scripted.trained) == 2
    again = ScriptedBackend([])
    with pytest.raises(WorseError):  # nothing is trained or measured again to say so
        run(curriculum("curriculum", tmp_path), again.backend(), lambda _: None)
    assert (again.trained, again.asked) == ([], [])
    allowed = ScriptedBackend([0.4])
    run(replace(curriculum("curriculum", tmp_path), tolerance=0.06), allowed.backend(), lambda _: None)
    assert [config.agent for config in allowed.trained] == ["decompose"]


@pytest.mark.parametrize("at", ["train", "ask"])
def test_a_killed_curriculum_goes_on_where_it_was(at: str, tmp_path: Path) -> None:
    first = ScriptedBackend([0.2, 0.3])
    plans = curriculum("curriculum", tmp_path)
    backend = first.backend()

    def told(line: str) -> None:
        if line.startswith("stage plan"):
            first.killed_at = at

    with pytest.raises(KilledError):
        run(plans, backend, told)
    trained = len(first.trained)
    second = ScriptedBackend([0.35, 0.4])
    done = run(plans, second.backend(), lambda _: None)
    assert [one.after for one in done] == [0.3, 0.35, 0.4]
    assert [config.agent for config in second.trained] == [
        "plan",
        "decompose",
    ]
    assert trained == (1 if at == "train" else 2)


def test_the_password_of_a_retriever_is_not_noted(tmp_path: Path) -> None:
    made = curriculum("curriculum", tmp_path)
    made = replace(made, evaluation=replace(made.evaluation, retriever="http://me:sesame@127.0.0.1:8008"))
    run(made, ScriptedBackend([0.1] * 4).backend(), lambda _: None)
    notes = (tmp_path / NOTES).read_text()
    assert "sesame" not in notes
    assert "http://127.0.0.1:8008" in notes


def test_another_curriculum_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    run(curriculum("curriculum", tmp_path), ScriptedBackend([0.1] * 4).backend(), lambda _: None)
    with pytest.raises(ConfigError, match="holds another curriculum"):
        run(curriculum("mapgrpo", tmp_path), ScriptedBackend([]).backend(), lambda _: None)
    assert len(json.loads((tmp_path / NOTES).read_text())["stages"]) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stages": []}, "needs stages"),
        ({"stages": [{"name": "a", "agent": "answer"}]}, "either data, a Parquet file, or build"),
        ({"stages": [{"name": "a", "agent": "answer", "build": "analysis"}], "practice": None}, "under practice"),
        ({"stages": [{"name": "a", "agent": "anwser", "data": "x"}]}, "Invalid enum value"),
        ({"stages": [{"name": "../a", "agent": "answer", "data": "x"}]}, "cannot be called '../a'"),
        ({"stages": [{"name": "start", "agent": "answer", "data": "x"}]}, "cannot be called 'start'"),
        ({"stages": [{"name": "a", "agent": "answer", "data": "x", "setings": {}}]}, "did you mean 'settings'"),
        (
            {"stages": [{"name": "a", "agent": "answer", "algorithm": "sft", "build": "analysis"}]},
            "build writes rows for rewards: name rows of --sft",
        ),
        ({"toleranse": 0.5}, "unknown key 'toleranse': did you mean 'tolerance'"),
        ({"serving": {"prot": 8000}}, "did you mean 'port'"),
        ({"evaluation": {"data": "d", "sets": ["s"], "metod": "opera"}}, "did you mean 'method'"),
    ],
)
def test_what_is_no_curriculum_is_said(change: Mapping[str, Any], said: str, tmp_path: Path) -> None:
    import yaml

    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump({**read_yaml(CONFIGS / "mapgrpo.yaml"), **change}))
    with pytest.raises(ConfigError, match=said):
        load_curriculum(file, str(tmp_path))


def test_opera_s_grpo_is_mapgrpo_without_candidates_and_runs(tmp_path: Path) -> None:
    grpo, mapgrpo = (load_curriculum(CONFIGS / f"{name}.yaml", str(tmp_path)) for name in ("opera-grpo", "mapgrpo"))
    assert [(one.agent, one.algorithm, bool(one.data)) for one in grpo.stages] == [
        (one.agent, one.algorithm, True) for one in mapgrpo.stages
    ]
    assert not any("prescored" in one.settings for one in grpo.stages)
    assert (grpo.evaluation, grpo.practice) == (mapgrpo.evaluation, None)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "embedded"}, "the embedded reader is trained by a recipe"),
        ({"lora_rank": 16}, "continues an adapter of rank 64 and alpha 32, and has lora_rank 16"),
        ({"lora_alpha": 64}, "give all stages of a shared adapter the same"),
    ],
)
def test_a_stage_that_cannot_go_on_is_refused_first(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    scripted, plans = ScriptedBackend([]), curriculum("curriculum", tmp_path)
    last = Stage(name="last", agent="answer", data="x.parquet", settings=settings)
    with pytest.raises(ConfigError, match=said):
        run(replace(plans, stages=(*plans.stages, last)), scripted.backend(), lambda _: None)
    assert (scripted.trained, scripted.asked) == ([], [])


def test_stages_of_all_weights_go_on_from_merged_models(tmp_path: Path) -> None:
    """As the release trains: an adapter for the Answer agent, all weights for the others."""
    scripted, plans = ScriptedBackend([0.1, 0.2, 0.3, 0.4]), curriculum("curriculum", tmp_path)
    answer, *others = plans.stages
    whole = [replace(stage, settings={**stage.settings, "lora_rank": 0}) for stage in others]
    run(replace(plans, stages=(answer, *whole)), scripted.backend(), lambda _: None)
    first, plan, decompose = scripted.trained
    assert (first.model, first.adapter) == ("Qwen/Qwen2.5-7B-Instruct", None)
    assert scripted.merged == [("Qwen/Qwen2.5-7B-Instruct", str(tmp_path / "answer/adapter"), tmp_path / "plan-start")]
    assert (plan.model, plan.adapter, plan.lora_rank) == (str(tmp_path / "plan-start"), None, 0)
    assert (decompose.model, decompose.adapter) == (str(tmp_path / "plan/adapter"), None)
    assert set(scripted.served[-1].values()) == {(str(tmp_path / "decompose/adapter"), "")}


def test_a_gate_tolerates_what_chance_explains() -> None:
    assert chance_loss(0.4, 500) == pytest.approx(0.051, abs=0.001)
    assert chance_loss(0.4, 125) == pytest.approx(2 * chance_loss(0.4, 500), rel=0.02)
    assert chance_loss(0.0, 500) > 0
    assert chance_loss(0.4, 0) == 0.0


@pytest.mark.parametrize(("after", "ends"), [(0.26, False), (0.24, True)])
def test_the_tolerance_of_a_stage_follows_its_questions(after: float, ends: bool, tmp_path: Path) -> None:
    scripted = ScriptedBackend([0.3, after, 0.3, 0.3])
    plans = curriculum("curriculum", tmp_path)
    if ends:
        with pytest.raises(WorseError, match=r"more than the 4\.8 points that are tolerated"):
            run(plans, scripted.backend(), lambda _: None)
    else:
        run(plans, scripted.backend(), lambda _: None)


def test_packaged_gates_measure_a_split_of_their_own(tmp_path: Path) -> None:
    said: list[str] = []
    for name in ("curriculum", "mapgrpo", "opera-grpo"):
        made = curriculum(name, tmp_path / name)
        assert (made.evaluation.split, made.tolerance if name != "opera-grpo" else None) == ("gate", None)
        run(made, ScriptedBackend([0.1] * 4).backend(), said.append)
    assert not any("pyrag train gate" in line for line in said)
    reported = curriculum("curriculum", tmp_path / "reported")
    reported = replace(reported, evaluation=replace(reported.evaluation, split=""))
    run(reported, ScriptedBackend([0.1] * 4).backend(), said.append)
    assert "draw others with pyrag train gate" in " ".join(said)


def test_rows_that_hold_questions_of_the_gate_are_refused(toy: Questions, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.parquet", [
        TrainRow(
            index=0, id="9", agent="answer", source="other", question="Who wrote  Dracula", answers=("x",),
            messages=(Message("user", "?"),),
        )
    ])  # fmt: skip
    config = load_config("answer", data=str(tmp_path / "rows.parquet"))
    with pytest.raises(ConfigError, match=r"holds the question 'Who wrote  Dracula', on which the curriculum measures"):
        real_backend(print).apart(config, toy)


def test_the_questions_of_a_measurement_are_counted(toy: Questions, tmp_path: Path) -> None:
    real_backend(print).ask(toy, {"llm": "embedded"}, tmp_path / "out")
    assert (asked_in(tmp_path / "out"), asked_in(tmp_path / "none")) == (1, 0)


@pytest.mark.parametrize(("algorithm", "trainer"), [("grpo", "launch.train"), ("sft", "sft.train_sft")])
def test_a_stage_is_trained_by_its_algorithm(
    algorithm: Algorithm, trainer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What trains, reports and exports is replaced: verl is not here."""
    trained: list[str] = []
    monkeypatch.setattr(f"pyrag_rl.verl.{trainer}", lambda config, console: trained.append(config.algorithm))
    monkeypatch.setattr("pyrag_rl.report.write_report", lambda path: path)
    monkeypatch.setattr("pyrag_rl.verl.export.export", lambda path: path)
    monkeypatch.chdir(tmp_path)
    config = load_config("answer", algorithm, model="m", data="d", out="run")
    assert real_backend(print).train(config) == tmp_path / "run" / "adapter"  # wherever the next stage looks from
    assert trained == [algorithm]


@pytest.mark.parametrize("notes", ["{", "{}", '{"curriculum": {}, "stages": [{}]}', "\xff"])
def test_notes_that_were_broken_by_hand_are_named(notes: str, tmp_path: Path) -> None:
    (tmp_path / NOTES).write_bytes(notes.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"curriculum\.json does not hold the notes of a curriculum"):
        run(curriculum("curriculum", tmp_path), ScriptedBackend([]).backend(), lambda _: None)


def test_two_curricula_do_not_share_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UsageError, match="is in use by process"):
        run(curriculum("curriculum", tmp_path), ScriptedBackend([]).backend(), lambda _: None)


@pytest.fixture
def toy(tmp_path: Path) -> Questions:
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    (folder / "questions.jsonl").write_text(
        '{"id": "1", "question": "Who wrote Dracula?", "answers": ["Bram Stoker"]}\n'
    )
    (folder / "corpus.jsonl").write_text(
        '{"id": "p", "title": "Dracula", "text": "Dracula was written by Bram Stoker."}\n'
    )
    return Questions(data=str(tmp_path / "data"), sets=("toy",), method="vanilla", limit=1)


def test_an_evaluation_is_pyrag_bench_itself(toy: Questions, tmp_path: Path) -> None:
    assert real_backend(print).ask(toy, {"llm": "embedded"}, tmp_path / "out") == 1.0


def test_agents_that_are_never_done_have_answered_nothing(toy: Questions, tmp_path: Path) -> None:
    assert real_backend(print).ask(toy, {"llm": "embedded", "deadline": 1e-4}, tmp_path / "out") == 0.0
    with pytest.raises(ServiceError, match="code 2"):  # it holds figures, and not those that are asked for
        real_backend(print).ask(toy, {"llm": "embedded", "deadline": 2e-4}, tmp_path / "out")


def test_an_unreachable_server_ends_the_evaluation(toy: Questions, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match=r"pyrag bench ended with code 3: run the same command to continue"):
        real_backend(print).ask(toy, {"llm": "openai:x@http://127.0.0.1:9/v1"}, tmp_path / "out")


def test_models_share_the_gpus_of_the_servers() -> None:
    serving = Serving(gpus="6,7", tensor_parallel=2, gpu_memory=0.9, more=("--dtype", "float32"))
    assert curriculum_backend.serving_line(serving, "org/model", {"plan": "out/plan/adapter"}, 8001, models=2) == [
        "serve-model", "org/model", "--port", "8001", "--tensor-parallel", "2", "--gpu-memory", "0.450",
        "--lora", "plan=out/plan/adapter", "--", "--dtype", "float32",
    ]  # fmt: skip


def test_a_port_of_another_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else that one would be measured in the place of ours."""
    monkeypatch.setattr(curriculum_backend, "FREE_SECONDS", 0.0)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        plans = replace(curriculum("curriculum", tmp_path), serving=Serving(port=port))
        with pytest.raises(ConfigError, match=f"port {port} is taken"), real_backend(print).serve(plans, {}):
            pass


def test_operas_supervised_row_trains_its_three_agents(tmp_path: Path) -> None:
    sft, grpo = (load_curriculum(CONFIGS / f"{name}.yaml", str(tmp_path)) for name in ("opera-sft", "opera-grpo"))
    assert [(stage.agent, stage.algorithm) for stage in sft.stages] == [
        ("plan", "sft"), ("answer", "sft"), ("rewrite", "sft"),
    ]  # fmt: skip
    assert (sft.evaluation, sft.serving, sft.shared) == (grpo.evaluation, grpo.serving, grpo.shared)
    assert all(stage.data.endswith("-sft.parquet") for stage in sft.stages)
