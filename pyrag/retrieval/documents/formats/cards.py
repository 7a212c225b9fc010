"""Calendars (`.ics`) and contacts (`.vcf`), whose long lines are folded, as lines of the form `NAME: value`."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator

from pyrag.retrieval.documents.opened_document import Opened

_FOLD = re.compile(r"\r?\n[ \t]")
_QUOTED = re.compile(r"QUOTED-PRINTABLE", re.IGNORECASE)
_FIELD = re.compile(r"([\w.-]+(?:;(?:\"[^\"]*\"|[^:\"])*)?):(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([nN,;\\])")
_BINARY = re.compile(r"ENCODING=B(?:ASE64)?\b|^data:", re.IGNORECASE)


def card_lines(file: Opened) -> Iterator[str]:
    """Yield the lines of a calendar or of contacts, and add a remark on omitted pictures to the file.

    Args:
        file: The open document.
    """
    pictures = 0
    lines = iter(_FOLD.sub("", file.whole().decode("utf-8-sig", "replace")).splitlines())
    for line in lines:
        match = _FIELD.match(line)
        name, value = (match[1], match[2]) if match else ("", line)
        if _BINARY.search(name) or _BINARY.search(value):
            pictures += 1
            continue
        if _QUOTED.search(name):
            pieces = [value]
            while pieces[-1].endswith("=") and (piece := next(lines, None)) is not None:
                pieces[-1] = pieces[-1][:-1]
                pieces.append(piece)
            value = "".join(pieces)
            value = quopri.decodestring(value.encode()).decode("utf-8", "replace")
        value = _ESCAPED.sub(lambda mark: " " if mark[1] in "nN" else mark[1], value)
        yield f"{name}: {value}\n" if name else f"{value}\n"
        if name.upper() == "END":
            yield "\n"  # between two events or contacts
    if pictures:
        file.remarks.append(f"left out: pictures ({pictures})")
