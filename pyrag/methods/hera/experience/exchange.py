"""Import and export of libraries as JSON Lines, one entry per line.

    {"id": 3, "type": "bridge", "difficulty": "medium", "asks": "city", "insight": "…", "utility": 2, "uses": 5}

Imported entries get new ids; `id`, `difficulty`, `asks`, `utility` and `uses` are optional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyrag.errors import DataError
from pyrag.methods.hera.experience.entry import Experience, checked_insight, one_line
from pyrag.methods.hera.experience.library import Library
from pyrag.methods.hera.topology import Characterisation, Difficulty, QuestionType


@dataclass(frozen=True, slots=True)
class _Line:
    type: QuestionType
    insight: str
    difficulty: Difficulty = "medium"
    asks: str = ""
    utility: int = 0
    uses: int = 0
    id: int = 0


def as_object(entry: Experience) -> dict[str, Any]:
    profile = entry.profile
    return {
        "id": entry.id,
        "type": profile.type,
        "difficulty": profile.difficulty,
        "asks": profile.asks,
        "insight": entry.insight,
        "utility": entry.utility,
        "uses": entry.uses,
    }


def exported(entries: Iterable[Experience]) -> Iterator[bytes]:
    """Yield entries as JSON, one line each."""
    import msgspec

    for entry in entries:
        yield msgspec.json.encode(as_object(entry)) + b"\n"


def import_lines(library: Library, lines: Iterable[bytes], where: str) -> int:
    """Add the entries that the library does not have yet, all of them or none, and return their number.

    Args:
        library: A library opened for writing.
        lines: JSON Lines; blank ones are skipped.
        where: Name of the source, for errors.

    Raises:
        DataError: A line is not an entry. The message names `where` and the number of the line.
    """
    added = 0
    with library.update() as draft:
        known = {(entry.profile, entry.insight) for entry in draft.entries()}
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            entry = _read(line, f"{where} line {number}")
            profile = Characterisation(entry.type, entry.difficulty, one_line(entry.asks))
            if (profile, checked_insight(entry.insight)) not in known:
                known.add((profile, draft.add(profile, entry.insight, utility=entry.utility, uses=entry.uses).insight))
                added += 1
    return added


def _read(line: bytes, where: str) -> _Line:
    import msgspec

    try:
        entry = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"{where} is not an experience ({error}): fix or remove the line; nothing was imported"
        ) from error
    if not 0 <= entry.utility <= entry.uses < 1 << 32:
        raise DataError(
            f"{where} has a utility of {entry.utility} in {entry.uses} uses: "
            "the utility must be from 0 to the number of uses"
        )
    try:
        checked_insight(entry.insight)
    except DataError as error:
        raise DataError(f"{where}: {error}; nothing was imported") from error
    return entry
