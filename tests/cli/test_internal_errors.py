"""Internal errors: one sentence for the user, and the traceback with --debug."""

from __future__ import annotations

import sys

import pytest

from pyrag.cli import app as commands
from pyrag.cli.main import main


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
