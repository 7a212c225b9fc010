"""`pyrag bench` as a user runs it: a run and what it leaves, its report, examples of errors, refusals."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pyrag.cli.bench import benchmark

from .conftest import Run

SMALL = ("bench", "--sets", "mini-popqa,mini-musique", "--method", "pyrag,vanilla", "--limit", "4", "--out", "run")


def test_a_run_leaves_everything_and_its_table(pyrag: Run, tmp_path: Path) -> None:
    done = pyrag(*SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "no progress bar where there is no terminal"
    rows = [
        line.split("|")[1:4]
        for line in done.stdout.splitlines()
        if re.match(r"\| (mini-popqa|mini-musique) .* 4 \|", line)
    ]
    assert [[cell.strip() for cell in row] for row in rows[:4]] == [
        ["mini-popqa", "pyrag", "4"],
        ["mini-popqa", "vanilla", "4"],
        ["mini-musique", "pyrag", "4"],
        ["mini-musique", "vanilla", "4"],
    ]
    run = tmp_path / "run"
    config = json.loads((run / "config.json").read_bytes())
    assert config["run"]["limit"] == 4
    assert config["run"]["settings"]["llm"] == "embedded"
    assert set(config["run"]["questions"]) == {"mini-popqa", "mini-musique"}
    assert {"commit", "versions", "host", "python"} <= config["sessions"][0].keys()
    summary = json.loads((run / "summary.json").read_bytes())
    assert (summary["questions"], summary["expected"], summary["failed"]) == (16, 16, 0)
    assert len((run / "results.jsonl").read_bytes().splitlines()) == 16
    assert sorted(path.name for path in (run / "traces").iterdir()) == [
        "mini-musique.pyrag.jsonl", "mini-musique.vanilla.jsonl", "mini-popqa.pyrag.jsonl", "mini-popqa.vanilla.jsonl",
    ]  # fmt: skip
    again = pyrag(*SMALL, "--json")
    assert json.loads(again.stdout) == summary, "nothing was asked again"
    assert pyrag("trace", "show", "run/traces/mini-popqa.vanilla.jsonl").returncode == 0
    other = pyrag(*SMALL, "--topk", "3")
    assert other.returncode == 2
    assert "run holds a run with topk 5, not 3: choose another folder with --out" in other.stderr


def test_runs_of_the_same_second_get_different_folders(tmp_path: Path) -> None:
    for name in ("a", "a-2", "a-3"):
        folder = benchmark._new_folder(tmp_path / "a")
        assert folder == tmp_path / name
        folder.mkdir()


@pytest.mark.slow
def test_the_answers_do_not_depend_on_who_gives_them(pyrag: Run, tmp_path: Path) -> None:
    ways = {"one": ("--concurrency", "1"), "many": ("--concurrency", "8"), "workers": ("--workers", "2")}
    found = []
    for name, more in ways.items():
        done = pyrag("bench", "--sets", "mini-hotpotqa", "--method", "pyrag", "--limit", "5", "--out", name, *more)
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in (tmp_path / name / "results.jsonl").read_bytes().splitlines()]
        found.append(sorted((row["id"], row["answer"], row["calls"], row["em"]) for row in rows))
    assert found[0] == found[1] == found[2]


class Page(HTMLParser):
    """Collect what a page would fetch or run, the targets of its links, and its plots."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = [value or "" for name, value in attrs if name in ("src", "href", "data", "srcset")]
        (self.links if tag == "a" else self.fetched).extend(found)
        self.anchors |= {value or "" for name, value in attrs if name == "id"}


@pytest.mark.slow
def test_a_report_is_one_page_that_fetches_nothing(pyrag: Run, tmp_path: Path) -> None:
    assert pyrag(*SMALL).returncode == 0
    assert pyrag(*SMALL[:-1], "second").returncode == 0
    (tmp_path / "file").touch()
    assert "file is a file: choose a folder" in pyrag("bench", "report", "run", "--out", "file").stderr
    done = pyrag("bench", "report", "run", "second", "--out", "report")
    assert done.stdout.split() == ["report/report.md", "report/report.html"], done.stderr
    text = (tmp_path / "report" / "report.md").read_text()
    for heading in ("What ran", "Scores", "Gold passages per hop"):
        assert f"## {heading}" in text
    assert "papers" not in text, "made-up questions stand beside no paper's figures"
    agents = text.partition("## What the agents did")[2]
    assert "| mini-popqa · second:pyrag " in agents.partition("## What recovery brought")[0]
    for label in ("run:pyrag", "second:pyrag", "run:vanilla", "second:vanilla"):
        assert f"| {label} " in text
    html = (tmp_path / "report" / "report.html").read_text()
    page = Page()
    page.feed(html)
    assert page.fetched == []
    assert {"run", "second"} == {link.split("/")[1] for link in page.links if not link.startswith("#")}
    anchors = {link[1:] for link in page.links if link.startswith("#")}
    assert anchors
    assert anchors <= page.anchors
    for link in page.links:
        assert link.startswith("#") or (tmp_path / "report" / link).is_file()
    assert page.tags.count("details") == len(re.findall("gold:</b>", html)) > 0
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
    assert not {"script", "link", "iframe", "img"} & set(page.tags)
    assert "url(" not in html
    plots = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(plots) >= 6
    for plot in plots:
        ET.fromstring(plot)


def test_errors_are_shown_with_their_traces(pyrag: Run) -> None:
    assert (
        pyrag("bench", "--sets", "mini-musique", "--method", "vanilla", "--limit", "6", "--out", "run").returncode == 0
    )
    shown = pyrag("bench", "show", "run", "--errors", "--limit", "2")
    assert shown.returncode == 0, shown.stderr
    kinds = re.findall(r"^(.+): (\d+) wrong answers$", shown.stdout, re.MULTILINE)
    assert kinds
    counts = [int(count) for _, count in kinds]
    assert counts == sorted(counts, reverse=True)
    assert "gold: " in shown.stdout
    assert "final_answer = answer(question, docs)" in shown.stdout
    rows = pyrag("bench", "show", "run", "--errors", "--kind", "under_decomposition", "--json", "--limit", "1").stdout
    assert all(json.loads(row)["failure"]["kind"] == "under_decomposition" for row in rows.splitlines())
    wrong = pyrag("bench", "show", "run", "--errors", "--kind", "misreadin")
    assert wrong.returncode == 2
    assert "did you mean 'misreading'?" in wrong.stderr


def test_a_question_without_gold_answer_is_named_before_anything_runs(pyrag: Run, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    (folder / "questions.jsonl").write_text('{"id": "1", "question": "Who?", "answers": []}\n')
    done = pyrag("bench", "--data", "data", "--sets", "mine", "--out", "run")
    assert done.returncode == 2
    assert done.stderr.startswith("pyrag: data/mine/questions.jsonl line 1 has no gold answer: add one")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sets", "popq"), "no bundled set 'popq': did you mean 'mini-popqa'?"),
        (("--method", "pyragg"), "no method 'pyragg': did you mean 'pyrag'?"),
        (("--data", "nowhere"), "nowhere holds none of the sets"),
        (("--sets", "mini-popqa", "--method", "pyrag,direct"), "direct needs a language model"),
    ],
)
def test_what_cannot_run_is_refused_with_the_cure(
    pyrag: Run, arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = pyrag("bench", *arguments, "--out", "run")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists(), "nothing was asked before"
