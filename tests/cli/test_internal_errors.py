"""Internal errors: one sentence for the user, and the traceback with --debug."""

from __future__ import annotations

import sys

import pytest

from pyrag.cli import app as commands
from pyrag.cli.main import main

from .conftest import Run


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def app(*, prog_name: str, standalone_mode: bool) -> None:
        raise KeyError("a\n  part")

    monkeypatch.setattr(commands, "app", app)


@pytest.mark.usefixtures("broken")
def test_an_internal_error_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["pyrag", "ask"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 70
    shown = capsys.readouterr().err
    assert shown.startswith("pyrag: internal error (KeyError:")
    assert shown.count("\n") == 1
    assert "--debug" in shown


@pytest.mark.usefixtures("broken")
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pyrag", "ask", "--debug"])
    with pytest.raises(KeyError):
        main()


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "q", "--index", "~no-such-user/ix"),
        ("ask", "q", "--retriever", "~no-such-user/ix"),
        ("ask", "q", "--tools", "sql:~no-such-user/a.db"),
        ("ask", "q", "--tools", "table:~no-such-user/a"),
        ("serve", "--index", "docs=~no-such-user/ix", "--port", "0"),
        ("serve-retriever", "~no-such-user/ix"),
    ],
)
def test_a_path_of_no_user_is_named_in_one_line(pyrag: Run, arguments: tuple[str, ...]) -> None:
    done = pyrag(*arguments)
    assert done.returncode not in (0, 70)
    (line,) = done.stderr.splitlines()
    assert "~no-such-user/" in line
    assert "internal error" not in line
