"""Versions of prompts: whole folders, of which one is current."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyrag_prompts
from pyrag.agents.prompts import load_prompts
from pyrag.cli.evolve.learn import show_difference
from pyrag.errors import UsageError
from pyrag.evolve.prompt_versions import PromptVersions
from pyrag.methods.hera.coach.protocol import Guidance

LEARNED = Guidance(("Keep the name {{exactly}}.", "Ask for one thing."), ("Be short.",))


@pytest.fixture
def versions(tmp_path: Path) -> PromptVersions:
    versions = PromptVersions(tmp_path)
    versions.begin(None)
    versions.select(0)
    return versions


def files_of(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.suffix == ".txt"}


def test_a_version_differs_in_what_one_agent_has_learned(versions: PromptVersions) -> None:
    assert versions.add(0, "query_rewriter", LEARNED) == 1
    before, after = files_of(versions.path(0)), files_of(versions.path(1))
    assert {name for name in after if before.get(name) != after[name]} == {
        "methods/hera.query_rewriter.rules.txt",
        "methods/hera.query_rewriter.principles.txt",
    }
    assert versions.guidance(1, "query_rewriter") == LEARNED
    assert versions.guidance(1, "reflect") == versions.guidance(0, "query_rewriter") == Guidance()
    told = versions.prompts(1).notice("hera.query_rewriter.system")
    assert all(line in told for line in LEARNED.lines)
    in_memory = load_prompts().taught("hera.query_rewriter", LEARNED.rules, LEARNED.principles)
    assert told == in_memory.notice("hera.query_rewriter.system")


def test_the_current_version_is_what_the_link_shows(versions: PromptVersions, tmp_path: Path) -> None:
    versions.select(versions.add(0, "reflect", LEARNED))
    assert versions.current() == 1
    assert load_prompts(tmp_path / "prompts").notice("hera.reflect.system").endswith("- Be short.")
    versions.select(0)
    assert "Be short" not in load_prompts(tmp_path / "prompts").notice("hera.reflect.system")


def test_of_a_users_folder_only_the_templates_are_taken(tmp_path: Path) -> None:
    (folder := tmp_path / "own" / "methods").mkdir(parents=True)
    for name, text in files_of(Path(pyrag_prompts.__path__[0])).items():
        if name.endswith(".txt") and name.partition("/")[0] not in pyrag_prompts.PROMPT_SETS:
            (tmp_path / "own" / name).write_text(text, encoding="utf-8")
    (folder / "notes.txt").write_bytes(b"Gr\xfc\xdfe")  # not UTF-8
    (folder / "paper.pdf").touch()
    (run := tmp_path / "own" / "run").mkdir()
    versions = PromptVersions(run)
    versions.begin(str(tmp_path / "own"))
    assert {one.name for one in versions.path(0).iterdir() if one.is_dir()} == {"methods"}
    assert not (versions.path(0) / "methods" / "paper.pdf").exists()
    versions.add(0, "reflect", LEARNED)
    (versions.path(1) / "methods" / "notes.txt").unlink()
    assert "-Gr\ufffd\ufffde" in versions.difference(0, 1)


@pytest.mark.parametrize("name", ["fast", "paper"])
def test_a_packaged_set_is_completed_by_the_defaults(tmp_path: Path, name: str) -> None:
    versions = PromptVersions(tmp_path)
    versions.begin(name)
    prompts, own, default = versions.prompts(0), load_prompts(name), load_prompts()
    assert prompts.render("joint.system") == own.render("joint.system")
    assert prompts.notice("hera.reflect.system") == default.notice("hera.reflect.system")


def test_a_run_that_was_copied_without_its_links_says_so(versions: PromptVersions, tmp_path: Path) -> None:
    (tmp_path / "prompts").unlink()
    (tmp_path / "prompts").mkdir()
    with pytest.raises(UsageError, match="prompts is a folder, not the link to a version: remove it"):
        versions.select(0)
    assert not list(tmp_path.glob(".prompts*"))
    (tmp_path / "prompts").rmdir()
    versions.select(0)
    assert versions.current() == 0


def test_differences_are_those_of_the_files(versions: PromptVersions) -> None:
    versions.add(0, "reflect", LEARNED)
    versions.add(1, "reflect", Guidance(("Ask for one thing.",)))
    diff = versions.difference(0, 1)
    assert "+++ 0001/methods/hera.reflect.rules.txt" in diff
    assert "+- Ask for one thing." in diff
    assert "-- Keep the name {{exactly}}." in versions.difference(1, 2)
    assert versions.difference(1, 1) == ""


def test_diff_shows_the_last_change_by_default(
    versions: PromptVersions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    versions.add(0, "reflect", Guidance(("Ask for one thing.",)))
    versions.select(versions.add(1, "reflect", Guidance(("Ask for one thing.", "Be short."))))
    show_difference(tmp_path, None, None)
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("+-")] == ["+- Be short."]
    show_difference(tmp_path, 0, None)
    assert "+- Ask for one thing." in capsys.readouterr().out
    show_difference(tmp_path, 2, 2)
    assert capsys.readouterr().out == "versions 2 and 2 are the same\n"


def test_what_an_unfinished_step_made_is_forgotten(versions: PromptVersions) -> None:
    versions.add(0, "reflect", LEARNED)
    versions.add(1, "reflect", LEARNED)
    versions.forget_after(1)
    assert versions.numbers() == [0, 1]
    assert versions.add(1, "conclude", LEARNED) == 2


def test_versions_that_are_not_there(versions: PromptVersions, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no version 7 of the prompts: it has 0"):
        versions.select(7)
    with pytest.raises(UsageError, match="is not a run of pyrag evolve"):
        PromptVersions(tmp_path / "elsewhere").current()
