"""Documents with the suffix `.minutes`: lines `DATE SPEAKER: WORDS`, each a record with its date and speaker."""

from __future__ import annotations

from collections.abc import Iterator


def read(data: bytes, name: str) -> Iterator[dict[str, str]]:
    """Yield a record for each line.

    Args:
        data: Content of the file.
        name: Its name.
    """
    for line in data.decode().splitlines():
        head, _, words = line.partition(": ")
        date, _, speaker = head.partition(" ")
        yield {"title": f"{speaker}, {date}", "text": words, "date": date, "speaker": speaker}
