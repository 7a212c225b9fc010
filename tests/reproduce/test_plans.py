"""Plans of all tables: every command parses, and everything that is named exists or is left out by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from pyrag.agents.prompts import load_prompts
from pyrag.cli.app import app
from pyrag.errors import UsageError
from pyrag.evaluation.reports.paper_scores import REPORTED
from pyrag.methods.registry import get_method
from pyrag.reproduce.catalogue import TABLES, table_of
from pyrag.reproduce.full import ELSEWHERE, full_plan, source_of
from pyrag.reproduce.models import MODELS, PAPER_OPTIONS, config_path
from pyrag.reproduce.needs import COUNTS, needs_of
from pyrag.reproduce.recipes import EVOLVED, RECIPES
from pyrag.reproduce.report import figure_of
from pyrag.reproduce.steps import Command, ReproductionPlan, Service, TableRequest
from pyrag.reproduce.tables import PaperTable
from pyrag.reproduce.tiny import tiny_plan
from pyrag.settings import PROFILES
from pyrag_rl.config import load_config
from pyrag_rl.curriculum.stages import load_curriculum

PRESENT = frozenset(ELSEWHERE)
CASES = [(key, model) for key, table in TABLES.items() for model in table.models]


@cache
def root() -> Any:
    return typer.main.get_command(app)


@cache
def plans(key: str, model: str) -> tuple[ReproductionPlan, ...]:
    request = TableRequest(table=key, models=(model,))
    tiny = replace(request, scale="tiny"), replace(request, scale="tiny", llm="transformers:/models/small")
    return (full_plan(TABLES[key], request, PRESENT), *(tiny_plan(TABLES[key], one) for one in tiny))


def parse(argv: Sequence[str]) -> dict[str, Any]:
    """Parse words by the real command line without running them, and return the values of the last command."""
    command: Any = root()
    context, words, name = None, list(argv), "pyrag"
    while True:
        context = command.make_context(name, words, parent=context)
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not hasattr(command, "resolve_command") or not rest:
            return dict(context.params)
        name, command, words = command.resolve_command(context, rest)


def test_the_parser_of_this_test_refuses() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(["bench", "--sets", "a", "--no-such-option"])
    with pytest.raises(Exception, match="No such command"):
        parse(["data", "fetch", "hotpotqa"])
    assert parse(["bench", "--topk", "7"])["topk"] == 7


@pytest.mark.parametrize(("key", "model"), CASES)
def test_every_command_parses(key: str, model: str) -> None:
    for plan in plans(key, model):
        for step in (*plan.commands, *plan.services.values()):
            parse(step.argv)


@pytest.mark.parametrize(("key", "model"), CASES)
def test_named_methods_prompts_and_configs_exist(key: str, model: str) -> None:
    for plan in plans(key, model):
        for command in plan.commands:
            values = parse(command.argv)
            if command.argv[0] == "bench":
                get_method(values["method"][0])
            for option in ("prompts", "profile"):
                value = values.get(option)
                made = {one for other in plan.commands for one in other.outputs}
                assert value is None or value in made or option == "profile" or load_prompts(value)
            check_config(command, values)


def check_config(command: Command, values: dict[str, Any]) -> None:
    if command.argv[:2] == ("train", "curriculum"):
        made = load_curriculum(Path(values["file"]), "out", model=values["model"], rows=values["rows"])
        assert made.model == values["model"]
        assert all(stage.data.startswith(values["rows"]) for stage in made.stages if stage.data)
    elif command.argv[0] == "train" and values.get("agent"):
        load_config(values["agent"], values["algorithm"], file=values["config"] and Path(values["config"]))


@pytest.mark.parametrize(("key", "model"), CASES)
def test_servers_fit_and_listen_on_loopback(key: str, model: str) -> None:
    for plan in plans(key, model):
        names = [command.name for command in plan.commands]
        assert len(set(names)) == len(names)
        for command in plan.commands:
            asked = [plan.services[name] for name in command.services]
            for place, service in enumerate(asked):
                assert "--host" not in service.argv
                assert not service.is_in_the_way(command), command.name
                assert not any(service.is_in_the_way(other) for other in asked[:place]), command.name
                ports = [word for word in command.argv if f":{service.port}" in word]
                assert ports or command.gpus, f"{command.name} does not ask {service.name}"


@pytest.mark.parametrize(("key", "model"), CASES)
def test_rows_are_run_or_left_out_by_name(key: str, model: str) -> None:
    for plan in plans(key, model):
        measured = {one.row.partition(",")[0] for one in plan.measured}
        for row in TABLES[key].rows:
            assert not row.method or row.name in measured or row.name in plan.skipped


@pytest.mark.parametrize(("key", "model"), CASES)
def test_sources_are_rows_of_the_papers(key: str, model: str) -> None:
    known = {(one.source, one.method.partition(":")[0]) for one in REPORTED}
    for row in TABLES[key].rows:
        if row.paper and row.method:
            assert (source_of(row, model), row.method.partition(":")[0]) in known, row.name


def test_recipes_of_all_rows_are_packaged() -> None:
    assert all(config_path(recipe.config).is_file() for recipe in RECIPES.values() if recipe.config)
    trained = {row.training for table in TABLES.values() for row in table.rows if row.training}
    assert trained <= RECIPES.keys() | EVOLVED.keys()


def test_runs_of_pyrag_have_its_papers_options() -> None:
    plan = full_plan(TABLES["pyrag/table2"], TableRequest(table="pyrag/table2", models=("qwen2.5-7b",)))
    words = " ".join(word for command in plan.commands for word in command.argv)
    assert " ".join(PAPER_OPTIONS) in words
    assert PAPER_OPTIONS[3] in PROFILES


def test_figures_are_those_of_the_paper() -> None:
    plan = full_plan(TABLES["pyrag/table2"], TableRequest(table="pyrag/table2", models=("qwen2.5-72b",)))
    figures = {one.row: figure_of(one, "bamboogle") for one in plan.measured}
    assert figures["pyrag, qwen2.5-72b"] == 45.5
    assert figures["direct, qwen2.5-72b"] == 17.6
    opera = full_plan(TABLES["opera/table10"], TableRequest(table="opera/table10", models=("qwen2.5-7b",)))
    assert figure_of(opera.measured[2], "hotpotqa") == 51.2
    assert figure_of(opera.measured[2], "musique") is None


def test_the_coder_plans_on_a_server_of_its_own() -> None:
    plan = full_plan(TABLES["pyrag/table2"], TableRequest(table="pyrag/table2", models=("qwen2.5-7b",)))
    command = next(one for one in plan.commands if one.name.endswith("7b-pyrag"))
    servers = [plan.services[name] for name in command.services]
    assert [one.port for one in servers] == [8008, 8000, 8001]
    values = parse(command.argv)
    assert MODELS["qwen2.5-coder-7b"].hub in values["plan_llm"]
    assert values["plan_llm"].endswith(":8001/v1")
    assert not set(servers[1].gpus) & set(servers[2].gpus)


def test_trained_agents_are_served_by_their_adapters() -> None:
    plan = full_plan(TABLES["opera/table9"], TableRequest(table="opera/table9", models=("qwen2.5-7b",)))
    command = next(one for one in plan.commands if one.name.endswith("rewrite-qwen2.5-1.5b"))
    values = parse(command.argv)
    assert [values[f"{role}_llm"].partition("@")[0] for role in ("plan", "answer", "rewrite")] == [
        "openai:opera-mapgrpo-plan",
        "openai:opera-mapgrpo-answer",
        "openai:opera-rewrite-1.5b",
    ]
    made = {output for one in plan.commands for output in one.outputs}
    for service in (plan.services[name] for name in command.services):
        for lora in parse(service.argv).get("lora") or ():
            assert lora.partition("=")[2] in made


def test_sets_without_a_download_are_left_out() -> None:
    plan = full_plan(TABLES["hera/table1"], TableRequest(table="hera/table1", models=("qwen3-14b",)))
    assert "pyrag data import hover" in plan.skipped["hover"]
    assert all("hover" not in word for command in plan.commands for word in command.argv)


def test_all_tables_of_the_papers_are_listed() -> None:
    parts = ("table2", "table3", "figure3a", "figure3b", "efficiency", "failures")
    opera = (1, 2, 3, 8, 9, 10, 11, 12)
    wanted = {f"pyrag/{one}" for one in parts} | {f"opera/table{one}" for one in opera} | {"hera/table1"}
    assert wanted | {f"hera/figure{one}" for one in (2, 3, 4, 5, 6, 8)} == TABLES.keys()


def test_the_list_states_needs_and_what_is_missing(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "list", "--json", "--out", str(tmp_path)])
    tables = {one["table"]: one for one in json.loads(done.stdout)}
    one = tables["pyrag/table3"]
    assert one["needs"]["trains"] == ["rag-sft", "rag-rl", "pyrag-rl"]
    assert one["needs"]["training"] > one["needs"]["measuring"] > 0
    assert any("hotpotqa" in item for item in one["missing"])
    assert one["hours"] == "estimate"
    text = CliRunner().invoke(app, ["reproduce", "list", "--out", str(tmp_path)]).stdout
    assert all(key in text for key in TABLES)
    assert "estimate" in text
    assert " min of measuring" in text
    assert "0.0 h" not in text


def test_needs_count_every_set() -> None:
    assert {name for table in TABLES.values() for name in table.sets} <= COUNTS.keys()
    small, large = (needs_of(TABLES["pyrag/table2"], (name,)) for name in ("qwen2.5-7b", "qwen2.5-72b"))
    assert large.disk > small.disk + 100
    assert large.measuring > small.measuring


def test_a_dry_run_prints_lines_for_a_shell(tmp_path: Path) -> None:
    words = ["reproduce", "pyrag/table2", "--models", "qwen2.5-7b", "--dry-run", "--out", str(tmp_path / "x")]
    lines = CliRunner().invoke(app, words).stdout.splitlines()
    assert lines[0] == f"mkdir -p {tmp_path / 'x'} && cd {tmp_path / 'x'}"
    shown = [line for line in lines[1:] if not line.startswith("#")]
    assert all(line.removeprefix("CUDA_VISIBLE_DEVICES=0,1,2,3 ").startswith(("pyrag ", "CUDA")) for line in shown)
    assert any("serve-retriever wiki-index --port 8008 --exact" in line for line in shown)
    plan = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert plan["lines"] == [line for line in shown if "pyrag serve-" not in line]
    assert not (tmp_path / "x").exists()


def test_an_engine_is_named_by_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["reproduce", "pyrag/table2", "--scale", "tiny", "--llm", "transformers:small,device=cpu", "--dry-run"]
    lines = CliRunner().invoke(app, words).stdout
    assert (
        f"--method direct --limit 3 --seed 0 --retriever http://127.0.0.1:8008 --llm transformers:{tmp_path}" in lines
    )
    assert "left out: direct" not in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pyrag/table9"], "there is no table 'pyrag/table9'"),
        (["pyrag/table2", "--models", "qwen3-4b"], "pyrag/table2 has no rows of qwen3-4b"),
        (["pyrag/table2", "--scale", "huge"], "there is no scale 'huge'"),
        (["pyrag/table3", "--port", "9000"], "leave out --port 9000"),
    ],
)
def test_a_wrong_request_is_refused(words: list[str], message: str) -> None:
    error = CliRunner().invoke(app, ["reproduce", *words, "--dry-run"]).exception
    assert isinstance(error, UsageError)
    assert message in str(error)


def test_a_server_is_in_the_way_by_gpu_or_port() -> None:
    one = Service(name="a", argv=(), port=1, gpus=(0, 1))
    assert one.is_in_the_way(Service(name="b", argv=(), port=2, gpus=(1,)))
    assert one.is_in_the_way(Service(name="c", argv=(), port=1))
    assert not one.is_in_the_way(Service(name="d", argv=(), port=2, gpus=(2,)))
    assert one.is_in_the_way(Command(name="e", argv=(), gpus=(0,)))


def test_an_unknown_table_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="opera/table1"):
        table_of("opera/tabel1")
    assert isinstance(table_of("opera/table1"), PaperTable)
