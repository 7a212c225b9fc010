"""The recipe of docs/small-model.md: its commands exist, nothing runs twice, planner figures are counts of traces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import small_model
from benchmarks.planner_figures import planned_searches, planner_table, searches
from benchmarks.prefix_cache import PrefixCache, prefix_cache_table, read_metrics, record_prefix_caches
from benchmarks.small_model import STAGES, run, take_trained
from benchmarks.small_model_bench import MEASURED, ROWS, verdicts
from benchmarks.small_model_rows import Command, HeldOutQuestions, Mixture, Recipe
from pyrag.agents.llm import make_llm_agents
from pyrag.cli.app import app
from pyrag.errors import UsageError
from pyrag.evaluation.datasets.layout import Question, read_questions
from pyrag.evaluation.runs.folder import SUMMARY, open_run
from pyrag.evaluation.scoring import score
from pyrag.llm.clients.scripted import ScriptedChat
from pyrag.retrieval.memory import InMemoryRetriever
from pyrag.runtime.answering import answer_question
from pyrag.runtime.engines import Engines
from pyrag.settings import Settings
from pyrag.trace.model import Answer, Passage, Trace
from pyrag_rl.data.held_out import draw
from pyrag_rl.data.rows import Conversation, read_conversations, write_conversations
from pyrag_sandbox import Sandbox
from tests.rl import tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """A recipe all of whose models seem to be there."""
    for name in ("sft-answer", "sft-plan", "sft-paper", "sft-rag", "rl-answer", "rl-plan", "rl-rag"):
        (tmp_path / "out" / name / "merged").mkdir(parents=True)
    for name in MEASURED:
        (tmp_path / "data" / name).mkdir(parents=True)
    return Recipe(tmp_path / "data", tmp_path / "out")


@pytest.mark.parametrize(
    ("stage", "gpu"),
    [*((one, False) for one in STAGES), ("data", True), ("sft-plan", True), ("sft-answer", True), ("rl-answer", True)],
)
def test_every_command_has_only_known_options(stage: str, gpu: bool, recipe: Recipe) -> None:
    commands = [one for one in STAGES[stage](replace(recipe, gpu=gpu)) if isinstance(one, Command)]
    assert commands
    for one in commands:
        ended = CliRunner().invoke(app, [*one.arguments, "--help"])
        assert ended.exit_code == 0, ended.output
        configs = [part for part in one.arguments if part.startswith("rl/configs/")]
        assert all((ROOT / part).is_file() for part in configs)


def test_mixtures_are_made_of_rows_written_before(recipe: Recipe) -> None:
    written = set()
    for one in STAGES["data"](replace(recipe, gpu=True)):
        if isinstance(one, Mixture):
            assert {file for file, *_ in one.parts} <= written
        written.add(one.product)
    assert {recipe.rows / f"{name}.parquet" for name in ("sft-answer", "sft-rag", "sft-plan", "sft-paper")} <= written


def test_a_mixture_repeats_the_first_rows(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [Conversation(messages=({"role": "assistant", "content": "x"},), id=str(one)) for one in range(5)]
    write_conversations(tmp_path / "a.parquet", said[:3])
    write_conversations(tmp_path / "b.parquet", said[3:])
    mixture = Mixture(((tmp_path / "a.parquet", 2, 1), (tmp_path / "b.parquet", 0, 2)), tmp_path / "made.parquet")
    monkeypatch.setattr(small_model, "STAGES", {"data": lambda _: iter([mixture])})
    run(recipe, ["data"], dry=True)
    assert not mixture.product.exists()
    run(recipe, ["data"])
    assert [one.id for one in read_conversations(mixture.product)] == ["0", "1", "3", "4", "3", "4"]


def test_each_row_of_the_table_is_measured(recipe: Recipe) -> None:
    assert [one.product.parent.name for one in STAGES["measure"](recipe)] == list(ROWS)


def test_the_reward_row_takes_the_supervised_planner_without_another(recipe: Recipe) -> None:
    (recipe.out / "rl-plan" / "merged").rmdir()
    rows = {one.product.parent.name: one.served for one in STAGES["measure"](recipe)}
    assert rows["pyrag-rl"] == ("rl-answer", "sft-plan")
    assert "pyrag-rl-reader" not in rows


def judged(recipe: Recipe, name: str, before: Sequence[str], after: Sequence[str]) -> None:
    """Runs over the same questions, whose answers are given; "y" is right."""
    for when, answers in (("before", before), ("after", after)):
        folder = recipe.out / "judge" / name / when
        with open_run(folder, {"sets": ["toy"], "methods": ["pyrag"]}, {"files": {}}) as writer:
            for number, answer in enumerate(answers):
                trace = Trace("q?", Answer(answer))
                writer.write(score("toy", "pyrag", Question(str(number), "q?", ("y",), hops=2), trace), trace)
        (folder / SUMMARY).touch()


@pytest.mark.parametrize(("after", "named"), [("xxy", "sft-plan"), ("xyx", "sft-plan"), ("xyy", "rl-plan")])
def test_a_reward_run_is_kept_if_better(recipe: Recipe, after: str, named: str) -> None:
    judged(recipe, "rl-plan", "yxx", after)
    rows = {one.product.parent.name: one.served for one in STAGES["measure"](recipe)}
    assert rows["pyrag-rl"] == ("rl-answer", named)
    assert verdicts(recipe).rows[0][-1] == ("kept" if named == "rl-plan" else "not kept")


def test_a_judgement_compares_one_changed_agent(recipe: Recipe) -> None:
    commands = [one for one in STAGES["judge"](recipe) if isinstance(one, Command)]
    served = {"/".join(one.product.parts[-3:-1]): one.served for one in commands if one.arguments[0] == "bench"}
    assert set(served) == {
        f"{name}/{when}" for name in ("rl-answer", "rl-rag", "rl-plan") for when in ("before", "after")
    }
    for name in ("rl-answer", "rl-rag", "rl-plan"):
        before, after = (set(served[f"{name}/{when}"]) for when in ("before", "after"))
        assert (before - after, after - before) == ({name.replace("rl", "sft")}, {name})
    assert verdicts(recipe).rows == []


def test_held_out_questions_are_those_that_rows_leave_out(tmp_path: Path) -> None:
    fields = {"answers": ["y"], "supporting": ["p"], "hops": 2}
    gold = [
        {**fields, "id": f"g{one}", "source": "a", "question": f"Who is {one}?", "sub_questions": []}
        for one in range(40)
    ]
    plain = [{**fields, "id": f"p{one}", "source": "b", "question": f"What is {one}?"} for one in range(40)]
    gold[0]["answerable"] = False
    for name, lines in (("decompositions", gold), ("questions", plain)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    step = HeldOutQuestions(tmp_path, {"a": 0.5, "b": 1.0}, tmp_path / "held")
    step.write()

    a, b = (list(read_questions(tmp_path / "held" / name / "questions.jsonl")) for name in "ab")

    assert {one.id for one in a} == {str(one["id"]) for one in gold[1:] if draw(str(one["question"])) < 0.5}
    assert 0 < len(a) < 39
    assert len(b) == 40
    assert (b[0].answers, b[0].supporting, b[0].hops) == (("y",), ("p",), 2)


def test_an_agent_that_is_there_is_not_taken_again(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "adapters" / "sft-plan").mkdir(parents=True)
    (tmp_path / "adapters" / "sft-plan" / "adapter_config.json").write_text("{}")
    assert take_trained(recipe, tmp_path / "adapters") == []


def test_a_trained_adapter_is_merged_into_the_base_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    tiny.make(tmp_path / "base", ["who directed dracula"])
    base = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    lora = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    peft.get_peft_model(base, lora).save_pretrained(tmp_path / "adapters" / "sft-plan")
    monkeypatch.setattr(small_model, "MODEL", tmp_path / "base")

    recipe = Recipe(tmp_path, tmp_path / "out")
    assert take_trained(recipe, tmp_path / "adapters") == ["sft-plan"]

    assert (recipe.out / "sft-plan" / "adapter" / "adapter_config.json").is_file()
    merged = transformers.AutoModelForCausalLM.from_pretrained(recipe.out / "sft-plan" / "merged")
    plain = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    assert not (merged.model.layers[0].mlp.up_proj.weight == plain.model.layers[0].mlp.up_proj.weight).all()


def test_rows_of_untrained_agents_wait(tmp_path: Path) -> None:
    commands = list(STAGES["measure"](Recipe(tmp_path, tmp_path / "out")))
    assert {one.product.parent.name for one in commands} == {"direct", "vanilla", "pyrag-untrained", "embedded"}


def test_a_stage_runs_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[list[str]] = []
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.touch()
    commands = [Command(("index", "a"), there), Command(("index", "b"), missing), Command(("index", "c"), missing)]

    def call(line: list[str]) -> None:
        called.append(line)
        missing.touch()

    monkeypatch.setattr(small_model, "STAGES", {"data": lambda _: iter(commands)})
    monkeypatch.setattr(small_model, "_call", call)
    run(Recipe(tmp_path, tmp_path), ["data"])
    assert called == [["index", "b"]]
    run(Recipe(tmp_path, tmp_path), ["data"])
    assert capsys.readouterr().out.endswith("data: done\n")
    with pytest.raises(UsageError, match=r"no stage 'dta'.*did you mean 'data'"):
        run(Recipe(tmp_path, tmp_path), ["dta"])


def test_dry_run_prints_all_stages(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    run(recipe, [], dry=True)
    out = capsys.readouterr().out
    assert all(f"{stage}: " in out for stage in STAGES)
    assert "--plan-llm '{sft-plan}'" in out
    assert not (recipe.out / "measure").exists()


METRICS = """\
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{{engine="0",model_name="small"}} {queries}
vllm:prefix_cache_hits_total{{engine="0",model_name="small"}} {hits}
vllm:external_prefix_cache_hits_total{{engine="0",model_name="small"}} 9
"""


def test_prefix_cache_shares_are_summed_by_row(tmp_path: Path) -> None:
    empty, later = (read_metrics(METRICS.format(queries=q, hits=h)) for q, h in (("1000.0", "0.0"), ("3e+03", "500.0")))
    assert later - empty == PrefixCache(2000, 500)
    for _ in range(2):
        record_prefix_caches(tmp_path / "m" / "p.jsonl", "pyrag-sft", {"sft-plan": empty}, {"sft-plan": later})
    assert prefix_cache_table(tmp_path / "m" / "p.jsonl").rows == [("pyrag-sft", "sft-plan", "4,000", "25%")]
    assert read_metrics("").share == 0


async def traced(program: str, *more: str) -> Trace:
    chat = ScriptedChat([f"```python\n{program}\n```", *more])
    engines = Engines(
        make_llm_agents(chat, prompts_dir="small"), InMemoryRetriever([Passage("p", "", "q r")]), Sandbox()
    )
    try:
        return await answer_question("q?", engines, Settings(joint=True, repairs=0, recovery="none"))
    finally:
        await engines.aclose()


async def test_planner_figures_count_programs_and_searches(tmp_path: Path) -> None:
    good = await traced(
        'q1 = "q?"\na1 = answer(q1, retrieve(q1))\nq2 = f"r {a1}?"\na2 = answer(q2, retrieve(q2))\nfinal_answer = a2',
        "<answer>x</answer>",
        "<answer>y</answer>",
    )
    broken = await traced('a1 = answer("q?", retrieve("q?"))\nfinal_answer = a1["x"]', "<answer>x</answer>")
    unparsed = await traced("final_answer = (", *["```python\n(\n```"] * 3)
    assert [searches(one) for one in (good, broken, unparsed)] == [2, 1, 0]
    assert [planned_searches(one) for one in (good, broken, unparsed)] == [2, 1, 0]
    lost = replace(good, steps=good.steps[:2])  # its first answer was unknown
    assert (planned_searches(lost), searches(lost)) == (2, 1)
    with open_run(tmp_path / "run", {"sets": ["toy"], "methods": ["pyrag"]}, {"files": {}}) as writer:
        for number, trace in enumerate((good, broken, unparsed)):
            writer.write(score("toy", "pyrag", Question(str(number), "q?", ("y",), hops=2), trace), trace)
    assert planner_table([tmp_path / "run"]).rows == [
        ("run", "toy", "2", "3", "66.7", "33.3", "33.3", "33.3", "33.3", "33.3", "33.3")
    ]
