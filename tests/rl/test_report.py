"""The report of a run, from files as a run of `pyrag train` leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")

from typer.testing import CliRunner

from pyrag.errors import DataError
from pyrag.trace.codec import to_json
from pyrag.trace.model import Answer, Trace
from pyrag_rl.config import make_config, save_config
from pyrag_rl.folder import RunFolder
from pyrag_rl.report import held_out, page, read_learning, summary, write_report
from pyrag_rl.rewards.score import Score


def lines(path: Path, *values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in values))


def scored(step: int, score: float, reason: str = "", split: str = "train") -> dict[str, Any]:
    made = Score(score=score, f1=score, form=1.0, error=reason).numbers()
    return {"step": step, "id": "q", "split": split, "reason": reason, "detail": "", **made}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    save_config(make_config({"agent": "answer", "model": "tiny"}), folder.config)
    data = {"actor/kl_loss": 0.01, "response_length/mean": 12.0}
    lines(folder.metrics / "1.jsonl", {"step": 1, "data": data}, {"step": 2, "data": {**data, "actor/kl_loss": 0.5}})
    lines(folder.metrics / "2.jsonl", {"step": 2, "data": {**data, "actor/kl_loss": 0.02}})  # a session that went on
    lines(folder.scores / "7.jsonl", scored(0, 0.0, "bad_form"), scored(0, 0.5), scored(1, 1.0))
    lines(folder.scores / "8.jsonl", scored(1, 0.5), scored(0, 0.2, split="eval"), scored(2, 0.6, split="eval"))
    rollout = {"input": "system\nprompt", "output": "<answer>Oslo</answer>", "gts": "Oslo", "score": 1.0, "step": 2}
    lines(folder.rollouts / "2.jsonl", rollout)
    folder.traces.mkdir()
    (folder.traces / "7.jsonl").write_bytes(to_json(Trace("Who?", Answer("me"))) + b"\n")
    return folder.path


def test_scores_are_added_up_by_their_step(run: Path) -> None:
    found = read_learning(run)
    assert {step: (one.count, one.mean("score")) for step, one in found.train.items()} == {1: (2, 0.25), 2: (2, 0.75)}
    assert [one.mean("score") for one in found.held.values()] == [0.2, 0.6]
    assert found.metrics[2]["actor/kl_loss"] == 0.02
    assert ("training", "score", "0.250", "0.750", "+0.500") in summary(found).rows
    assert ("held out", "score", "0.200", "0.600", "+0.400") in summary(found).rows


def test_held_out_rows_are_compared_one_by_one(run: Path) -> None:
    def held(step: int, source: str, index: int, score: float) -> dict[str, Any]:
        return {**scored(step, score, split="eval"), "source": source, "index": index}

    before = [held(0, "a", 0, 0.0), held(0, "a", 1, 0.5), held(0, "b", 0, 1.0)]
    after = [held(4, "a", 0, 1.0), held(4, "a", 1, 0.5), held(4, "b", 0, 1.0), held(4, "b", 1, 1.0)]
    lines(run / "scores" / "8.jsonl", *before, held(2, "a", 0, 0.2), *after)
    found = read_learning(run)
    assert [row[:4] for row in held_out(found).rows] == [
        ("a", "2", "0.250", "0.750"),
        ("b", "1", "1.000", "1.000"),
        ("all", "3", "0.500", "0.833"),
    ]
    assert held_out(found).rows[1][4:] == ("+0.000 [+0.000, +0.000]", "1.000")
    assert "Held-out questions" in page(found)


def test_outside_failures_count_in_no_mean_and_are_shown(run: Path) -> None:
    failed = {**scored(1, 0.0, "service"), "waited": 60.0, "retries": 3.0}
    late = {**scored(1, 1.0), "waited": 12.0, "retries": 1.0}
    lines(run / "scores" / "8.jsonl", failed, late)
    found = read_learning(run)
    assert (found.train[2].count, found.train[2].outside, found.train[2].mean("score")) == (2, 1, 1.0)
    rows = {row[1]: row for row in summary(found).rows if row[0] == "training"}
    assert rows["share of rewards that failed outside"][2:4] == ("0.000", "0.333")
    assert rows["share of rewards that were tried again"][2:4] == ("0.000", "0.667")
    assert rows["seconds waited for frozen agents and retriever"][2:4] == ("0.000", "24.000")
    assert "1 of 5 rewards failed for a reason outside the completion (20.0 %)" in page(found)


def test_staleness_is_shown_where_rollouts_ran_ahead(run: Path) -> None:
    key = "training/off_policy/trajectory_staleness/mean"
    lines(run / "metrics" / "3.jsonl", {"step": 1, "data": {key: 0.5}}, {"step": 2, "data": {key: 1.5}})
    found = read_learning(run)
    name = "staleness: updates since a completion's weights, mean"
    assert ("training", name, "0.500", "1.500", "+1.000") in summary(found).rows
    assert "staleness" in page(found)


def test_groups_whose_rewards_differ_are_counted(run: Path) -> None:
    def drawn(step: int, index: int, score: float) -> dict[str, Any]:
        return {**scored(step, score), "source": "a", "index": index}

    first = [drawn(0, 0, 1.0), drawn(0, 0, 0.0), drawn(0, 1, 1.0), drawn(0, 1, 1.0)]
    lines(run / "scores" / "7.jsonl", *first, drawn(1, 2, 0.5), drawn(1, 2, 0.5))
    assert ("training", "share of groups that teach", "0.500", "0.000", "-0.500") in summary(read_learning(run)).rows


def test_the_page_shows_what_is_to_be_watched(run: Path) -> None:
    text = write_report(run).read_text()
    for said in ("Mean reward", "Its parts", "bad_form", "KL to the start", "tokens of a completion", "trace show"):
        assert said in text, said
    assert "&lt;answer&gt;Oslo&lt;/answer&gt;" in text  # what a model wrote is text, not markup
    assert "<script" not in text


def test_a_line_that_is_being_written_is_not_read(run: Path) -> None:
    with (run / "scores" / "7.jsonl").open("a") as file:
        file.write('{"step": 1, "sco')
    assert sum(one.count for one in read_learning(run).train.values()) == 4


def test_a_run_without_scores_has_a_page_too(run: Path) -> None:
    for path in (run / "scores").iterdir():
        path.unlink()
    assert "KL to the start" in page(read_learning(run))


def test_the_command(run: Path) -> None:
    from pyrag.cli.app import app

    done = CliRunner().invoke(app, ["train", "report", str(run)])
    assert done.exit_code == 0, done.output
    assert "report.html" in done.output
    rows = json.loads(CliRunner().invoke(app, ["train", "report", str(run), "--json"]).output)
    assert rows[0] == {
        "completions": "training", "mean of": "score", "at first": "0.250", "in the end": "0.750", "change": "+0.500",
    }  # fmt: skip


def test_traces_are_viewable_like_any(run: Path) -> None:
    from pyrag.cli.app import app

    done = CliRunner().invoke(app, ["trace", "show", str(run / "traces" / "7.jsonl")])
    assert done.exit_code == 0
    assert "Who?" in done.output


def test_what_is_no_run_is_said(run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a run folder"):
        read_learning(tmp_path)
    for name in ("scores", "metrics"):
        for path in (run / name).iterdir():
            path.unlink()
    with pytest.raises(DataError, match="no finished step yet"):
        read_learning(run)


def test_the_embedded_readers_report_shows_draws_and_evaluation(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    save_config(make_config({"agent": "answer", "model": "embedded"}), folder.config)
    steps = [{"step": step, "data": {"critic/score/mean": reward}} for step, reward in ((1, 0.25), (2, 0.5))]
    lines(folder.metrics / "1.jsonl", *steps)
    figures = {"before": {"em": 0.5, "rows": 8.0}, "after": {"em": 0.75, "rows": 8.0}}
    folder.evaluation.write_text(json.dumps(figures))
    learning = read_learning(folder.path)
    assert list(summary(learning).rows) == [
        ("training", "mean reward", "0.250", "0.500", "+0.250"),
        ("held out", "em", "0.500", "0.750", "+0.250"),
    ]
    text = page(learning)
    assert "mean reward" in text
    assert "Completions of the last step" not in text
