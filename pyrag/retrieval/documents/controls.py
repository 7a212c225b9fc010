"""Control characters in texts, each replaced by one character, so that words stay whole and positions stay right.

Halves of characters (lone surrogates), which some encodings and escapes allow, cannot be stored and are replaced, too.
"""

from __future__ import annotations

import re

_SOFT_HYPHEN, _HYPHEN, _NOTHING = "\u00ad", "\u2011", "\u200b"
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # of output for terminals
_ASCII = dict.fromkeys((*range(9), *range(0x0E, 0x1C), 0x7F), _NOTHING)
_SEPARATORS = {0x1C: " ", 0x1D: " ", 0x1E: _HYPHEN, 0x1F: _SOFT_HYPHEN}  # as word processors use the last two
_WINDOWS = {code: bytes([code]).decode("windows-1252", "ignore") or _NOTHING for code in range(0x80, 0xA0)}
_HALVES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_VISIBLE = {**_ASCII, **_SEPARATORS, **_WINDOWS, **_HALVES}
del _VISIBLE[0x85]  # a line end


def without_controls(text: str) -> str:
    """Return a text of the same length without control characters other than white space.

    U+001F is a hyphen that is seen only at a line end, and U+001E one that does not break a line. Characters from
    U+0080 to U+009F are read as windows-1252, since they come from texts that were decoded in a wrong way.
    """
    if text.isprintable() or _CONTROL.search(text) is None:
        return text
    if "\x1b" in text:
        text = _COLOUR.sub(lambda colour: _NOTHING * len(colour[0]), text)
    return text.translate(_VISIBLE)
