"""Safe output of untrusted texts to a terminal: names, passages and replies may contain control characters.

All output goes through `printable`: plain output by `SafeStream`, which replaces stdout and stderr, and the views of
rich by `SafeConsole`, which lets only its own colours and cursor movements through.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TextIO

# Control characters except tab and newline, characters that change the direction of writing, and line separators that
# only some programs recognise.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ESCAPED = "pyrag.escaped"


class ReaderGone(SystemExit):
    """Exit with code 0 and without a message, because the reader of the output is gone."""

    def __init__(self) -> None:
        super().__init__(0)


def printable(text: str) -> str:
    """Return a text without characters that control a terminal."""
    return _UNSAFE.sub("", text)


def one_line(text: str) -> str:
    """Return a printable text on one line, so that no part of it looks like a separate message."""
    return printable(" ".join(text.split()))


def json_line(text: str) -> str:
    """Return JSON text in which the characters that `printable` removes are escaped."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class SafeStream:
    """Text stream that writes only printable characters and gives no access to its bytes."""

    def __init__(self, stream: TextIO, *, with_bars: bool = False) -> None:
        """Wrap a stream.

        Args:
            stream: Stream to write to.
            with_bars: Whether to keep a leading carriage return, for progress bars.
        """
        self.raw = stream
        self._with_bars = with_bars

    def write(self, text: str) -> int:
        start = "\r" if self._with_bars and text.startswith("\r") else ""
        try:
            self.raw.write(start + printable(text))
        except BrokenPipeError:
            raise ReaderGone from None
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self.raw.flush()
        except BrokenPipeError:
            raise ReaderGone from None

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "detach"):
            raise AttributeError(name)
        return getattr(self.raw, name)


def raw_stream(stream: Any) -> TextIO:
    """Return the stream behind the safe streams, for our own cursor movements."""
    while True:
        inner = getattr(stream, "raw" if isinstance(stream, SafeStream) else "rich_proxied_file", None)
        if inner is None:
            raw: TextIO = stream
            return raw
        stream = inner


@contextmanager
def safe_streams() -> Iterator[None]:
    """Replace stdout and stderr with safe streams inside the block.

    Closed streams and a closed pipe do not make the command fail. Characters that the locale cannot show are written as
    JSON escapes, so that `--json` stays JSON. Under the C locale, stdin is read as UTF-8.
    """
    codecs.register_error(_ESCAPED, _as_json_would)
    _open_closed_streams()
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPED)
    if hasattr(sys.stdin, "reconfigure") and sys.stdin.errors == "surrogateescape":
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    sys.stdout, sys.stderr = SafeStream(raw_stream(before[0])), SafeStream(raw_stream(before[1]), with_bars=True)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except ReaderGone:
        _write_nowhere(before)
        raise
    finally:
        sys.stdout, sys.stderr = before


def _open_closed_streams() -> None:
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _write_nowhere(streams: Iterable[IO[str]]) -> None:
    """Discard the remaining contents of buffers, which would cause an error message at exit."""
    for stream in streams:
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _as_json_would(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end
