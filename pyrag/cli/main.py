"""Entry point of the command line, which turns errors into messages and exit codes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, NoReturn

from pyrag.cli.views.terminal import ReaderGone, one_line, safe_streams

INTERRUPTED = 130  # what shells use for a process that ended by Ctrl-C
_SIMILAR = re.compile(r"\.? \(?(?:Did you mean|Possible options:) ")  # as typer and click begin a suggestion
_NAME = re.compile(r"[\w'-]+")
_MIN_SIMILARITY = 0.6  # of two names without their dashes, from 0 to 1
_EXTRA = re.compile(r"got unexpected extra arguments?(?:\(s\))? \((.*)\)$")
_INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h


def main() -> None:
    """Run `pyrag` with the arguments of the command line."""
    guarded(_run)


def _run() -> None:
    import typer

    from pyrag.cli.app import app

    try:
        sys.exit(app(prog_name="pyrag", standalone_mode=False))
    except typer.Abort:  # stdin ended at a prompt
        sys.exit(1)
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer has no common class for its usage errors
            raise
        _stop_usage(error)


def _stop_usage(error: Any) -> NoReturn:
    """Report a usage error in one sentence and exit; a group without a command shows its help."""
    message = error.format_message()
    if not message.startswith("Usage: "):
        text, _, similar = _SIMILAR.sub("\n", one_line(message)).partition("\n")
        text = text[:1].lower() + text[1:].rstrip(".")
        names = _most_similar(text, _NAME.findall(similar))
        text = _EXTRA.sub(r"unexpected arguments (\1), put a text with spaces into quotes", text)
        suggestion = f", did you mean {' or '.join(names)}" if names else ""
        message = f"pyrag: {text}{suggestion}: see {error.ctx.command_path if error.ctx else 'pyrag'} -h"
    print(message, file=sys.stderr)
    sys.exit(error.exit_code)


def _most_similar(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that are the most similar to the unknown one, which a message ends with.

    Typer suggests up to three names, and counts the dashes of options as similar.
    """
    unknown = "".join(_NAME.findall(text)[-1:]).strip("'-")
    ratios = {name: SequenceMatcher(None, unknown, name.strip("'-")).ratio() for name in names}
    best = max([_MIN_SIMILARITY, *ratios.values()])
    return [name for name, ratio in ratios.items() if ratio >= best]


def guarded(command: Callable[[], None]) -> None:
    """Run a command; turn errors into one sentence and an exit code, or a traceback with `--debug`.

    A closed pipe (`pyrag … | head`) is not an error.
    """
    from pyrag._io.redaction import without_secrets
    from pyrag.errors import PyRAGError

    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    with safe_streams():
        try:
            command()
        except ReaderGone:
            raise
        except SystemExit as ended:
            if ended.code == INTERRUPTED:  # typer exits with this code on Ctrl-C, without a message
                _stop("interrupted; what was finished before is kept", INTERRUPTED, debug)
            raise
        except KeyboardInterrupt:
            _stop("interrupted", INTERRUPTED, debug)
        except PyRAGError as error:
            _stop(str(error), error.exit_code, debug)
        except OSError as error:
            what = f"cannot read or write {error.filename}" if error.filename else "I/O error"
            _stop(f"{what}: {error.strerror or error}", 1, debug)
        except Exception as error:
            what = one_line(without_secrets(f"{type(error).__name__}: {error}"))[:300]
            _stop(f"internal error ({what}): please report it with the output of --debug", _INTERNAL_ERROR, debug)


def _stop(message: str, code: int, debug: bool) -> None:
    if debug:
        raise
    print(f"pyrag: {one_line(message)}", file=sys.stderr)
    sys.exit(code)
