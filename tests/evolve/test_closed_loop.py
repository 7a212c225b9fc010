"""`pyrag evolve` as a user runs it: the command line, in a process of its own, over a model server on loopback."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyrag.evolve.step_records import StepRecord, read
from pyrag.methods.hera.experience.library import Library
from tests.cli.conftest import COMMAND, Run, environment, pyrag, pyrag_in
from tests.evolve.town import HARMFUL, INSIGHT, RULE, Town, answer, question, write
from tests.server.conftest import serving

__all__ = ["pyrag"]

Files = tuple[str, str]  # train, validation
COMPARISON, BRIDGE = "Which town is larger, East or West of number 99?", "Who is the mayor of the town of number 98?"


@pytest.fixture
def town() -> Iterator[Town]:
    with serving(Town()) as town:
        assert isinstance(town, Town)
        yield town


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return write_files(tmp_path)


def write_files(folder: Path) -> Files:
    train = [question("comparison", 1), question("bridge", 2), question("comparison", 3), question("odd", 4)]
    held_out = [question(kind, number) for kind in ("comparison", "bridge") for number in (50, 51)]
    return str(write(folder / "train.jsonl", *train)), str(write(folder / "val.jsonl", *held_out))


@dataclass(frozen=True)
class Learned:
    """A whole run in `folder`/run, and the town that it learned from; `bodies` is what it had asked by then."""

    folder: Path
    town: Town
    summary: dict[str, Any]
    bodies: list[str]

    @property
    def records(self) -> list[StepRecord]:
        return records_of(self.folder / "run")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learned]:
    folder = tmp_path_factory.mktemp("learned")
    with serving(Town()) as town:
        assert isinstance(town, Town)
        summary = evolved(pyrag_in(folder), town, write_files(folder), "run")
        yield Learned(folder, town, summary, [json.dumps(body, sort_keys=True) for body in town.bodies])


def options(town: Town, files: Files, out: str, *more: str) -> list[str]:
    llm = f"openai:tiny@{town.url}"
    return ["evolve", "--train", files[0], "--val", files[1], "--out", out, "--llm", llm, "--json", *more]


def evolved(pyrag: Run, town: Town, files: Files, out: str, *more: str) -> dict[str, Any]:
    done = pyrag(*options(town, files, out, *more))
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def records_of(run: Path) -> list[StepRecord]:
    with Library.open(run / "experience.db") as library:
        return read(library.records())


def test_what_is_learned_answers_questions_that_were_not_seen(learned: Learned) -> None:
    ask = ("ask", "--method", "hera", "--llm", f"openai:tiny@{learned.town.url}", "--quiet")
    taught = (*ask, "--prompts", "run/prompts", "--experience", "run/experience.db")
    pyrag = pyrag_in(learned.folder)
    assert [pyrag(*ask, one).stdout for one in (COMPARISON, BRIDGE)] == ["Eastville\n", "Little Hamlet\n"]
    assert pyrag(*taught, COMPARISON).stdout == f"{answer('comparison', 99)}\n"
    assert pyrag(*taught, BRIDGE).stdout == f"{answer('bridge', 98)}\n"
    assert (learned.summary["before"], learned.summary["after"]) == (0.0, 1.0)
    with Library.open(learned.folder / "run" / "experience.db") as library:
        (entry,) = library.entries()
    assert (entry.insight, entry.profile.type) == (INSIGHT, "comparison")
    assert entry.utility > 0


def test_only_the_failing_agents_prompt_changes_and_reverts(learned: Learned, tmp_path: Path) -> None:
    shutil.copytree(learned.folder / "run", tmp_path / "run", symlinks=True)
    pyrag = pyrag_in(tmp_path)
    diff = pyrag("evolve", "diff", "run").stdout
    assert re.findall(r"^\+\+\+ (.*)", diff, re.M) == ["0001/methods/hera.answer_generator.rules.txt"]
    assert f"+- {RULE}" in diff
    assert "is version 0 now" in pyrag("evolve", "revert", "run", "0").stdout
    assert not (tmp_path / "run" / "prompts" / "methods" / "hera.answer_generator.rules.txt").exists()
    (tmp_path / "config.json").write_text("{}")  # of another command's run
    for run, version, said in (("run", "9", "no version 9"), (".", "0", ". is not a run of pyrag evolve")):
        refused = pyrag("evolve", "revert", run, version)
        assert refused.returncode == 2
        assert said in refused.stderr
    assert not list(tmp_path.glob("*.db"))


def test_an_unreachable_model_leaves_nothing_to_revert(tmp_path: Path) -> None:
    rows = [{"id": str(n), "question": f"Who wrote book {n}?", "answers": ["x"]} for n in range(20)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyrag = pyrag_in(tmp_path)
    away = "openai:m@http://127.0.0.1:9/v1"
    done = pyrag("evolve", "--train", "train.jsonl", "--out", "run", "--llm", away, "--concurrency", "1")
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1, done.stderr
    assert "run the same command to continue" in done.stderr
    refused = pyrag("evolve", "revert", "run", "0")
    assert refused.returncode == 2
    assert "has not learned anything yet" in refused.stderr


def test_a_rule_that_spoils_the_validation_questions_is_refused(learned: Learned) -> None:
    assert learned.summary["refused"] == 1
    last = learned.records[-1]
    (update,) = last.updates
    assert (update.lines, update.accepted) == ((HARMFUL,), False)
    assert max(one.f1 for one in last.tried if one.kind == "variant") == 1.0  # it did help the question it was made for
    run = learned.folder / "run"
    assert HARMFUL not in (run / "prompts" / "methods" / "hera.answer_generator.rules.txt").read_text()
    report = (run / "report.html").read_text()
    assert HARMFUL in report
    assert "refused" in report


def test_mixed_groups_are_reflected_on_and_paid_once(learned: Learned) -> None:
    mixed = [one for one in learned.records if len({sample.f1 >= 0.5 for sample in one.samples}) == 2]
    assert learned.town.tasks["coach: reflect"] == len(mixed) == 1
    assert [one.reflected for one in learned.records].count(True) == 1
    assert learned.town.tasks["coach: vary"] == 3 * 5  # three first guesses failed; five axes
    assert learned.summary["calls"] == len(learned.bodies) == len(set(learned.bodies))


@pytest.mark.slow
def test_a_killed_run_ends_like_another(pyrag: Run, town: Town, files: Files, tmp_path: Path, learned: Learned) -> None:
    town.slow = 0.02
    whole = learned.summary
    for share in (0.2, 0.5, 0.8):  # of the requests that the whole run made
        child = subprocess.Popen(
            [*COMMAND, *options(town, files, "killed")], cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL
        )
        _wait_until(lambda share=share: len(town.bodies) >= share * whole["calls"], child)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert evolved(pyrag, town, files, "killed") == whole
    one, other = learned.folder / "run", tmp_path / "killed"
    assert records_of(one) == records_of(other)
    assert _tree(one / "prompts-versions") == _tree(other / "prompts-versions")
    assert (one / "prompts").readlink() == (other / "prompts").readlink()
    with Library.open(one / "experience.db") as library, Library.open(other / "experience.db") as copy:
        assert library.entries() == copy.entries()
    assert len(town.bodies) <= whole["calls"] + 3 * 8  # what was in flight at a kill is asked again


def _wait_until(reached: Any, child: subprocess.Popen[bytes]) -> None:
    for _ in range(3000):
        if reached():
            return
        assert child.poll() is None, "the run ended before it was killed"
        time.sleep(0.01)
    raise AssertionError("the run never got there")


def _tree(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*.txt")}


@pytest.mark.slow
def test_a_larger_budget_goes_on_with_a_run(
    pyrag: Run, town: Town, files: Files, tmp_path: Path, learned: Learned
) -> None:
    whole = learned.summary
    limit = whole["calls"] // 2
    stopped = evolved(pyrag, town, files, "run", "--max-calls", str(limit))
    assert len(town.bodies) <= stopped["calls"] == limit  # those under way at the end were given up
    assert f"budget of {limit} model calls is spent" in stopped["stopped"]
    assert 0 < stopped["steps"] < stopped["of"]
    assert stopped["entries"] == len(records_of(tmp_path / "run")) - 1 == 1
    assert evolved(pyrag, town, files, "run", "--max-calls", "10000") == whole
    tokens = evolved(pyrag, town, files, "other", "--max-tokens", "110")
    assert (tokens["steps"], tokens["before"]) == (0, None)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--val", "train.jsonl"), "must not be learned from"),
        (("--val", "2"), "a share between 0 and 1"),
        (("--train", "missing.jsonl"), "missing.jsonl"),
        (("--out", "full"), "choose another folder with --out"),
        (("--out", "train.jsonl"), "train.jsonl is a file: choose a folder with --out"),
        (("--llm", "parrot:x"), "there is no engine"),
        (("--prompts", "nowhere"), "there is no prompts folder nowhere"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_one_sentence(
    pyrag: Run, town: Town, files: Files, tmp_path: Path, more: tuple[str, str], said: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    done = pyrag(*options(town, files, "run", *more))
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert town.bodies == []


@pytest.mark.slow
def test_a_run_goes_on_with_its_own_options_only(pyrag: Run, town: Town, files: Files, tmp_path: Path) -> None:
    evolved(pyrag, town, files, "run", "--max-calls", "5")
    done = pyrag(*options(town, files, "run", "--group", "6"))
    assert done.returncode == 2
    assert "config.group 4, not 6" in done.stderr
    (tmp_path / "own").mkdir()
    shutil.copytree(tmp_path / "run" / "prompts", tmp_path / "own", dirs_exist_ok=True)
    (tmp_path / "own" / "methods" / "evolve.system.txt").write_text("You coach.")
    (tmp_path / "run" / "experience.db").unlink()  # what it learned was all that bound it
    evolved(pyrag, town, files, "run", "--max-calls", "10", "--group", "6", "--prompts", "own")
    assert (tmp_path / "run" / "prompts" / "methods" / "evolve.system.txt").read_text() == "You coach."


@pytest.mark.parametrize("config", ["{", "[1]", '{"run": [1], "sessions": []}', '{"run": null}'])
def test_a_damaged_config_is_one_sentence(pyrag: Run, town: Town, files: Files, tmp_path: Path, config: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text(config)
    done = pyrag(*options(town, files, "run"))
    assert done.returncode == 2
    assert "config.json is" in done.stderr
    assert "choose another folder" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_server_that_fails_stops_the_run_and_loses_nothing(pyrag: Run, town: Town, files: Files) -> None:
    town.refuse = lambda body: (400, {"error": {"message": "no"}}) if len(town.bodies) > 40 else None
    done = pyrag(*options(town, files, "run"))
    assert done.returncode == 3
    assert "run the same command to continue" in done.stderr
    town.refuse = lambda body: None
    assert evolved(pyrag, town, files, "run")["after"] == 1.0
