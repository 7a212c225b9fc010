"""The command line: thin commands over `pyrag.PyRAG`, and the one place where errors become messages."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable

INTERRUPTED = 130  # what shells use for a process that ended by Ctrl-C
_OWN_MISTAKE = 70  # EX_SOFTWARE of sysexits.h
_ESCAPED = "pyrag.escaped"


def main() -> None:
    """Entry point of `pyrag`."""
    guarded(_run)


def _run() -> None:
    from pyrag.cli.app import app

    app(standalone_mode=True)


def guarded(command: Callable[[], None]) -> None:
    """Runs a command. Every deliberate error ends here, as one sentence and an exit code; `--debug` shows where it
    comes from."""
    from pyrag.errors import PyRAGError

    _make_streams_safe()
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        command()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # typer turns Ctrl-C into this, without a word
            _stop("interrupted; what was finished before is kept", INTERRUPTED, debug)
        raise
    except KeyboardInterrupt:
        _stop("interrupted", INTERRUPTED, debug)
    except BrokenPipeError:
        # The reader of our output has gone (`pyrag … | head`): nothing is left to say.
        sys.stderr.close()
        sys.exit(0)
    except PyRAGError as error:
        _stop(str(error), error.exit_code, debug)
    except OSError as error:
        where = f" {error.filename}:" if error.filename else ""
        _stop(f"the system refused:{where} {error.strerror or error}", 1, debug)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        _stop(f"a mistake of pyrag's own ({what}): please report it with what --debug shows", _OWN_MISTAKE, debug)


def _make_streams_safe() -> None:
    """No closed stream and no locale may end a command.

    What the locale cannot show is written as JSON writes it, so that `--json` stays JSON. Where Python takes what it
    reads as it comes (the C locale), it is read as UTF-8.
    """
    codecs.register_error(_ESCAPED, _as_json_would)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
        elif hasattr(stream, "reconfigure") and mode == "w":
            stream.reconfigure(errors=_ESCAPED)
        elif hasattr(stream, "reconfigure") and stream.errors == "surrogateescape":
            stream.reconfigure(encoding="utf-8", errors="strict")


def _as_json_would(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end


def _stop(message: str, code: int, debug: bool) -> None:
    if debug:
        raise
    from pyrag.cli.output import printable

    print(f"pyrag: {printable(message)}", file=sys.stderr)
    sys.exit(code)
