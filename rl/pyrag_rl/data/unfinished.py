"""Rows of finished questions of an unfinished training set, stored so that no search or model call is repeated.

    OUT.part/config.json     the build's options (compared when it continues) and the sessions that worked on it
    OUT.part/results.jsonl   one line per question, in the order in which they are asked

The folder has the form of a run (`pyrag.evaluation.runs.folder`), and is removed after its set is written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyrag._io.jsonl import append, locked_lines, whole_lines
from pyrag.errors import DataError
from pyrag.evaluation.runs.folder import RESULTS, open_folder
from pyrag_rl.data.rows import TrainRow


@dataclass(frozen=True, slots=True)
class QuestionRows:
    """Rows of a question with their prompts, and the replies to learn, if there are any."""

    set: str
    id: str
    rows: tuple[TrainRow, ...]
    replies: tuple[str, ...] = ()


class Unfinished:
    """Rows for the next session. They are deleted once this session has written its set or found it empty (`drop`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] = locked_lines(path)
        self.drop = False

    def done(self) -> Iterator[QuestionRows]:
        """Yield the rows of earlier sessions. Raises `DataError` if they are damaged."""
        import msgspec

        decoder = msgspec.json.Decoder(QuestionRows)
        for number, line in whole_lines(self._path):
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(
                    f"{self._path} line {number} is damaged ({error}): remove {self._path.parent}"
                ) from error

    def keep(self, asked: Sequence[QuestionRows]) -> None:
        import msgspec

        append(self._file, *map(msgspec.json.encode, asked))

    def close(self) -> None:
        self._file.close()


@contextmanager
def open_unfinished(out: Path, identity: Mapping[str, Any]) -> Iterator[Unfinished]:
    """Open the folder of an unfinished set next to its file.

    Args:
        out: File of the set.
        identity: Options of the build, compared with the options of earlier sessions.

    Raises:
        UsageError: The unfinished set has other options, or another process is building it.
    """
    folder = out.with_name(f"{out.name}.part")
    with open_folder(folder, identity, {}):
        unfinished = Unfinished(folder / RESULTS)
        try:
            yield unfinished
            unfinished.drop = True
        finally:
            unfinished.close()
            if unfinished.drop:
                shutil.rmtree(folder)
