"""`pyrag explain`: text, JSON, programs in files, what happened, and refusals of `ask` and `run`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run

QUESTION = "Who is older, Jed Hoyer or John William Henry II?"
FILMS = (
    'films = [doc for doc in documents() if doc.title.endswith("film)")]\n'
    'rows = each(films, "Who directed the film {title}?")\nfinal_answer = [row.value for row in rows][:n]\n'
)


def test_question_is_shown_with_its_lines(pyrag: Run) -> None:
    done = pyrag("explain", QUESTION)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'retrieve("Jed Hoyer born"' in done.stdout
    assert "after line 1" in done.stdout
    assert "low / expected / high" in done.stdout
    assert "# 1 retrieval;" in done.stdout
    shown = json.loads(pyrag("explain", QUESTION, "--json", "--analyze").stdout)
    assert shown["happened"]["answer"] == "John William Henry II"
    assert shown["retrievals"]["low"] <= shown["happened"]["retrievals"] <= shown["retrievals"]["high"]


def test_program_in_a_file_takes_inputs_and_traces(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "films.py").write_text(FILMS)
    pyrag("ask", QUESTION, "--trace", "t.jsonl")
    done = pyrag("explain", "films.py", "--input", "n=2", "--json", "--traces", "t.jsonl")
    shown = json.loads(done.stdout)
    assert [(line["line"], line["items"]) for line in shown["lines"]] == [(1, 349), (2, 17)]
    assert any("earlier answers" in sentence for sentence in shown["basis"])
    assert "17 items" in pyrag("explain", "-", "--input", "n=2", stdin=FILMS).stdout


def test_what_cannot_be_explained_ends_with_a_code(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("final_answer = anser(1)")
    done = pyrag("explain", "wrong.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pyrag: wrong.py, line 1: ")
    assert "Did you mean answer?" in done.stderr
    assert pyrag("explain", "-", stdin="x = people[0]\nfinal_answer = x").stderr.startswith("pyrag: <stdin>, line 1: ")
    for source in ("final_answer = (", "x = 1", "What is it?"):  # a file is never a question
        done = pyrag("explain", "-", "--json", stdin=source)
        assert (done.returncode, json.loads(done.stdout)["program"] in ("", source)) == (1, True)
    for arguments in (("explain", "none.py"), ("explain", " "), ("explain", QUESTION, "--method", "vanilla")):
        done = pyrag(*arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_limits_refuse_before_the_first_call(pyrag: Run, tmp_path: Path) -> None:
    (tmp_path / "films.py").write_text(FILMS)
    done = pyrag("run", "films.py", "--input", "n=2", "--max-calls", "16")
    assert (done.returncode, done.stdout) == (1, "")
    assert "it needs at least 17 model calls" in done.stderr
    assert pyrag("run", "films.py", "--input", "n=2", "--max-calls", "40").returncode == 0


def test_each_passage_of_a_small_index_is_sampled_once(pyrag: Run, tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / f"note{number}.txt").write_text(f"The mill number {number} was founded by Ada Berg.")
    assert pyrag("index", *(f"note{number}.txt" for number in range(7)), "--out", "ix").returncode == 0
    done = pyrag("explain", "-", "--index", "ix", stdin="final_answer = answer('Who?', retrieve('mill'))")
    assert "filled with 7 passages of the corpus" in done.stdout
