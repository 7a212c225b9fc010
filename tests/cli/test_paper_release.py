"""`--prompts paper` and `--profile paper-release` on the command line and in Python, over a scripted model."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import pyrag_prompts
from pyrag.api import PyRAG
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
QUESTION = "Where was the director of The Seventh Seal born?"
PROGRAM = """\
docs1 = retrieve("Who directed The Seventh Seal?")
director = answer("Who directed The Seventh Seal?", docs1)
docs2 = retrieve(f"Where was {director} born?")
place = answer(f"Where was {director} born?", docs2)
final_answer = answer(f"Given: {director} was born in {place}. Answer the question: {question}")
""".replace("{question}", QUESTION)
THOUGHT = "<redacted_thinking>Doc [1] says so.</redacted_thinking>\n"
# An entry fits only where the prompt of the set is sent.
SCRIPT = [
    {"reply": '["Who directed The Seventh Seal?", "Where was he born?"]', "match": "Output ONLY the JSON list"},
    {"reply": PROGRAM, "match": "Sub-queries to resolve:"},
    {"reply": f"{THOUGHT}<answer> Ingmar Bergman </answer>", "match": "Evidence citation rule"},
    {"reply": f"{THOUGHT}<answer> Uppsala </answer>", "match": "Evidence citation rule"},
    {"reply": f"{THOUGHT}<answer> Uppsala </answer>", "match": "No retrieved documents."},
]


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT), encoding="utf-8")
    return f"scripted:{path}"


@pytest.mark.parametrize("options", [("--prompts", "paper"), ("--profile", "paper-release")])
def test_ask_sends_the_prompts_of_the_set(pyrag: Run, script: str, options: tuple[str, str]) -> None:
    done = pyrag("ask", "--json", "--no-stream", *options, "--llm", script, QUESTION)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["answer"], shown["usage"]["model_calls"]) == ("Uppsala", 5)


def test_bench_takes_the_profile(pyrag: Run, script: str, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    row = {"id": "1", "question": QUESTION, "answers": ["Uppsala"]}
    (folder / "questions.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    corpus = tmp_path / "corpus.jsonl"
    passage = {"id": "1", "title": "The Seventh Seal", "text": "Ingmar Bergman of Uppsala directed it."}
    corpus.write_text(json.dumps(passage) + "\n", encoding="utf-8")
    out = tmp_path / "RUN"
    arguments = ("--data", str(tmp_path / "data"), "--sets", "toy", "--out", str(out), "--corpus", str(corpus))
    done = pyrag("bench", "--profile", "paper-release", "--llm", script, *arguments)
    assert done.returncode == 0, done.stderr
    assert "paper-release" in "".join(path.read_text(encoding="utf-8") for path in out.glob("*.json*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prompts", "papers"), "no prompts folder papers and no packaged set of that name (small, fast, paper)"),
        (("--profile", "release"), "profile must be one of paper, fast, corpus, paper-release, not 'release'"),
    ],
)
def test_an_unknown_name_lists_the_names(pyrag: Run, script: str, options: tuple[str, str], message: str) -> None:
    done = pyrag("ask", *options, "--llm", script, QUESTION)
    assert done.returncode == 2
    assert message in done.stderr


def test_python_takes_both(script: str) -> None:
    with PyRAG(profile="paper-release", llm=script, stream=False) as rag:
        trace = rag.ask(QUESTION)
    assert (trace.answer.text, trace.config["prompts"]) == ("Uppsala", "paper")


def test_the_wheel_holds_every_set() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    folder = Path(pyrag_prompts.__file__).parent
    assert str(folder.relative_to(ROOT)) in wheel["wheel"]["packages"]
    assert not {"exclude", "include"} & wheel["wheel"].keys()
    for name in pyrag_prompts.PROMPT_SETS:
        assert list((folder / name).rglob("*.txt")), name
